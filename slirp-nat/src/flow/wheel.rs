//! A hierarchical timer wheel over the entries of the flow table: O(1) to set and to clear, and
//! nothing to do for timers that are far off.

use core::num::NonZeroU8;

use ipstack::Instant;

use super::Flow;
use super::lists::{Index, List, Pair, at};

/// A tick is 1,024 microseconds.
const TICK_SHIFT: u32 = 10;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;

/// Six levels of 64 slots reach two years.
const LEVELS: u32 = 6;

/// Ticks of a slot of the highest level.
const TOP_SHIFT: u32 = SLOT_BITS * (LEVELS - 1);

/// The last tick whose beginning is still an [`Instant`].
const LAST_TICK: u64 = u64::MAX >> TICK_SHIFT;

#[derive(Debug)]
pub(super) struct Wheel {
    /// The tick up to which everything has fired.
    current: u64,
    levels: [Level; LEVELS as usize],
}

#[derive(Clone, Copy, Debug)]
struct Level {
    occupied: u64,
    slots: [List; SLOTS],
}

/// Level and slot where an entry hangs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Counted from 1, which saves an `Option` of it a byte.
    level: NonZeroU8,
    slot: u8,
}

impl Place {
    const fn new(level: u8, slot: u8) -> Self {
        Self { level: NonZeroU8::MIN.saturating_add(level), slot }
    }

    const fn level(self) -> u8 {
        self.level.get() - 1
    }
}

fn pair(flow: &mut Flow) -> &mut Pair {
    &mut flow.links.timer
}

impl Wheel {
    pub(super) const fn new() -> Self {
        let level = Level { occupied: 0, slots: [List::EMPTY; SLOTS] };
        Self { current: 0, levels: [level; LEVELS as usize] }
    }

    /// Hangs an entry, which hangs nowhere, where it will fire at `time` or up to a tick later.
    pub(super) fn insert(&mut self, flows: &mut [Flow], index: Index, time: Instant) {
        let tick = (time.micros() >> TICK_SHIFT).saturating_add(1).max(self.current);
        let place = Self::place(self.current, tick.min(self.horizon()));
        if let Some(flow) = at(flows, index) {
            flow.links.place = Some(place);
        }
        if let Some((list, occupied)) = self.list(place) {
            *occupied |= 1 << place.slot;
            list.push(flows, pair, index);
        }
    }

    /// Takes an entry off, if it hangs anywhere.
    pub(super) fn remove(&mut self, flows: &mut [Flow], index: Index) {
        let Some(place) = at(flows, index).and_then(|flow| flow.links.place.take()) else { return };
        if let Some((list, occupied)) = self.list(place) {
            list.remove(flows, pair, index);
            if list.is_empty() {
                *occupied &= !(1 << place.slot);
            }
        }
    }

    /// The last tick that can be told from others: 63 slots of the highest level ahead, since the
    /// 64th would be the one that is under way. What is due later hangs there, and on from there.
    fn horizon(&self) -> u64 {
        let slot = (self.current >> TOP_SHIFT).saturating_add(SLOTS as u64 - 1);
        (slot << TOP_SHIFT | ((1 << TOP_SHIFT) - 1)).min(LAST_TICK)
    }

    /// Takes off the next entry that is due at `now`. Each entry moves down a level at most once
    /// for each level before it is due, however far the clock jumps.
    pub(super) fn pop_due(&mut self, flows: &mut [Flow], now: Instant) -> Option<Index> {
        let tick = now.micros() >> TICK_SHIFT;
        while let Some((place, start)) = self.first_occupied()
            && start <= tick
        {
            self.current = self.current.max(start);
            if place.level() > 0 {
                self.cascade(flows, place, tick);
                continue;
            }
            let index = self.list(place)?.0.oldest();
            self.remove(flows, index);
            return Some(index);
        }
        // Nothing lies between, so the wheel may turn to where it is.
        self.current = self.current.max(tick);
        None
    }

    /// Spreads the entries of a slot whose time has come over the levels below. The time is `tick`.
    fn cascade(&mut self, flows: &mut [Flow], place: Place, tick: u64) {
        let Some((list, occupied)) = self.list(place) else { return };
        let mut index = core::mem::replace(list, List::EMPTY).oldest();
        *occupied &= !(1 << place.slot);
        // Nothing else hangs before the next occupied slot, so after a jump of the clock the wheel
        // turns there at once: all of these that are due hang in the slot under way then.
        let next = self.first_occupied().map_or(tick, |(_, start)| start.saturating_sub(1));
        self.current = self.current.max(next.min(tick));
        while let Some(flow) = at(flows, index) {
            let next = core::mem::take(pair(flow)).next;
            let due = flow.links.timer_at;
            self.insert(flows, index, due);
            index = next;
        }
    }

    /// When [`Wheel::pop_due`] may next give something: never late, early by what a level cannot
    /// tell apart.
    pub(super) fn next(&self) -> Option<Instant> {
        let (_, start) = self.first_occupied()?;
        Some(Instant::from_micros(start << TICK_SHIFT))
    }

    /// The occupied slot that comes first, and the tick where it begins.
    fn first_occupied(&self) -> Option<(Place, u64)> {
        let (level, occupied) = (0u8..)
            .zip(self.levels.iter().map(|level| level.occupied))
            .find(|(_, occupied)| *occupied != 0)?;
        let shift = SLOT_BITS * u32::from(level);
        let position = self.current >> shift;
        #[expect(clippy::cast_possible_truncation, reason = "a rotation counts modulo 64")]
        let ahead = occupied.rotate_right(position as u32 & (SLOTS as u32 - 1)).trailing_zeros();
        let reached = position.saturating_add(u64::from(ahead));
        #[expect(clippy::cast_possible_truncation, reason = "masked to 6 bits")]
        let slot = (reached & (SLOTS as u64 - 1)) as u8;
        Some((Place::new(level, slot), reached << shift))
    }

    /// The level is that of the highest group of six bits in which the ticks differ, so that all
    /// slots of a level lie ahead, and every lower level comes before every higher one.
    fn place(current: u64, tick: u64) -> Place {
        let differ = (current ^ tick) | 1;
        let level = (63 - differ.leading_zeros()) / SLOT_BITS;
        let level = level.min(LEVELS - 1);
        #[expect(clippy::cast_possible_truncation, reason = "masked to 6 bits")]
        let slot = ((tick >> (SLOT_BITS * level)) & (SLOTS as u64 - 1)) as u8;
        Place::new(level as u8, slot)
    }

    fn list(&mut self, place: Place) -> Option<(&mut List, &mut u64)> {
        let level = self.levels.get_mut(usize::from(place.level()))?;
        let list = level.slots.get_mut(usize::from(place.slot))?;
        Some((list, &mut level.occupied))
    }
}

#[cfg(test)]
mod tests;
