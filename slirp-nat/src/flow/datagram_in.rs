//! Datagrams and errors of the host, on their way to the guest.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::icmp_error::quote_datagram;
use super::key::wide;
use super::{Body, DatagramRole, Endpoint, FlowKey, FlowKind};
use crate::config::UdpFiltering;
use crate::host::{DatagramMeta, FlowId, Host, Ready};
use crate::link::Link;
use crate::nat::{Core, Io, Visit};
use crate::policy::translate_in;
use crate::service::dns;
use crate::stats::DropReason;
use crate::train::Consist;

/// Datagrams sent to the guest in one visit, at most; so many errors, too.
const VISIT_BUDGET: usize = 16;

impl Core<'_> {
    pub(crate) fn on_datagram_event(&mut self, id: FlowId, ready: Ready) {
        let Some(flow) = self.table.datagram(id) else { return };
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
        if self.table.datagram(id).is_some_and(|flow| flow.failing) {
            let more = self.drain_errors(io, id);
            if let Some(flow) = self.table.datagram(id) {
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
        let role = self.table.datagram(id)?.role;
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
}

/// The TTL for the guest of what was received with `ttl`: one hop less, as this is a router.
pub(crate) const fn reply_ttl(ttl: u8) -> u8 {
    match ttl {
        0 => ipstack::wire::ipv4::Ipv4Header::DEFAULT_TTL,
        1 => 1,
        more => more - 1,
    }
}
