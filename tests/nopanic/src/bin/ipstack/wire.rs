//! Packets: parsed from any bytes, and written into buffers of any length.

use core::net::Ipv6Addr;

use ipstack::checksum::ChecksumState;
use ipstack::wire::tcp::{write_checksum, write_partial_checksum};
use ipstack::wire::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, EthernetHeader, Icmpv4Error, Icmpv4Message,
    IpProtocol, Ipv4Header, Ipv4Packet, Ipv6Header, Ipv6Packet, Ipv6Payload, MacAddr, TcpFlags,
    TcpHeader, TcpOptions, TcpSegment, UdpDatagram, UdpHeader, icmpv4,
};
use slirpkit_nopanic::{any, any_bytes, hidden, keep, one_of};

pub(crate) fn parse() {
    if let Ok(frame) = EthernetFrame::parse(any_bytes()) {
        keep((frame.destination(), frame.source(), frame.payload()));
        keep((u16::from(frame.ether_type()), frame.source().is_multicast()));
        keep(frame.destination().is_broadcast());
    }
    keep(ArpPacket::parse(any_bytes()));
    ipv4();
    ipv6();
    icmpv4();
    udp();
    tcp();
}

fn ipv4() {
    let parse = if any() { Ipv4Packet::parse } else { Ipv4Packet::parse_quoted };
    let Ok(packet) = parse(any_bytes()) else { return };
    keep((packet.tos(), packet.ecn(), packet.total_len(), packet.identification()));
    keep((packet.dont_fragment(), packet.more_fragments(), packet.fragment_offset()));
    keep((packet.is_fragment(), packet.ttl(), u8::from(packet.protocol())));
    keep((packet.source(), packet.destination()));
    keep((packet.bytes(), packet.header_bytes(), packet.options(), packet.payload()));
}

fn ipv6() {
    keep(Ipv6Payload::of_reassembled(any(), any_bytes()));
    let Ok(packet) = Ipv6Packet::parse(any_bytes()) else { return };
    keep((packet.traffic_class(), packet.ecn(), packet.flow_label(), packet.payload_len()));
    keep((packet.next_header(), packet.hop_limit(), packet.source(), packet.destination()));
    keep((packet.bytes(), packet.payload()));
    let payload = packet.payload_behind_extensions();
    if let Ok(Ipv6Payload::Fragment(fragment)) = payload {
        keep(packet.quoted_header(&fragment));
        let mut header = [0; 8];
        fragment.emit_header(&mut header);
        keep(header);
    }
    keep(payload);
}

fn icmpv4() {
    let Ok(message) = Icmpv4Message::parse(any_bytes()) else { return };
    keep((message.kind(), message.payload(), message.quoted()));
}

fn any_state() -> ChecksumState {
    one_of(ChecksumState::Whole, &[ChecksumState::Partial])
}

fn udp() {
    if let Ok(datagram) = UdpDatagram::parse(any_bytes(), any(), any(), any_state()) {
        keep((datagram.source_port(), datagram.destination_port(), datagram.payload()));
    }
}

fn tcp() {
    let segment = TcpSegment::parse(any_bytes(), any(), any(), any_state());
    if let Ok(segment) = segment {
        keep((segment.source_port(), segment.destination_port(), segment.sequence()));
        keep((segment.acknowledgment(), segment.window(), segment.urgent_pointer()));
        keep((segment.flags(), segment.options(), segment.payload()));
    }
}

pub(crate) fn any_flags() -> TcpFlags {
    let flags = TcpFlags::from_bits(any());
    keep((flags.bits(), flags.contains(TcpFlags::SYN), flags.with(TcpFlags::ACK)));
    if any() { flags.with(TcpFlags::FIN) } else { flags.without(TcpFlags::FIN) }
}

pub(crate) fn emit() {
    let mut memory = [0; 2048];
    let buffer = hidden(&mut memory[..]);
    let mac = || MacAddr(any());
    if let Some(buffer) = buffer.first_chunk_mut() {
        let ether_type = EtherType::from(any::<u16>());
        EthernetHeader { destination: mac(), source: mac(), ether_type }.emit(buffer);
    }
    if let Some(buffer) = buffer.first_chunk_mut() {
        ArpPacket {
            operation: ArpOperation::from(any::<u16>()),
            sender_mac: mac(),
            sender_ip: any(),
            target_mac: mac(),
            target_ip: any(),
        }
        .emit(buffer);
    }
    if let Some(buffer) = buffer.first_chunk_mut() {
        any_ipv4_header().emit(buffer);
    }
    if let Some(buffer) = buffer.first_chunk_mut() {
        any_ipv6_header().emit(buffer);
    }
    if let Some(buffer) = buffer.first_chunk_mut() {
        UdpHeader { source_port: any(), destination_port: any(), payload_len: any() }.emit(
            buffer,
            any(),
            any(),
            any_bytes(),
        );
    }
    emit_icmpv4(buffer);
    emit_tcp(buffer);
}

fn any_ipv4_header() -> Ipv4Header {
    Ipv4Header {
        tos: any(),
        total_len: any(),
        identification: any(),
        dont_fragment: any(),
        more_fragments: any(),
        fragment_offset: any(),
        ttl: any(),
        ..Ipv4Header::new(IpProtocol::from(any::<u8>()), any(), any())
    }
}

fn any_ipv6_header() -> Ipv6Header {
    let address = || Ipv6Addr::from(any::<[u8; 16]>());
    Ipv6Header {
        traffic_class: any(),
        flow_label: any(),
        payload_len: any(),
        hop_limit: any(),
        ..Ipv6Header::new(IpProtocol::from(any::<u8>()), address(), address())
    }
}

fn emit_icmpv4(buffer: &mut [u8]) {
    icmpv4::set_echo_ident(buffer, any(), any());
    keep(icmpv4::emit_echo(buffer, any(), any(), any(), any_bytes()));
    let error = one_of(
        Icmpv4Error::DestinationUnreachable { code: any(), next_hop_mtu: any() },
        &[
            Icmpv4Error::TimeExceeded { code: any() },
            Icmpv4Error::ParameterProblem { pointer: any() },
        ],
    );
    keep(icmpv4::emit_error(buffer, error, any_bytes()));
}

fn emit_tcp(buffer: &mut [u8]) {
    let mut options = TcpOptions {
        mss: any(),
        window_scale: any(),
        sack_permitted: any(),
        timestamps: if any() { Some((any(), any())) } else { None },
        ..TcpOptions::NONE
    };
    while any() {
        keep(options.sack.push((any(), any())));
    }
    let header = TcpHeader {
        source_port: any(),
        destination_port: any(),
        sequence: any(),
        acknowledgment: any(),
        flags: any_flags(),
        window: any(),
        options,
    };
    keep((header.header_len(), header.emit(buffer)));
    keep(write_checksum(buffer, any(), any()));
    keep(write_partial_checksum(buffer, any(), any(), any()));
}
