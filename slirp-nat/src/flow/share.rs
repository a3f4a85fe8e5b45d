//! How the link's queue is shared between flows that send.

use ipstack::Instant;

/// An epoch is about a quarter of a second: a flow counts as sending for one to two of them.
const EPOCH_SHIFT: u32 = 18;

/// Counts the flows that move data, without a timer.
#[derive(Debug, Default)]
pub(crate) struct UploadShare {
    epoch: u32,
    current: u32,
    previous: u32,
}

impl UploadShare {
    /// Counts a flow that moves data at `now`; `seen` is its own note of when it last did.
    pub(crate) fn count(&mut self, now: Instant, seen: &mut u32) {
        #[expect(clippy::cast_possible_truncation, reason = "epochs are compared for equality")]
        let epoch = ((now.micros() >> EPOCH_SHIFT) as u32).saturating_add(1);
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
        let flows = self.current.max(self.previous).max(1);
        let bytes = u32::try_from(frames).unwrap_or(u32::MAX).saturating_mul(u32::from(mss));
        bytes / flows
    }
}
