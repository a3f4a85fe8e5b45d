//! What the ACK field and the window of a segment say (RFC 9293 3.10.7.4 fifth check).

use super::congestion::Recovery;
use super::timer::Timer;
use super::{Arrival, Connection, Event, Fate, Scoreboard, SegmentIn, SeqNumber, State};
use crate::Instant;

impl Connection {
    /// The ACK field (RFC 9293 3.10.7.4 fifth check, RFC 5961 5.2).
    pub(super) fn on_ack<'a>(
        &mut self,
        now: Instant,
        segment: &SegmentIn<'a>,
        board: Option<&mut Scoreboard>,
    ) -> Arrival<'a> {
        let ack = segment.acknowledgment;
        let oldest = self.snd_una.minus(self.max_snd_wnd);
        if ack.is_after(self.snd_max) || ack.is_before(oldest) {
            return self.challenge(now);
        }
        self.measure(now, ack);
        let window = u32::from(segment.window) << self.snd_shift;
        let mut arrival = Arrival::new(Event::None, Fate::Taken);
        let progress = ack.is_after(self.snd_una);
        let duplicate = !progress && self.is_duplicate(segment, window);
        if progress {
            self.judge_tail_probe(segment);
            arrival.acked = self.advance(ack, board.as_deref());
        }
        if let Some(board) = board {
            arrival.fast_retransmit = self.on_sack(now, segment, duplicate, board);
        } else {
            self.out_of_pipe = 0;
            arrival.fast_retransmit = duplicate && self.on_duplicate_ack();
        }
        self.update_window(segment, window, progress);
        if progress && self.flags.fin_sent && self.snd_una == self.snd_max {
            self.on_fin_acked(now, &mut arrival);
        }
        arrival
    }

    /// The first ACK after a tail loss probe. If the guest does not say that it had that segment
    /// before (RFC 2883), the probe has repaired a loss (RFC 8985 7.4), and there may be more.
    fn judge_tail_probe(&mut self, segment: &SegmentIn<'_>) {
        if !core::mem::take(&mut self.flags.tail_probed) {
            return;
        }
        let ack = segment.acknowledgment;
        if segment.sack.iter().all(|(_, end)| end.is_after(ack)) {
            let flight = self.snd_max.since(self.snd_una);
            self.congestion.repair(self.snd_max, flight, u32::from(self.mss));
        }
    }

    /// Moves `snd_una`; returns how many bytes of the host's stream that covers.
    fn advance(&mut self, ack: SeqNumber, board: Option<&Scoreboard>) -> u32 {
        let outstanding = self.data_outstanding();
        let acked = ack.since(self.snd_una).min(outstanding);
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.retries = 0;
        let flight = self.snd_max.since(ack);
        let before = self.congestion.window();
        let recovery =
            self.congestion.on_ack(acked, ack, flight, u32::from(self.mss), board.is_some());
        self.congestion.keep_within(before.max(self.snd_wnd));
        // A scoreboard knows what else is missing, up to the last byte that the guest holds.
        let known = board.is_some_and(|board| {
            board.start_after(ack).is_some() || board.holds(ack) || board.is_resent(ack)
        });
        let resend = recovery == Recovery::Retransmit && !known;
        self.flags.retransmit = resend && self.data_outstanding() > 0;
        if resend && self.is_only_fin_outstanding() {
            self.snd_nxt = ack;
        }
        acked
    }

    /// A duplicate ACK (RFC 5681 2): no text, no new number, the same window, and text on its way.
    /// While only a FIN is out repeated ACKs mean nothing, and with a closed window they answer
    /// probes.
    fn is_duplicate(&self, segment: &SegmentIn<'_>, window: u32) -> bool {
        segment.acknowledgment == self.snd_una
            && segment.is_empty()
            && window == self.snd_wnd
            && window > 0
            && self.data_outstanding() > 0
    }

    /// Returns whether it proves a loss.
    fn on_duplicate_ack(&mut self) -> bool {
        let (una, nxt, mss) = (self.snd_una, self.snd_nxt, u32::from(self.mss));
        match self.congestion.on_duplicate(una, nxt, nxt.since(una), mss) {
            Recovery::Retransmit => {
                self.flags.retransmit = true;
                self.flags.timing = false;
                true
            }
            Recovery::Nothing => false,
        }
    }

    /// What the SACK option says (RFC 6675 5); returns whether it proves a loss.
    fn on_sack(
        &mut self,
        now: Instant,
        segment: &SegmentIn<'_>,
        duplicate: bool,
        board: &mut Scoreboard,
    ) -> bool {
        let news = board.update(self.snd_una, self.snd_max, &segment.sack);
        if self.flags.timing && board.holds(self.rtt_seq.minus(1)) {
            // It was sent once, or would not be timed any more.
            self.measure(now, self.rtt_seq);
        }
        let (una, max, mss) = (self.snd_una, self.snd_max, u32::from(self.mss));
        let nxt = self.snd_nxt;
        let flight = nxt.since(una);
        let again = self.congestion.is_recovering() && board.is_lost_again(una, mss);
        // If it holds the last byte sent, and nothing new follows, nothing else can tell
        // (RFC 5827 3.2).
        let last = board.holds(max.minus(1)) && !self.expects_new_data();
        let lost = last || board.is_lost(una, mss);
        let counts = news || (duplicate && segment.sack.is_empty());
        let proven = if again {
            self.congestion.repair(max, flight.min(self.congestion.window()), mss);
            true
        } else {
            counts
                && self.congestion.on_selective(lost, una, nxt, flight, mss) == Recovery::Retransmit
        };
        if proven {
            board.begin();
            self.flags.retransmit = self.data_outstanding() > 0;
        }
        self.count_pipe(board);
        proven
    }

    /// How much of what was sent is not on its way any more.
    pub(super) fn count_pipe(&mut self, board: &Scoreboard) {
        self.out_of_pipe = if self.congestion.is_recovering() {
            board.out_of_pipe(self.snd_una, self.snd_nxt, u32::from(self.mss))
        } else {
            board.held_before(self.snd_nxt)
        };
    }

    /// Window of the guest, from the newest segment; of two with equal numbers the later counts. One
    /// that makes `progress` is newer, though it may be text sent again: without its window the one
    /// before would count from the new `snd_una`, and reach where the guest has no room. So SND.WL2
    /// always equals `snd_una`, and is not kept.
    pub(super) fn update_window(&mut self, segment: &SegmentIn<'_>, window: u32, progress: bool) {
        let (seq, ack) = (segment.sequence, segment.acknowledgment);
        let newer = progress || !seq.is_before(self.snd_wl1);
        if !newer || ack.is_before(self.snd_una) {
            return;
        }
        if self.snd_wnd == 0 && window > 0 && self.timer == Timer::Persist {
            // What is left to wait for, a better window or an ACK, has another measure.
            self.timer = Timer::Off;
        }
        self.snd_wnd = window;
        self.max_snd_wnd = self.max_snd_wnd.max(window);
        self.snd_wl1 = seq;
    }

    #[expect(clippy::cast_possible_truncation, reason = "a clock modulo 2^32")]
    pub(super) fn measure(&mut self, now: Instant, ack: SeqNumber) {
        if self.flags.timing && !ack.is_before(self.rtt_seq) {
            self.flags.timing = false;
            self.backoffs = 0;
            self.rtt.sample((now.micros() as u32).wrapping_sub(self.rtt_start));
        }
    }

    fn on_fin_acked(&mut self, now: Instant, arrival: &mut Arrival<'_>) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => {
                self.enter_time_wait(now);
                arrival.event = Event::Closed;
            }
            State::LastAck => {
                self.close();
                arrival.event = Event::Closed;
            }
            _ => {}
        }
    }
}
