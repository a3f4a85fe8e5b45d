//! Helpers; the tests lie in rooms by what they look at.

#![expect(clippy::std_instead_of_alloc, reason = "tests have std, and no alloc is linked")]

use std::vec;
use std::vec::Vec;

use super::*;

mod boot;
mod bootp;
mod delivery;
mod exchange;
mod hostile;
mod leases;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const NONE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// An address of the guests' network.
const fn net(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 2, last)
}

const fn mac(last: u8) -> MacAddr {
    MacAddr([0x52, 0x54, 0, 0, 0, last])
}

/// A message of a client, in the making.
#[derive(Clone, Debug)]
struct Message(Vec<u8>);

impl Message {
    /// Without the magic cookie.
    fn bootp(mac: MacAddr) -> Self {
        let mut fixed = vec![0; 236];
        fixed[..8].copy_from_slice(&[1, 1, 6, 0, 0x12, 0x34, 0x56, 0x78]);
        fixed[28..34].copy_from_slice(&mac.0);
        Self(fixed)
    }

    fn new(mac: MacAddr, kind: MessageType) -> Self {
        let mut message = Self::bootp(mac);
        message.0.extend([99, 130, 83, 99]);
        message.option(53, &[kind as u8])
    }

    fn discover(mac: MacAddr) -> Self {
        Self::new(mac, MessageType::Discover)
    }

    /// RFC 2131 4.3.2, the state SELECTING.
    fn select(mac: MacAddr, address: Ipv4Addr) -> Self {
        Self::new(mac, MessageType::Request).requested(address).server(GATEWAY)
    }

    /// The state INIT-REBOOT.
    fn reboot(mac: MacAddr, address: Ipv4Addr) -> Self {
        Self::new(mac, MessageType::Request).requested(address)
    }

    /// The states RENEWING and REBINDING.
    fn renew(mac: MacAddr, address: Ipv4Addr) -> Self {
        Self::new(mac, MessageType::Request).ciaddr(address)
    }

    fn option(mut self, code: u8, value: &[u8]) -> Self {
        self.0.extend([code, u8::try_from(value.len()).unwrap()]);
        self.0.extend(value);
        self
    }

    fn requested(self, address: Ipv4Addr) -> Self {
        self.option(50, &address.octets())
    }

    fn server(self, address: Ipv4Addr) -> Self {
        self.option(54, &address.octets())
    }

    fn identifier(self, id: &[u8]) -> Self {
        self.option(61, id)
    }

    fn set(mut self, offset: usize, bytes: &[u8]) -> Self {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn ciaddr(self, address: Ipv4Addr) -> Self {
        self.set(12, &address.octets())
    }

    fn giaddr(self, address: Ipv4Addr) -> Self {
        self.set(24, &address.octets())
    }

    fn broadcast(self) -> Self {
        self.set(10, &[0x80, 0])
    }
}

/// A server with its table and its clock.
struct Server {
    now: Instant,
    config: Config,
    leases: Vec<Lease>,
}

impl Server {
    fn new(leases: usize) -> Self {
        Self {
            now: Instant::from_millis(1000),
            config: Config::default(),
            leases: vec![Lease::EMPTY; leases],
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }

    fn respond(&mut self, message: &Message) -> Result<Option<Answered>, DhcpIgnore> {
        let mut out = [0xaa; 1024];
        let reply = respond(self.now, &self.config, &mut self.leases, &message.0, &mut out)?;
        Ok(reply.map(|reply| Answered { reply, bytes: out[..reply.len].to_vec() }))
    }

    /// The reply that must come.
    fn ask(&mut self, message: &Message) -> Answered {
        self.respond(message).unwrap().expect("a reply")
    }

    fn offered(&mut self, message: &Message) -> Ipv4Addr {
        let answer = self.ask(message);
        assert_eq!(answer.kind(), Some(MessageType::Offer));
        answer.message().yiaddr()
    }

    fn bind(&mut self, mac: MacAddr) -> Ipv4Addr {
        let address = self.offered(&Message::discover(mac));
        let answer = self.ask(&Message::select(mac, address));
        assert_eq!((answer.kind(), answer.bound()), (Some(MessageType::Ack), Some(address)));
        address
    }

    fn refuses(&mut self, message: &Message) -> bool {
        let answer = self.ask(message);
        let refused = answer.kind() == Some(MessageType::Nak);
        assert_ne!(refused, answer.bound().is_some());
        refused
    }

    fn is_silent_on(&mut self, message: &Message) -> bool {
        self.respond(message).unwrap().is_none()
    }

    fn guest(&self) -> Option<Ipv4Addr> {
        leased_guest(&self.config, &self.leases)
    }
}

struct Answered {
    reply: Reply,
    bytes: Vec<u8>,
}

impl Answered {
    fn message(&self) -> DhcpMessage<'_> {
        DhcpMessage::parse(&self.bytes).unwrap()
    }

    fn kind(&self) -> Option<MessageType> {
        self.message().message_type()
    }

    /// The address that the client has from now on, if the reply gave it one for good.
    fn bound(&self) -> Option<Ipv4Addr> {
        let for_good = matches!(self.kind(), None | Some(MessageType::Ack));
        Some(self.message().yiaddr()).filter(|address| for_good && !address.is_unspecified())
    }

    fn codes(&self) -> Vec<u8> {
        self.message().options().into_iter().map(|(code, _)| code).collect()
    }

    fn option(&self, code: u8) -> Option<Vec<u8>> {
        self.message().option(code).map(<[u8]>::to_vec)
    }
}
