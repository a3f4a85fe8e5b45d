//! Frames of the guest: what they are, and who handles them.

mod fragments;

use core::net::{IpAddr, Ipv4Addr};

use heapless::Vec;
use ipstack::Instant;
use ipstack::checksum::ChecksumState;
use ipstack::tcp::SegmentIn;
use ipstack::wire::icmpv4::{CODE_PROTOCOL_UNREACHABLE, CODE_TTL_EXCEEDED};
use ipstack::wire::tcp::TcpFlags;
use ipstack::wire::{
    EtherType, EthernetFrame, Icmpv4Error, Icmpv4Kind, Icmpv4Message, IpProtocol, Ipv4Packet,
    MacAddr, TcpSegment, UdpDatagram, WireError, dhcpv4, ethernet,
};

use crate::flow::tcp::{BATCH, Pending};
use crate::flow::{Endpoint, FlowKey, FlowKind};
use crate::host::{FlowId, Host};
use crate::link::{Frame, Link, Offload};
use crate::nat::{Core, Io, Nat};
use crate::policy::is_single_host;
use crate::service::arp::router_mac;
use crate::service::is_guest;
use crate::stats::DropReason;

/// Longest frame or super-segment: an Ethernet header and the longest IP packet.
const MAX_FRAME_LEN: usize = ethernet::HEADER_LEN + u16::MAX as usize;

/// An IPv4 packet of the guest, whole or put together from fragments.
#[derive(Clone, Copy)]
pub(crate) struct Inbound<'p> {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) protocol: IpProtocol,
    pub(crate) ttl: u8,
    pub(crate) ecn: u8,
    pub(crate) payload: &'p [u8],
    /// What an ICMP error about it quotes.
    pub(crate) quoted: &'p [u8],
    pub(crate) offload: Offload,
    /// Where the frame came from.
    pub(crate) mac: MacAddr,
}

/// TCP segments of a batch, and the flow found last: frames of one flow come in a row.
#[derive(Default)]
struct Collected<'f> {
    segments: Vec<Pending<'f>, BATCH>,
    last: Option<(FlowKey, FlowId)>,
}

impl Nat<'_> {
    pub(crate) fn input<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        frames: &[Frame<'_>],
    ) {
        for batch in frames.chunks(BATCH) {
            let mut collected = Collected::default();
            for frame in batch {
                self.core.stats.counters.frames_in += 1;
                self.core.stats.counters.bytes_in += frame.bytes.len() as u64;
                if let Err(reason) = self.on_frame(io, frame, &mut collected) {
                    self.core.stats.drop(reason);
                }
            }
            self.core.on_tcp_batch(io, &collected.segments);
        }
    }

    fn on_frame<'f, H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        frame: &Frame<'f>,
        collected: &mut Collected<'f>,
    ) -> Result<(), DropReason> {
        let bytes = Some(frame.bytes).filter(|bytes| bytes.len() <= MAX_FRAME_LEN);
        let ethernet = bytes.and_then(|bytes| EthernetFrame::parse(bytes).ok());
        let ethernet = ethernet.ok_or(DropReason::FrameLength)?;
        let config = &self.core.config;
        let destination = ethernet.destination();
        let ours = [config.gateway, config.dns].map(router_mac).contains(&destination);
        if !ours && !destination.is_broadcast() {
            return Err(DropReason::NotForRouter);
        }
        match ethernet.ether_type() {
            EtherType::Arp => self.core.on_arp(io, &ethernet),
            EtherType::Ipv4 => self.on_ipv4(io, &ethernet, frame.offload, collected),
            EtherType::Ipv6 | EtherType::Other(_) => Err(DropReason::EtherType),
        }
    }

    fn on_ipv4<'f, H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        ethernet: &EthernetFrame<'f>,
        offload: Offload,
        collected: &mut Collected<'f>,
    ) -> Result<(), DropReason> {
        let packet = Ipv4Packet::parse(ethernet.payload()).map_err(|error| match error {
            WireError::BadChecksum => DropReason::IpChecksum,
            _ => DropReason::IpHeader,
        })?;
        if ethernet.destination().is_broadcast()
            && is_single_host(&self.core.config, packet.destination())
        {
            // RFC 1122 3.3.6: what is not meant for all was not meant to come this way.
            return Err(DropReason::IpDestination);
        }
        let source = packet.source();
        if is_guest(&self.core.config, source) {
            self.core.learn(io.now, source, ethernet.source());
        } else if !source.is_unspecified() {
            return Err(DropReason::IpSource);
        }
        if packet.is_fragment() {
            return self.on_fragment(io, &packet, ethernet.source());
        }
        let inbound = Inbound {
            source,
            destination: packet.destination(),
            protocol: packet.protocol(),
            ttl: packet.ttl(),
            ecn: packet.ecn(),
            payload: packet.payload(),
            quoted: packet.bytes(),
            offload,
            mac: ethernet.source(),
        };
        if inbound.protocol == IpProtocol::Tcp {
            return self.core.collect_tcp(io, &inbound, collected);
        }
        self.core.on_packet(io, &inbound)
    }
}

impl Core<'_> {
    /// Learns a guest's hardware address, and lets the flows that waited for one go on.
    pub(crate) fn learn(&mut self, now: Instant, address: Ipv4Addr, mac: MacAddr) {
        if self.egress.neighbours.learn(now, &self.config, address, mac) {
            self.table.wake_waiting();
        }
    }

    fn collect_tcp<'f, H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'f>,
        collected: &mut Collected<'f>,
    ) -> Result<(), DropReason> {
        self.check_route(io, packet)?;
        let segment = TcpSegment::parse(
            packet.payload,
            IpAddr::V4(packet.source),
            IpAddr::V4(packet.destination),
            checksum_state(packet.offload),
        )
        .map_err(|error| match error {
            WireError::BadChecksum => DropReason::TcpChecksum,
            _ => DropReason::TcpHeader,
        })?;
        let key = FlowKey {
            guest: Endpoint::v4(packet.source, segment.source_port()),
            remote: Endpoint::v4(packet.destination, segment.destination_port()),
            kind: FlowKind::Tcp,
        };
        let segment = SegmentIn::new(&segment);
        self.stats.counters.tcp_segments_in += 1;
        if segment.flags.contains(TcpFlags::SYN) {
            // What comes before it may end the connection in whose place it asks for another.
            self.on_tcp_batch(io, &core::mem::take(&mut collected.segments));
        }
        // A packet between the two may have made its flow give way to another.
        let known =
            collected.last.filter(|(last, id)| *last == key && self.table.get(*id).is_some());
        let known = known.map(|(_, id)| id);
        let Some(id) = known.or_else(|| self.table.find(&key)) else {
            self.on_stray_segment(io, &key, &segment);
            return Ok(());
        };
        collected.last = Some((key, id));
        // A batch has room for as many segments as it has frames.
        let _ = collected.segments.push(Pending { id, segment });
        Ok(())
    }

    /// What holds for every packet that is routed: a source that can be answered, a destination
    /// that is one host, and a TTL left.
    fn check_route<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'_>,
    ) -> Result<(), DropReason> {
        if packet.source.is_unspecified() {
            return Err(DropReason::IpSource);
        }
        if !is_single_host(&self.config, packet.destination) {
            return Err(DropReason::IpDestination);
        }
        if packet.ttl <= 1 && !self.config.is_router(packet.destination) {
            // RFC 1812 5.3.1. What is for the router itself has arrived.
            let error = Icmpv4Error::TimeExceeded { code: CODE_TTL_EXCEEDED };
            self.send_icmp_error(io.link, error, None, packet.quoted);
            return Err(DropReason::TtlExceeded);
        }
        Ok(())
    }

    fn on_packet<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'_>,
    ) -> Result<(), DropReason> {
        match packet.protocol {
            IpProtocol::Udp => self.on_udp(io, packet),
            IpProtocol::Icmp => {
                self.check_route(io, packet)?;
                self.on_icmp(io, packet)
            }
            IpProtocol::Tcp | IpProtocol::Other(_) => {
                self.check_route(io, packet)?;
                let code = CODE_PROTOCOL_UNREACHABLE;
                let error = Icmpv4Error::DestinationUnreachable { code, next_hop_mtu: 0 };
                self.send_icmp_error(io.link, error, None, packet.quoted);
                Err(DropReason::IpProtocol)
            }
        }
    }

    fn on_udp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'_>,
    ) -> Result<(), DropReason> {
        let datagram = UdpDatagram::parse(
            packet.payload,
            IpAddr::V4(packet.source),
            IpAddr::V4(packet.destination),
            checksum_state(packet.offload),
        )
        .map_err(|error| match error {
            WireError::BadChecksum => DropReason::UdpChecksum,
            _ => DropReason::UdpHeader,
        })?;
        let broadcast =
            packet.destination.is_broadcast() || packet.destination == self.config.broadcast();
        if datagram.destination_port() == dhcpv4::SERVER_PORT
            && (broadcast || packet.destination == self.config.gateway)
        {
            return self.on_dhcp(io, packet, datagram.payload());
        }
        self.check_route(io, packet)?;
        self.on_guest_udp(io, packet, &datagram);
        Ok(())
    }

    fn on_icmp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'_>,
    ) -> Result<(), DropReason> {
        let message = Icmpv4Message::parse(packet.payload).map_err(|error| match error {
            WireError::BadChecksum => DropReason::IcmpChecksum,
            _ => DropReason::IcmpHeader,
        })?;
        match message.kind() {
            Icmpv4Kind::EchoRequest { ident, sequence } => {
                self.on_guest_echo(io, packet, (ident, sequence, message.payload()));
            }
            Icmpv4Kind::DestinationUnreachable { .. }
            | Icmpv4Kind::TimeExceeded { .. }
            | Icmpv4Kind::ParameterProblem { .. } => self.on_guest_icmp_error(io, &message),
            Icmpv4Kind::EchoReply { .. } | Icmpv4Kind::Other { .. } => {
                return Err(DropReason::IcmpType);
            }
        }
        Ok(())
    }
}

const fn checksum_state(offload: Offload) -> ChecksumState {
    if offload.checksum_partial { ChecksumState::Partial } else { ChecksumState::Whole }
}
