//! The same bytes read by `etherparse`, which nobody here wrote. It verifies no checksum by itself.

use core::net::Ipv4Addr;

use etherparse::checksum::Sum16BitWords;
use etherparse::{
    ArpPacketSlice, Ethernet2Slice, Icmpv4Slice, Ipv4HeaderSlice, TcpOptionElement, TcpSlice,
    UdpSlice,
};
use ipstack::checksum::ChecksumState;
use ipstack::wire::{
    ArpPacket, EthernetFrame, Icmpv4Kind, Icmpv4Message, Ipv4Packet, TcpOptions, TcpSegment,
    UdpDatagram,
};

use super::{ADDRESSES, ENDS};

pub(super) fn ethernet(bytes: &[u8]) {
    let (ours, theirs) =
        (EthernetFrame::parse(bytes), Ethernet2Slice::from_slice_without_fcs(bytes));
    assert_eq!(ours.is_ok(), theirs.is_ok());
    let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return };
    assert_eq!((ours.source().0, ours.destination().0), (theirs.source(), theirs.destination()));
    assert_eq!(u16::from(ours.ether_type()), theirs.ether_type().0);
    assert_eq!(ours.payload(), theirs.payload_slice());
}

pub(super) fn arp(bytes: &[u8]) {
    let is_ipv4 = |theirs: &ArpPacketSlice<'_>| {
        let types = (theirs.hw_addr_type().0, theirs.proto_addr_type().0);
        (types, theirs.hw_addr_size(), theirs.proto_addr_size()) == ((1, 0x800), 6, 4)
    };
    let theirs = ArpPacketSlice::from_slice(bytes).ok().filter(is_ipv4);
    let ours = ArpPacket::parse(bytes).ok();
    assert_eq!(ours.is_some(), theirs.is_some());
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    assert_eq!(u16::from(ours.operation), theirs.operation().0);
    assert_eq!(ours.sender_mac.0, theirs.sender_hw_addr());
    assert_eq!(ours.sender_ip.octets(), theirs.sender_protocol_addr());
    assert_eq!(ours.target_mac.0, theirs.target_hw_addr());
    assert_eq!(ours.target_ip.octets(), theirs.target_protocol_addr());
}

pub(super) fn ipv4(bytes: &[u8]) {
    let is_whole = |theirs: &Ipv4HeaderSlice<'_>| {
        let lengths = theirs.slice().len()..=bytes.len();
        let check = Sum16BitWords::new().add_slice(theirs.slice()).ones_complement();
        lengths.contains(&usize::from(theirs.total_len())) && check == 0
    };
    let theirs = Ipv4HeaderSlice::from_slice(bytes).ok().filter(is_whole);
    let ours = Ipv4Packet::parse(bytes).ok();
    assert_eq!(ours.is_some(), theirs.is_some());
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    assert_eq!(ours.tos(), theirs.dcp().value() << 2 | theirs.ecn().value());
    assert_eq!(ours.ecn(), theirs.ecn().value());
    assert_eq!(ours.total_len(), theirs.total_len());
    assert_eq!(ours.identification(), theirs.identification());
    assert_eq!(ours.dont_fragment(), theirs.dont_fragment());
    assert_eq!(ours.more_fragments(), theirs.more_fragments());
    assert_eq!(ours.fragment_offset(), theirs.fragments_offset().byte_offset());
    assert_eq!(ours.is_fragment(), theirs.is_fragmenting_payload());
    assert_eq!((ours.ttl(), u8::from(ours.protocol())), (theirs.ttl(), theirs.protocol().0));
    assert_eq!(ours.source(), theirs.source_addr());
    assert_eq!(ours.destination(), theirs.destination_addr());
    assert_eq!((ours.header_bytes(), ours.options()), (theirs.slice(), theirs.options()));
    assert_eq!(ours.payload().len(), usize::from(theirs.total_len()) - theirs.slice().len());
}

/// The sum over pseudo-header and `bytes`: 0 if their checksum is right.
fn transport_check(protocol: u8, bytes: &[u8]) -> u16 {
    let [source, destination] = ADDRESSES.map(|address: Ipv4Addr| address.octets());
    let [.., a, b] = bytes.len().to_be_bytes();
    Sum16BitWords::new()
        .add_4bytes(source)
        .add_4bytes(destination)
        .add_2bytes([0, protocol])
        .add_2bytes([a, b])
        .add_slice(bytes)
        .ones_complement()
}

pub(super) fn udp(bytes: &[u8]) {
    // They take a length of 0 for that of a jumbogram.
    let theirs = UdpSlice::from_slice(bytes).ok().filter(|theirs| theirs.length() != 0);
    let [source, destination] = ENDS;
    let parse = |verify| UdpDatagram::parse(bytes, source, destination, verify).ok();
    let ours = parse(ChecksumState::Partial);
    assert_eq!(ours.is_some(), theirs.is_some());
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    assert_eq!(ours.source_port(), theirs.source_port());
    assert_eq!(ours.destination_port(), theirs.destination_port());
    assert_eq!(ours.payload(), theirs.payload());
    let right = theirs.checksum() == 0 || transport_check(17, theirs.slice()) == 0;
    assert_eq!(parse(ChecksumState::Whole).is_some(), right);
}

pub(super) fn tcp(bytes: &[u8]) {
    let theirs = TcpSlice::from_slice(bytes).ok();
    let [source, destination] = ENDS;
    let parse = |verify| TcpSegment::parse(bytes, source, destination, verify).ok();
    let ours = parse(ChecksumState::Partial);
    assert_eq!(ours.is_some(), theirs.is_some());
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    assert_eq!(ours.source_port(), theirs.source_port());
    assert_eq!(ours.destination_port(), theirs.destination_port());
    assert_eq!(ours.sequence(), theirs.sequence_number());
    assert_eq!(ours.acknowledgment(), theirs.acknowledgment_number());
    assert_eq!(ours.window(), theirs.window_size());
    assert_eq!(ours.urgent_pointer(), theirs.urgent_pointer());
    let flags = [
        theirs.fin(),
        theirs.syn(),
        theirs.rst(),
        theirs.psh(),
        theirs.ack(),
        theirs.urg(),
        theirs.ece(),
        theirs.cwr(),
    ];
    let bits = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u16::from(*flag));
    assert_eq!(ours.flags().bits(), bits);
    assert_eq!(ours.payload(), theirs.payload());
    if let Some(options) = tcp_options(&theirs) {
        assert_eq!(ours.options(), options);
    }
    assert_eq!(parse(ChecksumState::Whole).is_some(), transport_check(6, bytes) == 0);
}

/// The options, if each is one that they know; they stop at the first other one.
fn tcp_options(theirs: &TcpSlice<'_>) -> Option<TcpOptions> {
    let mut options = TcpOptions::NONE;
    for element in theirs.options_iterator() {
        match element.ok()? {
            TcpOptionElement::Noop => {}
            TcpOptionElement::MaximumSegmentSize(mss) => options.mss = Some(mss),
            TcpOptionElement::WindowScale(shift) => options.window_scale = Some(shift.min(14)),
            TcpOptionElement::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
            TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                options.sack = [Some(first)].into_iter().chain(others).flatten().collect();
            }
            TcpOptionElement::Timestamp(value, echo) => options.timestamps = Some((value, echo)),
        }
    }
    Some(options)
}

pub(super) fn icmpv4(bytes: &[u8]) {
    let right = bytes.len() >= 8 && Sum16BitWords::new().add_slice(bytes).ones_complement() == 0;
    let ours = Icmpv4Message::parse(bytes).ok();
    assert_eq!(ours.is_some(), right);
    // They refuse timestamps of another length than 20 bytes, which nobody here looks into.
    let (Some(ours), Ok(theirs)) = (ours, Icmpv4Slice::from_slice(bytes)) else { return };
    assert_eq!(ours.payload(), &bytes[8..]);
    let [a, b, c, d] = theirs.bytes5to8();
    let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let kind = match (theirs.type_u8(), theirs.code_u8()) {
        (0, 0) => Icmpv4Kind::EchoReply { ident: first, sequence: second },
        (8, 0) => Icmpv4Kind::EchoRequest { ident: first, sequence: second },
        (3, code) => Icmpv4Kind::DestinationUnreachable { code, next_hop_mtu: second },
        (11, code) => Icmpv4Kind::TimeExceeded { code },
        (12, 0) => Icmpv4Kind::ParameterProblem { pointer: a },
        (kind, code) => Icmpv4Kind::Other { kind, code },
    };
    assert_eq!(ours.kind(), kind);
}
