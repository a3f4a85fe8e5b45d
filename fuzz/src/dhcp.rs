//! DHCP messages: any bytes, and replies that read back.

use core::net::Ipv4Addr;

use arbitrary::Arbitrary;
use ipstack::wire::dhcpv4::MIN_REPLY_LEN;
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
    /// A reply, in a buffer of that many bytes.
    Reply { xid: u32, broadcast: bool, addresses: [Ipv4Addr; 4], options: Vec<Pair>, room: u16 },
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
}

impl Pair {
    fn option(&self) -> (DhcpOption<'_>, Vec<u8>) {
        match self {
            Self::Router(address) => (DhcpOption::Router(*address), address.octets().into()),
            Self::HostName(name) => (DhcpOption::HostName(name), name.as_bytes().into()),
            Self::InterfaceMtu(mtu) => (DhcpOption::InterfaceMtu(*mtu), mtu.to_be_bytes().into()),
            Self::LeaseTime(time) => (DhcpOption::LeaseTime(*time), time.to_be_bytes().into()),
            Self::ClientIdentifier(id) => (DhcpOption::ClientIdentifier(id), id.clone()),
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
            Self::Reply { xid, broadcast, addresses, options, room } => {
                reply(xid, broadcast, addresses, &options, usize::from(room));
            }
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
    let mut total = 0;
    for (code, value) in message.options() {
        assert!(code != 0 && code != 255, "padding and end are no options");
        assert!(message.option(code).is_some());
        total += 2 + value.len();
    }
    // Overloaded fields count once more, at most.
    assert!(total <= bytes.len());
}

fn reply(xid: u32, broadcast: bool, addresses: [Ipv4Addr; 4], pairs: &[Pair], room: usize) {
    let [ciaddr, yiaddr, siaddr, giaddr] = addresses;
    let chaddr = MacAddr([2, 0, 0, 0, 0, 1]);
    let given: Vec<_> = pairs.iter().map(Pair::option).collect();
    let options: Vec<_> = given.iter().map(|(option, _)| *option).collect();
    let reply =
        DhcpReply { xid, broadcast, ciaddr, yiaddr, siaddr, giaddr, chaddr, options: &options };
    let mut buffer = vec![0xa5; room];
    let Ok(len) = reply.emit(&mut buffer) else {
        assert!(room < MIN_REPLY_LEN);
        return;
    };
    assert!((MIN_REPLY_LEN..=room).contains(&len));
    let read = DhcpMessage::parse(&buffer[..len]).expect("a reply that was just written");
    assert_eq!((read.xid(), read.broadcast(), read.chaddr()), (xid, broadcast, Some(chaddr)));
    assert_eq!([read.ciaddr(), read.yiaddr(), read.siaddr(), read.giaddr()], addresses);
    let mut expected = given.iter().map(|(option, value)| (option.code(), &value[..]));
    for option in read.options() {
        assert!(expected.any(|given| given == option), "{option:?} was not given, or not there");
    }
}
