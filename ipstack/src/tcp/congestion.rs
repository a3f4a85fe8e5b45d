//! Loss recovery towards the guest from the first detected loss on: by SACK (RFC 6675) if there is a
//! scoreboard, else NewReno (RFC 6582), and congestion avoidance (RFC 5681).
//!
//! A local link loses nothing as a rule, so a connection begins without any congestion limit; the
//! link's own room is what holds it back. The first loss shows that the guest cannot keep what it
//! is sent, as a card whose receive ring holds eight frames, and from then on a window is kept.

use super::SeqNumber;

/// Duplicate ACKs that bring a segment again from any sender (RFC 5681 3.2), and that prove a loss
/// to one with a scoreboard (RFC 6675 2, DupThresh).
pub(super) const DUPLICATE_ACK_THRESHOLD: u8 = 3;

/// No limit yet.
const UNLIMITED: u32 = u32::MAX;

/// Congestion window, threshold and the recovery in progress, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Congestion {
    cwnd: u32,
    ssthresh: u32,
    /// The highest sequence number sent when the last loss was detected (RFC 6582 3.2).
    recover: SeqNumber,
    /// Duplicates since anything new was acknowledged: with SACK blocks, or of what was sent before a
    /// timeout.
    duplicates: u8,
    recovering: bool,
    /// The last ACK was of no more than four segments.
    small_step: bool,
}

/// What an ACK or duplicate ACK asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recovery {
    Nothing,
    /// Send the first unacknowledged segment again, now.
    Retransmit,
}

impl Congestion {
    pub(super) const fn new(iss: SeqNumber) -> Self {
        Self {
            cwnd: UNLIMITED,
            ssthresh: UNLIMITED,
            recover: iss,
            duplicates: 0,
            recovering: false,
            small_step: false,
        }
    }

    /// How many bytes may be in flight.
    pub(super) const fn window(&self) -> u32 {
        self.cwnd
    }

    /// Whether anything was lost yet.
    pub(super) const fn has_seen_loss(&self) -> bool {
        self.cwnd != UNLIMITED
    }

    /// Whether a loss is being repaired.
    pub(super) const fn is_recovering(&self) -> bool {
        self.recovering
    }

    /// New data was acknowledged: `acked` bytes, up to `una`; `flight` bytes are still out. With a
    /// scoreboard (`selective`) the window stays as it is while a loss is repaired.
    pub(super) fn on_ack(
        &mut self,
        acked: u32,
        una: SeqNumber,
        flight: u32,
        mss: u32,
        selective: bool,
    ) -> Recovery {
        self.duplicates = 0;
        self.small_step = acked <= mss.saturating_mul(4);
        if self.recover.is_before(una) {
            // It is to stay before whatever follows, also once that is 2^31 bytes further on.
            self.recover = una.minus(1);
        }
        if self.cwnd == UNLIMITED {
            return Recovery::Nothing;
        }
        if self.recovering {
            return self.on_ack_in_recovery(acked, una, flight, mss, selective);
        }
        let growth = if self.cwnd < self.ssthresh {
            acked.min(mss)
        } else {
            // A segment for each window acknowledged, by whatever number of ACKs (RFC 5681 3.1).
            let share = u64::from(mss) * u64::from(acked) / u64::from(self.cwnd.max(1));
            u32::try_from(share).unwrap_or(mss).min(mss).max(1)
        };
        self.cwnd = self.cwnd.saturating_add(growth).min(UNLIMITED - 1);
        Recovery::Nothing
    }

    /// Takes back what exceeds `limit`. Where the guest's own window held the flow back, no ACK shows
    /// that the guest could keep more, and all of it would come at once when that window opens.
    pub(super) const fn keep_within(&mut self, limit: u32) {
        if limit < self.cwnd && self.cwnd != UNLIMITED {
            self.cwnd = limit;
        }
    }

    fn on_ack_in_recovery(
        &mut self,
        acked: u32,
        una: SeqNumber,
        flight: u32,
        mss: u32,
        selective: bool,
    ) -> Recovery {
        if !una.is_before(self.recover) {
            // A full acknowledgment (RFC 6582 3.2 step 3): deflate, without a burst.
            self.recovering = false;
            self.cwnd = self.ssthresh.min(flight.max(mss).saturating_add(mss));
            return Recovery::Nothing;
        }
        // A partial one: the next segment was lost too.
        if selective {
            return Recovery::Retransmit;
        }
        self.cwnd = self.cwnd.saturating_sub(acked).saturating_add(mss).max(mss);
        Recovery::Retransmit
    }

    /// A duplicate ACK came while `flight` bytes were out, the last of them before `nxt`.
    ///
    /// The first one already proves a loss, where RFC 5681 3.2 waits for three: that is for networks
    /// which reorder, and the guest's link does not. More may not come: Linux answers a whole burst
    /// behind a gap by one duplicate if the reader holds the socket.
    pub(super) fn on_duplicate(
        &mut self,
        una: SeqNumber,
        nxt: SeqNumber,
        flight: u32,
        mss: u32,
    ) -> Recovery {
        if self.recovering {
            self.cwnd = self.cwnd.saturating_add(mss).min(UNLIMITED - 1);
            return Recovery::Nothing;
        }
        if !self.recover.is_before(una) {
            self.duplicates = self.duplicates.saturating_add(1);
            if !self.is_lost_since_timeout(flight, mss) {
                return Recovery::Nothing;
            }
        }
        self.repair(nxt, flight, mss);
        self.cwnd = self.cwnd.saturating_add(mss);
        Recovery::Retransmit
    }

    /// The guest has told of something beyond a gap, while `flight` bytes were out, the last of them
    /// before `nxt`; `lost` says that by all it has told the first one missing is lost (RFC 6675 5).
    pub(super) fn on_selective(
        &mut self,
        lost: bool,
        una: SeqNumber,
        nxt: SeqNumber,
        flight: u32,
        mss: u32,
    ) -> Recovery {
        if self.recovering {
            return Recovery::Nothing;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        let proven = lost || self.duplicates >= DUPLICATE_ACK_THRESHOLD;
        let before = una.is_before(self.recover);
        if !proven || (before && !self.is_lost_since_timeout(flight, mss)) {
            return Recovery::Nothing;
        }
        self.repair(nxt, flight, mss);
        Recovery::Retransmit
    }

    /// Whether what was sent again after a timeout, of which `flight` bytes are out, got lost, too.
    /// What was sent again without need is answered by duplicates as well; but then an ACK has
    /// stepped over it (RFC 6582 3.2 step 2 and 4.1).
    const fn is_lost_since_timeout(&self, flight: u32, mss: u32) -> bool {
        self.duplicates == DUPLICATE_ACK_THRESHOLD && self.small_step && flight > mss
    }

    /// A loss among the `flight` bytes out, the last of them before `nxt`, is to be repaired.
    pub(super) fn repair(&mut self, nxt: SeqNumber, flight: u32, mss: u32) {
        self.ssthresh = Self::half(flight, mss);
        self.cwnd = self.ssthresh;
        self.recover = nxt;
        self.recovering = true;
    }

    /// The retransmission timer ran out with `flight` bytes out, the last before `nxt`.
    pub(super) fn on_timeout(&mut self, first: bool, nxt: SeqNumber, flight: u32, mss: u32) {
        if first {
            self.ssthresh = Self::half(flight, mss);
        }
        self.cwnd = mss;
        self.recover = nxt;
        self.duplicates = 0;
        self.recovering = false;
    }

    fn half(flight: u32, mss: u32) -> u32 {
        (flight / 2).max(mss.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    #[test]
    fn no_limit_before_the_first_loss() {
        let mut c = Congestion::new(SeqNumber(0));
        assert_eq!(c.on_ack(MSS, SeqNumber(1000), 0, MSS, false), Recovery::Nothing);
        assert_eq!(c.window(), UNLIMITED);
    }

    #[test]
    fn first_duplicate_halves_and_partial_acks_walk_through_the_holes() {
        let mut c = Congestion::new(SeqNumber(0));
        let (una, nxt) = (SeqNumber(1), SeqNumber(10_001));
        assert_eq!(c.on_duplicate(una, nxt, 10_000, MSS), Recovery::Retransmit);
        assert_eq!(c.window(), 6000);
        assert_eq!(c.on_duplicate(una, nxt, 10_000, MSS), Recovery::Nothing);
        assert_eq!(c.window(), 7000);
        assert_eq!(c.on_ack(2000, SeqNumber(2001), 8000, MSS, false), Recovery::Retransmit);
        assert_eq!(c.on_ack(8000, nxt, 0, MSS, false), Recovery::Nothing);
        assert_eq!(c.window(), 2000);
    }

    #[test]
    fn a_loss_counts_however_much_has_come_since_the_last_one() {
        let mut c = Congestion::new(SeqNumber(0));
        let una = |gibibytes: u32| SeqNumber(1).plus(gibibytes << 30);
        for gibibytes in 1..=3 {
            assert_eq!(c.on_ack(1 << 30, una(gibibytes), 0, MSS, false), Recovery::Nothing);
        }
        let nxt = una(3).plus(10_000);
        assert_eq!(c.on_duplicate(una(3), nxt, 10_000, MSS), Recovery::Retransmit);
    }

    #[test]
    fn timeout_starts_over_and_grows_by_slow_start_then_linearly() {
        let mut c = Congestion::new(SeqNumber(0));
        c.on_timeout(true, SeqNumber(8001), 8000, MSS);
        assert_eq!(c.window(), MSS);
        for _ in 0..3 {
            c.on_ack(MSS, SeqNumber(9000), 0, MSS, false);
        }
        assert_eq!(c.window(), 4000);
        c.on_ack(MSS, SeqNumber(9000), 0, MSS, false);
        assert_eq!(c.window(), 4250);
    }

    #[test]
    fn duplicates_of_data_resent_after_a_timeout_start_no_recovery() {
        let mut c = Congestion::new(SeqNumber(0));
        c.on_timeout(true, SeqNumber(8001), 8000, MSS);
        for una in [1, 8001] {
            let nxt = SeqNumber(una + 1000);
            assert_eq!(c.on_duplicate(SeqNumber(una), nxt, 1000, MSS), Recovery::Nothing);
        }
        let (una, nxt) = (SeqNumber(8002), SeqNumber(9001));
        assert_eq!(c.on_duplicate(una, nxt, 1000, MSS), Recovery::Retransmit);
    }
}
