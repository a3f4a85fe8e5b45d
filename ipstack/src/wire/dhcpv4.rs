//! DHCPv4 and BOOTP messages (RFC 951, RFC 2131, RFC 2132).

use core::net::Ipv4Addr;

use byteorder::{ByteOrder, NetworkEndian};

use super::WireError;
use super::ethernet::MacAddr;

#[cfg(test)]
mod tests;

/// UDP port of servers and relay agents (RFC 2131 4.1).
pub const SERVER_PORT: u16 = 67;

/// UDP port of clients (RFC 2131 4.1).
pub const CLIENT_PORT: u16 = 68;

/// Bytes before the vendor area: all that a BOOTP request must have (RFC 951 3).
pub const FIXED_LEN: usize = 236;

/// Least bytes of a reply: BOOTP's, below which some clients drop it (RFC 1542 2.1).
pub const MIN_REPLY_LEN: usize = 300;

/// Most bytes of a reply to a client that has not said otherwise: what is left of the 576-byte IP
/// datagram that each must take (RFC 2131 2).
pub const DEFAULT_REPLY_LEN: usize = 548;

/// Bytes of the field `sname`, the NUL at its end included (RFC 2131 table 1).
pub const SERVER_NAME_LEN: usize = 64;

/// Bytes of the field `file`, the NUL at its end included (RFC 2131 table 1).
pub const BOOT_FILE_LEN: usize = 128;

/// IP and UDP header, which option 57 counts in (RFC 2132 9.10).
pub const IP_UDP_LEN: usize = 28;

const MAGIC_COOKIE: [u8; 4] = [99, 130, 83, 99];
const BOOT_REQUEST: u8 = 1;
const BOOT_REPLY: u8 = 2;
const HARDWARE_ETHERNET: u8 = 1;
const MAC_LEN: u8 = 6;
const FLAG_BROADCAST: u16 = 0x8000;

/// Option codes (RFC 2132).
#[expect(missing_docs, reason = "the names are those of RFC 2132")]
pub mod code {
    pub const PAD: u8 = 0;
    pub const SUBNET_MASK: u8 = 1;
    pub const ROUTER: u8 = 3;
    pub const DNS_SERVER: u8 = 6;
    pub const HOST_NAME: u8 = 12;
    pub const DOMAIN_NAME: u8 = 15;
    pub const INTERFACE_MTU: u8 = 26;
    pub const REQUESTED_IP: u8 = 50;
    pub const LEASE_TIME: u8 = 51;
    pub const OVERLOAD: u8 = 52;
    pub const MESSAGE_TYPE: u8 = 53;
    pub const SERVER_IDENTIFIER: u8 = 54;
    pub const PARAMETER_REQUEST_LIST: u8 = 55;
    pub const MESSAGE: u8 = 56;
    pub const MAX_MESSAGE_SIZE: u8 = 57;
    pub const RENEWAL_TIME: u8 = 58;
    pub const REBINDING_TIME: u8 = 59;
    pub const VENDOR_CLASS: u8 = 60;
    pub const CLIENT_IDENTIFIER: u8 = 61;
    pub const TFTP_SERVER_NAME: u8 = 66;
    pub const BOOT_FILE: u8 = 67;
    pub const END: u8 = 255;
}

/// Option 53 (RFC 2132 9.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of RFC 2131 table 2")]
pub enum MessageType {
    Discover = 1,
    Offer = 2,
    Request = 3,
    Decline = 4,
    Ack = 5,
    Nak = 6,
    Release = 7,
    Inform = 8,
}

impl MessageType {
    /// The type of that number, if RFC 2132 9.6 names it.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Discover,
            2 => Self::Offer,
            3 => Self::Request,
            4 => Self::Decline,
            5 => Self::Ack,
            6 => Self::Nak,
            7 => Self::Release,
            8 => Self::Inform,
            _ => return None,
        })
    }
}

/// A message whose fixed part is there and whose options all lie within it.
#[derive(Clone, Copy, Debug)]
pub struct DhcpMessage<'a> {
    fixed: &'a [u8; FIXED_LEN],
    options: Options<'a>,
}

impl<'a> DhcpMessage<'a> {
    /// Reads the payload of a UDP datagram.
    ///
    /// Requests shorter than BOOTP's 300 bytes are taken, since clients send them (libslirp #48,
    /// #51). Without the magic cookie there are no options, and the message is plain BOOTP.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the fixed part is not all there, [`WireError::BadLength`] if an
    /// option passes the end of its area (CVE-2017-11434).
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        let (fixed, vendor) = payload.split_first_chunk().ok_or(WireError::Truncated)?;
        let mut message = Self { fixed, options: Options::default() };
        if let Some((&MAGIC_COOKIE, area)) = vendor.split_first_chunk() {
            message.options.areas[0] = check_area(area)?;
            // RFC 2132 9.3: 1 is the file field, 2 the server name, 3 both; RFC 3396 5 has the order
            let overload = message.option(code::OVERLOAD).and_then(|v| v.first().copied());
            if matches!(overload, Some(1 | 3)) {
                message.options.areas[1] = check_area(&fixed[108..236])?;
            }
            if matches!(overload, Some(2 | 3)) {
                message.options.areas[2] = check_area(&fixed[44..108])?;
            }
        }
        Ok(message)
    }

    /// Whether this is from a client (`op` is BOOTREQUEST).
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.fixed[0] == BOOT_REQUEST
    }

    /// Transaction id.
    #[must_use]
    pub fn xid(&self) -> u32 {
        NetworkEndian::read_u32(&self.fixed[4..8])
    }

    /// Seconds since the client began.
    #[must_use]
    pub fn secs(&self) -> u16 {
        NetworkEndian::read_u16(&self.fixed[8..10])
    }

    /// Whether the client asks for broadcast replies (RFC 2131 figure 2).
    #[must_use]
    pub fn broadcast(&self) -> bool {
        NetworkEndian::read_u16(&self.fixed[10..12]) & FLAG_BROADCAST != 0
    }

    /// The address that the client says it has.
    #[must_use]
    pub fn ciaddr(&self) -> Ipv4Addr {
        self.address_at(12)
    }

    /// "Your" address: the one for the client.
    #[must_use]
    pub fn yiaddr(&self) -> Ipv4Addr {
        self.address_at(16)
    }

    /// The server to boot from next.
    #[must_use]
    pub fn siaddr(&self) -> Ipv4Addr {
        self.address_at(20)
    }

    /// The relay agent.
    #[must_use]
    pub fn giaddr(&self) -> Ipv4Addr {
        self.address_at(24)
    }

    /// The client's hardware address, if it is an Ethernet one.
    #[must_use]
    pub fn chaddr(&self) -> Option<MacAddr> {
        let [_, htype, hlen, ..] = *self.fixed;
        let mac = self.fixed[28..].first_chunk().copied()?;
        (htype == HARDWARE_ETHERNET && hlen == MAC_LEN).then_some(MacAddr(mac))
    }

    /// The server's host name, empty if the field holds options instead (RFC 2132 9.3).
    #[must_use]
    pub fn server_name(&self) -> &'a [u8] {
        let [_, _, options] = self.options.areas;
        if options.is_empty() { text(&self.fixed[44..108]) } else { &[] }
    }

    /// The boot file's name, empty if the field holds options instead (RFC 2132 9.3).
    #[must_use]
    pub fn boot_file(&self) -> &'a [u8] {
        let [_, options, _] = self.options.areas;
        if options.is_empty() { text(&self.fixed[108..236]) } else { &[] }
    }

    /// All options with their values, in the order of RFC 3396 5, without padding.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        self.options
    }

    /// The value of the first option with that code.
    #[must_use]
    pub fn option(&self, code: u8) -> Option<&'a [u8]> {
        self.options.into_iter().find_map(|(c, value)| (c == code).then_some(value))
    }

    /// Option 53: `None` for BOOTP, and for a type that has no name.
    #[must_use]
    pub fn message_type(&self) -> Option<MessageType> {
        match *self.option(code::MESSAGE_TYPE)? {
            [number] => MessageType::from_number(number),
            _ => None,
        }
    }

    /// Option 50.
    #[must_use]
    pub fn requested_ip(&self) -> Option<Ipv4Addr> {
        self.address_option(code::REQUESTED_IP)
    }

    /// Option 54.
    #[must_use]
    pub fn server_identifier(&self) -> Option<Ipv4Addr> {
        self.address_option(code::SERVER_IDENTIFIER)
    }

    /// Option 61.
    #[must_use]
    pub fn client_identifier(&self) -> Option<&'a [u8]> {
        self.option(code::CLIENT_IDENTIFIER)
    }

    /// Option 55: codes of the options that the client wants, the most wanted first.
    #[must_use]
    pub fn parameter_request_list(&self) -> Option<&'a [u8]> {
        self.option(code::PARAMETER_REQUEST_LIST)
    }

    /// Option 57: the longest message that the client takes, with IP and UDP header.
    #[must_use]
    pub fn max_message_size(&self) -> Option<u16> {
        let value = self.option(code::MAX_MESSAGE_SIZE)?;
        Some(u16::from_be_bytes(value.try_into().ok()?))
    }

    /// Option 60: what kind of client this is.
    #[must_use]
    pub fn vendor_class(&self) -> Option<&'a [u8]> {
        self.option(code::VENDOR_CLASS)
    }

    /// Option 12.
    #[must_use]
    pub fn host_name(&self) -> Option<&'a [u8]> {
        self.option(code::HOST_NAME)
    }

    fn address_at(&self, offset: usize) -> Ipv4Addr {
        let bytes = self.fixed.get(offset..).and_then(<[u8]>::first_chunk);
        Ipv4Addr::from(bytes.copied().unwrap_or_default())
    }

    fn address_option(&self, code: u8) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::from(<[u8; 4]>::try_from(self.option(code)?).ok()?))
    }
}

/// What lies before the NUL that ends a string, or the whole field.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Options of a message as pairs of code and value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    areas: [&'a [u8]; 3],
}

impl<'a> IntoIterator for Options<'a> {
    type Item = (u8, &'a [u8]);
    type IntoIter = OptionsIter<'a>;

    fn into_iter(self) -> OptionsIter<'a> {
        let [rest, file, server_name] = self.areas;
        OptionsIter { rest, later: [file, server_name] }
    }
}

/// Iterator over [`Options`].
#[derive(Clone, Debug)]
pub struct OptionsIter<'a> {
    rest: &'a [u8],
    later: [&'a [u8]; 2],
}

impl<'a> Iterator for OptionsIter<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Ok(Some(option)) = take_option(&mut self.rest) {
                return Some(option);
            }
            let [next, after] = self.later;
            if next.is_empty() && after.is_empty() {
                self.rest = &[];
                return None;
            }
            self.rest = next;
            self.later = [after, &[]];
        }
    }
}

/// Takes the first option off `area`, as code and value; `None` at the end of the options. An end
/// mark is not required, as clients forget it.
fn take_option<'a>(area: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, WireError> {
    while let Some((&code, rest)) = area.split_first() {
        match code {
            code::PAD => *area = rest,
            code::END => return Ok(None),
            _ => {
                let (&len, rest) = rest.split_first().ok_or(WireError::BadLength)?;
                let (value, rest) =
                    rest.split_at_checked(usize::from(len)).ok_or(WireError::BadLength)?;
                *area = rest;
                return Ok(Some((code, value)));
            }
        }
    }
    Ok(None)
}

fn check_area(area: &[u8]) -> Result<&[u8], WireError> {
    let mut rest = area;
    while take_option(&mut rest)?.is_some() {}
    Ok(area)
}

/// An option of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of RFC 2132; times are in seconds")]
pub enum DhcpOption<'a> {
    SubnetMask(Ipv4Addr),
    Router(Ipv4Addr),
    DnsServer(Ipv4Addr),
    HostName(&'a str),
    DomainName(&'a str),
    InterfaceMtu(u16),
    LeaseTime(u32),
    MessageType(MessageType),
    ServerIdentifier(Ipv4Addr),
    Message(&'a str),
    RenewalTime(u32),
    RebindingTime(u32),
    VendorClass(&'a str),
    ClientIdentifier(&'a [u8]),
    TftpServerName(&'a str),
    BootFile(&'a str),
}

impl DhcpOption<'_> {
    /// Its number.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::SubnetMask(_) => code::SUBNET_MASK,
            Self::Router(_) => code::ROUTER,
            Self::DnsServer(_) => code::DNS_SERVER,
            Self::HostName(_) => code::HOST_NAME,
            Self::DomainName(_) => code::DOMAIN_NAME,
            Self::InterfaceMtu(_) => code::INTERFACE_MTU,
            Self::LeaseTime(_) => code::LEASE_TIME,
            Self::MessageType(_) => code::MESSAGE_TYPE,
            Self::ServerIdentifier(_) => code::SERVER_IDENTIFIER,
            Self::Message(_) => code::MESSAGE,
            Self::RenewalTime(_) => code::RENEWAL_TIME,
            Self::RebindingTime(_) => code::REBINDING_TIME,
            Self::VendorClass(_) => code::VENDOR_CLASS,
            Self::ClientIdentifier(_) => code::CLIENT_IDENTIFIER,
            Self::TftpServerName(_) => code::TFTP_SERVER_NAME,
            Self::BootFile(_) => code::BOOT_FILE,
        }
    }

    fn emit(&self, out: &mut Writer<'_>) {
        match *self {
            Self::SubnetMask(a)
            | Self::Router(a)
            | Self::DnsServer(a)
            | Self::ServerIdentifier(a) => out.option(self.code(), &a.octets()),
            Self::HostName(text)
            | Self::DomainName(text)
            | Self::Message(text)
            | Self::VendorClass(text)
            | Self::TftpServerName(text)
            | Self::BootFile(text) => out.option(self.code(), text.as_bytes()),
            Self::InterfaceMtu(mtu) => out.option(self.code(), &mtu.to_be_bytes()),
            Self::LeaseTime(secs) | Self::RenewalTime(secs) | Self::RebindingTime(secs) => {
                out.option(self.code(), &secs.to_be_bytes())
            }
            Self::MessageType(kind) => out.option(self.code(), &[kind as u8]),
            Self::ClientIdentifier(id) => out.option(self.code(), id),
        }
    }
}

/// A message from a server, for an Ethernet client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DhcpReply<'a> {
    /// Transaction id of the request.
    pub xid: u32,
    /// Broadcast flag, of the request or set for a relay agent.
    pub broadcast: bool,
    /// The address that the client has.
    pub ciaddr: Ipv4Addr,
    /// The address for the client.
    pub yiaddr: Ipv4Addr,
    /// The server to boot from next.
    pub siaddr: Ipv4Addr,
    /// The relay agent of the request.
    pub giaddr: Ipv4Addr,
    /// The client's hardware address.
    pub chaddr: MacAddr,
    /// The server's host name, below [`SERVER_NAME_LEN`] bytes; empty for none.
    pub server_name: &'a str,
    /// The boot file's name, below [`BOOT_FILE_LEN`] bytes; empty for none.
    pub boot_file: &'a str,
    /// Options, the most important first.
    pub options: &'a [DhcpOption<'a>],
}

impl DhcpReply<'_> {
    /// Writes the message, padded to [`MIN_REPLY_LEN`], and returns its length. Options that find
    /// no room in `out`, or are longer than 255 bytes, are left out, as are names that are too long
    /// for their fields. Neither field ever holds options, which option 52 would have to tell.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if `out` is shorter than [`MIN_REPLY_LEN`].
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        if out.len() < MIN_REPLY_LEN {
            return Err(WireError::Truncated);
        }
        let mut writer = Writer { out, len: 0 };
        writer.put(&self.fixed_part());
        writer.put(&MAGIC_COOKIE);
        for option in self.options {
            option.emit(&mut writer);
        }
        writer.put(&[code::END]);
        let padding = MIN_REPLY_LEN.saturating_sub(writer.len);
        writer.out.iter_mut().skip(writer.len).take(padding).for_each(|byte| *byte = code::PAD);
        Ok(writer.len.max(MIN_REPLY_LEN))
    }

    fn fixed_part(&self) -> [u8; FIXED_LEN] {
        let mut fixed = [0; FIXED_LEN];
        fixed[0] = BOOT_REPLY;
        fixed[1] = HARDWARE_ETHERNET;
        fixed[2] = MAC_LEN;
        NetworkEndian::write_u32(&mut fixed[4..8], self.xid);
        NetworkEndian::write_u16(
            &mut fixed[10..12],
            if self.broadcast { FLAG_BROADCAST } else { 0 },
        );
        fixed[12..16].copy_from_slice(&self.ciaddr.octets());
        fixed[16..20].copy_from_slice(&self.yiaddr.octets());
        fixed[20..24].copy_from_slice(&self.siaddr.octets());
        fixed[24..28].copy_from_slice(&self.giaddr.octets());
        fixed[28..34].copy_from_slice(&self.chaddr.0);
        put_text(&mut fixed[44..108], self.server_name);
        put_text(&mut fixed[108..236], self.boot_file);
        fixed
    }
}

/// Writes `text` if it and the NUL at its end find room in `field`, which is all zero.
fn put_text(field: &mut [u8], text: &str) {
    if text.len() < field.len() {
        field.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    }
}

/// Fills a reply from the front.
struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    /// Writes all of `bytes`, or nothing if there is no room.
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(room) = self.out.get_mut(self.len..end) {
            room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            self.len = end;
        }
    }

    fn option(&mut self, code: u8, value: &[u8]) {
        let Ok(len) = u8::try_from(value.len()) else { return };
        let end_mark = 1;
        let whole = value.len().saturating_add(2).saturating_add(end_mark);
        if self.out.len().saturating_sub(self.len) >= whole {
            self.put(&[code, len]);
            self.put(value);
        }
    }
}
