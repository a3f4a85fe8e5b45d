//! Counters of what happened to frames.

use crate::chip::RxOutcome;

/// Frames since the card was made, by what became of them. The driver cannot see or change these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Taken from the card for the network.
    pub transmitted: u64,
    /// [`RxOutcome::Stored`].
    pub stored: u64,
    /// [`RxOutcome::Filtered`].
    pub filtered: u64,
    /// [`RxOutcome::NoRoom`].
    pub no_room: u64,
    /// [`RxOutcome::Stopped`].
    pub stopped: u64,
    /// [`RxOutcome::Monitored`].
    pub monitored: u64,
    /// [`RxOutcome::Runt`].
    pub runts: u64,
    /// [`RxOutcome::Oversize`].
    pub oversize: u64,
    /// [`RxOutcome::Damaged`].
    pub damaged: u64,
    /// [`RxOutcome::NoLink`].
    pub no_link: u64,
}

impl Stats {
    pub(crate) const fn new() -> Self {
        Self {
            transmitted: 0,
            stored: 0,
            filtered: 0,
            no_room: 0,
            stopped: 0,
            monitored: 0,
            runts: 0,
            oversize: 0,
            damaged: 0,
            no_link: 0,
        }
    }

    pub(crate) const fn count(&mut self, outcome: RxOutcome) {
        let counter = match outcome {
            RxOutcome::Stored => &mut self.stored,
            RxOutcome::Filtered => &mut self.filtered,
            RxOutcome::NoRoom => &mut self.no_room,
            RxOutcome::Stopped => &mut self.stopped,
            RxOutcome::Monitored => &mut self.monitored,
            RxOutcome::Runt => &mut self.runts,
            RxOutcome::Oversize => &mut self.oversize,
            RxOutcome::Damaged => &mut self.damaged,
            RxOutcome::NoLink => &mut self.no_link,
        };
        *counter = counter.saturating_add(1);
    }
}
