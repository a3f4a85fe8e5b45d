//! Who gets a slot, and for how long.

use core::time::Duration;

use super::*;

fn first_of(source: u8, identification: u32) -> Fragment<'static> {
    Fragment { key: key(source, identification), ..part(&[7; 16], 0..8) }
}

fn last_of(source: u8, identification: u32) -> Fragment<'static> {
    Fragment { key: key(source, identification), ..part(&[7; 16], 8..16) }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO.after(Duration::from_secs(seconds))
}

/// libslirp keeps them all.
#[test]
fn of_60000_first_fragments_only_the_newest_stay() {
    let mut memory = Memory::new(8, 64);
    let mut queue = memory.queue();
    for id in 0..60_000 {
        let now = Instant::from_micros(u64::from(id));
        assert_eq!(queue.insert(now, &first_of(15, id)), Insert::Held);
    }
    assert_eq!((queue.len(), queue.counters().evicted), (4, 60_000 - 4));
    for id in 59_996..60_000 {
        assert!(matches!(queue.insert(at(1), &last_of(15, id)), Insert::Complete(_)), "{id}");
    }
    assert_eq!(queue.insert(at(1), &last_of(15, 59_995)), Insert::Held);
}

#[test]
fn a_flood_from_one_source_leaves_the_other_half_to_others() {
    let mut memory = Memory::new(8, 64);
    let mut queue = memory.queue();
    for source in 1..=4 {
        assert_eq!(queue.insert(at(0), &first_of(source, 0)), Insert::Held);
    }
    for id in 0..1000 {
        assert_eq!(queue.insert(at(1), &first_of(15, id)), Insert::Held);
    }
    for source in 1..=4 {
        assert!(matches!(queue.insert(at(2), &last_of(source, 0)), Insert::Complete(_)));
    }
    assert_eq!(queue.counters().evicted, 1000 - 4);
}

#[test]
fn with_all_slots_taken_by_many_sources_the_oldest_of_all_goes() {
    let mut memory = Memory::new(4, 64);
    let mut queue = memory.queue();
    for (second, source) in [(3, 1), (1, 2), (2, 3), (4, 4), (5, 5)] {
        assert_eq!(queue.insert(at(second), &first_of(source, 0)), Insert::Held);
    }
    assert_eq!((queue.len(), queue.counters().evicted), (4, 1));
    for source in [1, 3, 4, 5] {
        assert!(matches!(queue.insert(at(6), &last_of(source, 0)), Insert::Complete(_)));
    }
    assert_eq!(queue.insert(at(6), &last_of(2, 0)), Insert::Held);
}

#[test]
fn a_dropped_datagram_makes_room_before_an_older_live_one() {
    let mut memory = Memory::new(2, 64);
    let mut queue = memory.queue();
    assert_eq!(queue.insert(at(0), &first_of(1, 0)), Insert::Held);
    assert_eq!(queue.insert(at(1), &first_of(2, 0)), Insert::Held);
    let forged = Fragment { payload: &[9; 8], ..first_of(2, 0) };
    assert_eq!(queue.insert(at(1), &forged), Insert::Dropped(FragmentDrop::Overlap));
    assert_eq!(queue.insert(at(2), &first_of(3, 0)), Insert::Held);
    assert_eq!((queue.len(), queue.counters().evicted), (2, 0));
    assert!(matches!(queue.insert(at(2), &last_of(1, 0)), Insert::Complete(_)));
}

#[test]
fn a_single_slot_serves_any_source() {
    let mut memory = Memory::new(1, 64);
    let mut queue = memory.queue();
    for source in 1..=3 {
        assert_eq!(queue.insert(at(0), &first_of(source, 0)), Insert::Held);
    }
    assert_eq!((queue.len(), queue.counters().evicted), (1, 2));
}

#[test]
fn time_is_counted_from_whichever_fragment_came_first() {
    let mut memory = Memory::new(4, 64);
    let mut queue = memory.queue();
    assert_eq!(queue.poll_at(), None);
    assert_eq!(queue.insert(at(1), &last_of(1, 0)), Insert::Held);
    assert_eq!(queue.insert(at(20), &last_of(1, 0)), Insert::Held);
    assert_eq!(queue.insert(at(5), &first_of(2, 0)), Insert::Held);
    assert_eq!(queue.poll_at(), Some(at(31)));
    assert_eq!(queue.expire(Instant::from_micros(30_999_999)), None);
    assert_eq!(queue.expire(at(31)), Some(Expired { key: key(1, 0), first: None }));
    assert_eq!(queue.expire(at(31)), None);
    assert_eq!(queue.poll_at(), Some(at(35)));
}

#[test]
fn an_expired_datagram_shows_header_and_8_bytes_if_its_beginning_came() {
    let header = [0x46; 24];
    let mut memory = Memory::new(8, 64);
    let mut queue = memory.queue();
    let first = Fragment { header: &header, payload: &[1, 2, 3, 4, 5, 6, 7, 8], ..first_of(1, 0) };
    assert_eq!(queue.insert(at(0), &first), Insert::Held);
    assert_eq!(queue.insert(at(0), &last_of(2, 0)), Insert::Held);
    let begun = Some(FirstFragment { header: &header, payload: &[1, 2, 3, 4, 5, 6, 7, 8] });
    // A guest that slept wakes up late: each is told once.
    assert_eq!(queue.expire(at(9000)), Some(Expired { key: key(1, 0), first: begun }));
    assert_eq!(queue.expire(at(9000)), Some(Expired { key: key(2, 0), first: None }));
    assert_eq!(queue.expire(at(9000)), None);
    assert_eq!((queue.counters().expired, queue.is_empty(), queue.poll_at()), (2, true, None));
}

#[test]
fn a_clock_that_goes_backwards_expires_nothing() {
    let mut memory = Memory::new(4, 64);
    let mut queue = memory.queue();
    assert_eq!(queue.insert(at(100), &first_of(1, 0)), Insert::Held);
    assert_eq!(queue.expire(at(0)), None);
    assert!(matches!(queue.insert(at(0), &last_of(1, 0)), Insert::Complete(_)));
}

#[test]
fn completion_moves_the_deadline_to_the_next_oldest() {
    let mut memory = Memory::new(8, 64);
    let mut queue = memory.queue();
    for (second, source) in [(1, 1), (2, 2), (3, 3)] {
        assert_eq!(queue.insert(at(second), &first_of(source, 0)), Insert::Held);
    }
    assert!(matches!(queue.insert(at(4), &last_of(1, 0)), Insert::Complete(_)));
    assert_eq!(queue.poll_at(), Some(at(32)));
    assert!(matches!(queue.insert(at(4), &last_of(3, 0)), Insert::Complete(_)));
    assert_eq!(queue.poll_at(), Some(at(32)));
}
