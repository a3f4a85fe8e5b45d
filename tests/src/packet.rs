//! Frames for the guest, taken apart.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::build::{ACK, FIN, RST, SYN};

/// A frame for the guest.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The whole frame.
    pub bytes: Vec<u8>,
    /// Destination hardware address.
    pub dst_mac: [u8; 6],
    /// Source hardware address.
    pub src_mac: [u8; 6],
    /// What is in it.
    pub body: Body,
}

/// What a frame carries.
#[derive(Clone, Debug)]
pub enum Body {
    /// ARP.
    Arp(Arp),
    /// A TCP segment.
    Tcp(Ip, Tcp),
    /// A UDP datagram.
    Udp(Ip, Udp),
    /// An ICMP message.
    Icmp(Ip, Icmp),
    /// A fragment of an IP datagram.
    Fragment(Ip, Vec<u8>),
}

/// An ARP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arp {
    /// 1 request, 2 reply.
    pub operation: u16,
    /// Sender's hardware address.
    pub sender_mac: [u8; 6],
    /// Sender's IP address.
    pub sender: Ipv4Addr,
    /// Target's hardware address.
    pub target_mac: [u8; 6],
    /// Target's IP address.
    pub target: Ipv4Addr,
}

/// An IPv4 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Time to live.
    pub ttl: u8,
    /// Type of service.
    pub tos: u8,
    /// Identification.
    pub id: u16,
    /// Don't fragment.
    pub dont_fragment: bool,
    /// More fragments.
    pub more: bool,
    /// Fragment offset in bytes.
    pub offset: usize,
    /// Protocol.
    pub protocol: u8,
    /// Total length.
    pub total_len: usize,
}

/// A TCP segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tcp {
    /// Source.
    pub src: SocketAddrV4,
    /// Destination.
    pub dst: SocketAddrV4,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window field.
    pub window: u16,
    /// Raw options.
    pub options: Vec<u8>,
    /// Payload.
    pub data: Vec<u8>,
}

/// Whether sequence number `a` is later than `b` (RFC 9293 3.4).
#[must_use]
pub const fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

impl Tcp {
    /// Whether all of `flags` are set.
    #[must_use]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// SYN and ACK are set.
    #[must_use]
    pub const fn is_syn_ack(&self) -> bool {
        self.has(SYN | ACK)
    }

    /// A segment that only acknowledges.
    #[must_use]
    pub fn is_pure_ack(&self) -> bool {
        self.flags == ACK && self.data.is_empty()
    }

    /// Sequence number behind this segment.
    #[must_use]
    pub fn seq_end(&self) -> u32 {
        let control = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        self.seq.wrapping_add(self.data.len() as u32).wrapping_add(control)
    }

    /// Whether RST is set.
    #[must_use]
    pub const fn is_reset(&self) -> bool {
        self.has(RST)
    }

    /// The value of an option.
    #[must_use]
    pub fn option(&self, kind: u8) -> Option<&[u8]> {
        let mut rest = &self.options[..];
        loop {
            match rest {
                [] | [0, ..] => return None,
                [1, after @ ..] => rest = after,
                [found, len, ..] if *found == kind => return rest.get(2..usize::from(*len)),
                [_, len, ..] => rest = rest.get(usize::from(*len)..)?,
                _ => return None,
            }
        }
    }

    /// The maximum segment size option.
    #[must_use]
    pub fn mss(&self) -> Option<u16> {
        self.option(2).map(|value| u16::from_be_bytes([value[0], value[1]]))
    }

    /// The window scale option.
    #[must_use]
    pub fn window_scale(&self) -> Option<u8> {
        self.option(3).map(|value| value[0])
    }
}

/// A UDP datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Udp {
    /// Source.
    pub src: SocketAddrV4,
    /// Destination.
    pub dst: SocketAddrV4,
    /// Payload.
    pub data: Vec<u8>,
}

/// An ICMP message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Icmp {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// The four bytes after the checksum.
    pub rest: [u8; 4],
    /// Everything after those.
    pub data: Vec<u8>,
}

impl Packet {
    /// Takes a verified frame apart.
    #[must_use]
    pub fn parse(bytes: Vec<u8>) -> Self {
        let body = match be16(&bytes[12..]) {
            0x0806 => Body::Arp(parse_arp(&bytes[14..])),
            0x0800 => parse_ip(&bytes[14..]),
            other => panic!("a frame of type {other:#06x}"),
        };
        let (dst_mac, src_mac) = (mac(&bytes[0..6]), mac(&bytes[6..12]));
        Self { bytes, dst_mac, src_mac, body }
    }

    /// The TCP segment, if it is one.
    #[must_use]
    pub const fn tcp(&self) -> Option<&Tcp> {
        if let Body::Tcp(_, tcp) = &self.body { Some(tcp) } else { None }
    }

    /// The UDP datagram, if it is one.
    #[must_use]
    pub const fn udp(&self) -> Option<&Udp> {
        if let Body::Udp(_, udp) = &self.body { Some(udp) } else { None }
    }

    /// The ICMP message, if it is one.
    #[must_use]
    pub const fn icmp(&self) -> Option<&Icmp> {
        if let Body::Icmp(_, icmp) = &self.body { Some(icmp) } else { None }
    }

    /// The ARP packet, if it is one.
    #[must_use]
    pub const fn arp(&self) -> Option<&Arp> {
        if let Body::Arp(arp) = &self.body { Some(arp) } else { None }
    }

    /// The IP header, if there is one.
    #[must_use]
    pub const fn ip(&self) -> Option<&Ip> {
        match &self.body {
            Body::Arp(_) => None,
            Body::Tcp(ip, _) | Body::Udp(ip, _) | Body::Icmp(ip, _) | Body::Fragment(ip, _) => {
                Some(ip)
            }
        }
    }
}

/// The IP datagram that a train of fragments makes: its protocol and payload. They must come in
/// order, without gap or overlap, and share their identification.
#[must_use]
pub fn reassemble(packets: &[Packet]) -> (Ip, Vec<u8>) {
    let mut payload = Vec::new();
    let mut first: Option<Ip> = None;
    for (index, packet) in packets.iter().enumerate() {
        let Body::Fragment(ip, data) = &packet.body else { panic!("not a fragment: {packet:?}") };
        let head = *first.get_or_insert(*ip);
        assert_eq!(
            (ip.id, ip.src, ip.dst, ip.protocol),
            (head.id, head.src, head.dst, head.protocol)
        );
        assert_eq!(ip.offset, payload.len(), "gap or overlap between fragments");
        assert_eq!(ip.more, index + 1 < packets.len(), "more-fragments flag of fragment {index}");
        payload.extend(data);
    }
    (first.expect("fragments"), payload)
}

/// A UDP datagram from its bytes, header included; the checksum is verified.
#[must_use]
pub fn udp_of(ip: &Ip, payload: &[u8]) -> Udp {
    crate::verify::transport(ip, payload);
    parse_udp(ip, payload)
}

fn parse_arp(packet: &[u8]) -> Arp {
    Arp {
        operation: be16(&packet[6..]),
        sender_mac: mac(&packet[8..14]),
        sender: address(&packet[14..]),
        target_mac: mac(&packet[18..24]),
        target: address(&packet[24..]),
    }
}

/// The header of an IPv4 packet.
#[must_use]
pub fn parse_ip_header(packet: &[u8]) -> Ip {
    let flags = be16(&packet[6..]);
    Ip {
        src: address(&packet[12..]),
        dst: address(&packet[16..]),
        ttl: packet[8],
        tos: packet[1],
        id: be16(&packet[4..]),
        dont_fragment: flags & 0x4000 != 0,
        more: flags & 0x2000 != 0,
        offset: usize::from(flags & 0x1fff) * 8,
        protocol: packet[9],
        total_len: usize::from(be16(&packet[2..])),
    }
}

fn parse_ip(packet: &[u8]) -> Body {
    let ip = parse_ip_header(packet);
    let payload = &packet[usize::from(packet[0] & 15) * 4..ip.total_len];
    if ip.more || ip.offset > 0 {
        return Body::Fragment(ip, payload.to_vec());
    }
    match ip.protocol {
        1 => Body::Icmp(ip, parse_icmp(payload)),
        6 => Body::Tcp(ip, parse_tcp(&ip, payload)),
        17 => Body::Udp(ip, parse_udp(&ip, payload)),
        other => panic!("a packet of protocol {other}"),
    }
}

fn parse_icmp(message: &[u8]) -> Icmp {
    Icmp {
        kind: message[0],
        code: message[1],
        rest: [message[4], message[5], message[6], message[7]],
        data: message[8..].to_vec(),
    }
}

fn parse_tcp(ip: &Ip, segment: &[u8]) -> Tcp {
    let header_len = usize::from(segment[12] >> 4) * 4;
    Tcp {
        src: SocketAddrV4::new(ip.src, be16(segment)),
        dst: SocketAddrV4::new(ip.dst, be16(&segment[2..])),
        seq: be32(&segment[4..]),
        ack: be32(&segment[8..]),
        flags: segment[13],
        window: be16(&segment[14..]),
        options: segment[20..header_len].to_vec(),
        data: segment[header_len..].to_vec(),
    }
}

fn parse_udp(ip: &Ip, datagram: &[u8]) -> Udp {
    Udp {
        src: SocketAddrV4::new(ip.src, be16(datagram)),
        dst: SocketAddrV4::new(ip.dst, be16(&datagram[2..])),
        data: datagram[8..].to_vec(),
    }
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::from_bits(be32(bytes))
}

fn mac(bytes: &[u8]) -> [u8; 6] {
    [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]
}
