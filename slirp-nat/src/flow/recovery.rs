//! What flows keep while something of their streams is missing: a side table, since few flows do.

use ipstack::pool::Pool;
use ipstack::tcp::{Runs, Scoreboard};
use managed::ManagedSlice;

use crate::host::FlowId;

/// A place in the table plus one; 0 is none.
pub(crate) type RecoveryIndex = u16;

/// What one flow keeps while something of its stream is missing: plain data.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    owner: Option<FlowId>,
    /// The next free entry.
    next: RecoveryIndex,
    /// Text of the guest beyond a gap.
    runs: Runs,
    /// What the guest holds beyond a gap.
    board: Scoreboard,
}

impl Recovery {
    /// An unused entry.
    pub const EMPTY: Self =
        Self { owner: None, next: 0, runs: Runs::EMPTY, board: Scoreboard::EMPTY };
}

/// All of them. A flow knows the place of its entry, and finds there whether it is still its own:
/// when all are taken, they give way in turn.
#[derive(Debug)]
pub(crate) struct Recoveries<'a> {
    entries: ManagedSlice<'a, Recovery>,
    /// Entries that were ever used; those after them are not initialised.
    touched: RecoveryIndex,
    free: RecoveryIndex,
    /// The last one that had to give way, or was asked to give up some of its text.
    hand: RecoveryIndex,
    /// Blocks of the pool with text beyond gaps.
    blocks: usize,
}

impl<'a> Recoveries<'a> {
    pub(crate) const fn new(entries: ManagedSlice<'a, Recovery>) -> Self {
        Self { entries, touched: 0, free: 0, hand: 0, blocks: 0 }
    }

    /// How many flows can have an entry.
    pub(crate) fn capacity(&self) -> RecoveryIndex {
        RecoveryIndex::try_from(self.entries.len()).unwrap_or(RecoveryIndex::MAX)
    }

    /// Blocks of the pool with text beyond gaps, which can be had for something better.
    pub(crate) const fn blocks(&self) -> usize {
        self.blocks
    }

    /// What `owner` has beyond a gap, if it still has its entry.
    pub(crate) fn runs(&self, index: RecoveryIndex, owner: FlowId) -> Option<&Runs> {
        let entry = self.entries.get(usize::from(index.checked_sub(1)?))?;
        Some(&entry.runs).filter(|_| entry.owner == Some(owner))
    }

    /// What is known of the guest's end of `owner`, if it still has its entry.
    pub(crate) fn board(&mut self, index: RecoveryIndex, owner: FlowId) -> Option<&mut Scoreboard> {
        let entry = at(&mut self.entries, index).filter(|entry| entry.owner == Some(owner))?;
        Some(&mut entry.board)
    }

    /// Changes what `owner` has beyond a gap.
    pub(crate) fn change<T>(
        &mut self,
        index: RecoveryIndex,
        owner: FlowId,
        change: impl FnOnce(&mut Runs) -> T,
    ) -> Option<T> {
        let entry = at(&mut self.entries, index).filter(|entry| entry.owner == Some(owner))?;
        let before = entry.runs.blocks();
        let result = change(&mut entry.runs);
        let after = entry.runs.blocks();
        self.blocks = self.blocks.saturating_sub(before).saturating_add(after);
        Some(result)
    }

    /// An entry for `owner`, which has none: a free one, or that of another, which loses its text.
    /// Returns how many bytes that was, too.
    pub(crate) fn take(
        &mut self,
        pool: &mut Pool<'_>,
        owner: FlowId,
    ) -> Option<(RecoveryIndex, usize)> {
        let index = if self.free != 0 {
            self.free
        } else if self.touched < self.capacity() {
            self.touched = self.touched.checked_add(1)?;
            if let Some(fresh) = at(&mut self.entries, self.touched) {
                *fresh = Recovery::EMPTY;
            }
            self.touched
        } else {
            self.turn_hand()
        };
        let lost = self.release(index, pool);
        let entry = at(&mut self.entries, index)?;
        self.free = entry.next;
        *entry = Recovery { owner: Some(owner), ..Recovery::EMPTY };
        Some((index, lost))
    }

    /// Gives an entry back, if it is still `owner`'s.
    pub(crate) fn give_back(&mut self, pool: &mut Pool<'_>, index: RecoveryIndex, owner: FlowId) {
        if self.runs(index, owner).is_some() {
            self.release(index, pool);
        }
    }

    /// Has a flow give up some of its text; returns how many bytes it had. Only those that take
    /// more than `share` blocks are asked, in turn.
    pub(crate) fn evict(&mut self, pool: &mut Pool<'_>, share: usize) -> Option<usize> {
        if self.blocks == 0 {
            return None;
        }
        for _ in 0..self.touched {
            let index = self.turn_hand();
            let Some(Recovery { owner: Some(owner), runs, .. }) = at(&mut self.entries, index)
            else {
                continue;
            };
            if runs.blocks() > share {
                let owner = *owner;
                return self.change(index, owner, |runs| runs.evict(pool));
            }
        }
        None
    }

    /// Puts an entry on the free list, if it is not there; returns how many bytes it had.
    fn release(&mut self, index: RecoveryIndex, pool: &mut Pool<'_>) -> usize {
        let owner = at(&mut self.entries, index).and_then(|entry| entry.owner);
        let Some(owner) = owner else { return 0 };
        let lost = self.change(index, owner, |runs| runs.release(pool)).unwrap_or(0);
        if let Some(entry) = at(&mut self.entries, index) {
            entry.owner = None;
            entry.next = self.free;
            self.free = index;
        }
        lost
    }

    /// The next entry in turn.
    fn turn_hand(&mut self) -> RecoveryIndex {
        self.hand = if self.hand >= self.touched { 1 } else { self.hand.saturating_add(1) };
        self.hand
    }
}

fn at(entries: &mut [Recovery], index: RecoveryIndex) -> Option<&mut Recovery> {
    entries.get_mut(usize::from(index.checked_sub(1)?))
}
