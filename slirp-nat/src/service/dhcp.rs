//! The DHCP and BOOTP server (RFC 2131, RFC 951).
//!
//! The caller passes on what comes to UDP port 67 of the gateway or of a broadcast address, and
//! sends the reply from [`Config::gateway`], port 67, to where [`Delivery`] says. It can be longer
//! than the MTU if that is below 328 bytes, and is fragmented then.

use core::net::Ipv4Addr;
use core::time::Duration;

use heapless::Vec;
use ipstack::Instant;
use ipstack::wire::dhcpv4::{
    BOOT_FILE_LEN, CLIENT_PORT, DEFAULT_REPLY_LEN, DhcpMessage, DhcpOption, DhcpReply, IP_UDP_LEN,
    MIN_REPLY_LEN, MessageType, SERVER_NAME_LEN, SERVER_PORT, code,
};
use ipstack::wire::{MacAddr, WireError};

use crate::config::Config;
use crate::service::{is_guest, is_station};

mod lease;
#[cfg(test)]
mod tests;

pub use lease::Lease;
pub(crate) use lease::leased_guest;
use lease::{Client, Table};

/// How long a lease lasts, as libslirp has it.
const LEASE_SECS: u32 = 86_400;

/// BOOTP knows no end of a lease (RFC 1534 2).
const FOREVER: Duration = Duration::MAX;

/// Options that a client gets if they are known, even if it does not ask.
const UNASKED_OPTIONS: [u8; 3] = [code::INTERFACE_MTU, code::HOST_NAME, code::DOMAIN_NAME];

/// Options of one reply: room for every kind there is.
type Options<'a> = Vec<DhcpOption<'a>, 16>;

/// How the vendor class of a client begins that boots over HTTP, and what it wants to hear of an
/// offer (UEFI 2.10 24.7.3.1).
const HTTP_CLIENT: &str = "HTTPClient";

/// A reply in the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    /// Bytes of UDP payload.
    pub(crate) len: usize,
    pub(crate) delivery: Delivery,
}

/// Where a reply goes (RFC 2131 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delivery {
    pub(crate) destination_ip: Ipv4Addr,
    /// `None` for a relay agent: the source of the frame that brought the request.
    pub(crate) destination_mac: Option<MacAddr>,
    pub(crate) port: u16,
}

/// Why a message was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DhcpIgnore {
    /// It cannot be read.
    Malformed(WireError),
    /// It is not what a client sends.
    NotFromClient,
    /// The hardware address is not one of an Ethernet station.
    ClientAddress,
    /// It came through a relay agent of another network, for which there are no leases.
    Relay,
    /// It lacks what its type must have.
    Incomplete,
    /// All leases are in use, or there is none.
    NoLease,
    /// The caller's buffer is too short for a reply.
    NoBuffer,
}

/// Takes the payload of a UDP datagram and writes the reply to `out`, which holds at least 300
/// bytes. `Ok(None)` if the message is fine but gets no reply.
pub(crate) fn respond(
    now: Instant,
    config: &Config,
    leases: &mut [Lease],
    payload: &[u8],
    out: &mut [u8],
) -> Result<Option<Reply>, DhcpIgnore> {
    let request = Request::parse(config, payload)?;
    let mut table = Table { now, config, leases };
    let Some(answer) = request.decide(&mut table)? else { return Ok(None) };
    let limit = request.reply_limit(config).min(out.len());
    let out = out.get_mut(..limit).unwrap_or_default();
    let len = request.write(config, answer, out).map_err(|_| DhcpIgnore::NoBuffer)?;
    Ok(Some(Reply { len, delivery: request.delivery(config, answer) }))
}

#[derive(Clone, Copy)]
enum Answer {
    Offer(Ipv4Addr),
    Ack(Ipv4Addr),
    /// To a client that has its address from elsewhere.
    Inform,
    Nak(&'static str),
    /// BOOTP's only reply; the address is unspecified if the client has one.
    Boot(Ipv4Addr),
}

impl Answer {
    const fn message_type(self) -> Option<MessageType> {
        match self {
            Self::Offer(_) => Some(MessageType::Offer),
            Self::Ack(_) | Self::Inform => Some(MessageType::Ack),
            Self::Nak(_) => Some(MessageType::Nak),
            Self::Boot(_) => None,
        }
    }

    const fn yiaddr(self) -> Ipv4Addr {
        match self {
            Self::Offer(address) | Self::Ack(address) | Self::Boot(address) => address,
            Self::Inform | Self::Nak(_) => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// Whether lease times belong in it (RFC 2131 table 3).
    const fn is_lease(self) -> bool {
        matches!(self, Self::Offer(_) | Self::Ack(_))
    }
}

/// A message that has passed the checks which do not depend on its type.
struct Request<'a> {
    message: DhcpMessage<'a>,
    mac: MacAddr,
    client: Client,
}

impl<'a> Request<'a> {
    fn parse(config: &Config, payload: &'a [u8]) -> Result<Self, DhcpIgnore> {
        let message = DhcpMessage::parse(payload).map_err(DhcpIgnore::Malformed)?;
        if !message.is_request() {
            return Err(DhcpIgnore::NotFromClient);
        }
        let mac =
            message.chaddr().filter(|mac| is_station(*mac)).ok_or(DhcpIgnore::ClientAddress)?;
        let relay = message.giaddr();
        if !relay.is_unspecified() && !is_guest(config, relay) {
            return Err(DhcpIgnore::Relay);
        }
        let client = Client::new(mac, message.client_identifier());
        Ok(Self { message, mac, client })
    }

    fn decide(&self, table: &mut Table<'_>) -> Result<Option<Answer>, DhcpIgnore> {
        if self.message.option(code::MESSAGE_TYPE).is_none() {
            return self.boot(table).map(Some);
        }
        match self.message.message_type() {
            Some(MessageType::Discover) => self.discover(table).map(Some),
            Some(MessageType::Request) => self.request(table),
            Some(MessageType::Inform) => self.inform(table.config).map(Some),
            Some(MessageType::Release) => {
                if self.is_for(table.config) {
                    table.release(self.client, self.message.ciaddr());
                }
                Ok(None)
            }
            Some(MessageType::Decline) => {
                let address = self.message.requested_ip().ok_or(DhcpIgnore::Incomplete)?;
                if self.is_for(table.config) {
                    table.decline(self.client, address);
                }
                Ok(None)
            }
            Some(MessageType::Offer | MessageType::Ack | MessageType::Nak) | None => {
                Err(DhcpIgnore::NotFromClient)
            }
        }
    }

    /// Whether the client means this server, or does not say.
    fn is_for(&self, config: &Config) -> bool {
        self.message.server_identifier().is_none_or(|server| server == config.gateway)
    }

    /// RFC 951 7.3: an address only for a client that has none.
    fn boot(&self, table: &mut Table<'_>) -> Result<Answer, DhcpIgnore> {
        if self.has_address(table.config) {
            return Ok(Answer::Boot(Ipv4Addr::UNSPECIFIED));
        }
        let (index, address) = self.choose(table)?;
        table.bind(index, self.client, FOREVER);
        Ok(Answer::Boot(address))
    }

    /// RFC 2131 4.3.1.
    fn discover(&self, table: &mut Table<'_>) -> Result<Answer, DhcpIgnore> {
        let (index, address) = self.choose(table)?;
        table.offer(index, self.client);
        Ok(Answer::Offer(address))
    }

    fn choose(&self, table: &Table<'_>) -> Result<(usize, Ipv4Addr), DhcpIgnore> {
        let index = table.choose(self.client, self.message.requested_ip());
        let index = index.ok_or(DhcpIgnore::NoLease)?;
        Ok((index, table.address(index).ok_or(DhcpIgnore::NoLease)?))
    }

    /// RFC 2131 4.3.2. SELECTING names the server, INIT-REBOOT the address only, RENEWING and
    /// REBINDING have it in `ciaddr`.
    fn request(&self, table: &mut Table<'_>) -> Result<Option<Answer>, DhcpIgnore> {
        if !self.is_for(table.config) {
            table.withdraw(self.client);
            return Ok(None);
        }
        let ciaddr = self.message.ciaddr();
        let (wanted, rebooting) = if ciaddr.is_unspecified() {
            let address = self.message.requested_ip().ok_or(DhcpIgnore::Incomplete)?;
            (address, self.message.server_identifier().is_none())
        } else {
            (ciaddr, false)
        };
        let held = table.held_by(self.client);
        if rebooting && held.is_none() && table.config.contains(wanted) {
            // "If the DHCP server has no record of this client, then it MUST remain silent"
            return Ok(None);
        }
        // no other server is on the link, so a free address is granted without a record: this NAT
        // may be younger than the guest's lease
        let granted = match (table.index_of(wanted), held) {
            (Some(index), Some(held)) if index == held => Some(index),
            (Some(index), None) if table.is_free(index) => Some(index),
            _ => None,
        };
        Ok(Some(match granted {
            Some(index) => {
                table.bind(index, self.client, Duration::from_secs(LEASE_SECS.into()));
                Answer::Ack(wanted)
            }
            None if table.config.contains(wanted) => Answer::Nak("address not available"),
            None => Answer::Nak("address of another network"),
        }))
    }

    /// RFC 2131 4.3.5: parameters, but no lease, for a client that has its address.
    fn inform(&self, config: &Config) -> Result<Answer, DhcpIgnore> {
        self.has_address(config).then_some(Answer::Inform).ok_or(DhcpIgnore::Incomplete)
    }

    /// Whether the client says that it has an address, and it can be sent to.
    fn has_address(&self, config: &Config) -> bool {
        is_guest(config, self.message.ciaddr())
    }

    /// Longest reply that the client and the link take.
    fn reply_limit(&self, config: &Config) -> usize {
        if self.message.option(code::MESSAGE_TYPE).is_none() {
            return MIN_REPLY_LEN;
        }
        let link = usize::from(config.mtu).saturating_sub(IP_UDP_LEN);
        let client = self.message.max_message_size();
        client
            .map_or(DEFAULT_REPLY_LEN, |size| usize::from(size).saturating_sub(IP_UDP_LEN))
            .min(link)
            .max(MIN_REPLY_LEN)
    }

    /// RFC 2131 4.3.1 table 3 says which field holds what.
    fn write(&self, config: &Config, answer: Answer, out: &mut [u8]) -> Result<usize, WireError> {
        let refusal = matches!(answer, Answer::Nak(_));
        let relayed = !self.message.giaddr().is_unspecified();
        let ciaddr = match answer {
            Answer::Offer(_) | Answer::Nak(_) => Ipv4Addr::UNSPECIFIED,
            Answer::Ack(_) | Answer::Inform | Answer::Boot(_) => self.message.ciaddr(),
        };
        DhcpReply {
            xid: self.message.xid(),
            // RFC 2131 4.3.2: the relay agent shall broadcast a NAK
            broadcast: self.message.broadcast() || (refusal && relayed),
            ciaddr,
            yiaddr: answer.yiaddr(),
            siaddr: if refusal { Ipv4Addr::UNSPECIFIED } else { config.next_server() },
            giaddr: self.message.giaddr(),
            chaddr: self.mac,
            server_name: if refusal { "" } else { &config.tftp_server_name },
            boot_file: if refusal { "" } else { &config.boot_file },
            options: &self.options(config, answer),
        }
        .emit(out)
    }

    /// What must be there, then what the client asks for in its order, then the rest.
    fn options<'b>(&'b self, config: &'b Config, answer: Answer) -> Options<'b> {
        let mut options = Options::new();
        if let Some(kind) = answer.message_type() {
            add(&mut options, DhcpOption::MessageType(kind));
            add(&mut options, DhcpOption::ServerIdentifier(config.gateway));
        }
        // RFC 6842 3: given back as it came
        let identifier = self.message.client_identifier().map(DhcpOption::ClientIdentifier);
        if let Answer::Nak(text) = answer {
            add(&mut options, DhcpOption::Message(text));
            identifier.into_iter().for_each(|option| add(&mut options, option));
            return options;
        }
        if answer.is_lease() {
            add(&mut options, DhcpOption::LeaseTime(LEASE_SECS));
        }
        add(&mut options, DhcpOption::SubnetMask(Ipv4Addr::from_bits(config.mask())));
        add(&mut options, DhcpOption::Router(config.gateway));
        add(&mut options, DhcpOption::DnsServer(config.dns));
        identifier.into_iter().for_each(|option| add(&mut options, option));
        if self.boots_over_http(config) {
            add(&mut options, DhcpOption::VendorClass(HTTP_CLIENT));
        }
        let wanted = self.message.parameter_request_list().unwrap_or_default();
        let boot = boot_options_unasked(config);
        wanted
            .iter()
            .chain(boot.iter().flatten())
            .chain(&UNASKED_OPTIONS)
            .filter_map(|code| further_option(config, answer, *code))
            .for_each(|option| add(&mut options, option));
        options
    }

    fn boots_over_http(&self, config: &Config) -> bool {
        let class = self.message.vendor_class().unwrap_or_default();
        let is_url = |scheme| config.boot_file.starts_with(scheme);
        class.starts_with(HTTP_CLIENT.as_bytes()) && (is_url("http://") || is_url("https://"))
    }

    fn delivery(&self, config: &Config, answer: Answer) -> Delivery {
        let giaddr = self.message.giaddr();
        if !giaddr.is_unspecified() {
            return Delivery { destination_ip: giaddr, destination_mac: None, port: SERVER_PORT };
        }
        let broadcast = (Ipv4Addr::BROADCAST, MacAddr::BROADCAST);
        let (destination_ip, mac) = match answer {
            Answer::Nak(_) => broadcast,
            _ if self.has_address(config) => (self.message.ciaddr(), self.mac),
            _ if self.message.broadcast() => broadcast,
            _ => (answer.yiaddr(), self.mac),
        };
        Delivery { destination_ip, destination_mac: Some(mac), port: CLIENT_PORT }
    }
}

/// Adds an option of which there is none yet.
fn add<'a>(options: &mut Options<'a>, option: DhcpOption<'a>) {
    if !options.iter().any(|present| present.code() == option.code()) {
        // there is room, since no kind is there twice
        let _ = options.push(option);
    }
}

/// Options for names that are too long for their fields: a client cannot know that there is
/// something to ask for.
fn boot_options_unasked(config: &Config) -> [Option<u8>; 2] {
    [
        (config.boot_file.len() >= BOOT_FILE_LEN).then_some(code::BOOT_FILE),
        (config.tftp_server_name.len() >= SERVER_NAME_LEN).then_some(code::TFTP_SERVER_NAME),
    ]
}

fn further_option(config: &Config, answer: Answer, code: u8) -> Option<DhcpOption<'_>> {
    match code {
        code::INTERFACE_MTU => Some(DhcpOption::InterfaceMtu(config.mtu)),
        code::HOST_NAME => named(&config.hostname).map(DhcpOption::HostName),
        code::DOMAIN_NAME => named(&config.domain).map(DhcpOption::DomainName),
        code::TFTP_SERVER_NAME => named(&config.tftp_server_name).map(DhcpOption::TftpServerName),
        code::BOOT_FILE => named(&config.boot_file).map(DhcpOption::BootFile),
        // RFC 2131 4.4.5: half and seven eighths of the lease
        code::RENEWAL_TIME if answer.is_lease() => Some(DhcpOption::RenewalTime(LEASE_SECS / 2)),
        code::REBINDING_TIME if answer.is_lease() => {
            Some(DhcpOption::RebindingTime(LEASE_SECS / 8 * 7))
        }
        _ => None,
    }
}

fn named(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
