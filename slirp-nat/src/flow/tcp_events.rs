//! What happens to TCP flows on the host's side, and in time.

use ipstack::tcp::TimerOutcome;

use super::CLOCK_JUMP;
use super::icmp_error::quote_tcp;
use super::tcp::HostFailed;
use super::tcp_end::HostEnd;
use super::verdict::{Verdict, verdict};
use crate::fmt::debug;
use crate::host::{FlowId, Host, HostError, Ready};
use crate::link::Link;
use crate::nat::{Core, Io};
use crate::policy::is_host;
use crate::stats::DropReason;

impl Core<'_> {
    /// The host's side has failed while writing: what it received before still goes to the guest.
    pub(super) fn on_host_failure<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        error: HostError,
    ) -> HostFailed {
        debug!("host failed: {}", error);
        self.stats.drop(DropReason::HostError);
        self.forget_recovery(id);
        let Some(tcp) = self.table.tcp(id) else { return HostFailed };
        self.pool.release(&mut tcp.parked);
        tcp.shutdown_owed = false;
        // Nobody will ever read it, so it may as well be acknowledged until the reset goes out.
        tcp.connection.settle(io.now, 0);
        tcp.connection.host_refused_bytes();
        self.table.make_ready(id);
        self.after_tcp(io, id);
        HostFailed
    }

    pub(crate) fn on_tcp_event<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        ready: Ready,
    ) {
        let Some(tcp) = self.tcp(id) else { return };
        if ready.readable || ready.error {
            tcp.connection.host_readable();
        }
        if !tcp.connection.is_host_connected() {
            self.on_connect_event(io, id);
        } else if ready.writable || ready.error {
            // An error shows when what is parked is written.
            self.on_writable(io, id);
        }
        self.table.make_ready(id);
        self.after_tcp(io, id);
    }

    fn on_connect_event<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        let Some(flow) = self.table.get(id) else { return };
        let (Some(token), key) = (flow.token, flow.key) else { return };
        let outcome = io.host.connect_result(token);
        let error = match outcome {
            Err(HostError::WouldBlock) => return,
            Err(error) => error,
            Ok(connected) => {
                // A host may have connected elsewhere than asked, as to itself by 0.0.0.0.
                let itself = is_host(io.host, connected.remote.ip())
                    || connected.remote.ip() == connected.local.ip();
                let relayed = key.remote.ipv4() == self.config.dns;
                if self.config.host_loopback || relayed || !itself {
                    if let Some(tcp) = self.tcp(id) {
                        tcp.connection.host_connected();
                    }
                    return self.promise_first_window(io, id);
                }
                HostError::Denied
            }
        };
        self.stats.drop(DropReason::HostError);
        self.fail_half_open(io, id, error);
    }

    /// Tells the guest that the connection it asked for has failed.
    fn fail_half_open<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        error: HostError,
    ) {
        let Some(tcp) = self.tcp(id) else { return };
        let sequence = tcp.connection.guest_isn();
        match verdict(error) {
            Verdict::Refuse | Verdict::Silence => self.abort_tcp(io, id),
            Verdict::Icmp(icmp) => {
                let Some(key) = self.end_tcp(io, id, HostEnd::Reset) else { return };
                let quoted = quote_tcp(&key, sequence);
                self.send_icmp_error(io.link, icmp, None, &quoted);
            }
        }
    }

    /// The host takes more again: what is parked goes first, then the guest may learn of the room.
    fn on_writable<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        if self.write_parked(io, id).is_err() {
            return;
        }
        self.shut_down_if_owed(io, id);
        let Some(tcp) = self.tcp(id) else { return };
        tcp.connection.await_host(io.now);
        self.tell_of_room(io, id);
    }

    pub(crate) fn on_tcp_timer<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        let blocked = self.blocked;
        let Some((tcp, board)) = self.tcp_and_board(id) else { return };
        let connection = &mut tcp.connection;
        if blocked && connection.awaits_guest() {
            return connection.postpone(io.now);
        }
        let late = connection.deadline().is_some_and(|at| io.now.since(at) > CLOCK_JUMP);
        match connection.on_timer(io.now, board) {
            TimerOutcome::Early => {}
            TimerOutcome::GiveUp if late => connection.forgive(io.now),
            TimerOutcome::GiveUp if connection.is_host_connected() => self.abort_tcp(io, id),
            TimerOutcome::GiveUp => self.fail_half_open(io, id, HostError::TimedOut),
            TimerOutcome::Retransmit => {
                self.stats.counters.tcp_timeouts += 1;
                self.table.make_ready(id);
            }
            TimerOutcome::Probe => {
                self.stats.counters.tcp_probes += 1;
                self.table.make_ready(id);
            }
            TimerOutcome::Closed => self.after_tcp(io, id),
        }
    }
}
