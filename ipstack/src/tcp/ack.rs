//! What the ACK field and the window of a segment say (RFC 9293 3.10.7.4 fifth check).

use super::congestion::Recovery;
use super::timer::Timer;
use super::{Arrival, Connection, Event, Fate, SegmentIn, SeqNumber, State};
use crate::Instant;

impl Connection {
    /// The ACK field (RFC 9293 3.10.7.4 fifth check, RFC 5961 5.2).
    pub(super) fn on_ack<'a>(&mut self, now: Instant, segment: &SegmentIn<'a>) -> Arrival<'a> {
        let ack = segment.acknowledgment;
        let oldest = self.snd_una.minus(self.max_snd_wnd);
        if ack.is_after(self.snd_max) || ack.is_before(oldest) {
            return self.challenge(now);
        }
        self.measure(now, ack);
        let window = u32::from(segment.window) << self.snd_shift;
        let mut arrival = Arrival::new(Event::None, Fate::Taken);
        if ack.is_after(self.snd_una) {
            arrival.acked = self.advance(ack);
            let fin_acked = self.flags.fin_sent && self.snd_una == self.snd_max;
            self.update_window(segment, window);
            if fin_acked {
                self.on_fin_acked(now, &mut arrival);
            }
        } else {
            if self.is_duplicate(segment, window) {
                arrival.fast_retransmit = self.on_duplicate_ack();
            }
            self.update_window(segment, window);
        }
        arrival
    }

    /// Moves `snd_una`; returns how many bytes of the host's stream that covers.
    fn advance(&mut self, ack: SeqNumber) -> u32 {
        let outstanding = self.data_outstanding();
        let acked = ack.since(self.snd_una).min(outstanding);
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.retries = 0;
        let flight = self.snd_max.since(ack);
        let recovery = self.congestion.on_ack(acked, ack, flight, u32::from(self.mss));
        self.flags.retransmit = recovery == Recovery::Retransmit && self.data_outstanding() > 0;
        if recovery == Recovery::Retransmit && self.is_only_fin_outstanding() {
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
        let flight = self.snd_max.since(self.snd_una);
        let mss = u32::from(self.mss);
        match self.congestion.on_duplicate(self.snd_una, self.snd_max, flight, mss) {
            Recovery::Retransmit => {
                self.flags.retransmit = true;
                self.flags.timing = false;
                true
            }
            Recovery::Nothing => false,
        }
    }

    /// Window of the guest, from the newest segment; of two with equal numbers the later counts. One
    /// that acknowledges more than any before is newer, though it may be text sent again: were its
    /// window left out, the one before would seem to lie beyond the new `snd_una`, and its edge
    /// where the guest has no room.
    pub(super) fn update_window(&mut self, segment: &SegmentIn<'_>, window: u32) {
        let (seq, ack) = (segment.sequence, segment.acknowledgment);
        let newer = ack.is_after(self.snd_wl2)
            || seq.is_after(self.snd_wl1)
            || (seq == self.snd_wl1 && ack == self.snd_wl2);
        if !newer || ack.is_before(self.snd_una) {
            return;
        }
        if self.snd_wnd == 0 && window > 0 && self.timer == Timer::Persist {
            // What is left to wait for, a better window or an ACK, has another measure.
            self.timer = Timer::Off;
        }
        self.snd_wnd = window;
        self.max_snd_wnd = self.max_snd_wnd.max(window);
        (self.snd_wl1, self.snd_wl2) = (seq, ack);
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
