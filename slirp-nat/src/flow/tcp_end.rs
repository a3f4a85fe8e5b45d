//! How TCP flows end, on either side.

use ipstack::tcp::State;

use super::{Body, Class, FlowKey};
use crate::host::{FlowId, Host, Token};
use crate::link::Link;
use crate::nat::{Core, Io};

/// How a flow ends on the host's side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostEnd {
    Close,
    Reset,
}

impl Core<'_> {
    /// What has to follow any change of a TCP flow.
    pub(crate) fn after_tcp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        let Some(flow) = self.table.get_mut(id) else { return };
        let Body::Tcp(tcp) = &mut flow.body else { return };
        // Parked bytes were acknowledged: they outlive the connection with the guest.
        if tcp.owes_host() && tcp.connection.deadline().is_none() {
            tcp.connection.await_host(io.now);
        }
        if tcp.connection.is_done_with_host() && !tcp.owes_host() {
            let closed = tcp.connection.state() == State::Closed;
            let token = flow.token.take();
            self.end_host_side(io.host, token, HostEnd::Close);
            if closed {
                self.end_tcp(io, id, HostEnd::Close);
                return;
            }
            self.table.classify(id, Some(Class::TimeWait));
            if let Some(surplus) = self.table.surplus_time_wait() {
                self.stats.counters.flows_evicted += 1;
                self.end_tcp(io, surplus, HostEnd::Close);
            }
        }
        self.table.reschedule(id);
    }

    /// Takes a flow out of the table; returns its key.
    pub(crate) fn end_tcp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        how: HostEnd,
    ) -> Option<FlowKey> {
        let mut flow = self.table.remove(id)?;
        if let Body::Tcp(tcp) = &mut flow.body {
            self.pool.release(&mut tcp.parked);
            self.recoveries.give_back(&mut self.pool, tcp.recovery, id);
        }
        self.end_host_side(io.host, flow.token, how);
        Some(flow.key)
    }

    /// Gives up the host's socket of a flow, if there is one still; the flow counts as over.
    fn end_host_side<H: Host + ?Sized>(
        &mut self,
        host: &mut H,
        token: Option<Token>,
        how: HostEnd,
    ) {
        let Some(token) = token else { return };
        match how {
            HostEnd::Close => {
                host.close(token);
                self.stats.counters.tcp_closed += 1;
            }
            HostEnd::Reset => {
                host.reset(token);
                self.stats.counters.tcp_aborted += 1;
            }
        }
    }

    /// Resets a flow on both sides.
    pub(crate) fn abort_tcp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        let Some(tcp) = self.tcp(id) else { return };
        let silent = tcp.connection.is_done_with_host();
        let reset = tcp.connection.abort();
        let Some(key) = self.end_tcp(io, id, HostEnd::Reset) else { return };
        if silent {
            return;
        }
        self.egress.reply_reset(&self.config, &mut self.stats, io.link, &key, &reset);
    }
}
