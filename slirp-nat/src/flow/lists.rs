//! Lists through the entries of the flow table. An index of 0 means none; entry 0 has index 1, so
//! that memory of zeros is a table of empty lists.

use super::Flow;

/// Position in the table plus one; 0 is nowhere.
pub(super) type Index = u32;

/// What an entry may be evicted as. Established connections are in no class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    HalfOpen,
    Datagram,
    TimeWait,
}

impl Class {
    pub(super) const COUNT: usize = 3;
}

/// A doubly linked list, oldest first. One field of [`Pair`] in each entry belongs to it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    first: Index,
    last: Index,
    len: u32,
}

/// An entry's neighbours in a list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    pub(super) previous: Index,
    pub(super) next: Index,
}

impl Pair {
    pub(super) const NONE: Self = Self { previous: 0, next: 0 };
}

/// Which pair of an entry's links a list uses.
pub(super) type Select = fn(&mut Flow) -> &mut Pair;

pub(super) fn at(flows: &mut [Flow], index: Index) -> Option<&mut Flow> {
    flows.get_mut((index as usize).wrapping_sub(1))
}

impl List {
    pub(super) const EMPTY: Self = Self { first: 0, last: 0, len: 0 };

    pub(super) const fn oldest(&self) -> Index {
        self.first
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.first == 0
    }

    pub(super) fn push(&mut self, flows: &mut [Flow], select: Select, index: Index) {
        let Some(flow) = at(flows, index) else { return };
        *select(flow) = Pair { previous: self.last, next: 0 };
        match at(flows, self.last) {
            Some(last) => select(last).next = index,
            None => self.first = index,
        }
        self.last = index;
        self.len = self.len.saturating_add(1);
    }

    pub(super) fn remove(&mut self, flows: &mut [Flow], select: Select, index: Index) {
        let Some(flow) = at(flows, index) else { return };
        let pair = core::mem::take(select(flow));
        match at(flows, pair.previous) {
            Some(previous) => select(previous).next = pair.next,
            None => self.first = pair.next,
        }
        match at(flows, pair.next) {
            Some(next) => select(next).previous = pair.previous,
            None => self.last = pair.previous,
        }
        self.len = self.len.saturating_sub(1);
    }
}
