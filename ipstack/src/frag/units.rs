//! One bit for each 8-byte unit of a datagram's payload.

use core::ops::Range;

const WORDS: usize = 128;
const WORD_BITS: usize = u64::BITS as usize;

/// Which units of a datagram have come: 8,192 bits for at most 65,536 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitMap {
    words: [u64; WORDS],
}

impl UnitMap {
    /// Nothing has come.
    pub(super) const EMPTY: Self = Self { words: [0; WORDS] };

    /// Marks `units`, and returns how many of them were not marked before.
    pub(super) fn mark(&mut self, units: Range<usize>) -> u32 {
        let mut fresh = 0_u32;
        for (index, mask) in masks(units) {
            if let Some(word) = self.words.get_mut(index) {
                fresh = fresh.wrapping_add((mask & !*word).count_ones());
                *word |= mask;
            }
        }
        fresh
    }

    /// Whether any of `units` is marked.
    pub(super) fn any(&self, units: Range<usize>) -> bool {
        masks(units).any(|(index, mask)| self.words.get(index).is_some_and(|word| word & mask != 0))
    }

    /// Whether all of `units` are marked.
    pub(super) fn all(&self, units: Range<usize>) -> bool {
        masks(units)
            .all(|(index, mask)| self.words.get(index).is_some_and(|word| word & mask == mask))
    }

    /// Whether `unit` is marked.
    pub(super) fn contains(&self, unit: usize) -> bool {
        self.any(unit..unit.saturating_add(1))
    }

    /// Unmarks all units below `end`, and perhaps some above.
    pub(super) fn clear_below(&mut self, end: usize) {
        let words = end.div_ceil(WORD_BITS);
        self.words.iter_mut().take(words).for_each(|word| *word = 0);
    }
}

/// The words that `units` touches, each with the mask of the bits that it touches there.
fn masks(units: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let words = units.start / WORD_BITS..units.end.div_ceil(WORD_BITS);
    words.map(move |index| {
        let base = index.wrapping_mul(WORD_BITS);
        let from = low_bits(units.start.saturating_sub(base));
        let to = low_bits(units.end.saturating_sub(base));
        (index, to & !from)
    })
}

/// A word whose lowest `count` bits are set; all of them from 64 on.
fn low_bits(count: usize) -> u64 {
    let shift = u32::try_from(count).unwrap_or(u32::MAX);
    1_u64.checked_shl(shift).map_or(u64::MAX, |bit| bit.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn marks_what_a_vector_of_flags_marks(ranges in prop::collection::vec((0_usize..8192, 0_usize..400), 1..40)) {
            let mut map = UnitMap::EMPTY;
            let mut flags = std::vec![false; 8192];
            for (start, len) in ranges {
                let end = (start + len).min(8192);
                prop_assert_eq!(map.any(start..end), flags[start..end].contains(&true));
                prop_assert_eq!(map.all(start..end), !flags[start..end].contains(&false));
                let fresh = flags[start..end].iter().filter(|flag| !**flag).count();
                flags[start..end].fill(true);
                prop_assert_eq!(map.mark(start..end) as usize, fresh);
            }
            for (unit, flag) in flags.iter().enumerate() {
                prop_assert_eq!(map.contains(unit), *flag);
            }
            let end = flags.iter().rposition(|flag| *flag).map_or(0, |last| last + 1);
            map.clear_below(end);
            prop_assert!(!map.any(0..8192));
        }
    }

    #[test]
    fn units_beyond_the_map_are_never_marked() {
        let mut map = UnitMap::EMPTY;
        assert_eq!(map.mark(8191..9000), 1);
        assert!(!map.contains(8192));
        assert!(!map.contains(usize::MAX));
    }
}
