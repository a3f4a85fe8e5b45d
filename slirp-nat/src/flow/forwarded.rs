//! Port forwards at work: connections and datagrams of the host's clients, for the guest.

use core::net::{IpAddr, SocketAddr};

use ipstack::tcp::{Connection, initial_sequence_number};

use super::key::wide;
use super::{DatagramFlow, DatagramRole, Endpoint, FlowKey, FlowKind};
use crate::forward::{Forward, ForwardError, ForwardSlot, Listener, Protocol};
use crate::host::{DatagramMeta, FlowId, ForwardId, Host, HostError, Ready};
use crate::link::Link;
use crate::nat::{Core, Io};
use crate::policy::translate_in;
use crate::service::dhcp::leased_guest;
use crate::service::is_guest;
use crate::stats::DropReason;

/// Connections or datagrams taken from one forward in one turn.
const TURN: usize = 64;

/// How the turn of a forward ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There is nothing more; an event will follow.
    Drained,
    /// There may be more, and others get their turn first.
    Over,
    /// There may be more, but it can't be taken now.
    Stalled,
}

/// Ports tried for a client whose own port is taken by another with the same visible address.
const PORT_ATTEMPTS: u16 = 64;

/// Names no flow: for a connection that is taken only to be reset.
const NO_FLOW: FlowId = FlowId { slot: u32::MAX, generation: 0 };

impl Core<'_> {
    pub(crate) fn add_forward<H: Host + ?Sized>(
        &mut self,
        rule: Forward,
        host: &mut H,
    ) -> Result<ForwardId, ForwardError> {
        let guest = match rule.guest.ip() {
            IpAddr::V4(v4) => v4,
            IpAddr::V6(_) => return Err(ForwardError::Guest),
        };
        let reachable = guest.is_unspecified() || is_guest(&self.config, guest);
        if !reachable || rule.guest.port() == 0 {
            return Err(ForwardError::Guest);
        }
        let same = |listener: &Listener| {
            listener.rule.protocol == rule.protocol && listener.rule.host == rule.host
        };
        if self.forwards.iter().any(|slot| slot.0.as_ref().is_some_and(same)) {
            return Err(ForwardError::Duplicate);
        }
        let free = (0u16..).zip(self.forwards.iter_mut()).find(|(_, slot)| slot.0.is_none());
        let (number, slot) = free.ok_or(ForwardError::TableFull)?;
        let forward = ForwardId(number);
        let token = match rule.protocol {
            Protocol::Tcp => host.listen(forward, rule.host),
            Protocol::Udp => host.bind_datagram(forward, rule.host),
        };
        let token = token.map_err(ForwardError::Host)?;
        *slot = ForwardSlot(Some(Listener { rule, token, readable: false, stalled: false }));
        Ok(forward)
    }

    pub(crate) fn remove_forward<H: Host + ?Sized>(
        &mut self,
        forward: ForwardId,
        host: &mut H,
    ) -> bool {
        let slot = self.forwards.get_mut(usize::from(forward.0));
        let Some(listener) = slot.and_then(|slot| slot.0.take()) else { return false };
        let mut from = 0;
        while let Some(id) = self.table.next_forwarded_by(listener.token, from) {
            self.end_datagram(host, id);
            from = id.slot.saturating_add(1);
        }
        host.close(listener.token);
        true
    }

    /// A listener has connections, or a forward's socket has datagrams.
    pub(crate) fn on_forward_event<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        forward: ForwardId,
        ready: Ready,
    ) {
        let Some(listener) = self.listener(forward) else { return };
        listener.readable |= ready.readable;
        listener.stalled &= !ready.readable;
        // What the network reported about replies is of no use to the guest, but must not stand in
        // the way of the next datagram.
        if listener.rule.protocol == Protocol::Udp {
            let token = listener.token;
            for _ in 0..TURN {
                if io.host.datagram_error(token).is_none() {
                    break;
                }
            }
        }
    }

    fn listener(&mut self, forward: ForwardId) -> Option<&mut Listener> {
        self.forwards.get_mut(usize::from(forward.0))?.0.as_mut()
    }

    /// Gives each forward that has something its turn.
    pub(crate) fn visit_forwards<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
    ) {
        for (number, _) in (0u16..=u16::MAX).zip(0..self.forwards.len()) {
            let forward = ForwardId(number);
            let Some(listener) = self.listener(forward).copied().filter(|l| l.readable) else {
                continue;
            };
            let turn = match listener.rule.protocol {
                Protocol::Tcp => self.take_turn(&listener, |core| core.accept_one(io, &listener)),
                Protocol::Udp => self.receive_some(io, &listener),
            };
            if let Some(listener) = self.listener(forward) {
                listener.readable = turn != Turn::Drained;
                listener.stalled = turn == Turn::Stalled;
            }
        }
    }

    /// Whether a forward waits for its next turn.
    pub(crate) fn has_forward_input(&self) -> bool {
        self.forwards.iter().any(|slot| slot.0.as_ref().is_some_and(|l| l.readable && !l.stalled))
    }

    /// The guest that a rule means.
    fn guest_of(&self, rule: &Forward) -> Endpoint {
        let address = match rule.guest.ip() {
            IpAddr::V4(v4) if !v4.is_unspecified() => v4,
            _ => leased_guest(&self.config, &self.leases).unwrap_or(self.config.default_guest),
        };
        Endpoint::v4(address, rule.guest.port())
    }

    /// Has one after another taken by `take_one`, until that says how the turn ends.
    fn take_turn(
        &mut self,
        listener: &Listener,
        mut take_one: impl FnMut(&mut Self) -> Result<Option<Turn>, HostError>,
    ) -> Turn {
        let mut chances = listener.chances();
        for _ in 0..TURN {
            match take_one(self) {
                Ok(None) => {}
                Ok(Some(turn)) => return turn,
                // It may have been about that one client. If the host is out of descriptors, it
                // gets some with the end of a flow.
                Err(_) => {
                    self.stats.drop(DropReason::HostError);
                    chances = chances.saturating_sub(1);
                }
            }
            if chances == 0 {
                return Turn::Stalled;
            }
        }
        Turn::Over
    }

    /// Takes one connection of a client, if there is one; the guest is asked before anything is
    /// read from it.
    fn accept_one<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        listener: &Listener,
    ) -> Result<Option<Turn>, HostError> {
        let next = self.table.next_id();
        let Some(accepted) = io.host.accept(listener.token, next.unwrap_or(NO_FLOW))? else {
            return Ok(Some(Turn::Drained));
        };
        let guest = self.guest_of(&listener.rule);
        // Nobody is evicted before there is a client, whose flow has been named already.
        let next = next.filter(|_| self.make_room(io));
        let mut keys = self.client_keys(io.host, FlowKind::Tcp, guest, accepted.peer);
        let key = next.and_then(|_| keys.find(|key| self.table.find(key).is_none()));
        let id = key.and_then(|key| {
            let (local, peer) = (key.remote.socket_addr(), key.guest.socket_addr());
            let iss = initial_sequence_number(io.now, self.secret, local, peer);
            self.insert_tcp(key, Connection::open(io.now, iss, &self.limits(io.link)))
        });
        let Some(id) = id else {
            self.stats.drop(DropReason::FlowTableFull);
            io.host.reset(accepted.token);
            return Ok(None);
        };
        self.stats.counters.tcp_accepted += 1;
        if let Some(flow) = self.table.get_mut(id) {
            flow.token = Some(accepted.token);
        }
        self.promise_first_window(io, id);
        self.table.make_ready(id);
        self.table.reschedule(id);
        Ok(None)
    }

    /// Keys for the flow of a client: its address as the guest is to see it, and its port, or one
    /// near it if another client has the same.
    fn client_keys<H: Host + ?Sized>(
        &self,
        host: &mut H,
        kind: FlowKind,
        guest: Endpoint,
        client: SocketAddr,
    ) -> impl Iterator<Item = FlowKey> + use<H> {
        let address = translate_in(&self.config, host, client.ip());
        (0..PORT_ATTEMPTS).map(move |step| {
            let remote = Endpoint::v4(address, client.port().wrapping_add(step).max(1));
            FlowKey { guest, remote, kind }
        })
    }

    fn receive_some<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        listener: &Listener,
    ) -> Turn {
        let guest = self.guest_of(&listener.rule);
        let Self { egress, config, stats, .. } = self;
        if !egress.finds_guest(io.now, config, stats, io.link, guest.ipv4()) {
            // Datagrams stay with the host until the guest has answered.
            return Turn::Stalled;
        }
        self.take_turn(listener, |core| core.receive_one(io, listener, guest))
    }

    fn receive_one<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        listener: &Listener,
        guest: Endpoint,
    ) -> Result<Option<Turn>, HostError> {
        if self.egress.train.is_moving() {
            self.blocked = true;
            return Ok(Some(Turn::Over));
        }
        let buffer = self.egress.train.buffer();
        let Some((length, meta)) = io.host.receive_datagram(listener.token, buffer)? else {
            return Ok(Some(Turn::Drained));
        };
        self.on_client_datagram(io, listener, guest, length, &meta);
        Ok(None)
    }

    /// A client's datagram, in the train's buffer, for the guest.
    fn on_client_datagram<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        listener: &Listener,
        guest: Endpoint,
        length: usize,
        meta: &DatagramMeta,
    ) {
        if meta.truncated {
            return self.stats.drop(DropReason::TooLong);
        }
        let Some(id) = self.client_flow(io, listener, guest, meta) else { return };
        let Some(remote) = self.table.get(id).map(|flow| flow.key.remote) else { return };
        self.touch(io.now, id, false);
        self.send_datagram_in(io, remote, guest, length, meta);
    }

    /// Finds or makes the flow of a client. It shares the forward's socket, so that the guest's
    /// replies come from the address and port that the client wrote to.
    fn client_flow<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        listener: &Listener,
        guest: Endpoint,
        meta: &DatagramMeta,
    ) -> Option<FlowId> {
        let actual = Endpoint::new(meta.remote);
        let local = wide(meta.local.unwrap_or(listener.rule.host.ip()));
        for key in self.client_keys(io.host, FlowKind::Udp, guest, meta.remote) {
            let Some(id) = self.table.find(&key) else {
                let mut flow = DatagramFlow::new(DatagramRole::Forwarded);
                flow.actual_remote = actual;
                flow.local = local;
                let id = self.insert_datagram(io, key, flow).ok()?;
                self.table.get_mut(id)?.token = Some(listener.token);
                return Some(id);
            };
            let known = self.table.get(id).is_some_and(|flow| {
                flow.token == Some(listener.token)
                    && matches!(&flow.body, super::Body::Datagram(d)
                        if (d.actual_remote, d.local) == (actual, local))
            });
            if known {
                return Some(id);
            }
        }
        self.stats.drop(DropReason::FlowTableFull);
        None
    }
}
