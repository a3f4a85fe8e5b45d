//! How the link's queue is shared between flows that send.

use ipstack::Instant;

/// An epoch is about a quarter of a second: a flow counts as sending for one to two of them.
const EPOCH_SHIFT: u32 = 18;

/// Counts the flows that move data, without a timer.
#[derive(Debug, Default)]
pub(crate) struct UploadShare {
    epoch: u16,
    current: u32,
    previous: u32,
}

impl UploadShare {
    /// Counts a flow that moves data at `now`; `seen` is its own note of when it last did.
    pub(crate) fn count(&mut self, now: Instant, seen: &mut u16) {
        #[expect(clippy::cast_possible_truncation, reason = "epochs are compared for equality")]
        let epoch = ((now.micros() >> EPOCH_SHIFT) as u16).max(1);
        if epoch != self.epoch {
            let adjacent = epoch == self.epoch.wrapping_add(1);
            self.previous = if adjacent { self.current } else { 0 };
            self.current = 0;
            self.epoch = epoch;
        }
        if *seen != epoch {
            *seen = epoch;
            self.current = self.current.saturating_add(1);
        }
    }

    /// Bytes of window that one flow may offer, if the link queues `frames` frames, each with
    /// `mss` bytes: the windows of all flows that send stay below it together.
    pub(crate) fn window(&self, frames: usize, mss: u16) -> u32 {
        let bytes = u32::try_from(frames).unwrap_or(u32::MAX).saturating_mul(u32::from(mss));
        bytes / self.flows()
    }

    /// What one flow that sends may count on if they all share `bytes`.
    pub(crate) fn of(&self, bytes: usize) -> usize {
        bytes / usize::try_from(self.flows()).unwrap_or(usize::MAX).max(1)
    }

    /// How many flows send, and at least 1.
    fn flows(&self) -> u32 {
        self.current.max(self.previous).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The middle of an epoch.
    const fn epoch(number: u64) -> Instant {
        Instant::from_micros((number << EPOCH_SHIFT) + 1000)
    }

    #[test]
    fn windows_of_all_that_send_stay_below_the_queue_together() {
        let mut share = UploadShare::default();
        assert_eq!(share.window(100, 1460), 146_000, "whoever comes first may have it all");
        let mut seen = [0; 3];
        for note in &mut seen {
            share.count(epoch(7), note);
            share.count(epoch(7), note);
        }
        assert_eq!(share.window(100, 1460), 48_666);
    }

    #[test]
    fn a_flow_counts_for_one_to_two_epochs_and_no_longer() {
        let mut share = UploadShare::default();
        let (mut first, mut second) = (0, 0);
        share.count(epoch(7), &mut first);
        share.count(epoch(7), &mut second);
        share.count(epoch(8), &mut first);
        assert_eq!(share.window(10, 1000), 5000, "the other may send again soon");
        share.count(epoch(9), &mut first);
        assert_eq!(share.window(10, 1000), 10_000);
    }

    #[test]
    fn an_endless_queue_is_an_endless_window() {
        assert_eq!(UploadShare::default().window(usize::MAX, 1460), u32::MAX);
    }
}
