//! Datagrams that come in pieces and come out whole.

use super::*;

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

fn every_order_of_three(datagram_len: usize, cuts: [usize; 2]) {
    let datagram = pattern(datagram_len);
    let parts = [0..cuts[0], cuts[0]..cuts[1], cuts[1]..datagram_len].map(|r| part(&datagram, r));
    let mut memory = Memory::new(2, 65_535);
    let mut queue = memory.queue();
    for order in ORDERS {
        assert_completes(&mut queue, &order.map(|index| parts[index]), &datagram);
    }
    assert_eq!((queue.counters().completed, queue.counters().held), (6, 12));
}

/// User-mode networking of QEMU in 2006 overran its buffer there.
#[test]
fn three_fragments_beyond_4_kib_in_every_order_as_qemu_2006_corrupted_its_heap() {
    every_order_of_three(4500, [1480, 2960]);
    every_order_of_three(8192 + 8, [4096, 8192]);
}

/// User-mode networking of QEMU in 2006 had signed offsets, which sorted these to the front.
#[test]
fn three_fragments_beyond_32_kib_in_every_order_as_qemu_2006_sorted_by_signed_offsets() {
    every_order_of_three(40_000, [16_384, 32_768]);
    every_order_of_three(65_515, [32_760, 65_512]);
}

/// slirp4netns #306 lost large datagrams.
#[test]
fn the_longest_udp_datagram_of_65507_bytes_passes_in_any_order() {
    let datagram = pattern(8 + 65_507);
    let in_order = cut(&datagram, 1500);
    assert_eq!(in_order.len(), 45);
    let reversed = in_order.iter().rev().copied().collect::<Vec<_>>();
    // 7 and 45 have no common divisor, so each index comes once.
    let shuffled = (0..45).map(|index| in_order[index * 7 % 45]).collect::<Vec<_>>();
    let mut memory = Memory::new(1, 65_535);
    let mut queue = memory.queue();
    for fragments in [in_order, reversed, shuffled] {
        assert_completes(&mut queue, &fragments, &datagram);
    }
}

#[test]
fn the_smallest_fragments_of_mtu_68_fill_the_longest_datagram() {
    let datagram = pattern(65_515);
    let fragments = cut(&datagram, 68);
    assert_eq!(fragments.len(), 1365);
    let mut memory = Memory::new(1, 65_535);
    let mut queue = memory.queue();
    assert_completes(&mut queue, &fragments, &datagram);
    // Every second hole first: no list of holes is long enough for that.
    let (even, odd) = (fragments.iter().step_by(2), fragments.iter().skip(1).step_by(2));
    assert_completes(&mut queue, &even.chain(odd).copied().collect::<Vec<_>>(), &datagram);
}

#[test]
fn fragments_of_8_bytes_come_together_from_both_ends() {
    let datagram = pattern(65_515);
    let mut fragments = cut(&datagram, 28);
    assert_eq!(fragments.len(), 8190);
    let second_half = fragments.split_off(4095);
    let ends_first = second_half.into_iter().rev().zip(fragments).flat_map(|(a, b)| [a, b]);
    let mut memory = Memory::new(1, 65_535);
    assert_completes(&mut memory.queue(), &ends_first.collect::<Vec<_>>(), &datagram);
}

/// libslirp 4.9.4 changelog: with differing header lengths stale memory was sent out.
#[test]
fn fragments_with_differing_header_lengths_are_placed_by_their_own_header() {
    let datagram = pattern(3000);
    let (long, short) = ([0x4f; 60], [0x45; 20]);
    let mut memory = Memory::new(1, 65_535);
    let mut queue = memory.queue();
    for (first_header, other_header) in [(&long[..], &short[..]), (&short, &long)] {
        let parts = [0..1440, 1440..2880, 2880..3000].map(|range| part(&datagram, range));
        let [mut first, mut middle, mut last] = parts;
        (first.header, middle.header, last.header) = (first_header, other_header, other_header);
        for order in [[first, middle, last], [last, middle, first], [middle, last, first]] {
            assert_completes(&mut queue, &order, &datagram);
        }
    }
}

/// The total length was checked against the header that came first.
#[test]
fn a_repeated_first_fragment_does_not_replace_the_header() {
    let datagram = pattern(65_515);
    let parts = [0..8, 0..8, 8..65_515].map(|range| part(&datagram, range));
    let [first, mut repeated, rest] = parts;
    repeated.header = &[0x4f; 60];
    let mut memory = Memory::new(1, 65_535);
    assert_completes(&mut memory.queue(), &[first, repeated, rest], &datagram);
}

/// CVE-2019-14378: a first fragment larger than the buffer of a small packet.
#[test]
fn a_large_first_fragment_is_followed_by_small_ones() {
    let datagram = pattern(20_008);
    let mut memory = Memory::new(1, 32_768);
    let fragments = [0..20_000, 20_000..20_008].map(|range| part(&datagram, range));
    assert_completes(&mut memory.queue(), &fragments, &datagram);
}

#[test]
fn a_slot_used_again_shows_nothing_of_the_datagram_before() {
    let (long, short) = (pattern(9000), vec![0x11; 24]);
    let mut memory = Memory::new(1, 16_384);
    let mut queue = memory.queue();
    assert_completes(&mut queue, &cut(&long, 1500), &long);
    // Were the bits of the long datagram still set, this would complete at once.
    assert_completes(
        &mut queue,
        &[part(&short, 0..8), part(&short, 16..24), part(&short, 8..16)],
        &short,
    );
}

#[test]
fn a_datagram_in_one_piece_comes_back_at_once() {
    let datagram = pattern(13);
    let mut memory = Memory::new(1, 64);
    assert_completes(&mut memory.queue(), &[part(&datagram, 0..13)], &datagram);
}

#[test]
fn datagrams_that_differ_in_any_part_of_the_key_are_kept_apart() {
    let datagram = pattern(16);
    let base = key(15, 1);
    let keys = [
        base,
        FragmentKey { source: key(16, 1).source, ..base },
        FragmentKey { destination: key(16, 1).source, ..base },
        FragmentKey { identification: 2, ..base },
        FragmentKey { protocol: 1, ..base },
    ];
    let mut memory = Memory::new(16, 64);
    let mut queue = memory.queue();
    for key in keys {
        let first = Fragment { key, ..part(&datagram, 0..8) };
        assert_eq!(queue.insert(Instant::ZERO, &first), Insert::Held);
    }
    assert_eq!(queue.len(), keys.len());
    for key in keys {
        let last = Fragment { key, ..part(&datagram, 8..16) };
        assert!(matches!(queue.insert(Instant::ZERO, &last), Insert::Complete(_)));
    }
    assert!(queue.is_empty());
}

fn insert_with_ecn(codepoints: [u8; 3], counters: &mut FragmentCounters) -> Option<u8> {
    let datagram = pattern(24);
    let mut memory = Memory::new(1, 64);
    let mut queue = memory.queue();
    let mut ecn = None;
    for (index, codepoint) in codepoints.into_iter().enumerate() {
        let fragment = Fragment { ecn: codepoint, ..part(&datagram, index * 8..index * 8 + 8) };
        if let Insert::Complete(datagram) = queue.insert(Instant::ZERO, &fragment) {
            ecn = Some(datagram.ecn);
        }
    }
    assert!(queue.is_empty());
    *counters = *queue.counters();
    ecn
}

/// RFC 3168 5.3; libslirp clears the field.
#[test]
fn congestion_seen_by_any_fragment_is_kept_whichever_it_is() {
    let mut counters = FragmentCounters::default();
    for codepoints in [[3, 2, 2], [2, 3, 2], [1, 1, 3], [3, 3, 3]] {
        assert_eq!(insert_with_ecn(codepoints, &mut counters), Some(3));
    }
    assert_eq!(insert_with_ecn([2, 2, 2], &mut counters), Some(2));
    assert_eq!(insert_with_ecn([1, 1, 1], &mut counters), Some(1));
    assert_eq!(counters.completed, 1);
}

#[test]
fn congestion_beside_a_fragment_that_is_not_ecn_capable_drops_the_datagram() {
    let mut counters = FragmentCounters::default();
    assert_eq!(insert_with_ecn([3, 0, 2], &mut counters), None);
    let dropped = counters.dropped(FragmentDrop::Ecn);
    assert_eq!((counters.held, dropped, counters.completed), (2, 1, 0));
}
