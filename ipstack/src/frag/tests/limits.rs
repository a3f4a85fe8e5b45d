//! Fragments that are malformed or too long.

use super::*;

fn insert_alone(fragment: &Fragment<'_>, chunk_len: usize) -> (bool, FragmentCounters) {
    let mut memory = Memory::new(1, chunk_len);
    let mut queue = memory.queue();
    let held = queue.insert(Instant::ZERO, fragment) == Insert::Held;
    assert_eq!(queue.is_empty(), !held);
    (held, *queue.counters())
}

#[test]
fn malformed_fragments_are_dropped_alone() {
    let datagram = pattern(200);
    let good = part(&datagram, 0..64);
    let malformed = [
        Fragment { payload: &datagram[..0], ..good },
        Fragment { payload: &datagram[..0], more: false, offset: 64, ..good },
        Fragment { payload: &datagram[..63], ..good },
        Fragment { payload: &datagram[..7], ..good },
        Fragment { offset: 4, ..good },
        Fragment { header: &[0; 61], ..good },
    ];
    let mut memory = Memory::new(1, 256);
    let mut queue = memory.queue();
    assert_eq!(queue.insert(Instant::ZERO, &good), Insert::Held);
    for fragment in malformed {
        let dropped = queue.insert(Instant::ZERO, &fragment);
        assert_eq!(dropped, Insert::Dropped(FragmentDrop::Malformed));
    }
    assert_eq!(queue.counters().dropped(FragmentDrop::Malformed), 6);
    assert_completes(&mut queue, &[good, part(&datagram, 64..200)], &datagram);
}

/// The "ping of death" shape: the last offset, and more than the rest of 65,535 bytes.
#[test]
fn a_fragment_that_ends_past_65535_bytes_is_refused_without_a_slot() {
    let payload = pattern(1480);
    let fragment = Fragment { offset: 65_528, more: false, ..part(&payload, 0..1480) };
    let (held, counters) = insert_alone(&fragment, 65_535);
    assert_eq!((held, counters.dropped(FragmentDrop::TooLong)), (false, 1));

    let at_limit = Fragment { payload: &payload[..7], ..fragment };
    assert!(insert_alone(&at_limit, 65_535).0);
    let one_more = Fragment { payload: &payload[..8], ..fragment };
    assert_eq!(insert_alone(&one_more, 65_535).1.too_long, 1);
}

/// Header and payload together are 65,536 bytes, which only the first fragment's header shows.
#[test]
fn a_total_length_of_65536_is_refused_whether_the_first_fragment_comes_first_or_last() {
    let datagram = pattern(65_516);
    let (first, last) = (part(&datagram, 0..32_768), part(&datagram, 32_768..65_516));
    for order in [[first, last], [last, first]] {
        let mut memory = Memory::new(1, 65_535);
        let mut queue = memory.queue();
        assert_eq!(queue.insert(Instant::ZERO, &order[0]), Insert::Held);
        let refused = queue.insert(Instant::ZERO, &order[1]);
        assert_eq!(refused, Insert::Dropped(FragmentDrop::TooLong));
        assert_eq!((queue.counters().too_long, queue.counters().completed), (1, 0));
    }
}

#[test]
fn options_of_the_first_header_count_towards_the_total_length() {
    let datagram = pattern(65_515);
    let options = [0x46; 24];
    let first = Fragment { header: &options, ..part(&datagram, 0..32_768) };
    let mut memory = Memory::new(1, 65_535);
    let mut queue = memory.queue();
    assert_eq!(queue.insert(Instant::ZERO, &first), Insert::Held);
    let refused = queue.insert(Instant::ZERO, &part(&datagram, 32_768..65_515));
    assert_eq!(refused, Insert::Dropped(FragmentDrop::TooLong));

    // Those of another fragment do not.
    let last = Fragment { header: &options, ..part(&datagram, 32_768..65_515) };
    let mut memory = Memory::new(1, 65_535);
    assert_completes(&mut memory.queue(), &[part(&datagram, 0..32_768), last], &datagram);
}

/// CVE-2018-11806: room was reckoned wrongly when large fragments were joined.
#[test]
fn a_datagram_longer_than_its_memory_is_refused_and_its_neighbour_untouched() {
    let (fits, too_long) = (pattern(1000), pattern(1001));
    let mut memory = Memory::new(4, 1000);
    let mut queue = memory.queue();
    let neighbour = part(&fits, 504..1000);
    assert_eq!(queue.insert(Instant::ZERO, &neighbour), Insert::Held);

    let other = |range| Fragment { key: key(15, 2), ..part(&too_long, range) };
    assert_eq!(queue.insert(Instant::ZERO, &other(0..504)), Insert::Held);
    let refused = queue.insert(Instant::ZERO, &other(504..1001));
    assert_eq!(refused, Insert::Dropped(FragmentDrop::Memory));
    let refused = queue.insert(Instant::ZERO, &other(504..1000));
    assert_eq!(refused, Insert::Dropped(FragmentDrop::Discarded));

    let Insert::Complete(whole) = queue.insert(Instant::ZERO, &part(&fits, 0..504)) else {
        panic!()
    };
    assert_eq!(whole.payload, fits);
}

#[test]
fn without_slots_or_memory_every_fragment_is_a_counted_drop() {
    let datagram = pattern(64);
    for (slots, chunk_len) in [(0, 0), (2, 0), (1, 7)] {
        let mut memory = Memory::new(slots, chunk_len);
        let mut queue = memory.queue();
        for fragment in cut(&datagram, 52) {
            let dropped = queue.insert(Instant::ZERO, &fragment);
            assert_eq!(dropped, Insert::Dropped(FragmentDrop::Memory));
        }
        assert_eq!(queue.counters().dropped(FragmentDrop::Memory), 2);
        assert_eq!((queue.len(), queue.poll_at()), (0, None));
    }
    let mut memory = vec![0; 4096];
    let mut queue = FragmentQueue::new(&mut [][..], &mut memory[..]);
    let dropped = queue.insert(Instant::ZERO, &part(&datagram, 0..8));
    assert_eq!(dropped, Insert::Dropped(FragmentDrop::Memory));
}

#[test]
fn more_memory_than_a_datagram_needs_is_left_alone() {
    let datagram = pattern(65_515);
    let mut memory = Memory::new(2, 100_000);
    let mut queue = memory.queue();
    for id in [1, 2] {
        let first = Fragment { key: key(id, 1), ..part(&datagram, 0..65_512) };
        assert_eq!(queue.insert(Instant::ZERO, &first), Insert::Held);
    }
    assert!(memory.bytes[2 * 65_535..].iter().all(|byte| *byte == 0xee));
}

#[test]
fn a_reason_names_what_is_wrong() {
    for (reason, named) in [
        (FragmentDrop::Malformed, "malformed"),
        (FragmentDrop::TooLong, "65535"),
        (FragmentDrop::Memory, "memory"),
        (FragmentDrop::Overlap, "overlap"),
        (FragmentDrop::Length, "length"),
        (FragmentDrop::Ecn, "congestion"),
        (FragmentDrop::Discarded, "dropped"),
    ] {
        assert!(std::format!("{reason}").contains(named), "{reason:?}: {reason}");
    }
}
