//! The table of datagrams in reassembly.

use core::net::IpAddr;
use core::time::Duration;

use managed::ManagedSlice;

use super::fragment::{
    Expired, Fragment, FragmentCounters, FragmentDrop, FragmentKey, Insert, MAX_TOTAL_LEN,
};
use super::slot::{FragmentSlot, check_limits};
use crate::Instant;

/// How long an IPv4 datagram waits for its fragments, counted from the first that came. RFC 791
/// 3.2 has 15 s, RFC 1122 3.3.2 recommends 60 to 120 s for hosts; 30 s is what libslirp and Linux
/// have.
pub const LIFETIME: Duration = Duration::from_secs(30);

/// How long an IPv6 datagram waits for its fragments (RFC 8200 4.5).
pub const LIFETIME_IPV6: Duration = Duration::from_secs(60);

/// Datagrams in reassembly, in memory that the caller lends. The [module](super) says what is kept,
/// dropped and pushed out.
#[derive(Debug)]
pub struct FragmentQueue<'a> {
    slots: ManagedSlice<'a, FragmentSlot>,
    memory: ManagedSlice<'a, u8>,
    /// Bytes of `memory` for each slot.
    chunk_len: usize,
    /// How many slots were ever used; those from here on are not initialised.
    used: usize,
    /// When the next datagram expires.
    deadline: Option<Instant>,
    /// How many datagrams were begun.
    begun: u64,
    counters: FragmentCounters,
}

impl<'a> FragmentQueue<'a> {
    /// A queue for as many datagrams as there are `slots`, each with an equal share of `memory`, of
    /// at most 65,535 bytes, for its payload. Either may be empty: then every fragment is dropped.
    /// What the slots and the memory contain does not matter.
    pub fn new(
        slots: impl Into<ManagedSlice<'a, FragmentSlot>>,
        memory: impl Into<ManagedSlice<'a, u8>>,
    ) -> Self {
        let (slots, memory) = (slots.into(), memory.into());
        let chunk_len = memory.len().checked_div(slots.len()).unwrap_or(0).min(MAX_TOTAL_LEN);
        Self {
            slots,
            memory,
            chunk_len,
            used: 0,
            deadline: None,
            begun: 0,
            counters: FragmentCounters::default(),
        }
    }

    /// Takes in one fragment. A fragment with offset 0 that is also the last is a whole datagram and
    /// comes back at once, unless others of its name say otherwise. Over IPv6 such a fragment has
    /// nothing to do with those (RFC 6946), and the walk over the headers makes none of it.
    ///
    /// Call [`expire`](Self::expire) before, or late fragments join datagrams whose time is over.
    pub fn insert(&mut self, now: Instant, fragment: &Fragment<'_>) -> Insert<'_> {
        match self.place(now, fragment) {
            Ok(Some(complete)) => {
                self.close(complete);
                self.counters.completed = self.counters.completed.wrapping_add(1);
                let datagram = self
                    .slots
                    .get(complete)
                    .and_then(|slot| slot.datagram(chunk(&self.memory, complete, self.chunk_len)?));
                datagram.map_or(Insert::Dropped(FragmentDrop::Memory), Insert::Complete)
            }
            Ok(None) => {
                self.counters.held = self.counters.held.wrapping_add(1);
                Insert::Held
            }
            Err(reason) => {
                self.counters.count(reason);
                Insert::Dropped(reason)
            }
        }
    }

    /// Removes one datagram whose time is over at `now`, and returns what is to be told about it.
    /// To be called until it returns `None`.
    pub fn expire(&mut self, now: Instant) -> Option<Expired<'_>> {
        let (index, key) = self.take_expired(now)?;
        self.counters.expired = self.counters.expired.wrapping_add(1);
        let memory = chunk(&self.memory, index, self.chunk_len)?;
        self.slots.get(index).map(|slot| slot.expired(key, memory))
    }

    /// When [`expire`](Self::expire) will next have something to do.
    #[must_use]
    pub const fn poll_at(&self) -> Option<Instant> {
        self.deadline
    }

    /// How many slots are taken, including those that catch the rest of a dropped datagram.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live().count()
    }

    /// Whether no slot is taken.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.deadline.is_none()
    }

    /// What was counted since the queue was made.
    #[must_use]
    pub const fn counters(&self) -> &FragmentCounters {
        &self.counters
    }

    /// Puts `fragment` in its slot, and returns the slot if the datagram is complete.
    fn place(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
    ) -> Result<Option<usize>, FragmentDrop> {
        if !fragment.is_well_formed() {
            return Err(FragmentDrop::Malformed);
        }
        let held = self.live().find(|(_, slot)| slot.holds(&fragment.key)).map(|(index, _)| index);
        let index = match held {
            Some(index) => index,
            None => {
                check_limits(fragment, None, 0, self.chunk_len)?;
                self.open(now, fragment.key).ok_or(FragmentDrop::Memory)?
            }
        };
        let memory = chunk_mut(&mut self.memory, index, self.chunk_len);
        let (slot, memory) = self.slots.get_mut(index).zip(memory).ok_or(FragmentDrop::Memory)?;
        let complete = slot.accept(memory, fragment)?;
        if complete && slot.combined_ecn().is_none() {
            self.close(index);
            return Err(FragmentDrop::Ecn);
        }
        Ok(complete.then_some(index))
    }

    /// Takes a slot for a new datagram, from the oldest one if need be.
    fn open(&mut self, now: Instant, key: FragmentKey) -> Option<usize> {
        let index = self.vacant(key.source)?;
        self.slots.get_mut(index)?.open(now, key, self.begun);
        self.begun = self.begun.wrapping_add(1);
        let deadline = now.after(lifetime(&key));
        self.deadline = Some(self.deadline.map_or(deadline, |earliest| earliest.min(deadline)));
        Some(index)
    }

    fn vacant(&mut self, source: IpAddr) -> Option<usize> {
        let quota = (self.slots.len() / 2).max(1);
        let owned = self.live().filter(|(_, slot)| slot.is_from(source)).count();
        if owned >= quota {
            return self.evict_oldest(|slot| slot.is_from(source));
        }
        if let Some(free) = self.slots.iter().take(self.used).position(FragmentSlot::is_free) {
            return Some(free);
        }
        if let Some(unused) = self.slots.get_mut(self.used) {
            *unused = FragmentSlot::EMPTY;
            let index = self.used;
            self.used = index.wrapping_add(1);
            return Some(index);
        }
        self.evict_oldest(|_| true)
    }

    fn evict_oldest(&mut self, among: impl Fn(&FragmentSlot) -> bool) -> Option<usize> {
        let (index, slot) = self
            .live()
            .filter(|(_, slot)| among(slot))
            .min_by_key(|(_, slot)| (!slot.is_discarded(), slot.age_rank()))?;
        if !slot.is_discarded() {
            self.counters.evicted = self.counters.evicted.wrapping_add(1);
        }
        self.close(index);
        Some(index)
    }

    /// Closes slots whose time is over until one of them held a datagram. Those that were already
    /// dropped, and counted then, end in silence (RFC 5722 4).
    fn take_expired(&mut self, now: Instant) -> Option<(usize, FragmentKey)> {
        while self.deadline.is_some_and(|deadline| deadline <= now) {
            let (index, slot) =
                self.live().find(|(_, slot)| slot.deadline().is_some_and(|at| at <= now))?;
            let (key, discarded) = (slot.key()?, slot.is_discarded());
            self.close(index);
            if !discarded {
                return Some((index, key));
            }
        }
        None
    }

    fn close(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.close();
        }
        self.deadline = self.live().filter_map(|(_, slot)| slot.deadline()).min();
    }

    fn live(&self) -> impl Iterator<Item = (usize, &FragmentSlot)> {
        self.slots.iter().take(self.used).enumerate().filter(|(_, slot)| !slot.is_free())
    }
}

/// How long a datagram of this family waits.
pub(super) const fn lifetime(key: &FragmentKey) -> Duration {
    if key.source.is_ipv6() { LIFETIME_IPV6 } else { LIFETIME }
}

/// The payload memory of one slot.
fn chunk(memory: &[u8], index: usize, len: usize) -> Option<&[u8]> {
    memory.get(index.checked_mul(len)?..)?.get(..len)
}

/// The payload memory of one slot, for writing.
fn chunk_mut(memory: &mut [u8], index: usize, len: usize) -> Option<&mut [u8]> {
    memory.get_mut(index.checked_mul(len)?..)?.get_mut(..len)
}
