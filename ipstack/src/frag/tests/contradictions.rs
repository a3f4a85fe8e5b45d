//! Fragments that overlap or disagree about the length.

use super::*;

fn dropped(reason: FragmentDrop) -> Insert<'static> {
    Insert::Dropped(reason)
}

/// After a contradiction the rest of the datagram must not complete it, and ends in silence.
fn assert_discarded(mut queue: FragmentQueue<'_>, datagram: &[u8], reason: FragmentDrop) {
    for fragment in cut(datagram, 28) {
        assert_eq!(queue.insert(Instant::ZERO, &fragment), dropped(FragmentDrop::Discarded));
    }
    assert_eq!(queue.counters().dropped(reason), 1);
    assert_eq!(queue.counters().dropped(FragmentDrop::Discarded), cut(datagram, 28).len() as u64);
    assert_eq!(queue.expire(Instant::ZERO.after(LIFETIME)), None);
    assert_eq!((queue.len(), queue.counters().expired, queue.counters().completed), (0, 0, 0));
}

/// RFC 8200 4.5 allows exact duplicates.
#[test]
fn identical_duplicates_and_overlaps_are_harmless() {
    let datagram = pattern(100);
    let mut memory = Memory::new(1, 128);
    let mut queue = memory.queue();
    let ranges = [0..32, 0..32, 16..48, 88..100, 88..100, 24..88];
    assert_completes(&mut queue, &ranges.map(|range| part(&datagram, range)), &datagram);
    assert_eq!(queue.counters().held, 5);
}

#[test]
fn a_last_fragment_may_be_repeated_by_a_longer_one_with_the_same_end() {
    let datagram = pattern(61);
    let mut memory = Memory::new(1, 64);
    let ranges = [56..61, 40..61, 48..61, 0..40];
    assert_completes(&mut memory.queue(), &ranges.map(|range| part(&datagram, range)), &datagram);
}

/// CVE-2019-15890 and CVE-2020-1983: overlapping trains made the queue use freed packets.
#[test]
fn every_kind_of_overlap_that_differs_in_one_byte_drops_the_whole_datagram() {
    let datagram = pattern(96);
    let held = 32..64;
    // The same place, inside, around, from the front, to the back.
    for (range, at) in [(32..64, 63), (40..48, 40), (16..80, 63), (16..40, 39), (56..80, 56)] {
        let mut forged = datagram.clone();
        forged[at] ^= 1;
        let mut memory = Memory::new(1, 128);
        let mut queue = memory.queue();
        assert_eq!(queue.insert(Instant::ZERO, &part(&datagram, held.clone())), Insert::Held);
        assert_eq!(
            queue.insert(Instant::ZERO, &part(&forged, range)),
            dropped(FragmentDrop::Overlap)
        );
        assert_discarded(queue, &datagram, FragmentDrop::Overlap);
    }
}

#[test]
fn bytes_that_differ_outside_the_overlap_are_new_bytes() {
    let datagram = pattern(96);
    let mut stale = Memory::new(1, 128);
    let mut queue = stale.queue();
    let ranges = [8..16, 24..32, 0..40, 40..96];
    assert_completes(&mut queue, &ranges.map(|range| part(&datagram, range)), &datagram);
}

#[test]
fn a_last_unit_of_less_than_8_bytes_is_compared_too() {
    let datagram = pattern(61);
    let mut forged = datagram.clone();
    forged[60] ^= 1;
    let mut memory = Memory::new(1, 64);
    let mut queue = memory.queue();
    assert_eq!(queue.insert(Instant::ZERO, &part(&datagram, 56..61)), Insert::Held);
    assert_eq!(queue.insert(Instant::ZERO, &part(&forged, 48..61)), dropped(FragmentDrop::Overlap));
    assert_discarded(queue, &datagram, FragmentDrop::Overlap);
}

#[test]
fn a_last_fragment_that_shrinks_or_grows_the_datagram_drops_it() {
    let datagram = pattern(96);
    for other_end in [80, 88, 95] {
        let shorter = pattern(other_end);
        for (first, second) in [(&datagram, &shorter), (&shorter, &datagram)] {
            let mut memory = Memory::new(1, 128);
            let mut queue = memory.queue();
            assert_eq!(queue.insert(Instant::ZERO, &part(first, 72..first.len())), Insert::Held);
            let second = part(second, 72..second.len());
            assert_eq!(queue.insert(Instant::ZERO, &second), dropped(FragmentDrop::Length));
            assert_discarded(queue, &datagram, FragmentDrop::Length);
        }
    }
}

#[test]
fn data_at_or_past_the_end_drops_the_datagram_in_either_order() {
    let datagram = pattern(61);
    let longer = pattern(200);
    let last = part(&datagram, 40..61);
    // One that reaches past the end, one that covers its last unit, one wholly behind it.
    for beyond in [part(&longer, 40..72), part(&longer, 56..64), part(&longer, 120..128)] {
        for order in [[last, beyond], [beyond, last]] {
            let mut memory = Memory::new(1, 256);
            let mut queue = memory.queue();
            assert_eq!(queue.insert(Instant::ZERO, &order[0]), Insert::Held);
            assert_eq!(queue.insert(Instant::ZERO, &order[1]), dropped(FragmentDrop::Length));
            assert_discarded(queue, &datagram, FragmentDrop::Length);
        }
    }
}

#[test]
fn more_fragments_at_the_very_end_contradict_it() {
    let datagram = pattern(64);
    let last = part(&datagram, 32..64);
    let claims_more = Fragment { more: true, ..last };
    for order in [[last, claims_more], [claims_more, last]] {
        let mut memory = Memory::new(1, 64);
        let mut queue = memory.queue();
        assert_eq!(queue.insert(Instant::ZERO, &order[0]), Insert::Held);
        assert_eq!(queue.insert(Instant::ZERO, &order[1]), dropped(FragmentDrop::Length));
        assert_discarded(queue, &datagram, FragmentDrop::Length);
    }
}

/// RFC 1858 4, RFC 3128: the second fragment is to change what a filter saw in the first, or brings
/// what a filter did not see.
#[test]
fn a_fragment_at_offset_8_cannot_change_the_header_before_it() {
    let segment = pattern(40);
    let mut forged = segment.clone();
    forged[13] = 0x02;
    let (first, tiny) = (part(&segment, 0..16), part(&segment, 0..8));
    for (held, second) in [(first, part(&forged, 8..40)), (part(&forged, 8..40), first)] {
        let mut memory = Memory::new(1, 64);
        let mut queue = memory.queue();
        assert_eq!(queue.insert(Instant::ZERO, &held), Insert::Held);
        assert_eq!(queue.insert(Instant::ZERO, &second), dropped(FragmentDrop::Overlap));
        assert_discarded(queue, &segment, FragmentDrop::Overlap);
    }
    // A tiny first fragment by itself hides nothing: only the whole is ever looked at.
    let mut memory = Memory::new(1, 64);
    assert_completes(&mut memory.queue(), &[tiny, part(&segment, 8..40)], &segment);
}

#[test]
fn a_dropped_datagram_frees_its_name_when_its_time_is_over() {
    let datagram = pattern(64);
    let forged = vec![0; 64];
    let mut memory = Memory::new(1, 64);
    let mut queue = memory.queue();
    assert_eq!(queue.insert(Instant::ZERO, &part(&datagram, 0..32)), Insert::Held);
    assert_eq!(queue.insert(Instant::ZERO, &part(&forged, 0..32)), dropped(FragmentDrop::Overlap));
    assert_eq!(queue.poll_at(), Some(Instant::ZERO.after(LIFETIME)));
    assert_eq!(queue.expire(Instant::ZERO.after(LIFETIME)), None);
    assert_completes(&mut queue, &cut(&datagram, 52), &datagram);
}
