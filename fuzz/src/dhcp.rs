//! DHCP messages: any bytes, and replies that read back.

use core::net::Ipv4Addr;

use arbitrary::Arbitrary;
use ipstack::wire::dhcpv4::{BOOT_FILE_LEN, MIN_REPLY_LEN, SERVER_NAME_LEN};
use ipstack::wire::{DhcpMessage, DhcpOption, DhcpReply, MacAddr};

use crate::Target;

/// A message from a client, or a reply.
#[derive(Arbitrary, Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the fields on the wire")]
pub enum Input {
    /// Bytes as they may come from a guest.
    Received(Vec<u8>),
    /// A message with the fixed part of `fixed`, the magic cookie and these options.
    Request { fixed: [u8; 32], options: Vec<(u8, Vec<u8>)>, cut: u16 },
    /// A reply.
    Reply(Reply),
}

/// A reply, in a buffer of `room` bytes.
#[derive(Arbitrary, Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the fields on the wire")]
pub struct Reply {
    pub xid: u32,
    pub broadcast: bool,
    pub addresses: [Ipv4Addr; 4],
    pub options: Vec<Pair>,
    pub room: u16,
    pub server_name: String,
    pub boot_file: String,
}

/// An option of a reply.
#[derive(Arbitrary, Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of RFC 2132")]
pub enum Pair {
    Router(Ipv4Addr),
    HostName(String),
    InterfaceMtu(u16),
    LeaseTime(u32),
    ClientIdentifier(Vec<u8>),
    BootFile(String),
}

impl Pair {
    fn option(&self) -> (DhcpOption<'_>, Vec<u8>) {
        match self {
            Self::Router(address) => (DhcpOption::Router(*address), address.octets().into()),
            Self::HostName(name) => (DhcpOption::HostName(name), name.as_bytes().into()),
            Self::InterfaceMtu(mtu) => (DhcpOption::InterfaceMtu(*mtu), mtu.to_be_bytes().into()),
            Self::LeaseTime(time) => (DhcpOption::LeaseTime(*time), time.to_be_bytes().into()),
            Self::ClientIdentifier(id) => (DhcpOption::ClientIdentifier(id), id.clone()),
            Self::BootFile(name) => (DhcpOption::BootFile(name), name.as_bytes().into()),
        }
    }
}

impl Target for Input {
    fn run(self) {
        match self {
            Self::Received(bytes) => received(&bytes),
            Self::Request { fixed, options, cut } => {
                let mut bytes = request(&fixed, &options);
                bytes.truncate(usize::from(cut));
                received(&bytes);
            }
            Self::Reply(reply) => reply.check(),
        }
    }
}

fn request(fixed: &[u8; 32], options: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = fixed.to_vec();
    bytes.resize(236, 0);
    bytes.extend([99, 130, 83, 99]);
    for (code, value) in options {
        let len = value.len().min(255);
        bytes.extend([*code, u8::try_from(len).unwrap_or(u8::MAX)]);
        bytes.extend(&value[..len]);
    }
    bytes
}

fn received(bytes: &[u8]) {
    let Ok(message) = DhcpMessage::parse(bytes) else { return };
    assert!(bytes.len() >= 236);
    let _ = (message.is_request(), message.xid(), message.secs(), message.broadcast());
    let _ = (message.ciaddr(), message.yiaddr(), message.siaddr(), message.giaddr());
    let _ = (message.chaddr(), message.message_type(), message.requested_ip());
    let _ = (message.server_identifier(), message.max_message_size(), message.host_name());
    let _ = (message.client_identifier(), message.parameter_request_list());
    let _ = (message.vendor_class(), message.server_name(), message.boot_file());
    let mut total = 0;
    for (code, value) in message.options() {
        assert!(code != 0 && code != 255, "padding and end are no options");
        assert!(message.option(code).is_some());
        total += 2 + value.len();
    }
    // Overloaded fields count once more, at most.
    assert!(total <= bytes.len());
}

impl Reply {
    fn check(&self) {
        let Self { xid, broadcast, addresses, room, .. } = *self;
        let [ciaddr, yiaddr, siaddr, giaddr] = addresses;
        let chaddr = MacAddr([2, 0, 0, 0, 0, 1]);
        let given: Vec<_> = self.options.iter().map(Pair::option).collect();
        let options: Vec<_> = given.iter().map(|(option, _)| *option).collect();
        let reply = DhcpReply {
            xid,
            broadcast,
            ciaddr,
            yiaddr,
            siaddr,
            giaddr,
            chaddr,
            server_name: &self.server_name,
            boot_file: &self.boot_file,
            options: &options,
        };
        let mut buffer = vec![0xa5; usize::from(room)];
        let Ok(len) = reply.emit(&mut buffer) else {
            assert!(buffer.len() < MIN_REPLY_LEN);
            return;
        };
        assert!((MIN_REPLY_LEN..=buffer.len()).contains(&len));
        let read = DhcpMessage::parse(&buffer[..len]).expect("a reply that was just written");
        assert_eq!((read.xid(), read.broadcast(), read.chaddr()), (xid, broadcast, Some(chaddr)));
        assert_eq!([read.ciaddr(), read.yiaddr(), read.siaddr(), read.giaddr()], addresses);
        assert_eq!(read.server_name(), in_field(&self.server_name, SERVER_NAME_LEN));
        assert_eq!(read.boot_file(), in_field(&self.boot_file, BOOT_FILE_LEN));
        let mut expected = given.iter().map(|(option, value)| (option.code(), &value[..]));
        for option in read.options() {
            assert!(
                expected.any(|given| given == option),
                "{option:?} was not given, or not there"
            );
        }
    }
}

/// What a field of `len` bytes says of `name`: all up to a NUL, or nothing if it is too long.
fn in_field(name: &str, len: usize) -> &[u8] {
    let fits = if name.len() < len { name } else { "" };
    fits.split('\0').next().unwrap_or_default().as_bytes()
}
