//! One datagram in reassembly.

use core::net::IpAddr;
use core::ops::Range;

use super::ecn::EcnMix;
use super::fragment::{
    Datagram, Expired, FirstFragment, Fragment, FragmentDrop, FragmentKey, MAX_HEADER_LEN,
    MAX_TOTAL_LEN,
};
use super::queue::lifetime;
use super::units::UnitMap;
use crate::Instant;
use crate::bytes::copy_front;

/// One datagram in reassembly, without its payload.
#[derive(Clone, Copy, Debug)]
pub struct FragmentSlot {
    /// `None` while the slot is free.
    key: Option<FragmentKey>,
    /// When its first fragment came.
    started: Instant,
    /// How many datagrams were begun before it. Those of one batch begin at the same time.
    turn: u64,
    /// Header of the fragment at offset 0, if it came.
    header: [u8; MAX_HEADER_LEN],
    header_len: Option<u8>,
    /// Bytes of payload of that fragment.
    first_len: usize,
    /// End of the payload, if the last fragment came.
    total: Option<usize>,
    /// Highest end of a fragment so far; no unit at or above it is marked.
    extent: usize,
    units: UnitMap,
    /// How many units are marked.
    received: u32,
    ecn: EcnMix,
    /// The datagram was dropped; the slot stays to catch the rest of it.
    discarded: bool,
}

impl FragmentSlot {
    /// An unused slot.
    pub const EMPTY: Self = Self {
        key: None,
        started: Instant::ZERO,
        turn: 0,
        header: [0; MAX_HEADER_LEN],
        header_len: None,
        first_len: 0,
        total: None,
        extent: 0,
        units: UnitMap::EMPTY,
        received: 0,
        ecn: EcnMix::NONE,
        discarded: false,
    };

    /// Takes a free slot for a new datagram.
    pub(super) fn open(&mut self, now: Instant, key: FragmentKey, turn: u64) {
        // Up to here only: a slot that held a short datagram costs little to use again.
        self.units.clear_below(self.extent.div_ceil(8));
        self.key = Some(key);
        self.started = now;
        self.turn = turn;
        self.header_len = None;
        self.first_len = 0;
        self.total = None;
        self.extent = 0;
        self.received = 0;
        self.ecn = EcnMix::NONE;
        self.discarded = false;
    }

    /// Makes the slot free. What it describes can still be read until it is opened again.
    pub(super) const fn close(&mut self) {
        self.key = None;
    }

    pub(super) const fn is_free(&self) -> bool {
        self.key.is_none()
    }

    pub(super) fn holds(&self, key: &FragmentKey) -> bool {
        self.key.as_ref() == Some(key)
    }

    pub(super) fn is_from(&self, source: IpAddr) -> bool {
        self.key.is_some_and(|key| key.source == source)
    }

    /// The lower, the older.
    pub(super) const fn age_rank(&self) -> (Instant, u64) {
        (self.started, self.turn)
    }

    /// When its time is over, if the slot is not free.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.key.as_ref().map(|key| self.started.after(lifetime(key)))
    }

    pub(super) const fn is_discarded(&self) -> bool {
        self.discarded
    }

    /// Takes in `fragment`, and returns whether the datagram is now complete. On an error the
    /// datagram is gone, and its other fragments will be dropped as they come.
    pub(super) fn accept(
        &mut self,
        memory: &mut [u8],
        fragment: &Fragment<'_>,
    ) -> Result<bool, FragmentDrop> {
        if self.discarded {
            return Err(FragmentDrop::Discarded);
        }
        if let Err(reason) = self.check(memory, fragment) {
            self.discarded = true;
            return Err(reason);
        }
        self.store(memory, fragment);
        Ok(self.total.is_some_and(|total| self.received as usize == total.div_ceil(8)))
    }

    fn check(&self, memory: &[u8], fragment: &Fragment<'_>) -> Result<(), FragmentDrop> {
        check_limits(fragment, self.header_len, self.extent, memory.len())?;
        if self.contradicts_length(fragment) {
            return Err(FragmentDrop::Length);
        }
        if self.overlaps(memory, fragment) {
            return Err(FragmentDrop::Overlap);
        }
        Ok(())
    }

    /// Whether `fragment` and the ones before it cannot all be right about the datagram's end. The
    /// answer does not depend on the order in which they come.
    fn contradicts_length(&self, fragment: &Fragment<'_>) -> bool {
        let end = fragment.end();
        match (self.total, fragment.more) {
            (Some(total), false) => end != total,
            (Some(total), true) => end >= total,
            // All before it said that more follows.
            (None, false) => end <= self.extent,
            (None, true) => false,
        }
    }

    /// Whether `fragment` shares a place with others in a way that is not harmless: with other
    /// bytes, or over IPv6 in part only (RFC 5722 4).
    fn overlaps(&self, memory: &[u8], fragment: &Fragment<'_>) -> bool {
        let units = units_of(fragment);
        if !self.units.any(units.clone()) {
            return false;
        }
        if fragment.key.source.is_ipv6() && !self.units.all(units.clone()) {
            return true;
        }
        let stored = memory.get(usize::from(fragment.offset)..fragment.end()).unwrap_or_default();
        let both = stored.chunks(8).zip(fragment.payload.chunks(8));
        units.zip(both).any(|(unit, (old, new))| old != new && self.units.contains(unit))
    }

    fn store(&mut self, memory: &mut [u8], fragment: &Fragment<'_>) {
        if let Some(place) = memory.get_mut(usize::from(fragment.offset)..) {
            copy_front(place, fragment.payload);
        }
        self.received = self.received.wrapping_add(self.units.mark(units_of(fragment)));
        self.extent = self.extent.max(fragment.end());
        self.ecn.add(fragment.ecn);
        if !fragment.more {
            self.total = Some(fragment.end());
        }
        if fragment.offset == 0 && self.header_len.is_none() {
            let len = copy_front(&mut self.header, fragment.header);
            self.header_len = u8::try_from(len).ok();
            self.first_len = fragment.payload.len();
        }
    }

    /// ECN codepoint of the whole, or `None` if the datagram must be dropped for it.
    pub(super) const fn combined_ecn(&self) -> Option<u8> {
        self.ecn.combined()
    }

    /// The datagram, if it is complete and not to be dropped.
    pub(super) fn datagram<'a>(&'a self, memory: &'a [u8]) -> Option<Datagram<'a>> {
        Some(Datagram {
            header: self.first_header()?,
            ecn: self.combined_ecn()?,
            payload: memory.get(..self.total?)?,
        })
    }

    /// What is to be reported of the datagram when its time is over.
    pub(super) fn expired<'a>(&'a self, key: FragmentKey, memory: &'a [u8]) -> Expired<'a> {
        let first = self
            .first_header()
            .zip(memory.get(..self.first_len))
            .map(|(header, payload)| FirstFragment { header, payload });
        Expired { key, first }
    }

    /// The datagram held, if the slot is not free.
    pub(super) const fn key(&self) -> Option<FragmentKey> {
        self.key
    }

    fn first_header(&self) -> Option<&[u8]> {
        self.header.get(..usize::from(self.header_len?))
    }
}

/// Whether the payload up to the end of `fragment`, and to `extent`, fits a datagram and `room`
/// bytes. Over IPv4 a header counts, too, which is that of the first fragment: `first_header_len`
/// if it came.
pub(super) fn check_limits(
    fragment: &Fragment<'_>,
    first_header_len: Option<u8>,
    extent: usize,
    room: usize,
) -> Result<(), FragmentDrop> {
    let header_len = match first_header_len {
        _ if fragment.key.source.is_ipv6() => 0,
        Some(len) => usize::from(len),
        None if fragment.offset == 0 => fragment.header.len(),
        None => 0,
    };
    let end = fragment.end().max(extent);
    if end.saturating_add(header_len) > MAX_TOTAL_LEN {
        return Err(FragmentDrop::TooLong);
    }
    if end > room { Err(FragmentDrop::Memory) } else { Ok(()) }
}

/// The units that `fragment` fills; the last one perhaps in part.
fn units_of(fragment: &Fragment<'_>) -> Range<usize> {
    usize::from(fragment.offset) / 8..fragment.end().div_ceil(8)
}
