//! ICMP errors: those the guest is told of, and those it sends.

use core::net::Ipv4Addr;

use ipstack::tcp::SeqNumber;
use ipstack::wire::icmpv4::{self, Icmpv4Error, Icmpv4Kind, Icmpv4Message};
use ipstack::wire::ipv4::{self, IpProtocol, Ipv4Header, Ipv4Packet};

use super::{Endpoint, FlowKey, FlowKind};
use crate::flow::tcp::IP_AND_TCP;
use crate::flow::tcp_end::HostEnd;
use crate::host::Host;
use crate::link::Link;
use crate::nat::{Core, Io};
use crate::policy::is_single_host;
use crate::service::is_guest;
use crate::stats::DropReason;

/// Bytes that an error quotes at least: an IPv4 header and eight more (RFC 792).
pub(crate) const QUOTED: usize = 28;

/// The beginning of the SYN with this number, which is not kept.
pub(crate) fn quote_tcp(key: &FlowKey, sequence: SeqNumber) -> [u8; QUOTED] {
    let [a, b] = key.guest.port.to_be_bytes();
    let [c, d] = key.remote.port.to_be_bytes();
    let [e, f, g, h] = sequence.0.to_be_bytes();
    quote(key, key.remote.ipv4(), IpProtocol::Tcp, 20, [a, b, c, d, e, f, g, h])
}

/// The beginning of a datagram sent earlier, which is not kept. Of an echo request `known` holds
/// the first bytes, whose identifier the host may have changed.
pub(crate) fn quote_datagram(
    key: &FlowKey,
    remote: Ipv4Addr,
    port: u16,
    known: Option<[u8; 8]>,
) -> [u8; QUOTED] {
    let [a, b] = key.guest.port.to_be_bytes();
    if key.kind == FlowKind::Ping {
        let [_, _, check_high, check_low, _, _, high, low] = known.unwrap_or_default();
        let request = [8, 0, check_high, check_low, a, b, high, low];
        return quote(key, remote, IpProtocol::Icmp, 8, request);
    }
    let [c, d] = port.to_be_bytes();
    quote(key, remote, IpProtocol::Udp, 8, [a, b, c, d, 0, 8, 0, 0])
}

fn quote(
    key: &FlowKey,
    remote: Ipv4Addr,
    protocol: IpProtocol,
    payload_len: u16,
    payload: [u8; 8],
) -> [u8; QUOTED] {
    let total_len = payload_len.saturating_add(20);
    let header = Ipv4Header { total_len, ..Ipv4Header::new(protocol, key.guest.ipv4(), remote) };
    let mut quoted = [0; QUOTED];
    if let Some((ip, rest)) = quoted.split_first_chunk_mut() {
        header.emit(ip);
        if let Some(first) = rest.first_chunk_mut() {
            *first = payload;
        }
    }
    quoted
}

impl Core<'_> {
    /// Sends the guest an ICMP error about `original`, which it sent: from `offender`, or from the
    /// gateway. No error is sent about what must not be answered so (RFC 1122 3.2.2).
    pub(crate) fn send_icmp_error<L: Link + ?Sized>(
        &mut self,
        link: &mut L,
        error: Icmpv4Error,
        offender: Option<Ipv4Addr>,
        original: &[u8],
    ) {
        let Ok(packet) = Ipv4Packet::parse_quoted(original) else { return };
        let single = is_guest(&self.config, packet.source())
            && is_single_host(&self.config, packet.destination());
        if !single || packet.fragment_offset() > 0 || is_icmp_error(&packet) {
            return;
        }
        let source = offender.unwrap_or(self.config.gateway);
        // The error itself must fit the smallest MTU.
        let overhead = ipv4::HEADER_LEN + icmpv4::HEADER_LEN;
        let room = usize::from(self.config.mtu).saturating_sub(overhead);
        let quoted = original.get(..room).unwrap_or(original);
        let mut message = [0; icmpv4::MAX_QUOTED_LEN + icmpv4::HEADER_LEN];
        let Some(length) = icmpv4::emit_error(&mut message, error, quoted) else { return };
        let header = Ipv4Header::new(IpProtocol::Icmp, source, packet.source());
        let sent = self.egress.reply_ip(
            &self.config,
            &mut self.stats,
            link,
            (header, None),
            length,
            |payload| {
                payload.iter_mut().zip(message).for_each(|(to, from)| *to = from);
            },
        );
        self.stats.counters.icmp_errors_out += u64::from(sent);
    }

    /// Takes an ICMP error that the guest sent about a packet for it.
    pub(crate) fn on_guest_icmp_error<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        message: &Icmpv4Message<'_>,
    ) {
        let Some(quoted) = message.quoted().filter(|q| q.protocol == IpProtocol::Tcp) else {
            // A datagram's sender can't be told by way of a socket.
            return self.stats.drop(DropReason::IcmpType);
        };
        let key = FlowKey {
            guest: Endpoint::v4(quoted.destination, quoted.destination_port),
            remote: Endpoint::v4(quoted.source, quoted.source_port),
            kind: FlowKind::Tcp,
        };
        let Some(id) = self.table.find(&key) else {
            return self.stats.drop(DropReason::IcmpType);
        };
        let Some(tcp) = self.tcp(id) else { return };
        let sequence = quoted.tcp_sequence.map(SeqNumber);
        if !sequence.is_some_and(|sequence| tcp.connection.is_outstanding(sequence)) {
            return self.stats.drop(DropReason::IcmpQuote);
        }
        match message.kind() {
            // Before RFC 1191 the field was unused; then the guest means nothing by it.
            Icmpv4Kind::DestinationUnreachable {
                code: icmpv4::CODE_FRAGMENTATION_NEEDED,
                next_hop_mtu: 0,
            } => self.stats.drop(DropReason::IcmpType),
            Icmpv4Kind::DestinationUnreachable {
                code: icmpv4::CODE_FRAGMENTATION_NEEDED,
                next_hop_mtu,
            } => tcp.connection.limit_mss(next_hop_mtu.saturating_sub(IP_AND_TCP)),
            // A hard error ends an attempt to connect (RFC 9293 3.9.2.2); later ones are soft,
            // since anybody can make them up (RFC 5927).
            Icmpv4Kind::DestinationUnreachable { .. } if tcp.connection.is_half_open() => {
                self.end_tcp(io, id, HostEnd::Reset);
            }
            _ => self.stats.drop(DropReason::IcmpType),
        }
    }
}

/// Whether a packet is itself an ICMP error, or may be one.
fn is_icmp_error(packet: &Ipv4Packet<'_>) -> bool {
    const ECHO_REPLY: u8 = 0;
    const ECHO_REQUEST: u8 = 8;
    packet.protocol() == IpProtocol::Icmp
        && !matches!(packet.payload().first(), Some(&ECHO_REQUEST | &ECHO_REPLY))
}
