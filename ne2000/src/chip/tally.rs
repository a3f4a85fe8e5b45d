//! The three tally counters (DP8390D datasheet, section 10.3, network tally counters).

use super::Dp8390;
use super::regs::Isr;

/// Which tally counter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tally {
    /// CNTR0: frames that did not end on a byte.
    Alignment,
    /// CNTR1: frames with a wrong frame check sequence.
    Check,
    /// CNTR2: frames for which there was no room, or in monitor mode.
    Missed,
}

/// A counter stops here.
const STOP: u8 = 192;
/// A counter that gets here raises ISR.CNT.
const WARN: u8 = 128;

/// The counters; each is 192 at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tallies([u8; 3]);

impl Tallies {
    pub(super) const fn new() -> Self {
        Self([0; 3])
    }

    /// The counters with these values, or `None` if one is past the stop.
    pub(super) fn from_saved(values: [u8; 3]) -> Option<Self> {
        values.iter().all(|value| *value <= STOP).then_some(Self(values))
    }

    pub(super) const fn saved(self) -> [u8; 3] {
        self.0
    }

    fn slot(&mut self, tally: Tally) -> &mut u8 {
        let [alignment, check, missed] = &mut self.0;
        match tally {
            Tally::Alignment => alignment,
            Tally::Check => check,
            Tally::Missed => missed,
        }
    }
}

impl Dp8390 {
    /// Counts one more, up to the stop.
    pub(super) fn count(&mut self, tally: Tally) {
        let counter = self.tallies.slot(tally);
        if *counter < STOP {
            *counter = counter.saturating_add(1);
            if *counter == WARN {
                self.raise(Isr::CNT);
            }
        }
    }

    /// Reads a counter, which clears it. ISR.CNT falls with the last counter that was past 127.
    pub(super) fn take_tally(&mut self, tally: Tally) -> u8 {
        let counter = self.tallies.slot(tally);
        let value = *counter;
        *counter = 0;
        if self.tallies.0.iter().all(|counter| *counter < WARN) {
            self.acknowledge(Isr::CNT);
        }
        value
    }
}
