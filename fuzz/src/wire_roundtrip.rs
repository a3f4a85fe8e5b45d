//! Packets: what was written reads back the same, what reads at all can be written again, and
//! `etherparse` reads the same.

mod ipv6;
mod peer;

pub use ipv6::{Extension, Packet, Place, TypeLengthValue};

use core::net::{IpAddr, Ipv4Addr};

use arbitrary::Arbitrary;
use ipstack::checksum::{ChecksumState, checksum};
use ipstack::wire::tcp::write_checksum;
use ipstack::wire::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, EthernetHeader, Icmpv4Error, Icmpv4Kind,
    Icmpv4Message, IpProtocol, Ipv4Header, Ipv4Packet, MacAddr, TcpFlags, TcpHeader, TcpOptions,
    TcpSegment, UdpDatagram, UdpHeader, icmpv4,
};

use crate::Target;

/// One packet of some layer.
#[derive(Arbitrary, Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the fields on the wire")]
pub enum Input {
    /// Bytes as they may come from a guest, whose checksums are mended or not.
    Received { mend: bool, bytes: Vec<u8> },
    /// An Ethernet header and an ARP packet.
    Arp {
        ether_type: u16,
        operation: u16,
        sender: ([u8; 6], Ipv4Addr),
        target: ([u8; 6], Ipv4Addr),
    },
    /// An IPv4 header.
    Ipv4 {
        fields: (u8, u16, bool, bool, u16, u8, u8),
        source: Ipv4Addr,
        destination: Ipv4Addr,
        payload: Vec<u8>,
    },
    /// An IPv6 packet.
    Ipv6(Packet),
    /// A UDP datagram.
    Udp { ports: (u16, u16), source: IpAddr, destination: IpAddr, payload: Vec<u8> },
    /// A TCP segment.
    Tcp { ports: (u16, u16), fields: (u32, u32, u16, u16), options: Options, payload: Vec<u8> },
    /// An ICMP echo message.
    Echo { reply: bool, ident: u16, sequence: u16, payload: Vec<u8> },
    /// An ICMP error.
    Error { code: u8, mtu: u16, original: Vec<u8> },
}

/// TCP options.
#[derive(Arbitrary, Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the fields on the wire")]
pub struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
}

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 2, 15), Ipv4Addr::new(192, 0, 2, 1)];
const ENDS: [IpAddr; 2] = [IpAddr::V4(ADDRESSES[0]), IpAddr::V4(ADDRESSES[1])];

impl Target for Input {
    fn run(self) {
        match self {
            Self::Received { mend, mut bytes } => {
                if mend {
                    mend_ipv4_checksum(&mut bytes);
                }
                received(&bytes);
            }
            Self::Arp { ether_type, operation, sender, target } => {
                ethernet(ether_type, sender.0, target.0);
                arp(operation, sender, target);
            }
            Self::Ipv4 { fields, source, destination, payload } => {
                ipv4(fields, source, destination, &payload);
            }
            Self::Ipv6(packet) => packet.run(),
            Self::Udp { ports, source, destination, payload } => {
                udp(ports, source, destination, &payload);
            }
            Self::Tcp { ports, fields, options, payload } => tcp(ports, fields, &options, &payload),
            Self::Echo { reply, ident, sequence, payload } => {
                echo(reply, ident, sequence, &payload);
            }
            Self::Error { code, mtu, original } => error(code, mtu, &original),
        }
    }
}

fn mend_ipv4_checksum(bytes: &mut [u8]) {
    let header_len = usize::from(bytes.first().copied().unwrap_or(0) & 0x0f) * 4;
    if let Some(header) = bytes.get_mut(..header_len.max(12)) {
        header[10..12].fill(0);
        let check = checksum(header);
        header[10..12].copy_from_slice(&check.to_be_bytes());
    }
}

/// Whatever can be read from `bytes` can be written, and reads the same then.
fn received(bytes: &[u8]) {
    peer::ethernet(bytes);
    peer::arp(bytes);
    peer::ipv4(bytes);
    peer::udp(bytes);
    peer::tcp(bytes);
    peer::icmpv4(bytes);
    ipv6::received(bytes);
    if let Ok(frame) = EthernetFrame::parse(bytes) {
        let (destination, source) = (frame.destination(), frame.source());
        let mut header = [0; 14];
        EthernetHeader { destination, source, ether_type: frame.ether_type() }.emit(&mut header);
        assert_eq!([&header, frame.payload()].concat(), bytes);
    }
    if let Ok(packet) = ArpPacket::parse(bytes) {
        let mut written = [0; 28];
        packet.emit(&mut written);
        assert_eq!(written, bytes[..28]);
    }
    if let Ok(packet) = Ipv4Packet::parse(bytes) {
        received_ipv4(&packet);
    }
    for verify in [ChecksumState::Whole, ChecksumState::Partial] {
        let [source, destination] = ENDS;
        if let Ok(datagram) = UdpDatagram::parse(bytes, source, destination, verify) {
            assert!(datagram.payload().len() + 8 <= bytes.len());
        }
        if let Ok(segment) = TcpSegment::parse(bytes, source, destination, verify) {
            assert!(segment.payload().len() + 20 <= bytes.len());
            assert!(segment.options().window_scale.is_none_or(|shift| shift <= 14));
        }
    }
    if let Ok(message) = Icmpv4Message::parse(bytes) {
        let _ = (message.kind(), message.quoted());
        assert_eq!(message.payload(), &bytes[8..]);
    }
}

fn received_ipv4(packet: &Ipv4Packet<'_>) {
    let header = Ipv4Header {
        tos: packet.tos(),
        total_len: packet.total_len(),
        identification: packet.identification(),
        dont_fragment: packet.dont_fragment(),
        more_fragments: packet.more_fragments(),
        fragment_offset: packet.fragment_offset(),
        ttl: packet.ttl(),
        ..Ipv4Header::new(packet.protocol(), packet.source(), packet.destination())
    };
    assert_eq!(packet.is_fragment(), header.more_fragments || header.fragment_offset > 0);
    assert_eq!(packet.bytes().len(), usize::from(header.total_len));
    assert_eq!([packet.header_bytes(), packet.payload()].concat(), packet.bytes());
    assert_eq!(packet.header_bytes()[20..], *packet.options());
    // The reserved flag (RFC 791 3.1) and options are not written again.
    if packet.options().is_empty() && packet.bytes()[6] & 0x80 == 0 {
        let mut written = [0; 20];
        header.emit(&mut written);
        written[10..12].copy_from_slice(&packet.bytes()[10..12]);
        assert_eq!(written, packet.header_bytes());
    }
}

fn ethernet(ether_type: u16, source: [u8; 6], destination: [u8; 6]) {
    let (source, destination) = (MacAddr(source), MacAddr(destination));
    let mut frame = [0; 14];
    EthernetHeader { destination, source, ether_type: EtherType::from(ether_type) }
        .emit(&mut frame);
    let read = EthernetFrame::parse(&frame).expect("a whole header");
    assert_eq!((read.source(), read.destination()), (source, destination));
    assert_eq!(u16::from(read.ether_type()), ether_type);
}

fn arp(operation: u16, sender: ([u8; 6], Ipv4Addr), target: ([u8; 6], Ipv4Addr)) {
    let packet = ArpPacket {
        operation: ArpOperation::from(operation),
        sender_mac: MacAddr(sender.0),
        sender_ip: sender.1,
        target_mac: MacAddr(target.0),
        target_ip: target.1,
    };
    let mut written = [0; 28];
    packet.emit(&mut written);
    assert_eq!(ArpPacket::parse(&written), Ok(packet));
    received(&written);
    assert_eq!(u16::from(packet.operation), operation);
}

fn ipv4(
    (tos, identification, dont_fragment, more_fragments, units, ttl, protocol): (
        u8,
        u16,
        bool,
        bool,
        u16,
        u8,
        u8,
    ),
    source: Ipv4Addr,
    destination: Ipv4Addr,
    payload: &[u8],
) {
    let Ok(total_len) = u16::try_from(20 + payload.len()) else { return };
    let header = Ipv4Header {
        tos,
        total_len,
        identification,
        dont_fragment,
        more_fragments,
        fragment_offset: (units & 0x1fff) * 8,
        ttl,
        ..Ipv4Header::new(IpProtocol::from(protocol), source, destination)
    };
    let mut written = [0; 20];
    header.emit(&mut written);
    let bytes = [&written, payload, b"padding"].concat();
    let read = Ipv4Packet::parse(&bytes).expect("a packet that was just written");
    assert_eq!((read.source(), read.destination()), (source, destination));
    assert_eq!(
        (u8::from(read.protocol()), read.fragment_offset()),
        (protocol, (units & 0x1fff) * 8)
    );
    assert_eq!(read.payload(), payload);
    received(&bytes);
}

fn udp(ports: (u16, u16), source: IpAddr, destination: IpAddr, payload: &[u8]) {
    if payload.len() > 65_527 || source.is_ipv4() != destination.is_ipv4() {
        return;
    }
    let Ok(payload_len) = u16::try_from(payload.len()) else { return };
    let (source_port, destination_port) = ports;
    let mut header = [0; 8];
    UdpHeader { source_port, destination_port, payload_len }.emit(
        &mut header,
        source,
        destination,
        payload,
    );
    assert_ne!(header[6..8], [0, 0], "0 means that there is no checksum (RFC 768)");
    let bytes = [&header, payload].concat();
    let read = UdpDatagram::parse(&bytes, source, destination, ChecksumState::Whole)
        .expect("a datagram that was just written");
    assert_eq!((read.source_port(), read.destination_port()), ports);
    assert_eq!(read.payload(), payload);
    let mut without_checksum = bytes.clone();
    without_checksum[6..8].fill(0);
    for bytes in [bytes, without_checksum] {
        received(&bytes);
    }
}

fn tcp(
    (source_port, destination_port): (u16, u16),
    (sequence, acknowledgment, window, bits): (u32, u32, u16, u16),
    given: &Options,
    payload: &[u8],
) {
    let options = TcpOptions {
        mss: given.mss,
        window_scale: given.window_scale.map(|shift| shift.min(14)),
        sack_permitted: given.sack_permitted,
        timestamps: given.timestamps,
        sack: given
            .sack
            .iter()
            .copied()
            .take(if given.timestamps.is_some() { 2 } else { 3 })
            .collect(),
    };
    let flags = TcpFlags::from_bits(bits);
    let header = TcpHeader {
        source_port,
        destination_port,
        sequence,
        acknowledgment,
        flags,
        window,
        options,
    };
    let mut bytes = vec![0xa5; header.header_len()];
    assert_eq!(header.emit(&mut bytes), Some(bytes.len()));
    assert_eq!(header.emit(&mut bytes[1..]), None);
    bytes.extend(payload);
    let [source, destination] = ENDS;
    write_checksum(&mut bytes, source, destination).expect("a whole header");
    let read = TcpSegment::parse(&bytes, source, destination, ChecksumState::Whole)
        .expect("a segment that was just written");
    assert_eq!((read.source_port(), read.destination_port()), (source_port, destination_port));
    assert_eq!((read.sequence(), read.acknowledgment()), (sequence, acknowledgment));
    assert_eq!((read.flags(), read.window()), (flags, window));
    assert_eq!(read.payload(), payload);
    received(&bytes);
    let room_for_sack = 3 - usize::from(given.mss.is_some() && given.window_scale.is_some());
    if header.options.sack.len() <= room_for_sack.saturating_sub(usize::from(given.sack_permitted))
    {
        assert_eq!(read.options(), header.options);
    }
}

fn echo(reply: bool, ident: u16, sequence: u16, payload: &[u8]) {
    let mut buffer = vec![0xa5; payload.len() + 8];
    assert_eq!(icmpv4::emit_echo(&mut buffer, reply, ident, sequence, payload), Some(buffer.len()));
    let read = Icmpv4Message::parse(&buffer).expect("a message that was just written");
    let kind = if reply {
        Icmpv4Kind::EchoReply { ident, sequence }
    } else {
        Icmpv4Kind::EchoRequest { ident, sequence }
    };
    assert_eq!((read.kind(), read.payload()), (kind, payload));
    assert_eq!(read.quoted(), None);
    received(&buffer);
    assert_eq!(icmpv4::emit_echo(&mut buffer[1..], reply, ident, sequence, payload), None);
}

fn error(code: u8, next_hop_mtu: u16, original: &[u8]) {
    let mut buffer = [0xa5; 576];
    let written = icmpv4::emit_error(
        &mut buffer,
        Icmpv4Error::DestinationUnreachable { code, next_hop_mtu },
        original,
    )
    .expect("there is room");
    assert!(written + 20 <= 576, "longer than every host must take (RFC 1812 4.3.2.3)");
    let read = Icmpv4Message::parse(&buffer[..written]).expect("a message that was just written");
    assert!(original.starts_with(read.payload()));
    received(&buffer[..written]);
    assert!(matches!(read.kind(), Icmpv4Kind::DestinationUnreachable { code: c, .. } if c == code));
    if let (Some(quoted), Ok(packet)) = (read.quoted(), Ipv4Packet::parse(original)) {
        assert_eq!((quoted.source, quoted.destination), (packet.source(), packet.destination()));
    }
}
