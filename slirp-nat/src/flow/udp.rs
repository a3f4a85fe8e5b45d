//! UDP and ping flows: datagrams of the guest, and how long their flows live.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;

use ipstack::Instant;
use ipstack::wire::icmpv4::Icmpv4Error;
use ipstack::wire::{self, UdpDatagram};

use super::verdict::{Verdict, verdict};
use super::{Body, CLOCK_JUMP, Class, DatagramFlow, DatagramRole, Endpoint, FlowKey, FlowKind};
use crate::config::UdpMapping;
use crate::host::{DatagramKind, DatagramMeta, FlowId, Host, HostError, Token};
use crate::input::Inbound;
use crate::link::Link;
use crate::nat::{Core, Io};
use crate::policy::{NoRoute, translate_out};
use crate::service::dns;
use crate::stats::DropReason;

/// How long a flow lives without a reply, and with one (passt bug 197). RFC 4787 4.3 asks for two
/// minutes at least; one that nobody answers ends sooner, or a scan of ports would fill the table.
const UNANSWERED: Duration = Duration::from_secs(30);
const ANSWERED: Duration = Duration::from_secs(120);

/// How long a flow to the name server lives.
const DNS_LIFETIME: Duration = Duration::from_secs(10);

/// How long a ping flow lives.
const PING_LIFETIME: Duration = Duration::from_secs(60);

/// Datagrams that one super-segment of the guest may be cut into: what kernels take at once.
const MAX_SEGMENTS: usize = 128;

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
        if packet.destination == self.config.dns && remote.port == wire::dns::PORT {
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
        match self.find_or_open(io, key, DatagramKind::Udp, actual) {
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
        if self.config.resolvers.is_empty() {
            self.stats.drop(DropReason::NoResolver);
            return self.answer_servfail(io, key, query);
        }
        let known = self.table.find(key).map_or_else(
            || self.insert_datagram(io, *key, DatagramFlow::new(DatagramRole::Dns)),
            Ok,
        );
        // Why not, has been counted.
        let Ok(id) = known else { return self.answer_servfail(io, key, query) };
        self.touch(io.now, id, false);
        for _ in 0..self.config.resolvers.len() {
            let list = &self.config.resolvers;
            let Some(resolver) = self.resolvers.pick(io.now, list, id, query_id) else { break };
            if self.ask_resolver(io.host, id, resolver, query).is_ok() {
                self.stats.counters.datagrams_in += 1;
                return;
            }
            self.resolvers.failed(&self.config.resolvers, resolver);
        }
        self.stats.drop(DropReason::NoResolver);
        self.answer_servfail(io, key, query);
    }

    /// Sends a query to `resolver`, by a socket of its family: resolvers of both may stand in the
    /// list.
    fn ask_resolver<H: Host + ?Sized>(
        &mut self,
        host: &mut H,
        id: FlowId,
        resolver: SocketAddr,
        query: &[u8],
    ) -> Result<(), HostError> {
        let Some(flow) = self.table.get_mut(id) else { return Err(HostError::Other) };
        let Body::Datagram(datagram) = &mut flow.body else { return Err(HostError::Other) };
        let last = core::mem::replace(&mut datagram.actual_remote, Endpoint::new(resolver));
        if last.is_ipv4() != datagram.actual_remote.is_ipv4()
            && let Some(token) = flow.token.take()
        {
            host.close(token);
        }
        let token = match flow.token {
            Some(token) => token,
            None => self.open_socket(host, id, DatagramKind::Udp, resolver)?,
        };
        host.send_datagram(token, &DatagramMeta::new(resolver), &[query])
    }

    /// Finds the guest's flow `key`, or makes it with a socket for `remote`.
    pub(crate) fn find_or_open<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        key: FlowKey,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<FlowId, HostError> {
        if let Some(id) = self.table.find(&key) {
            return Ok(id);
        }
        let id = self.insert_datagram(io, key, DatagramFlow::new(DatagramRole::Outgoing))?;
        if let Err(error) = self.open_socket(io.host, id, kind, remote) {
            self.stats.drop(DropReason::HostError);
            self.table.remove(id);
            return Err(error);
        }
        Ok(id)
    }

    /// Gives a flow that has none a socket for `remote`.
    fn open_socket<H: Host + ?Sized>(
        &mut self,
        host: &mut H,
        id: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError> {
        let token = host.open_datagram(id, kind, remote)?;
        if let Some(flow) = self.table.get_mut(id) {
            flow.token = Some(token);
        }
        Ok(token)
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
        // Of a client's flow it is the guest that answers.
        let answers = datagram.role == DatagramRole::Forwarded;
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
        self.touch(io.now, id, answers);
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
                code: wire::icmpv4::CODE_PORT_UNREACHABLE,
                next_hop_mtu: 0,
            },
            Verdict::Icmp(icmp) => icmp,
        };
        self.send_icmp_error(io.link, icmp, offender, quoted);
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
