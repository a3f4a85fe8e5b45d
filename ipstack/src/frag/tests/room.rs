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

/// A batch of frames has one time for all of them.
#[test]
fn of_datagrams_that_began_in_one_moment_the_first_goes_first() {
    let mut memory = Memory::new(8, 64);
    let mut queue = memory.queue();
    for id in 0..100 {
        assert_eq!(queue.insert(at(0), &first_of(15, id)), Insert::Held);
    }
    assert_eq!((queue.len(), queue.counters().evicted), (4, 96));
    for id in [98, 96, 99, 97] {
        assert!(matches!(queue.insert(at(0), &last_of(15, id)), Insert::Complete(_)), "{id}");
    }
}

/// Every slot holds as much as its share, to the byte, and no byte outside the shares is written.
#[test]
fn the_memory_is_what_was_lent_to_the_byte() {
    const SLOTS: usize = 5;
    for share in [8, 61, 1000] {
        let mut slots = vec![FragmentSlot::EMPTY; SLOTS];
        let mut bytes = vec![0xee; SLOTS * share + SLOTS - 1];
        let mut queue = FragmentQueue::new(&mut slots[..], &mut bytes[..]);
        let (fits, too_long) = (pattern(share), pattern(share + 1));
        let middle = (share - 1) / 8 * 8;
        // More than once, so that what was taken must have come back.
        for _ in 0..3 {
            for source in 1..=5 {
                let beginning = Fragment { key: key(source, 0), ..part(&fits, 0..middle) };
                assert!(middle == 0 || queue.insert(at(0), &beginning) == Insert::Held);
            }
            for source in 1..=5 {
                let rest = Fragment { key: key(source, 0), ..part(&fits, middle..share) };
                let Insert::Complete(whole) = queue.insert(at(0), &rest) else { panic!() };
                assert!(whole.payload == fits);
            }
        }
        let beyond = part(&too_long, 0..share + 1);
        assert_eq!(queue.insert(at(0), &beyond), Insert::Dropped(FragmentDrop::Memory));
        assert_eq!((queue.len(), queue.counters().evicted), (0, 0));
        assert_eq!(bytes[SLOTS * share..], [0xee; SLOTS - 1]);
    }
}

/// Completed, expired, dropped and pushed out: each gives its slot back.
#[test]
fn every_end_of_a_datagram_returns_its_slot() {
    let mut memory = Memory::new(2, 16);
    let mut queue = memory.queue();
    let forged = |source| Fragment { payload: &[9; 8], ..first_of(source, 0) };
    for round in 0..100 {
        let (now, later) = (at(round * 100), at(round * 100 + 30));
        assert_eq!(queue.insert(now, &first_of(1, 0)), Insert::Held);
        assert!(matches!(queue.insert(now, &last_of(1, 0)), Insert::Complete(_)));
        assert!(queue.is_empty());
        assert_eq!(queue.insert(now, &first_of(1, 0)), Insert::Held);
        assert_eq!(queue.insert(now, &first_of(2, 0)), Insert::Held);
        assert_eq!(queue.insert(now, &forged(1)), Insert::Dropped(FragmentDrop::Overlap));
        assert_eq!(queue.insert(now, &first_of(3, 0)), Insert::Held, "in place of the dropped one");
        assert_eq!(queue.insert(now, &first_of(4, 0)), Insert::Held, "in place of the oldest");
        assert_eq!(queue.len(), 2);
        let mut ended = [0, 1].map(|_| queue.expire(later).map(|expired| expired.key.source));
        ended.sort();
        assert_eq!(ended, [3, 4].map(|source| Some(key(source, 0).source)));
        assert!(queue.is_empty());
    }
    let counted = queue.counters();
    assert_eq!((counted.completed, counted.expired, counted.evicted), (100, 200, 100));
    assert_eq!((counted.overlap, counted.memory), (100, 0));
}

#[test]
fn a_name_can_be_used_again_once_its_datagram_is_complete_or_its_time_is_over() {
    let (old, new) = ([7; 16], [8; 16]);
    let mut memory = Memory::new(1, 16);
    let mut queue = memory.queue();
    let parts = |datagram| [part(datagram, 0..8), part(datagram, 8..16)];
    assert_completes(&mut queue, &parts(&old), &old);
    assert_completes(&mut queue, &parts(&new), &new);
    // A duplicate that comes after all is the beginning of another one.
    assert_eq!(queue.insert(at(0), &part(&old, 8..16)), Insert::Held);
    assert_eq!(queue.expire(at(30)).map(|expired| expired.first), Some(None));
    assert_completes(&mut queue, &parts(&new), &new);

    // Before its time is over the two are one, and contradict each other.
    assert_eq!(queue.insert(at(0), &part(&old, 0..8)), Insert::Held);
    assert_eq!(queue.insert(at(29), &part(&new, 0..8)), Insert::Dropped(FragmentDrop::Overlap));
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

/// What slots and memory contain does not matter: they may have been another queue's.
#[test]
fn slots_of_another_queue_are_as_good_as_new() {
    let mut memory = Memory::new(2, 64);
    let mut queue = memory.queue();
    for source in 1..=2 {
        assert_eq!(queue.insert(at(0), &first_of(source, 0)), Insert::Held);
    }
    let mut queue = memory.queue();
    assert_eq!((queue.len(), queue.poll_at()), (0, None));
    for source in 1..=2 {
        assert_eq!(queue.insert(at(0), &last_of(source, 0)), Insert::Held);
    }
    assert_eq!((queue.len(), queue.counters().evicted), (2, 0));
    for source in 1..=2 {
        assert!(matches!(queue.insert(at(0), &first_of(source, 0)), Insert::Complete(_)));
    }
}
