//! TCP flows: segments of the guest, and what follows from them.

use heapless::Vec;
use ipstack::pool::Parked;
use ipstack::tcp::{
    Connection, Event, Fate, Limits, SegmentIn, initial_sequence_number, reset_reply,
};
use ipstack::wire::dns;
use ipstack::wire::tcp::TcpFlags;

use super::tcp_end::HostEnd;
use super::tcp_window::{INITIAL_WINDOW, window_scale};
use super::verdict::{Verdict, verdict};
use super::{Body, Class, FlowKey, TcpFlow};
use crate::flow::icmp_error::quote_tcp;
use crate::host::{FlowId, Host, HostError, Token};
use crate::link::Link;
use crate::nat::{Core, Io};
use crate::policy::{NoRoute, translate_out};
use crate::stats::{DropReason, SegmentFate};

/// Segments handled as one batch: as many as the frames of a batch.
pub(crate) const BATCH: usize = 64;

/// Bytes of IPv4 and TCP header without options.
pub(super) const IP_AND_TCP: u16 = 40;

/// A segment of a batch, and its flow.
#[derive(Debug)]
pub(crate) struct Pending<'f> {
    pub(crate) id: FlowId,
    pub(crate) segment: SegmentIn<'f>,
}

impl Core<'_> {
    pub(crate) fn limits<L: Link + ?Sized>(&self, link: &L) -> Limits {
        Limits {
            mss: self.link_mss(),
            window_scale: window_scale(self.largest_window(link)),
            receive_window: INITIAL_WINDOW,
            sack: self.stores_beyond_gaps(),
        }
    }

    pub(crate) fn tcp(&mut self, id: FlowId) -> Option<&mut TcpFlow> {
        self.table.tcp(id)
    }

    /// Takes a segment that belongs to no flow: a SYN makes one, anything else is reset
    /// (RFC 9293 3.10.7.1).
    pub(crate) fn on_stray_segment<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        key: &FlowKey,
        segment: &SegmentIn<'_>,
    ) {
        let [syn, ack, rst] =
            [TcpFlags::SYN, TcpFlags::ACK, TcpFlags::RST].map(|flag| segment.flags.contains(flag));
        if syn && !ack && !rst && !segment.flags.contains(TcpFlags::FIN) {
            let opened = self.open_tcp(io, key, segment);
            let fate = if opened { SegmentFate::Opened } else { SegmentFate::Refused };
            return self.stats.count_segment(fate);
        }
        if !syn && !ack && !rst {
            self.stats.count_segment(SegmentFate::Flags);
            return self.stats.drop(DropReason::TcpFlags);
        }
        self.stats.count_segment(SegmentFate::NoFlow);
        self.stats.drop(DropReason::TcpNoFlow);
        self.send_reset(io, key, segment);
    }

    fn send_reset<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        key: &FlowKey,
        segment: &SegmentIn<'_>,
    ) {
        if let Some(reset) = reset_reply(segment) {
            self.egress.reply_reset(&self.config, &mut self.stats, io.link, key, &reset);
        }
    }

    /// The guest asks for a connection: the host connects first, and the SYN is answered then.
    /// Returns whether there is a flow for it now.
    fn open_tcp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        key: &FlowKey,
        syn: &SegmentIn<'_>,
    ) -> bool {
        let remote = match self.tcp_destination(io.host, key) {
            Ok(remote) => remote,
            Err(NoRoute::Silent) => {
                self.stats.drop(DropReason::IpDestination);
                return false;
            }
            Err(NoRoute::Error(error)) => {
                self.stats.drop(DropReason::Denied);
                self.refuse_syn(io, key, syn, error);
                return false;
            }
        };
        if !self.make_room(io) {
            self.stats.drop(DropReason::FlowTableFull);
            self.send_reset(io, key, syn);
            return false;
        }
        let (local, peer) = (key.remote.socket_addr(), key.guest.socket_addr());
        let iss = initial_sequence_number(io.now, self.secret, local, peer);
        let connection = Connection::accept(io.now, syn, iss, &self.limits(io.link));
        let mss = connection.mss();
        let Some(id) = self.insert_tcp(*key, connection) else { return false };
        match io.host.connect(id, remote, mss) {
            Ok(token) => {
                self.stats.counters.tcp_opened += 1;
                if let Some(flow) = self.table.get_mut(id) {
                    flow.token = Some(token);
                }
                self.table.reschedule(id);
                true
            }
            Err(error) => {
                self.stats.drop(DropReason::HostError);
                self.end_tcp(io, id, HostEnd::Reset);
                self.refuse_syn(io, key, syn, error);
                false
            }
        }
    }

    pub(crate) fn insert_tcp(&mut self, key: FlowKey, connection: Connection) -> Option<FlowId> {
        let body = Body::Tcp(TcpFlow {
            connection,
            parked: Parked::EMPTY,
            upload_epoch: 0,
            recovery: 0,
            shutdown_owed: false,
        });
        let id = self.table.insert(key, body)?;
        self.table.classify(id, Some(Class::HalfOpen));
        self.stats.counters.flows_created += 1;
        Some(id)
    }

    fn tcp_destination<H: Host + ?Sized>(
        &mut self,
        host: &mut H,
        key: &FlowKey,
    ) -> Result<core::net::SocketAddr, NoRoute> {
        let (address, port) = (key.remote.ipv4(), key.remote.port);
        if address == self.config.dns && port == dns::PORT {
            let resolver = self.resolvers.in_use(&self.config.resolvers);
            return resolver.ok_or(NoRoute::Error(HostError::Refused));
        }
        translate_out(&self.config, host, address, port)
    }

    /// Tells the guest that its SYN has failed.
    fn refuse_syn<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        key: &FlowKey,
        syn: &SegmentIn<'_>,
        error: HostError,
    ) {
        match verdict(error) {
            // A host without resources refuses, or the guest would try for minutes.
            Verdict::Refuse | Verdict::Silence => self.send_reset(io, key, syn),
            Verdict::Icmp(icmp) => {
                let quoted = quote_tcp(key, syn.sequence);
                self.send_icmp_error(io.link, icmp, None, &quoted);
            }
        }
    }

    /// Takes the segments of one batch. Those of a flow are handled together: one write to the
    /// host, one ACK to the guest.
    pub(crate) fn on_tcp_batch<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        batch: &[Pending<'_>],
    ) {
        let mut rest = batch;
        let mut handled = 0u64;
        let mut first = 0u32;
        while let Some((pending, after)) = rest.split_first() {
            if handled.checked_shr(first).unwrap_or(0) & 1 == 0 {
                let mut text: Vec<&[u8], BATCH> = Vec::new();
                let mut acked = 0u32;
                for (place, same) in (first..).zip(rest) {
                    if same.id == pending.id {
                        handled |= 1u64.checked_shl(place).unwrap_or(0);
                        acked = acked.saturating_add(self.on_segment(io, same, &mut text));
                    }
                }
                self.settle_tcp(io, pending.id, &text, acked);
            }
            rest = after;
            first = first.saturating_add(1);
        }
    }

    /// Takes one segment of a flow; returns how many bytes it acknowledges.
    fn on_segment<'f, H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        pending: &Pending<'f>,
        text: &mut Vec<&'f [u8], BATCH>,
    ) -> u32 {
        let Pending { id, segment } = pending;
        if !segment.sack.is_empty() && self.tcp(*id).is_some_and(|tcp| tcp.connection.has_sack()) {
            self.recovery_of(*id);
        }
        let Some((tcp, board)) = self.tcp_and_board(*id) else {
            self.stats.count_segment(SegmentFate::NoFlow);
            self.stats.drop(DropReason::TcpNoFlow);
            return 0;
        };
        if segment.flags.contains(TcpFlags::SYN)
            && tcp.connection.is_done_with_host()
            && tcp.owes_host()
        {
            // What the guest was promised goes first; it asks again.
            self.stats.count_segment(SegmentFate::Refused);
            self.stats.drop(DropReason::HostBusy);
            return 0;
        }
        let arrival = tcp.connection.on_segment(io.now, segment, board);
        if arrival.event != Event::Replaced {
            self.count_fate(arrival.fate);
        }
        self.stats.counters.tcp_fast_retransmits += u64::from(arrival.fast_retransmit);
        if !arrival.data.is_empty() {
            // As many segments as the batch has fit.
            let _ = text.push(arrival.data);
        }
        if let Some(beyond) = &arrival.beyond {
            self.store_beyond(io, *id, beyond);
        }
        match arrival.event {
            Event::None | Event::Closed => {}
            Event::Established => {
                self.table.classify(*id, None);
            }
            Event::Refused | Event::Reset => {
                text.clear();
                self.end_tcp(io, *id, HostEnd::Reset);
            }
            Event::Replaced => {
                if let Some(flow) = self.end_tcp(io, *id, HostEnd::Reset) {
                    self.on_stray_segment(io, &flow, segment);
                }
            }
        }
        if arrival.fate == Fate::BadHandshake
            && let Some(key) = self.table.get(*id).map(|flow| flow.key)
        {
            self.send_reset(io, &key, segment);
        }
        arrival.acked
    }

    fn count_fate(&mut self, fate: Fate) {
        self.stats.count_segment(fate.into());
        match fate {
            Fate::Taken => {}
            Fate::Overlapped => self.stats.counters.tcp_segments_overlapped += 1,
            Fate::Duplicate => self.stats.drop(DropReason::TcpDuplicate),
            // Counted by what becomes of its text.
            Fate::Gap => {}
            Fate::Unacceptable | Fate::StrayReset => self.stats.drop(DropReason::TcpWindow),
            Fate::Challenged => {
                self.stats.counters.tcp_challenge_acks += 1;
                self.stats.drop(DropReason::TcpWindow);
            }
            Fate::ChallengeWithheld => self.stats.drop(DropReason::TcpWindow),
            Fate::Flags | Fate::BadHandshake => self.stats.drop(DropReason::TcpFlags),
        }
    }

    /// Ends a batch of one flow: hands on what the guest sent, and lets the host forget what the
    /// guest acknowledged.
    fn settle_tcp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        text: &[&[u8]],
        acked: u32,
    ) {
        let Some(flow) = self.table.get_mut(id) else { return };
        let (Some(token), Body::Tcp(tcp)) = (flow.token, &mut flow.body) else {
            self.table.make_ready(id);
            return self.after_tcp(io, id);
        };
        if acked > 0 {
            io.host.consume(token, acked as usize);
        }
        let recovers = tcp.recovery != 0;
        let Ok(untaken) = self.hand_on(io, id, text) else { return };
        let stored = if recovers && untaken == 0 { self.take_stored(id) } else { 0 };
        if recovers {
            self.end_recovery(id);
        }
        let Some(tcp) = self.tcp(id) else { return };
        if tcp.connection.settle(io.now, untaken) {
            tcp.shutdown_owed = true;
        }
        if stored > 0 && self.write_parked(io, id).is_err() {
            return;
        }
        self.shut_down_if_owed(io, id);
        let Some(tcp) = self.tcp(id) else { return };
        // Whoever finds the window closed may be asking, and of room that no event told of, as that
        // of a link that was away, this is the time to learn.
        let closed = tcp.connection.receive_window() == 0;
        if closed || stored > 0 || !text.is_empty() {
            self.tell_of_room(io, id);
        }
        self.table.make_ready(id);
        self.after_tcp(io, id);
    }

    /// Hands text on to the host, or parks it; returns how many bytes of it could not be taken.
    fn hand_on<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        text: &[&[u8]],
    ) -> Result<u32, HostFailed> {
        let total = total_len(text);
        let Some(flow) = self.table.get_mut(id).filter(|_| total > 0) else { return Ok(0) };
        let (Some(token), Body::Tcp(tcp)) = (flow.token, &mut flow.body) else { return Ok(0) };
        self.share.count(io.now, &mut tcp.upload_epoch);
        let mut taken = 0;
        if tcp.parked.is_empty() {
            taken = match send(io.host, token, text) {
                Ok(taken) => taken.min(total),
                Err(error) => return Err(self.on_host_failure(io, id, error)),
            };
            self.stats.counters.short_writes += u64::from(taken < total);
        }
        if taken < total {
            taken = taken.saturating_add(self.park(id, text, taken));
        }
        self.stats.counters.tcp_bytes_in += taken as u64;
        let untaken = u32::try_from(total.saturating_sub(taken)).unwrap_or(u32::MAX);
        if untaken > 0 {
            self.stats.drop(DropReason::TcpNoRoom);
        }
        Ok(untaken)
    }

    /// Writes what is parked, as far as the host takes it.
    pub(super) fn write_parked<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) -> Result<(), HostFailed> {
        let Some(flow) = self.table.get_mut(id) else { return Ok(()) };
        let (Some(token), Body::Tcp(tcp)) = (flow.token, &mut flow.body) else { return Ok(()) };
        while !tcp.parked.is_empty() {
            let (offered, sent) = {
                let slices = self.pool.slices(&tcp.parked);
                (total_len(&slices), send(io.host, token, &slices))
            };
            match sent {
                Ok(taken) => {
                    self.pool.advance(&mut tcp.parked, taken.min(offered));
                    if taken < offered || offered == 0 {
                        break;
                    }
                }
                Err(error) => return Err(self.on_host_failure(io, id, error)),
            }
        }
        Ok(())
    }

    /// Tells the host of the guest's end, once it has all that came before.
    pub(super) fn shut_down_if_owed<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        let Some(flow) = self.table.get_mut(id) else { return };
        let (Some(token), Body::Tcp(tcp)) = (flow.token, &mut flow.body) else { return };
        if tcp.shutdown_owed && tcp.parked.is_empty() {
            tcp.shutdown_owed = false;
            io.host.shutdown_write(token);
        }
    }
}

/// The host's side has failed, and what follows from that is done.
#[derive(Debug)]
pub(super) struct HostFailed;

/// Sends to the host, as far as it takes it now.
fn send<H: Host + ?Sized>(host: &mut H, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
    match host.send(token, data) {
        Err(HostError::WouldBlock) => Ok(0),
        taken => taken,
    }
}

pub(super) fn total_len(parts: &[&[u8]]) -> usize {
    parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()))
}
