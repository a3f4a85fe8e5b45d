//! What has come to one end of the guest's.

use slirpkit_tests::build::SYN;
use slirpkit_tests::packet::Tcp;

/// Most blocks in one SACK option (RFC 2018 3).
const MAX_BLOCKS: usize = 4;

/// Numbers of the NAT's that have come since its SYN.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// The NAT's initial sequence number, once it has sent a SYN.
    irs: Option<u32>,
    next: u32,
    /// What lies beyond a gap, from its first number to the one behind its last, newest first.
    held: Vec<(u32, u32)>,
    /// What the NAT has acknowledged.
    acknowledged: Option<u32>,
}

impl Received {
    /// The number that is expected next.
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// What the NAT has acknowledged; `start` if it has not acknowledged anything.
    pub(super) fn acknowledged(&self, start: u32) -> u32 {
        self.acknowledged.unwrap_or(start)
    }

    /// What has come beyond a gap.
    pub(super) fn blocks(&self) -> Vec<(u32, u32)> {
        self.held.iter().copied().take(MAX_BLOCKS).collect()
    }

    /// The NAT's initial sequence number.
    pub(super) const fn irs(&self) -> Option<u32> {
        self.irs
    }

    /// What lies before `number` is not missed, since it was acknowledged once.
    pub(super) fn skip_to(&mut self, number: u32) {
        self.hold(self.next, number);
    }

    /// Takes a segment that is no reset.
    pub(super) fn take(&mut self, segment: &Tcp) {
        if segment.has(SYN) {
            if self.irs != Some(segment.seq) {
                (self.irs, self.next) = (Some(segment.seq), segment.seq_end());
                self.held.clear();
            }
        } else if segment.seq != segment.seq_end() {
            self.hold(segment.seq, segment.seq_end());
        }
        self.acknowledged = Some(segment.ack);
    }

    fn hold(&mut self, mut start: u32, mut end: u32) {
        let ahead = |number: u32| number.wrapping_sub(self.next).cast_signed();
        if ahead(end) <= 0 {
            return;
        }
        self.held.retain(|(left, right)| {
            let apart = ahead(*left) > ahead(end) || ahead(*right) < ahead(start);
            if !apart {
                start = if ahead(*left) < ahead(start) { *left } else { start };
                end = if ahead(*right) > ahead(end) { *right } else { end };
            }
            apart
        });
        if ahead(start) <= 0 {
            self.next = end;
        } else {
            self.held.insert(0, (start, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_and_the_newest_block_comes_first() {
        let mut received = Received { next: 100, ..Received::default() };
        for (start, end) in [(110, 120), (130, 140), (150, 160), (135, 145), (90, 95)] {
            received.hold(start, end);
        }
        assert_eq!(
            (received.next(), received.blocks()),
            (100, vec![(130, 145), (150, 160), (110, 120)])
        );
        received.hold(95, 125);
        assert_eq!((received.next(), received.blocks()), (125, vec![(130, 145), (150, 160)]));
        received.hold(125, 130);
        assert_eq!((received.next(), received.blocks()), (145, vec![(150, 160)]));
    }
}
