//! What is to be sent next (RFC 9293 3.8, RFC 5681, RFC 6582, RFC 6675).

use super::receive::Advertised;
use super::timer::{TIME_WAIT, Timer};
use super::{Connection, SackBlocks, Scoreboard, SegmentIn, SeqNumber, State};
use crate::Instant;
use crate::wire::tcp::TcpFlags;

/// The header of a segment to be sent, without ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentOut {
    /// SEG.SEQ.
    pub sequence: SeqNumber,
    /// SEG.ACK.
    pub acknowledgment: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.WND as it goes into the field.
    pub window: u16,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option.
    pub window_scale: Option<u8>,
    /// SACK-permitted option.
    pub sack_permitted: bool,
    /// SACK option: the owner of what is stored beyond a gap fills it in.
    pub sack: SackBlocks,
    /// It is a duplicate ACK that asks for missing text (RFC 5681 4.2).
    pub duplicate: bool,
}

impl SegmentOut {
    /// One without options.
    const fn new(advertised: Advertised, sequence: SeqNumber, flags: TcpFlags) -> Self {
        Self {
            sequence,
            acknowledgment: advertised.acknowledgment,
            flags,
            window: advertised.window,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            sack: SackBlocks::NONE,
            duplicate: false,
        }
    }
}

/// What [`Connection::poll_transmit`] asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transmit {
    /// Nothing now.
    Nothing,
    /// This segment, without text.
    Segment(SegmentOut),
    /// Peek up to `limit` bytes of the host's stream at `offset` beyond the last byte consumed.
    /// Then call [`Connection::data_sent`], [`Connection::host_drained`] or
    /// [`Connection::host_ended`].
    Data {
        /// Bytes beyond the last one consumed.
        offset: u32,
        /// The most that may be sent, at least 1.
        limit: u32,
    },
}

/// The reset that answers a segment for which there is no connection (RFC 9293 3.10.7.1); `None`
/// for a reset.
#[must_use]
pub fn reset_reply(segment: &SegmentIn<'_>) -> Option<SegmentOut> {
    if segment.has(TcpFlags::RST) {
        return None;
    }
    let (sequence, acknowledgment, flags) = if segment.has(TcpFlags::ACK) {
        (segment.acknowledgment, SeqNumber(0), TcpFlags::RST)
    } else {
        let end = segment.sequence.plus(segment.len());
        (SeqNumber(0), end, TcpFlags::RST.with(TcpFlags::ACK))
    };
    Some(SegmentOut::new(Advertised { acknowledgment, window: 0 }, sequence, flags))
}

impl Connection {
    /// What is to be sent next. Call it until it answers [`Transmit::Nothing`]. What the guest holds
    /// according to the `board`, if the connection has one, is left out.
    ///
    /// No ACK ever waits for a timer. That one ACK may cover a whole batch of segments, more than
    /// the two of RFC 5681 4.2, is deliberate: that rule keeps the clock of a sender's slow start
    /// running over a network, while this sender is local and its window opens once a batch.
    pub fn poll_transmit(&mut self, now: Instant, board: Option<&Scoreboard>) -> Transmit {
        if self.host_failure_is_due() {
            return Transmit::Segment(self.abort());
        }
        if self.is_half_open() {
            return self.transmit_syn(now);
        }
        if self.flags.keep_alive {
            self.flags.keep_alive = false;
            return Transmit::Segment(self.header(self.snd_una.minus(1), TcpFlags::ACK));
        }
        if self.state.sends() {
            if let Some(data) = self.transmit_data(board) {
                return data;
            }
            if self.fin_is_next() {
                return Transmit::Segment(self.fin_segment(now, TcpFlags::ACK));
            }
        }
        self.rearm(now, false);
        self.transmit_ack()
    }

    /// Whether the guest has all that came before the failure of the host's side.
    const fn host_failure_is_due(&self) -> bool {
        self.flags.host_failed
            && !self.is_done_with_host()
            && (self.is_half_open() || self.flags.bytes_lost || self.data_outstanding() == 0)
    }

    fn transmit_syn(&mut self, now: Instant) -> Transmit {
        if !self.flags.syn_owed || !self.flags.connected {
            // The ACK of a segment that came before its time, in simultaneous open.
            self.flags.ack_owed = false;
            return Transmit::Nothing;
        }
        self.flags.syn_owed = false;
        let answered = self.state == State::SynReceived;
        if self.snd_max == self.snd_una {
            self.start_timing(now, self.snd_una.plus(1));
        } else {
            self.flags.timing = false;
        }
        self.snd_nxt = self.snd_una.plus(1);
        self.snd_max = self.snd_nxt;
        if self.timer == Timer::Connect {
            self.timer = Timer::Off;
        }
        self.rearm(now, false);
        let flags = if answered { TcpFlags::SYN.with(TcpFlags::ACK) } else { TcpFlags::SYN };
        let advertised = Advertised {
            acknowledgment: if answered { self.rcv_nxt } else { SeqNumber(0) },
            window: self.syn_window(),
        };
        Transmit::Segment(SegmentOut {
            mss: self.flags.mss_option.then_some(self.offered_mss),
            window_scale: self.flags.scaling.then_some(self.rcv_shift),
            sack_permitted: self.flags.sack,
            ..SegmentOut::new(advertised, self.snd_una, flags)
        })
    }

    fn transmit_data(&mut self, board: Option<&Scoreboard>) -> Option<Transmit> {
        if self.is_out_of_turn() {
            return self.transmit_out_of_turn(board);
        }
        let hole = self.next_hole(board);
        self.flags.fills_hole = hole.is_some();
        if let Some((start, limit)) = hole {
            return Some(Transmit::Data { offset: start.since(self.snd_una), limit });
        }
        self.pass_what_is_held(board);
        // A probe of a window that is open, but not worthwhile, fills it
        // (RFC 9293 3.8.6.2.1, the override timeout).
        let probe = core::mem::take(&mut self.flags.probe);
        if !self.has_data() || (self.is_window_limited() && !probe) {
            return None;
        }
        let offset = self.snd_nxt.since(self.snd_una);
        // Nothing goes between the last byte and a FIN that was sent behind it.
        let most = if self.flags.fin_sent {
            self.data_outstanding().saturating_sub(offset)
        } else {
            u32::MAX
        };
        self.flags.probe = probe;
        let most = most.min(self.missing_from(self.snd_nxt, board));
        Some(Transmit::Data { offset, limit: self.usable_window().min(most) })
    }

    /// The next bytes that the guest misses between others that it holds, as many as may be on
    /// their way; any of them if there is nothing new to be sent.
    fn next_hole(&self, board: Option<&Scoreboard>) -> Option<(SeqNumber, u32)> {
        let board = board.filter(|_| self.congestion.is_recovering())?;
        let mss = u32::from(self.mss);
        let pipe = self.snd_nxt.since(self.snd_una).saturating_sub(self.out_of_pipe);
        let full = self.congestion.window().saturating_sub(pipe).checked_div(mss)?;
        let (start, end) = board.next_hole(self.snd_una, mss, !self.expects_new_data())?;
        // What a timeout has put behind `snd_nxt` comes in its turn.
        let ahead = self.snd_nxt.since(self.snd_una).min(self.data_outstanding());
        let text = ahead.saturating_sub(start.since(self.snd_una));
        let limit = end.since(start).min(text).min(full.saturating_mul(mss));
        (limit > 0).then_some((start, limit))
    }

    /// After a timeout: what the guest holds is not sent again.
    fn pass_what_is_held(&mut self, board: Option<&Scoreboard>) {
        let Some(board) = board.filter(|_| self.resends()) else { return };
        let Some(end) = board.end_of(self.snd_nxt) else { return };
        let text = self.snd_una.plus(self.data_outstanding());
        self.snd_nxt = if end.is_after(text) { text } else { end };
        self.count_pipe(board);
    }

    /// How many bytes from `number` on the guest may miss, before the next that it holds.
    fn missing_from(&self, number: SeqNumber, board: Option<&Scoreboard>) -> u32 {
        let next = board.and_then(|board| board.start_after(number));
        next.map_or(u32::MAX, |next| next.since(number))
    }

    /// Whether the next text begins at `snd_una`, wherever `snd_nxt` is.
    fn is_out_of_turn(&self) -> bool {
        self.flags.retransmit || (self.flags.probe && self.usable_window() == 0)
    }

    /// The first unacknowledged segment again, or a zero-window probe: one octet, new if there is
    /// no old one (RFC 9293 3.8.6.1).
    fn transmit_out_of_turn(&mut self, board: Option<&Scoreboard>) -> Option<Transmit> {
        let outstanding = self.data_outstanding();
        let limit = if self.flags.retransmit {
            let missing = self.missing_from(self.snd_una, board);
            outstanding.min(u32::from(self.mss)).min(missing)
        } else {
            u32::from(outstanding > 0 || self.expects_new_data())
        };
        if limit == 0 {
            self.flags.retransmit = false;
            self.flags.probe = false;
            return None;
        }
        Some(Transmit::Data { offset: 0, limit })
    }

    /// Whether there may be bytes to send at `snd_nxt`.
    fn has_data(&self) -> bool {
        self.resends() || self.expects_new_data()
    }

    /// Whether the host may have bytes beyond what was peeked.
    pub(super) const fn expects_new_data(&self) -> bool {
        self.flags.readable && !self.flags.host_end
    }

    /// Whether the bytes at `snd_nxt` were sent before.
    fn resends(&self) -> bool {
        self.snd_nxt.since(self.snd_una) < self.data_outstanding()
    }

    /// Whether something waits for a larger window.
    pub(super) fn is_blocked(&self) -> bool {
        self.state.sends() && self.has_data() && self.is_window_limited()
    }

    /// Whether the guest's window, and not the host, decides when the next byte goes out.
    #[must_use]
    pub fn is_window_limited(&self) -> bool {
        // What the guest has made room for before is sent again into any window.
        let least = if self.resends() { 1 } else { self.worthwhile_window() };
        self.usable_window() < least
    }

    fn usable_window(&self) -> u32 {
        let ahead = self.snd_nxt.since(self.snd_una);
        let pipe = ahead.saturating_sub(self.out_of_pipe);
        let allowed = self.congestion.window().saturating_sub(pipe);
        self.snd_wnd.saturating_sub(ahead).min(self.whole_segments(allowed))
    }

    /// What grows by parts of a segment is used by whole ones, or each ACK would bring a small one
    /// (RFC 9293 3.8.6.2.1).
    fn whole_segments(&self, bytes: u32) -> u32 {
        let part = bytes.checked_rem(u32::from(self.mss)).unwrap_or(0);
        if part < bytes { bytes - part } else { bytes }
    }

    /// Sender's silly window avoidance (RFC 9293 3.8.6.2.1): a full segment, or half of the
    /// largest window ever offered, which may be less than a segment.
    fn worthwhile_window(&self) -> u32 {
        u32::from(self.mss).min(self.max_snd_wnd / 2).max(1)
    }

    fn fin_is_next(&self) -> bool {
        let at_end = self.snd_nxt.since(self.snd_una) == self.data_outstanding();
        let unsent = !self.flags.fin_sent || self.snd_nxt != self.snd_max;
        self.flags.host_end && at_end && unsent
    }

    fn fin_segment(&mut self, now: Instant, flags: TcpFlags) -> SegmentOut {
        let header = self.header(self.snd_nxt, flags.with(TcpFlags::FIN));
        self.note_fin(now);
        header
    }

    fn note_fin(&mut self, now: Instant) {
        if !self.flags.fin_sent {
            self.start_timing(now, self.snd_nxt.plus(1));
        }
        self.flags.fin_sent = true;
        self.snd_nxt = self.snd_nxt.plus(1);
        self.snd_max = self.snd_max.max(self.snd_nxt);
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
        self.rearm(now, false);
    }

    fn transmit_ack(&mut self) -> Transmit {
        if self.flags.ack_owed {
            return Transmit::Segment(self.header(self.ack_sequence(), TcpFlags::ACK));
        }
        let Some(rest) = self.duplicates_owed.checked_sub(1) else {
            return Transmit::Nothing;
        };
        self.duplicates_owed = rest;
        let advertised = self.advertise(true);
        let header = SegmentOut::new(advertised, self.ack_sequence(), TcpFlags::ACK);
        Transmit::Segment(SegmentOut { duplicate: true, ..header })
    }

    /// SEG.SEQ of a segment without text: what the guest expects next. A guest that has closed or
    /// shrunk its window has not taken what lies beyond its edge, as the octet of a probe, and
    /// would not look at an ACK from there.
    const fn ack_sequence(&self) -> SeqNumber {
        let edge = self.snd_una.plus(self.snd_wnd);
        if self.is_half_open() || !self.snd_max.is_after(edge) { self.snd_max } else { edge }
    }

    /// `length` bytes were peeked where [`Transmit::Data`] asked; `end` says that the host's stream
    /// ends behind them, `drained` that nothing more is there now. What was sent again is noted on the
    /// `board`. Returns the segment's header.
    pub fn data_sent(
        &mut self,
        now: Instant,
        length: u32,
        drained: bool,
        end: bool,
        board: Option<&mut Scoreboard>,
    ) -> SegmentOut {
        let out_of_turn = self.is_out_of_turn();
        let hole = self.next_hole(board.as_deref()).filter(|_| self.flags.fills_hole);
        self.flags.fills_hole = false;
        self.flags.retransmit = false;
        self.flags.probe = false;
        let mut flags = TcpFlags::ACK;
        if drained || end {
            flags = flags.with(TcpFlags::PSH);
        }
        let again = hole.map(|(start, _)| start).filter(|_| !out_of_turn);
        if let Some(start) = again.or(out_of_turn.then_some(self.snd_una)) {
            self.note_sent_again(start, length, board);
            let header = self.header(start, flags);
            self.rearm(now, false);
            return header;
        }
        let sequence = self.snd_nxt;
        self.snd_nxt = sequence.plus(length);
        if self.snd_nxt.is_after(self.snd_max) {
            self.start_timing(now, self.snd_nxt);
            self.snd_max = self.snd_nxt;
        }
        if drained && self.snd_nxt == self.snd_max {
            self.flags.readable = false;
        }
        if end {
            self.flags.host_end = true;
            self.flags.readable = false;
        }
        if self.fin_is_next() {
            let header = self.header(sequence, flags.with(TcpFlags::FIN));
            self.note_fin(now);
            return header;
        }
        let header = self.header(sequence, flags);
        self.rearm(now, false);
        header
    }

    /// Something was sent out of turn.
    fn note_sent_again(&mut self, start: SeqNumber, length: u32, board: Option<&mut Scoreboard>) {
        let end = start.plus(length);
        self.snd_max = self.snd_max.max(end);
        // With a scoreboard the guest tells of the segment being timed, whatever lies before it.
        let timed = self.rtt_seq.is_after(start) && !self.rtt_seq.is_after(end);
        self.flags.timing &= board.is_some() && !timed;
        if let Some(board) = board {
            board.note_resent(end, self.snd_max);
            self.count_pipe(board);
        }
    }

    /// There was nothing to peek where [`Transmit::Data`] asked.
    pub fn host_drained(&mut self) {
        self.note_end(false);
    }

    /// The host's stream ends where [`Transmit::Data`] asked.
    pub fn host_ended(&mut self) {
        self.note_end(true);
    }

    /// Bytes that were sent can't be gone. Should a host lose them all the same, the guest is not
    /// sent others in their place.
    fn note_end(&mut self, end: bool) {
        let fills_hole = core::mem::take(&mut self.flags.fills_hole);
        let again = if self.is_out_of_turn() {
            self.data_outstanding() > 0
        } else {
            fills_hole || self.resends()
        };
        self.flags.readable = false;
        self.flags.retransmit = false;
        self.flags.probe = false;
        self.flags.host_end |= end && !again;
        self.flags.host_failed |= again;
        self.flags.bytes_lost |= again;
    }

    /// Ends the connection at once; returns the reset for the guest.
    pub fn abort(&mut self) -> SegmentOut {
        let flags = if self.state == State::SynSent {
            TcpFlags::RST
        } else {
            TcpFlags::RST.with(TcpFlags::ACK)
        };
        let header = self.header(self.ack_sequence(), flags);
        self.close();
        header
    }

    /// TIME-WAIT begins.
    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.set_timer(Timer::TimeWait, now.after(TIME_WAIT));
    }

    #[expect(clippy::cast_possible_truncation, reason = "a clock modulo 2^32")]
    fn start_timing(&mut self, now: Instant, until: SeqNumber) {
        if !self.flags.timing {
            self.flags.timing = true;
            self.rtt_seq = until;
            self.rtt_start = now.micros() as u32;
        }
    }

    fn header(&mut self, sequence: SeqNumber, flags: TcpFlags) -> SegmentOut {
        self.flags.ack_owed = false;
        SegmentOut::new(self.advertise(false), sequence, flags)
    }
}
