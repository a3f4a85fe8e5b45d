//! UDP and ping flows: datagrams of the guest, and datagrams and errors of the host.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;

use ipstack::Instant;
use ipstack::wire::UdpDatagram;
use ipstack::wire::icmpv4::Icmpv4Error;

use super::icmp_error::quote_datagram;
use super::key::wide;
use super::verdict::{Verdict, verdict};
use super::{Body, Class, DatagramFlow, DatagramRole, Endpoint, FlowKey, FlowKind};
use crate::config::{UdpFiltering, UdpMapping};
use crate::host::{DatagramKind, DatagramMeta, FlowId, Host, HostError, Ready, Token};
use crate::input::Inbound;
use crate::link::Link;
use crate::nat::{Core, Io, Visit};
use crate::policy::{NoRoute, translate_in, translate_out};
use crate::service::dns;
use crate::stats::DropReason;
use crate::train::Consist;

/// The port of name servers.
pub(crate) const DNS_PORT: u16 = 53;

/// How long a flow lives without a reply, and with one: RFC 4787 4.3 asks for two minutes at
/// least once both sides have spoken.
const UNANSWERED: Duration = Duration::from_secs(30);
const ANSWERED: Duration = Duration::from_secs(120);

/// How long a flow to the name server lives.
const DNS_LIFETIME: Duration = Duration::from_secs(10);

/// How long a ping flow lives.
const PING_LIFETIME: Duration = Duration::from_secs(60);

/// Datagrams sent to the guest in one visit, at most.
const VISIT_BUDGET: usize = 16;

/// Datagrams that one super-segment of the guest may be cut into: what kernels take at once.
const MAX_SEGMENTS: usize = 128;

/// A timer that is served later than this says that the clock has jumped.
const CLOCK_JUMP: Duration = Duration::from_secs(5);

/// A datagram of the guest, on its way out: its packet, and what of it the host is given.
pub(crate) struct Outgoing<'p> {
    pub(crate) packet: &'p Inbound<'p>,
    pub(crate) data: &'p [u8],
}

impl DatagramFlow {
    pub(crate) const fn new(role: DatagramRole) -> Self {
        Self {
            expires: Instant::ZERO,
            role,
            answered: false,
            readable: false,
            failing: false,
            local: Ipv6Addr::UNSPECIFIED,
            actual_remote: Endpoint::ANY,
        }
    }

    fn lifetime(&self, kind: FlowKind) -> Duration {
        match (kind, self.role) {
            (FlowKind::Ping, _) => PING_LIFETIME,
            (_, DatagramRole::Dns) => DNS_LIFETIME,
            _ if self.answered => ANSWERED,
            _ => UNANSWERED,
        }
    }
}

impl Core<'_> {
    /// Takes a UDP datagram of the guest that is not for the router itself.
    pub(crate) fn on_guest_udp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'_>,
        datagram: &UdpDatagram<'_>,
    ) {
        let guest = Endpoint::v4(packet.source, datagram.source_port());
        let remote = Endpoint::v4(packet.destination, datagram.destination_port());
        let outgoing = Outgoing { packet, data: datagram.payload() };
        let full = FlowKey { guest, remote, kind: FlowKind::Udp };
        if packet.destination == self.config.dns && remote.port == DNS_PORT {
            return self.on_guest_query(io, &full, &outgoing);
        }
        if let Some(id) = self.table.find(&full)
            && let Some(actual) = self.forwarded_remote(id)
        {
            return self.send_out(io, id, actual, &outgoing);
        }
        let actual = match translate_out(&self.config, io.host, packet.destination, remote.port) {
            Ok(actual) => actual,
            Err(NoRoute::Silent) => return self.stats.drop(DropReason::IpDestination),
            Err(NoRoute::Error(error)) => {
                self.stats.drop(DropReason::Denied);
                return self.report(io, error, None, packet.quoted);
            }
        };
        let key = match self.config.udp_mapping {
            UdpMapping::EndpointIndependent => FlowKey { remote: Endpoint::ANY, ..full },
            UdpMapping::AddressAndPortDependent => full,
        };
        let opening = Opening { key, kind: DatagramKind::Udp, role: DatagramRole::Outgoing };
        match self.find_or_open(io, &opening, actual) {
            Ok(id) => {
                self.permits.add(io.now, id, remote.address);
                self.send_out(io, id, actual, &outgoing);
            }
            Err(error) => self.report(io, error, None, packet.quoted),
        }
    }

    /// A query to the virtual name server: on it goes to a resolver.
    fn on_guest_query<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        key: &FlowKey,
        outgoing: &Outgoing<'_>,
    ) {
        let query = outgoing.data;
        let Some(query_id) = dns::query_id(query) else {
            return self.stats.drop(DropReason::Dns);
        };
        self.stats.counters.dns_queries += 1;
        for _ in 0..self.config.resolvers.len() {
            let first = self.config.resolvers.first().copied();
            let Some(first) = first else { break };
            let opening = Opening { key: *key, kind: DatagramKind::Udp, role: DatagramRole::Dns };
            // Why not, has been counted.
            let Ok(id) = self.find_or_open(io, &opening, first) else {
                return self.answer_servfail(io, key, query);
            };
            let list = &self.config.resolvers;
            let Some(resolver) = self.resolvers.pick(io.now, list, id, query_id) else { break };
            let meta = DatagramMeta::new(resolver);
            let token = self.table.get(id).and_then(|flow| flow.token);
            let sent = token.map(|token| io.host.send_datagram(token, &meta, &[outgoing.data]));
            self.touch(io.now, id, false);
            match sent {
                Some(Ok(())) => {
                    self.stats.counters.datagrams_in += 1;
                    return;
                }
                Some(Err(_)) => self.resolvers.failed(&self.config.resolvers, resolver),
                None => break,
            }
        }
        self.stats.drop(DropReason::NoResolver);
        self.answer_servfail(io, key, query);
    }

    /// Finds the flow of `opening`, or makes it with a socket for `remote`.
    pub(crate) fn find_or_open<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        opening: &Opening,
        remote: SocketAddr,
    ) -> Result<FlowId, HostError> {
        if let Some(id) = self.table.find(&opening.key) {
            return Ok(id);
        }
        let id = self.insert_datagram(io, opening.key, DatagramFlow::new(opening.role))?;
        match io.host.open_datagram(id, opening.kind, remote) {
            Ok(token) => {
                if let Some(flow) = self.table.get_mut(id) {
                    flow.token = Some(token);
                }
                Ok(id)
            }
            Err(error) => {
                self.stats.drop(DropReason::HostError);
                self.table.remove(id);
                Err(error)
            }
        }
    }

    pub(crate) fn insert_datagram<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        key: FlowKey,
        flow: DatagramFlow,
    ) -> Result<FlowId, HostError> {
        if !self.make_room(io) {
            self.stats.drop(DropReason::FlowTableFull);
            return Err(HostError::NoResources);
        }
        let id = self.table.insert(key, Body::Datagram(flow)).ok_or(HostError::NoResources)?;
        self.stats.counters.flows_created += 1;
        self.touch(io.now, id, false);
        Ok(id)
    }

    /// Sends a datagram of the guest to `remote`.
    pub(crate) fn send_out<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        remote: SocketAddr,
        outgoing: &Outgoing<'_>,
    ) {
        let Some(flow) = self.table.get(id) else { return };
        let (Some(token), Body::Datagram(datagram)) = (flow.token, &flow.body) else { return };
        let local = datagram.local;
        let segment_size = match flow.key.kind {
            FlowKind::Udp => outgoing.packet.offload.segment_size,
            FlowKind::Tcp | FlowKind::Ping => 0,
        };
        let meta = DatagramMeta {
            local: (!local.is_unspecified()).then(|| local.to_canonical()),
            ttl: outgoing.packet.ttl.saturating_sub(1),
            ecn: outgoing.packet.ecn,
            segment_size,
            ..DatagramMeta::new(remote)
        };
        if datagram.readable {
            self.table.make_ready(id);
        }
        self.touch(io.now, id, false);
        match self.send_segments(io.host, token, &meta, outgoing.data) {
            Ok(()) => {}
            Err(HostError::WouldBlock) => self.stats.drop(DropReason::HostBusy),
            Err(error) => {
                self.stats.drop(DropReason::HostError);
                self.report(io, error, None, outgoing.packet.quoted);
            }
        }
    }

    /// Sends a datagram, or several that the guest left to be cut, which the host need not be able
    /// to do.
    fn send_segments<H: Host + ?Sized>(
        &mut self,
        host: &mut H,
        token: Token,
        meta: &DatagramMeta,
        data: &[u8],
    ) -> Result<(), HostError> {
        let size = usize::from(meta.segment_size);
        let segments = data.chunks(size.max(1));
        if size > 0 && segments.len() > MAX_SEGMENTS {
            self.stats.drop(DropReason::TooLong);
            return Ok(());
        }
        if size == 0 || host.capabilities().segmented_send {
            host.send_datagram(token, meta, &[data])?;
            self.stats.counters.datagrams_in += 1;
            return Ok(());
        }
        let single = DatagramMeta { segment_size: 0, ..*meta };
        for segment in segments {
            host.send_datagram(token, &single, &[segment])?;
            self.stats.counters.datagrams_in += 1;
        }
        Ok(())
    }

    /// Takes note that a flow is in use.
    pub(crate) fn touch(&mut self, now: Instant, id: FlowId, answered: bool) {
        let Some(flow) = self.table.get_mut(id) else { return };
        let kind = flow.key.kind;
        if let Body::Datagram(datagram) = &mut flow.body {
            datagram.answered |= answered;
            datagram.expires = now.after(datagram.lifetime(kind));
        }
        self.table.classify(id, Some(Class::Datagram));
        self.table.reschedule(id);
    }

    /// The remote end of a flow that came by a forward.
    fn forwarded_remote(&self, id: FlowId) -> Option<SocketAddr> {
        match &self.table.get(id)?.body {
            Body::Datagram(flow) if flow.role == DatagramRole::Forwarded => {
                Some(flow.actual_remote.socket_addr())
            }
            _ => None,
        }
    }

    /// Tells the guest of a failure, quoting what it sent.
    pub(crate) fn report<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        error: HostError,
        offender: Option<Ipv4Addr>,
        quoted: &[u8],
    ) {
        let icmp = match verdict(error) {
            Verdict::Silence => return,
            Verdict::Refuse => Icmpv4Error::DestinationUnreachable {
                code: ipstack::wire::icmpv4::CODE_PORT_UNREACHABLE,
                next_hop_mtu: 0,
            },
            Verdict::Icmp(icmp) => icmp,
        };
        self.send_icmp_error(io.link, icmp, offender, quoted);
    }

    pub(crate) fn on_datagram_event(&mut self, id: FlowId, ready: Ready) {
        let Some(flow) = self.datagram(id) else { return };
        flow.readable |= ready.readable;
        flow.failing |= ready.error;
        self.table.make_ready(id);
    }

    /// Passes on what the network reported about datagrams sent earlier; returns whether there may
    /// be more.
    fn drain_errors<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) -> bool {
        for _ in 0..VISIT_BUDGET {
            let Some(flow) = self.table.get(id) else { return false };
            let (Some(token), Body::Datagram(datagram)) = (flow.token, &flow.body) else {
                return false;
            };
            let (key, role) = (flow.key, datagram.role);
            let Some(error) = io.host.datagram_error(token) else { return false };
            self.stats.drop(DropReason::HostError);
            if role == DatagramRole::Dns {
                self.resolvers.failed(&self.config.resolvers, error.remote);
                continue;
            }
            let remote = self.visible(io.host, id, error.remote.ip());
            let offender = match error.offender {
                Some(address) => Some(translate_in(&self.config, io.host, address)),
                None => Some(remote),
            };
            let quoted = quote_datagram(&key, remote, error.remote.port(), error.quoted);
            self.report(io, error.error, offender, &quoted);
        }
        true
    }

    /// The address under which the guest of this flow sees `remote`: as it wrote to it, if it did.
    fn visible<H: Host + ?Sized>(&mut self, host: &mut H, id: FlowId, remote: IpAddr) -> Ipv4Addr {
        match remote.to_canonical() {
            IpAddr::V4(v4) if self.permits.allows(id, wide(remote)) => v4,
            other => translate_in(&self.config, host, other),
        }
    }

    /// Receives datagrams and sends them to the guest, as far as there is room.
    pub(crate) fn visit_datagram<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        budget: &mut usize,
    ) -> Visit {
        if self.datagram(id).is_some_and(|flow| flow.failing) {
            let more = self.drain_errors(io, id);
            if let Some(flow) = self.datagram(id) {
                flow.failing = more;
            }
        }
        let mut errors = 0;
        for _ in 0..VISIT_BUDGET {
            let Some(flow) = self.table.get_mut(id) else { return Visit::Done };
            let key = flow.key;
            let (Some(token), Body::Datagram(datagram)) = (flow.token, &mut flow.body) else {
                return Visit::Done;
            };
            if !datagram.readable {
                return if datagram.failing { Visit::More } else { Visit::Done };
            }
            if self.egress.train.is_moving() {
                return Visit::NoRoom;
            }
            match io.host.receive_datagram(token, self.egress.train.buffer()) {
                Ok(Some((length, meta))) => {
                    *budget = budget.saturating_sub(length.saturating_add(64));
                    self.deliver(io, id, &key, length, &meta);
                }
                Ok(None) => datagram.readable = false,
                Err(_) => {
                    errors += 1;
                    datagram.failing = true;
                }
            }
        }
        // A socket that does nothing but fail is left alone until something else happens to it.
        if errors < VISIT_BUDGET { Visit::More } else { Visit::Done }
    }

    fn datagram(&mut self, id: FlowId) -> Option<&mut DatagramFlow> {
        match self.table.get_mut(id).map(|flow| &mut flow.body) {
            Some(Body::Datagram(datagram)) => Some(datagram),
            _ => None,
        }
    }

    /// Sends the datagram in the train's buffer to the guest, if it may pass.
    fn deliver<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        key: &FlowKey,
        length: usize,
        meta: &DatagramMeta,
    ) {
        if meta.truncated {
            return self.stats.drop(DropReason::TooLong);
        }
        if key.kind == FlowKind::Ping {
            return self.deliver_echo_reply(io, id, key, length, meta);
        }
        let Some(source) = self.admit(io, id, key, length, meta.remote) else { return };
        self.touch(io.now, id, true);
        self.send_datagram_in(io, source, key.guest, length, meta);
    }

    /// Whether a datagram from `remote` may pass to the guest of flow `id`, and from which end the
    /// guest is to see it come.
    pub(crate) fn admit<H: Host + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, impl Link + ?Sized>,
        id: FlowId,
        key: &FlowKey,
        length: usize,
        remote: SocketAddr,
    ) -> Option<Endpoint> {
        let role = match self.table.get(id).map(|flow| &flow.body) {
            Some(Body::Datagram(flow)) => flow.role,
            _ => return None,
        };
        if role == DatagramRole::Dns {
            let reply = self.egress.train.buffer().get(..length).unwrap_or_default();
            let known = self.config.resolvers.contains(&remote);
            let Some(reply_id) = dns::reply_id(reply).filter(|_| known) else {
                self.stats.drop(DropReason::Dns);
                return None;
            };
            self.resolvers.answered(&self.config.resolvers, remote, id, reply_id);
            return Some(key.remote);
        }
        let visible = self.visible(io.host, id, remote.ip());
        let open = self.config.udp_filtering == UdpFiltering::EndpointIndependent;
        if !open && !self.permits.allows(id, visible.to_ipv6_mapped()) {
            self.stats.drop(DropReason::UdpFiltered);
            return None;
        }
        Some(Endpoint::v4(visible, remote.port()))
    }

    /// Sends the UDP datagram in the train's buffer to the guest.
    pub(crate) fn send_datagram_in<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        source: Endpoint,
        guest: Endpoint,
        length: usize,
        meta: &DatagramMeta,
    ) {
        let count = length.checked_div(usize::from(meta.segment_size)).unwrap_or(0);
        let consist = Consist {
            source: source.ipv4(),
            destination: guest.ipv4(),
            ports: Some((source.port, guest.port)),
            ttl: reply_ttl(meta.ttl),
            ecn: meta.ecn,
            identification: self.egress.identifications(source.ipv4(), guest.ipv4(), count),
            segment_size: meta.segment_size,
        };
        let sent = self.egress.depart(&self.config, &mut self.stats, io.link, consist, length);
        self.stats.counters.datagrams_out += u64::from(sent);
    }

    pub(crate) fn end_datagram<H: Host + ?Sized>(&mut self, host: &mut H, id: FlowId) {
        let Some(flow) = self.table.remove(id) else { return };
        let shares_socket =
            matches!(&flow.body, Body::Datagram(d) if d.role == DatagramRole::Forwarded);
        if let Some(token) = flow.token.filter(|_| !shares_socket) {
            host.close(token);
        }
    }

    pub(crate) fn on_datagram_timer<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        let Some(expires) = self.table.get(id).and_then(super::Flow::deadline) else { return };
        if io.now.since(expires) > CLOCK_JUMP {
            return self.touch(io.now, id, false);
        }
        self.stats.counters.flows_expired += 1;
        self.end_datagram(io.host, id);
    }
}

/// What a new datagram flow is to be.
pub(crate) struct Opening {
    pub(crate) key: FlowKey,
    pub(crate) kind: DatagramKind,
    pub(crate) role: DatagramRole,
}

/// The TTL for the guest of what was received with `ttl`: one hop less, as this is a router.
pub(crate) const fn reply_ttl(ttl: u8) -> u8 {
    match ttl {
        0 => ipstack::wire::ipv4::Ipv4Header::DEFAULT_TTL,
        1 => 1,
        more => more - 1,
    }
}
