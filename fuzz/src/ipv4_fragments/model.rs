//! What a fragment queue must do, as simple as it can be said: a list of datagrams, each with one
//! `Option<u8>` for each byte. It shares no code with the queue, only the names of what comes out.

use core::net::IpAddr;

use ipstack::frag::{Fragment, FragmentCounters, FragmentDrop, FragmentKey};

const SECOND: u64 = 1_000_000;

/// A queue of so many slots, with so many bytes for each.
pub(super) struct Model {
    pub(super) slots: usize,
    pub(super) room: usize,
    /// In the order in which they began.
    datagrams: Vec<Datagram>,
    pub(super) counters: FragmentCounters,
}

struct Datagram {
    key: FragmentKey,
    started: u64,
    /// Header and payload of the fragment that was the first to have the beginning.
    first: Option<(Vec<u8>, Vec<u8>)>,
    bytes: Vec<Option<u8>>,
    present: usize,
    /// Where the last fragment ended, and at most another one.
    last_end: Option<usize>,
    other_end: usize,
    codepoints: [bool; 4],
    dropped: bool,
}

/// What comes of a fragment.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Complete { header: Vec<u8>, ecn: u8, payload: Vec<u8> },
    Held,
    Dropped(FragmentDrop),
}

/// A datagram whose time was over.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Ended {
    pub(super) source: IpAddr,
    pub(super) identification: u32,
    pub(super) protocol: u8,
    pub(super) first: Option<(Vec<u8>, Vec<u8>)>,
}

impl Model {
    pub(super) fn new(slots: usize, room: usize) -> Self {
        Self { slots, room, datagrams: Vec::new(), counters: FragmentCounters::default() }
    }

    /// Takes a fragment at `now`, in microseconds.
    pub(super) fn insert(&mut self, now: u64, fragment: &Fragment<'_>) -> Outcome {
        let outcome = self.outcome(now, fragment);
        match &outcome {
            Outcome::Complete { .. } => self.counters.completed += 1,
            Outcome::Held => self.counters.held += 1,
            Outcome::Dropped(reason) => *self.counter(*reason) += 1,
        }
        outcome
    }

    fn outcome(&mut self, now: u64, fragment: &Fragment<'_>) -> Outcome {
        let len = fragment.payload.len();
        let between_units =
            !fragment.offset.is_multiple_of(8) || fragment.more && !len.is_multiple_of(8);
        if len == 0 || between_units || fragment.header.len() > 60 {
            return Outcome::Dropped(FragmentDrop::Malformed);
        }
        let known = self.datagrams.iter().position(|datagram| datagram.key == fragment.key);
        let mut datagram = match known {
            Some(index) => self.datagrams.remove(index),
            None => Datagram::new(fragment.key, now),
        };
        if datagram.dropped {
            self.put_back(known, datagram);
            return Outcome::Dropped(FragmentDrop::Discarded);
        }
        if let Some(reason) = datagram.objection(fragment, self.room) {
            if known.is_some() {
                datagram.dropped = true;
                self.put_back(known, datagram);
            }
            return Outcome::Dropped(reason);
        }
        if known.is_none() {
            self.make_room(fragment.key.source);
        }
        datagram.add(fragment);
        if datagram.last_end != Some(datagram.present) {
            self.put_back(known, datagram);
            return Outcome::Held;
        }
        let header = datagram.first.map(|(header, _)| header).unwrap_or_default();
        let payload = datagram.bytes.into_iter().flatten().collect();
        match codepoint(datagram.codepoints) {
            Some(ecn) => Outcome::Complete { header, ecn, payload },
            None => Outcome::Dropped(FragmentDrop::Ecn),
        }
    }

    fn put_back(&mut self, known: Option<usize>, datagram: Datagram) {
        self.datagrams.insert(known.unwrap_or(self.datagrams.len()), datagram);
    }

    /// One source has at most half of the slots, and all together no more than there are.
    fn make_room(&mut self, source: IpAddr) {
        let mine = |datagram: &Datagram| datagram.key.source == source;
        let quota = if self.slots < 4 { 1 } else { self.slots / 2 };
        if self.datagrams.iter().filter(|datagram| mine(datagram)).count() == quota {
            self.evict(mine);
        } else if self.datagrams.len() == self.slots {
            self.evict(|_| true);
        }
    }

    /// Those that were dropped before are the first to go, and then the oldest.
    fn evict(&mut self, among: impl Fn(&Datagram) -> bool) {
        let dropped =
            self.datagrams.iter().position(|datagram| datagram.dropped && among(datagram));
        let oldest = dropped.or_else(|| self.datagrams.iter().position(among));
        if let Some(index) = oldest {
            self.counters.evicted += u64::from(dropped.is_none());
            self.datagrams.remove(index);
        }
    }

    /// The datagrams whose time is over at `now`, but for those that were dropped.
    pub(super) fn expire(&mut self, now: u64) -> Vec<Ended> {
        let (over, rest): (Vec<_>, Vec<_>) =
            self.datagrams.drain(..).partition(|datagram| datagram.end() <= now);
        self.datagrams = rest;
        let over = over.into_iter().filter(|datagram| !datagram.dropped);
        let mut ended: Vec<_> = over
            .map(|Datagram { key, first, .. }| Ended {
                source: key.source,
                identification: key.identification,
                protocol: key.protocol,
                first,
            })
            .collect();
        self.counters.expired += ended.len() as u64;
        ended.sort();
        ended
    }

    /// When [`Model::expire`] has something to do.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.datagrams.iter().map(Datagram::end).min()
    }

    /// How many slots are taken.
    pub(super) const fn len(&self) -> usize {
        self.datagrams.len()
    }

    const fn counter(&mut self, reason: FragmentDrop) -> &mut u64 {
        match reason {
            FragmentDrop::Malformed => &mut self.counters.malformed,
            FragmentDrop::TooLong => &mut self.counters.too_long,
            FragmentDrop::Memory => &mut self.counters.memory,
            FragmentDrop::Overlap => &mut self.counters.overlap,
            FragmentDrop::Length => &mut self.counters.length,
            FragmentDrop::Ecn => &mut self.counters.ecn,
            FragmentDrop::Discarded => &mut self.counters.discarded,
        }
    }
}

impl Datagram {
    const fn new(key: FragmentKey, started: u64) -> Self {
        Self {
            key,
            started,
            first: None,
            bytes: Vec::new(),
            present: 0,
            last_end: None,
            other_end: 0,
            codepoints: [false; 4],
            dropped: false,
        }
    }

    const fn end(&self) -> u64 {
        self.started + if self.key.source.is_ipv4() { 30 * SECOND } else { 60 * SECOND }
    }

    /// What is to be said against `fragment`, from the most to the least obvious.
    fn objection(&self, fragment: &Fragment<'_>, room: usize) -> Option<FragmentDrop> {
        let start = usize::from(fragment.offset);
        let end = start + fragment.payload.len();
        let longest = end.max(self.bytes.len());
        let header = match &self.first {
            Some((header, _)) => header.len(),
            None if start == 0 => fragment.header.len(),
            None => 0,
        };
        let total = if self.key.source.is_ipv4() { header + longest } else { longest };
        if total > 65_535 {
            return Some(FragmentDrop::TooLong);
        }
        if longest > room {
            return Some(FragmentDrop::Memory);
        }
        let (last_end, other_end) = match fragment.more {
            true => (self.last_end, self.other_end.max(end)),
            false => (Some(end), self.other_end),
        };
        let two_ends = !fragment.more && self.last_end.is_some_and(|other| other != end);
        if two_ends || last_end.is_some_and(|last| other_end >= last) {
            return Some(FragmentDrop::Length);
        }
        let there = |at: usize| self.bytes.get(at).copied().flatten();
        let differs = (start..end)
            .zip(fragment.payload)
            .any(|(at, new)| there(at).is_some_and(|old| old != *new));
        let again = (start..end).filter(|at| there(*at).is_some()).count();
        let in_part = (1..fragment.payload.len()).contains(&again);
        (differs || in_part && self.key.source.is_ipv6()).then_some(FragmentDrop::Overlap)
    }

    fn add(&mut self, fragment: &Fragment<'_>) {
        let start = usize::from(fragment.offset);
        let end = start + fragment.payload.len();
        self.bytes.resize(self.bytes.len().max(end), None);
        for (byte, new) in self.bytes[start..end].iter_mut().zip(fragment.payload) {
            self.present += usize::from(byte.is_none());
            *byte = Some(*new);
        }
        match fragment.more {
            true => self.other_end = self.other_end.max(end),
            false => self.last_end = Some(end),
        }
        if start == 0 && self.first.is_none() {
            self.first = Some((fragment.header.to_vec(), fragment.payload.to_vec()));
        }
        self.codepoints[usize::from(fragment.ecn)] = true;
    }
}

/// RFC 3168 5.3: congestion is kept, but with what is not capable of ECN it is no datagram.
const fn codepoint([none, ect_1, ect_0, congestion]: [bool; 4]) -> Option<u8> {
    match (congestion, none) {
        (true, true) => None,
        (true, false) => Some(3),
        (false, true) => Some(0),
        (false, false) if ect_0 => Some(2),
        (false, false) if ect_1 => Some(1),
        (false, false) => Some(0),
    }
}
