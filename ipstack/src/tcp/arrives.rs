//! SEGMENT ARRIVES (RFC 9293 3.10.7), with the mitigations of RFC 5961.

use super::seq::numbers_of;
use super::{Beyond, Connection, Scoreboard, SegmentIn, SeqNumber, State};
use crate::Instant;
use crate::wire::tcp::TcpFlags;

/// Least time between two challenge ACKs of a connection, so that two ends that disagree do not
/// answer each other for ever (RFC 5961 section 7).
const CHALLENGE_INTERVAL_MILLIS: u32 = 100;

/// Duplicate ACKs sent for one batch of segments behind a gap, at most.
const MAX_DUPLICATES: u8 = 3;

/// What a segment brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival<'a> {
    /// New text, in order; hand it to the host, then call [`Connection::settle`].
    pub data: &'a [u8],
    /// New text beyond a gap. The guest is asked for what is missing; whether the text is stored in
    /// the meantime is up to the caller.
    pub beyond: Option<Beyond<'a>>,
    /// How many bytes sent from the host's stream the guest has acknowledged: to be consumed.
    pub acked: u32,
    /// A change that the owner must act upon.
    pub event: Event,
    /// What became of the segment.
    pub fate: Fate,
    /// It was the duplicate ACK that proves a loss: the segment it asks for is sent again at once.
    pub fast_retransmit: bool,
}

/// A change of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// None.
    None,
    /// The handshake is done.
    Established,
    /// The guest refused the connection asked of it.
    Refused,
    /// The guest reset the connection.
    Reset,
    /// The guest acknowledged a FIN and has sent its own: the end, or TIME-WAIT. Or it has forgotten
    /// a connection that both have ended.
    Closed,
    /// The segment is a SYN that begins a new connection in place of this one, which is over or was
    /// never finished: drop this one and treat the segment as new.
    Replaced,
}

/// What became of a segment. Everything that is not [`Fate::Taken`] is worth a counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fate {
    /// Processed.
    Taken,
    /// Out of the window; answered by an ACK, as a keep-alive probe is.
    Unacceptable,
    /// All of its text was received before; answered by an ACK.
    Duplicate,
    /// Processed, but some of its text was received before.
    Overlapped,
    /// In the window, but behind a gap: asked for again by a duplicate ACK.
    Gap,
    /// Answered by a challenge ACK (RFC 5961).
    Challenged,
    /// To be challenged so soon after another that it is dropped (RFC 5961 7).
    ChallengeWithheld,
    /// A senseless combination of flags, or no ACK: dropped.
    Flags,
    /// A reset out of the window: dropped.
    StrayReset,
    /// An ACK of something never sent, in a handshake; answered by a reset.
    BadHandshake,
}

impl<'a> Arrival<'a> {
    pub(super) const fn new(event: Event, fate: Fate) -> Self {
        Self { data: &[], beyond: None, acked: 0, event, fate, fast_retransmit: false }
    }
}

impl Connection {
    /// Takes a segment of this connection. Segments of one batch follow each other without
    /// [`Connection::settle`] between them. What its SACK option says is written to the `board`, if
    /// there is one.
    pub fn on_segment<'a>(
        &mut self,
        now: Instant,
        segment: &SegmentIn<'a>,
        board: Option<&mut Scoreboard>,
    ) -> Arrival<'a> {
        let arrival = match self.state {
            State::Closed => return Arrival::new(Event::None, Fate::Flags),
            State::SynSent => self.arrives_in_syn_sent(now, segment),
            _ => self.arrives_otherwise(now, segment, board),
        };
        if self.state != State::Closed {
            self.rearm(now, arrival.acked > 0 || arrival.event == Event::Established);
        }
        arrival
    }

    /// Ends a batch: the last `untaken` bytes of its text could not be handed on or stored. They
    /// are not acknowledged, and asked for again with three duplicate ACKs, so that a sender
    /// without SACK need not wait for its timer. Returns whether the guest has ended its stream, and
    /// the host has all of it.
    pub fn settle(&mut self, now: Instant, untaken: u32) -> bool {
        let fin = core::mem::take(&mut self.flags.fin_pending);
        if untaken > 0 {
            let end = self.rcv_nxt.minus(u32::from(fin));
            self.note_refused_text(end);
            self.rcv_nxt = end.minus(untaken);
            self.flags.ack_owed = true;
            self.duplicates_owed = super::congestion::DUPLICATE_ACK_THRESHOLD;
            return false;
        }
        if fin {
            self.on_fin(now);
        }
        fin && !self.flags.host_refuses
    }

    /// RFC 9293 3.10.7.3.
    fn arrives_in_syn_sent<'a>(&mut self, now: Instant, segment: &SegmentIn<'a>) -> Arrival<'a> {
        let acknowledges = segment.has(TcpFlags::ACK);
        if acknowledges && !self.is_ack_of_syn(segment) {
            return Arrival::new(Event::None, Fate::BadHandshake);
        }
        if segment.has(TcpFlags::RST) {
            if !acknowledges {
                return Arrival::new(Event::None, Fate::StrayReset);
            }
            self.close();
            return Arrival::new(Event::Refused, Fate::Taken);
        }
        if !segment.has(TcpFlags::SYN) {
            return Arrival::new(Event::None, Fate::Flags);
        }
        self.rcv_nxt = segment.sequence.plus(1);
        self.rcv_adv = self.rcv_nxt.plus(u32::from(self.syn_window()));
        self.take_syn_options(segment);
        self.snd_wnd = u32::from(segment.window);
        self.max_snd_wnd = self.snd_wnd;
        self.snd_wl1 = segment.sequence;
        if !acknowledges {
            // Simultaneous open (RFC 9293 3.5, figure 8).
            self.state = State::SynReceived;
            self.flags.syn_owed = true;
            return Arrival::new(Event::None, Fate::Taken);
        }
        self.establish(now, segment.acknowledgment);
        self.flags.ack_owed = true;
        Arrival::new(Event::Established, Fate::Taken)
    }

    /// RFC 9293 3.10.7.4: SYN-RECEIVED and the synchronized states.
    fn arrives_otherwise<'a>(
        &mut self,
        now: Instant,
        segment: &SegmentIn<'a>,
        board: Option<&mut Scoreboard>,
    ) -> Arrival<'a> {
        if let Some(arrival) = self.check_new_syn(segment) {
            return arrival;
        }
        if !self.is_acceptable(segment) && !self.is_expected_reset(segment) {
            return self.refuse_unacceptable(now, segment);
        }
        if segment.has(TcpFlags::RST) {
            return self.on_reset(now, segment);
        }
        if segment.has(TcpFlags::SYN) {
            return self.challenge(now);
        }
        if !segment.has(TcpFlags::ACK) {
            return Arrival::new(Event::None, Fate::Flags);
        }
        self.heard(segment);
        let mut event = Event::None;
        if self.state == State::SynReceived {
            if !self.is_ack_of_syn(segment) {
                return Arrival::new(Event::None, Fate::BadHandshake);
            }
            self.establish(now, segment.acknowledgment);
            // Its window counts, whatever its number is (RFC 9293 3.10.7.4, fifth check).
            self.snd_wl1 = segment.sequence;
            event = Event::Established;
        }
        let mut arrival = self.on_ack(now, segment, board);
        if event == Event::Established {
            arrival.event = event;
        }
        if arrival.fate == Fate::Taken && arrival.event != Event::Closed {
            self.on_text(segment, &mut arrival);
        }
        arrival
    }

    /// A SYN that is not part of this connection: of a guest that gave up asking and asks anew, or
    /// that reuses a port in TIME-WAIT (RFC 9293 3.10.7.4, RFC 6191 without timestamps).
    fn check_new_syn<'a>(&mut self, segment: &SegmentIn<'a>) -> Option<Arrival<'a>> {
        let plain = segment.has(TcpFlags::SYN)
            && !segment.has(TcpFlags::ACK)
            && !segment.has(TcpFlags::RST);
        if !plain {
            return None;
        }
        match self.state {
            State::TimeWait if segment.sequence.is_after(self.rcv_nxt) => {
                self.close();
                Some(Arrival::new(Event::Replaced, Fate::Taken))
            }
            State::SynReceived if segment.sequence.plus(1) == self.rcv_nxt => {
                // The same SYN again: answer again, if it was answered at all.
                self.flags.syn_owed = self.flags.connected;
                Some(Arrival::new(Event::None, Fate::Taken))
            }
            State::SynReceived if !self.flags.active => {
                self.close();
                Some(Arrival::new(Event::Replaced, Fate::Taken))
            }
            _ => None,
        }
    }

    /// RFC 9293 3.10.7.4 first check, table 6. A segment at the left edge counts for its ACK even
    /// if the window is closed, and an empty one at the right edge, too: that is where a guest
    /// stands that has filled the window while some of it got lost.
    fn is_acceptable(&self, segment: &SegmentIn<'_>) -> bool {
        let window = self.receive_window();
        let first = segment.sequence;
        let length = segment.len();
        let ahead = first.since(self.rcv_nxt);
        ahead < window
            || ahead == 0
            || (length == 0 && ahead == window && !segment.has(TcpFlags::RST))
            || (length > 0 && !self.is_old(first, length) && first.is_before(self.rcv_nxt))
    }

    /// Whether all of a segment was received before.
    const fn is_old(&self, first: SeqNumber, length: u32) -> bool {
        !first.plus(length).is_after(self.rcv_nxt)
    }

    /// Whether a segment is of a guest that knows what it and this end have said to each other. One
    /// that has gone back to an earlier state of its own, as from a snapshot, sends what was received
    /// long before, or acknowledges less than it had; keep-alive probes lag by one number
    /// (RFC 9293 3.8.4).
    pub(super) fn is_in_step(&self, segment: &SegmentIn<'_>) -> bool {
        let (first, ack) = (segment.sequence, segment.acknowledgment);
        let lags = first.plus(segment.len()).is_before(self.rcv_nxt.minus(1));
        let knows = !ack.is_before(self.snd_una) && !ack.is_after(self.snd_max);
        segment.has(TcpFlags::ACK) && knows && !lags && !first.is_after(self.rcv_adv)
    }

    /// Whether a segment brings text, and all of it was in a window not long ago.
    fn is_known(&self, segment: &SegmentIn<'_>) -> bool {
        !segment.payload.is_empty()
            && self.is_old(segment.sequence, segment.len())
            && self.rcv_nxt.since(segment.sequence) <= self.largest_window()
    }

    fn refuse_unacceptable<'a>(&mut self, now: Instant, segment: &SegmentIn<'a>) -> Arrival<'a> {
        if segment.has(TcpFlags::RST) {
            return Arrival::new(Event::None, Fate::StrayReset);
        }
        if segment.has(TcpFlags::SYN) && self.state.is_synchronized() {
            return self.challenge(now);
        }
        self.heard(segment);
        if self.state == State::SynReceived {
            if self.ends_simultaneous_open(segment) {
                self.establish(now, segment.acknowledgment);
                self.update_window(segment, u32::from(segment.window), false);
                self.flags.ack_owed = true;
                return Arrival::new(Event::Established, Fate::Taken);
            }
            self.flags.syn_owed = self.flags.connected && segment.has(TcpFlags::SYN);
            return Arrival::new(Event::None, Fate::Unacceptable);
        }
        if self.state == State::TimeWait && segment.has(TcpFlags::FIN) {
            // Our last ACK was lost: answer, and wait from now on (RFC 9293 3.10.7.4, eighth).
            self.enter_time_wait(now);
        }
        self.note_window_probe();
        if segment.is_empty() {
            self.owe_challenge(now);
        } else {
            self.flags.ack_owed = true;
        }
        if !self.is_known(segment) {
            return Arrival::new(Event::None, Fate::Unacceptable);
        }
        self.promise_what_is_behind();
        Arrival::new(Event::None, Fate::Duplicate)
    }

    /// The answer to our SYN that crossed the guest's own (RFC 9293 3.5, figure 8).
    fn ends_simultaneous_open(&self, segment: &SegmentIn<'_>) -> bool {
        self.flags.active
            && segment.has(TcpFlags::SYN)
            && segment.has(TcpFlags::ACK)
            && segment.sequence.plus(1) == self.rcv_nxt
            && self.is_ack_of_syn(segment)
    }

    /// Whether a segment acknowledges our SYN, which must have been sent.
    fn is_ack_of_syn(&self, segment: &SegmentIn<'_>) -> bool {
        self.snd_max != self.snd_una && segment.acknowledgment == self.snd_max
    }

    /// Whether it is a reset at the number expected next, or at the one that the guest was told: that
    /// is where one stands that has forgotten the connection, and answers an ACK (RFC 9293 3.5.2).
    fn is_expected_reset(&self, segment: &SegmentIn<'_>) -> bool {
        let expected = [self.rcv_nxt, self.acknowledged()];
        segment.has(TcpFlags::RST) && expected.contains(&segment.sequence)
    }

    /// RFC 9293 3.10.7.4 second check. RFC 5961 3.2: only a reset at exactly the expected number is
    /// believed.
    fn on_reset<'a>(&mut self, now: Instant, segment: &SegmentIn<'a>) -> Arrival<'a> {
        if !self.is_expected_reset(segment) {
            return self.challenge(now);
        }
        let event = match self.state {
            State::SynReceived if self.flags.active => Event::Refused,
            // Both have ended, and each has all of the other's: there is nothing left to break.
            State::Closing | State::LastAck | State::TimeWait => Event::Closed,
            _ => Event::Reset,
        };
        self.close();
        Arrival::new(event, Fate::Taken)
    }

    pub(super) fn challenge<'a>(&mut self, now: Instant) -> Arrival<'a> {
        let fate = if self.owe_challenge(now) { Fate::Challenged } else { Fate::ChallengeWithheld };
        Arrival::new(Event::None, fate)
    }

    /// Owes a challenge ACK, unless it is too soon for one.
    #[expect(clippy::cast_possible_truncation, reason = "a clock modulo 2^32")]
    fn owe_challenge(&mut self, now: Instant) -> bool {
        let millis = (now.micros() / 1000) as u32;
        let due = self.challenge_at == 0
            || millis.wrapping_sub(self.challenge_at) >= CHALLENGE_INTERVAL_MILLIS;
        if due {
            self.challenge_at = millis.max(1);
            self.flags.ack_owed = true;
        }
        due
    }

    fn establish(&mut self, now: Instant, acknowledgment: SeqNumber) {
        self.measure(now, acknowledgment);
        if self.retries > 0 {
            self.rtt.lost_syn();
            self.backoffs = 0;
        }
        self.state = State::Established;
        self.snd_una = acknowledgment;
        self.snd_nxt = acknowledgment;
        self.snd_max = acknowledgment;
        self.retries = 0;
        self.flags.syn_owed = false;
    }

    /// Text and FIN (RFC 9293 3.10.7.4, seventh and eighth). Urgent data is ordinary data here.
    fn on_text<'a>(&mut self, segment: &SegmentIn<'a>, arrival: &mut Arrival<'a>) {
        if segment.is_empty() {
            return;
        }
        if !self.state.receives() || self.flags.fin_pending {
            // Text beyond the guest's own FIN, or a FIN sent again.
            self.flags.ack_owed = true;
            arrival.fate = Fate::Unacceptable;
            return;
        }
        if segment.sequence.is_after(self.rcv_nxt) {
            // One duplicate ACK for each segment behind a gap, at once (RFC 5681 4.2).
            self.duplicates_owed = self.duplicates_owed.saturating_add(1).min(MAX_DUPLICATES);
            arrival.fate = Fate::Gap;
            arrival.beyond = Some(self.beyond(segment));
            return;
        }
        self.flags.ack_owed = true;
        self.note_window_probe();
        let known = self.rcv_nxt.since(segment.sequence) as usize;
        let fresh = segment.payload.get(known..).unwrap_or_default();
        let room = self.receive_window() as usize;
        let (data, beyond) = fresh.split_at_checked(room).unwrap_or((fresh, &[]));
        arrival.data = data;
        self.pass(numbers_of(data));
        if data.is_empty() && !beyond.is_empty() {
            arrival.fate = Fate::Unacceptable;
        } else if known > 0 && !data.is_empty() {
            self.promise_what_is_behind();
            arrival.fate = Fate::Overlapped;
        }
        if beyond.is_empty() && segment.has(TcpFlags::FIN) {
            self.take_fin();
        }
    }

    /// Text beyond a gap, as far as it is in the window.
    fn beyond<'a>(&self, segment: &SegmentIn<'a>) -> Beyond<'a> {
        let room = self.rcv_adv.since(segment.sequence) as usize;
        let text = segment.payload.get(..room).unwrap_or(segment.payload);
        let fin = segment.has(TcpFlags::FIN) && text.len() == segment.payload.len();
        Beyond { sequence: segment.sequence, text, fin }
    }

    /// `length` bytes of text stored before follow what was received, and are in order now; `fin`
    /// says that the guest's stream ends behind them. To be called before
    /// [`Connection::settle`] ends the batch that brought what was missing.
    pub fn on_stored(&mut self, length: u32, fin: bool) {
        let length = length.min(self.receive_window());
        self.flags.ack_owed = true;
        self.pass(length);
        if fin && self.state.receives() {
            self.take_fin();
        }
    }

    /// `length` bytes of text were received in order.
    fn pass(&mut self, length: u32) {
        if length > 0 {
            // They would ask for what has come, and count as asking for what follows.
            self.duplicates_owed = 0;
        }
        self.rcv_nxt = self.rcv_nxt.plus(length);
        // What was promised is used up: the window closes until there is a new promise.
        self.rcv_limit = self.rcv_limit.saturating_sub(length);
        self.note_received_text();
    }

    /// A FIN is taken at the edge of a full window, too.
    fn take_fin(&mut self) {
        if !self.flags.fin_pending {
            self.rcv_nxt = self.rcv_nxt.plus(1);
            self.flags.fin_pending = true;
        }
    }

    fn on_fin(&mut self, now: Instant) {
        self.flags.ack_owed = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
        self.rearm(now, false);
    }
}
