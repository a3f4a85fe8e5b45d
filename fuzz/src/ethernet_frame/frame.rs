//! Frames of the guest.

use core::net::{Ipv4Addr, SocketAddrV4};

use arbitrary::Arbitrary;
use slirpkit_tests::build::{
    self, ACK, Dhcp, FIN, ICMP, IpBuilder, PSH, RST, SYN, TcpBuilder, UDP, dns_query, fix_checksums,
};
use slirpkit_tests::guest::{DNS, GATEWAY, GUEST_IP};

use super::guest::{Guest, text};
use super::stream_bytes;

/// A frame, or a train of fragments.
#[derive(Arbitrary, Clone, Debug)]
pub enum FrameEvent {
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Any IPv4 packet to any address, with right checksums as far as it can have them.
    Packet(Vec<u8>),
    /// A TCP segment.
    Tcp(TcpEvent),
    /// A UDP datagram, in fragments if it is longer than 1,480 bytes or so.
    Udp {
        /// Which of some ports it is from.
        port: u8,
        /// Which of some addresses it is to.
        to: u8,
        /// Bytes of payload.
        len: u16,
        /// Which fragment is lost.
        lost: Option<u8>,
    },
    /// An echo request.
    Ping {
        /// Which of some addresses it is to.
        to: u8,
        /// Identifier.
        ident: u8,
        /// Bytes of payload.
        len: u8,
    },
    /// A DHCP message of this type.
    Dhcp {
        /// Option 53.
        kind: u8,
        /// Which of some clients.
        client: u8,
        /// Any further options.
        options: Vec<(u8, Vec<u8>)>,
    },
    /// A DNS query.
    Dns(u16),
    /// An ARP request.
    Arp(Ipv4Addr),
}

/// A segment of one of a few connections, by what it differs in from the next one in order.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct TcpEvent {
    /// Which connection; only some bits are used.
    pub connection: u8,
    /// What it is.
    pub sent: Sent,
    /// Added to the sequence number.
    pub seq_off: Option<i16>,
    /// Added to the acknowledgment number.
    pub ack_off: Option<i16>,
    /// The window field, if not the largest.
    pub window: Option<u16>,
}

/// Kinds of segments.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Sent {
    /// The SYN of a new connection, with these options.
    Syn {
        /// MSS.
        mss: Option<u16>,
        /// Window scale.
        window_scale: Option<u8>,
    },
    /// The answer to the NAT's own SYN.
    SynAck,
    /// Text, and the FIN behind it or not.
    Data {
        /// How much.
        len: u16,
        /// Whether the stream ends.
        fin: bool,
    },
    /// An acknowledgment.
    Ack,
    /// A reset.
    Reset,
    /// Any flags.
    Flags(u8),
}

/// Destinations: the world, the router, the host itself, and what is not to be reached.
const ADDRESSES: [Ipv4Addr; 8] = [
    Ipv4Addr::new(203, 0, 113, 5),
    Ipv4Addr::new(192, 0, 2, 9),
    GATEWAY,
    DNS,
    Ipv4Addr::new(198, 51, 100, 7),
    Ipv4Addr::LOCALHOST,
    Ipv4Addr::new(224, 0, 0, 1),
    Ipv4Addr::BROADCAST,
];

fn address(number: u8) -> Ipv4Addr {
    ADDRESSES[usize::from(number) % ADDRESSES.len()]
}

/// The two ends of a connection: eight that the guest opens, and one that a client may.
pub(super) fn ends(connection: u8) -> (SocketAddrV4, SocketAddrV4) {
    if connection % 16 == 15 {
        return (SocketAddrV4::new(GUEST_IP, 80), super::world::CLIENT);
    }
    let number = connection % 8;
    let remote = SocketAddrV4::new(address(number % 3), 80 + u16::from(number % 2));
    (SocketAddrV4::new(GUEST_IP, 5000 + u16::from(number)), remote)
}

impl FrameEvent {
    pub(super) fn build(&self, guest: &mut Guest) -> Vec<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => vec![bytes.clone()],
            Self::Packet(bytes) => vec![packet(bytes)],
            Self::Tcp(event) => vec![event.build(guest)],
            Self::Udp { port, to, len, lost } => udp(*port, address(*to), *len, *lost),
            Self::Ping { to, ident, len } => {
                let data = stream_bytes(0, usize::from(*len));
                let message = build::echo_message(8, (*ident).into(), 1, &data);
                vec![IpBuilder::new(address(*to), ICMP).frame(&message)]
            }
            Self::Dhcp { kind, client, options } => vec![dhcp(*kind, *client, options)],
            Self::Dns(id) => vec![build::udp(5300, (DNS, 53), &dns_query(*id, "example.org"))],
            Self::Arp(address) => vec![build::arp_request(*address)],
        }
    }
}

fn packet(bytes: &[u8]) -> Vec<u8> {
    let mut packet = bytes.to_vec();
    packet.resize(packet.len().max(40), 0);
    packet[0] = 0x40 | (packet[0] % 16);
    packet[12..16].copy_from_slice(&GUEST_IP.octets());
    let mut frame = build::ethernet(build::ROUTER_MAC, 0x0800, &packet);
    let header_len = usize::from(packet[0] & 15) * 4;
    let total_len = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    if (20..=packet.len().min(total_len)).contains(&header_len) {
        fix_checksums(&mut frame);
    }
    frame
}

fn udp(port: u8, to: Ipv4Addr, len: u16, lost: Option<u8>) -> Vec<Vec<u8>> {
    let source = (GUEST_IP, 6000 + u16::from(port % 4));
    let data = stream_bytes(0, usize::from(len).min(65_507));
    let datagram = build::udp_datagram(source, (to, 7 + u16::from(port % 2)), &data);
    let mut ip = IpBuilder::new(to, UDP);
    ip.id = len;
    let mut frames = ip.fragments_for_mtu(&datagram, 1500);
    if let Some(lost) = lost {
        frames.remove(usize::from(lost) % frames.len());
    }
    frames
}

fn dhcp(kind: u8, client: u8, options: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut message = Dhcp::new(kind % 10).mac([2, 0, 0, 0, 0, client % 4]);
    message.broadcast = kind & 0x80 != 0;
    for (code, value) in options {
        message = message.option(*code, &value[..value.len().min(255)]);
    }
    message.frame()
}

impl TcpEvent {
    fn build(self, guest: &mut Guest) -> Vec<u8> {
        let (local, remote) = ends(self.connection);
        let end = guest.end(local, remote);
        let offset = i32::from(self.seq_off.unwrap_or(0));
        if matches!(self.sent, Sent::Syn { .. }) && offset == 0 {
            end.begin();
        }
        let ack_off = i32::from(self.ack_off.unwrap_or(0));
        let ack = end.rcv_nxt.wrapping_add_signed(ack_off);
        let window = self.window.unwrap_or(u16::MAX);
        let segment = TcpBuilder::new(local, remote).ack(ack).window(window);
        let is_syn = matches!(self.sent, Sent::Syn { .. } | Sent::SynAck);
        let seq = if is_syn { end.iss } else { end.snd_nxt }.wrapping_add_signed(offset);
        let segment = segment.seq(seq);
        let flags = match self.sent {
            Sent::Flags(flags) => flags,
            _ => 0,
        };
        if is_syn || flags & SYN != 0 {
            guest.note_syn(seq);
        }
        let end = guest.end(local, remote);
        match self.sent {
            Sent::Syn { mss, window_scale } => {
                let segment = segment.flags(SYN).ack(0);
                let segment = mss.map_or(segment.clone(), |mss| segment.mss(mss));
                window_scale.map_or(segment.clone(), |shift| segment.window_scale(shift)).frame()
            }
            Sent::SynAck => segment.flags(SYN | ACK).mss(1460).frame(),
            Sent::Data { len, fin } => {
                let data = text(seq, usize::from(len % 4096));
                let fin = if fin { FIN } else { 0 };
                if offset == 0 {
                    end.snd_nxt = seq.wrapping_add(u32::from(len % 4096)) + u32::from(fin);
                }
                segment.flags(ACK | PSH | fin).data(&data).frame()
            }
            Sent::Ack => segment.flags(ACK).frame(),
            Sent::Reset => segment.flags(RST).frame(),
            Sent::Flags(flags) => segment.flags(flags).frame(),
        }
    }
}
