//! The queue against a byte-wise model, and against the fragmenter.

use proptest::collection::vec as vec_of;
use proptest::prelude::*;

use super::*;

/// One datagram in reassembly, byte by byte, as the policy of the module reads.
#[derive(Default)]
struct Model {
    bytes: Vec<Option<u8>>,
    total: Option<usize>,
    dropped: bool,
}

impl Model {
    fn contradiction(&self, fragment: &Fragment<'_>) -> Option<FragmentDrop> {
        let start = usize::from(fragment.offset);
        let end = start + fragment.payload.len();
        let seen_end = self.bytes.len();
        let wrong_length = match self.total {
            Some(total) if fragment.more => end >= total,
            Some(total) => end != total,
            None => !fragment.more && end <= seen_end,
        };
        if wrong_length {
            return Some(FragmentDrop::Length);
        }
        let there = self.bytes.get(start..end.min(seen_end)).unwrap_or_default();
        let differs = |(old, new): (&Option<u8>, &u8)| old.is_some_and(|old| old != *new);
        there.iter().zip(fragment.payload).any(differs).then_some(FragmentDrop::Overlap)
    }

    /// What `insert` must return, with the payload if complete.
    fn insert(&mut self, fragment: &Fragment<'_>) -> Result<Option<Vec<u8>>, FragmentDrop> {
        if self.dropped {
            return Err(FragmentDrop::Discarded);
        }
        if let Some(reason) = self.contradiction(fragment) {
            self.dropped = true;
            return Err(reason);
        }
        let start = usize::from(fragment.offset);
        let end = start + fragment.payload.len();
        self.bytes.resize(self.bytes.len().max(end), None);
        for (byte, new) in self.bytes[start..end].iter_mut().zip(fragment.payload) {
            *byte = Some(*new);
        }
        if !fragment.more {
            self.total = Some(end);
        }
        let whole = self.bytes.iter().copied().collect::<Option<Vec<_>>>();
        let whole = whole.filter(|bytes| Some(bytes.len()) == self.total);
        if whole.is_some() {
            *self = Self::default();
        }
        Ok(whole)
    }
}

/// Which bytes of the datagram a fragment has, in units, and what is wrong with it.
#[derive(Clone, Debug)]
struct Cut {
    from: usize,
    units: usize,
    flip: Option<usize>,
    forget_more: bool,
}

fn any_cut(units: usize) -> impl Strategy<Value = Cut> {
    let flip = prop::option::weighted(0.03, 0..64_usize);
    let wrong = prop::bool::weighted(0.01);
    (0..units, 1..=units, flip, wrong).prop_map(|(from, units, flip, forget_more)| Cut {
        from,
        units,
        flip,
        forget_more,
    })
}

/// A datagram, and fragments of it in any order that overlap, repeat and now and then lie.
fn any_train() -> impl Strategy<Value = (Vec<u8>, Vec<Cut>)> {
    (1..60_usize).prop_flat_map(|len| {
        let units = len.div_ceil(8);
        (Just(pattern(len)), vec_of(any_cut(units), 1..40))
    })
}

/// Fragments of several datagrams: each with the datagram, and whether it lies.
fn any_mixture() -> impl Strategy<Value = Vec<(usize, Cut)>> {
    vec_of((0..4_usize, any_cut(8)), 1..120).prop_shuffle()
}

proptest! {
    /// Whatever is mixed with what: the right bytes, or nothing.
    #[test]
    fn of_interleaved_datagrams_each_comes_out_right_or_not_at_all(mixture in any_mixture(), ipv6: bool) {
        let datagrams = [64, 57, 40, 8].map(pattern);
        let mut memory = Memory::new(8, 64);
        let mut queue = memory.queue();
        let mut lied_about = [false; 4];
        for (index, cut) in mixture {
            let datagram = &datagrams[index];
            let from = (cut.from * 8).min((datagram.len() - 1) / 8 * 8);
            let range = from..(from + cut.units * 8).min(datagram.len());
            let mut bytes = datagram[range.clone()].to_vec();
            if let Some(flip) = cut.flip {
                let at = flip % bytes.len();
                bytes[at] ^= 0x80;
                lied_about[index] = true;
            }
            let mut key = key(1, u32::try_from(index).unwrap());
            if ipv6 {
                key.source = Ipv4Addr::LOCALHOST.to_ipv6_mapped().into();
            }
            match queue.insert(Instant::ZERO, &Fragment { key, payload: &bytes, ..part(datagram, range) }) {
                Insert::Complete(whole) => {
                    prop_assert_eq!(whole.payload.len(), datagram.len());
                    prop_assert!(lied_about[index] || whole.payload == datagram);
                    lied_about[index] = false;
                }
                Insert::Held => {}
                Insert::Dropped(reason) => {
                    let harmless = matches!(reason, FragmentDrop::Overlap | FragmentDrop::Discarded);
                    prop_assert!(harmless && (ipv6 || lied_about[index]), "{}", reason);
                }
            }
        }
    }

    #[test]
    fn any_train_gives_what_the_policy_says_byte_for_byte((datagram, cuts) in any_train()) {
        let mut memory = Memory::new(1, 64);
        let mut queue = memory.queue();
        let mut model = Model::default();
        for cut in cuts {
            let range = cut.from * 8..(cut.from * 8 + cut.units * 8).min(datagram.len());
            let mut bytes = datagram[range.clone()].to_vec();
            if let Some(flip) = cut.flip {
                let at = flip % bytes.len();
                bytes[at] ^= 0x80;
            }
            let more = range.end < datagram.len() && !cut.forget_more;
            let fragment = Fragment { payload: &bytes, more, ..part(&datagram, range) };
            match (model.insert(&fragment), queue.insert(Instant::ZERO, &fragment)) {
                (Ok(None), Insert::Held) => {}
                (Ok(Some(whole)), Insert::Complete(given)) => prop_assert_eq!(whole, given.payload),
                (Err(expected), Insert::Dropped(given)) => prop_assert_eq!(expected, given),
                (expected, given) => prop_assert!(false, "expected {:?}, not {:?}", expected, given),
            }
        }
    }

    #[test]
    fn honest_fragments_in_any_order_with_any_overlap_always_complete(
        len in 1..2000_usize,
        extra in vec_of((0..250_usize, 1..250_usize), 0..20),
        mtu in 28..600_usize,
        seed in any::<prop::sample::Index>(),
    ) {
        let datagram = pattern(len);
        let mut fragments = cut(&datagram, mtu);
        let units = len.div_ceil(8);
        let overlaps = extra.into_iter().filter(|(from, _)| *from < units);
        fragments.extend(
            overlaps.map(|(from, count)| part(&datagram, from * 8..((from + count) * 8).min(len))),
        );
        let middle = seed.index(fragments.len());
        fragments.rotate_left(middle);
        let mut memory = Memory::new(1, 2048);
        let mut queue = memory.queue();
        let mut completed = 0;
        for fragment in &fragments {
            match queue.insert(Instant::ZERO, fragment) {
                Insert::Complete(whole) => {
                    prop_assert_eq!(whole.payload, &datagram[..]);
                    completed += 1;
                }
                Insert::Held => {}
                Insert::Dropped(reason) => prop_assert!(false, "{}", reason),
            }
        }
        prop_assert!(completed >= 1);
    }

    #[test]
    fn pieces_are_the_fewest_that_the_mtu_allows(len in 0..=65_475_usize, header_len in 20..=60_usize, mtu in 68..=65_521_usize) {
        let pieces = Fragmenter::new(len, header_len, mtu).unwrap();
        let room = (mtu - header_len) / 8 * 8;
        let fewest = if header_len + len <= mtu { 1 } else { len.div_ceil(room).max(1) };
        // The last piece may use the bytes of the MTU that are no multiple of 8.
        let count = pieces.count();
        prop_assert_eq!(count, fewest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_the_fragmenter_cuts_the_queue_puts_together(
        len in 1..=65_515_usize,
        mtu in 68..=65_521_usize,
        reversed: bool,
    ) {
        let datagram = pattern(len);
        let mut fragments = cut(&datagram, mtu);
        for fragment in &fragments {
            prop_assert!(fragment.payload.len() + HEADER.len() <= mtu);
        }
        if reversed {
            fragments.reverse();
        }
        let mut memory = Memory::new(1, 65_535);
        assert_completes(&mut memory.queue(), &fragments, &datagram);
    }
}

#[test]
fn a_fragmenter_stops_and_goes_on_where_it_was() {
    let mut pieces = Fragmenter::new(3000, 20, 1500).unwrap();
    assert_eq!(pieces.peek(), Some(Piece { offset: 0, range: 0..1480, more: true }));
    assert_eq!(pieces.peek(), Some(Piece { offset: 0, range: 0..1480, more: true }));
    pieces.advance();
    let mut kept = pieces;
    assert_eq!(kept.next(), Some(Piece { offset: 1480, range: 1480..2960, more: true }));
    assert_eq!(kept.next(), Some(Piece { offset: 2960, range: 2960..3000, more: false }));
    assert_eq!(kept.next(), None);
    kept.advance();
    assert_eq!(kept.peek(), None);
    assert_eq!(pieces.peek(), Some(Piece { offset: 1480, range: 1480..2960, more: true }));
}

#[test]
fn a_datagram_that_fits_is_one_piece_even_without_payload() {
    for (len, mtu) in [(0, 68), (0, 20), (1, 21), (48, 68), (1480, 1500), (1475, 1495)] {
        let mut pieces = Fragmenter::new(len, 20, mtu).unwrap();
        assert_eq!(pieces.next(), Some(Piece { offset: 0, range: 0..len, more: false }));
        assert_eq!(pieces.next(), None);
    }
}

#[test]
fn a_fragmenter_refuses_what_cannot_be_sent() {
    assert_eq!(Fragmenter::new(65_516, 20, 1500), None);
    assert_eq!(Fragmenter::new(usize::MAX, 20, 1500), None);
    assert_eq!(Fragmenter::new(100, 60, 67), None);
    assert_eq!(Fragmenter::new(100, 20, 19), None);
    assert!(Fragmenter::new(100, 60, 68).is_some());
}
