//! Text beyond a gap: what is stored of it, what the guest is told (RFC 2018), and what comes of it.

use std::vec;

use proptest::prelude::*;

use super::*;
use crate::pool::{BLOCK_DATA_LEN, BLOCK_LEN, Pool};

/// Runs in a pool of their own. Byte `n` of the stream is `pattern(n)`, and has the number `n`
/// further than `first`.
struct Store {
    runs: Runs,
    pool: Pool<'static>,
    first: SeqNumber,
}

impl Store {
    fn new(blocks: usize) -> Self {
        let pool = Pool::new(vec![0; blocks * BLOCK_LEN].leak());
        Self { runs: Runs::EMPTY, pool, first: SeqNumber(u32::MAX - 2500) }
    }

    fn store_with(&mut self, start: usize, len: usize, fin: bool) -> Stored {
        let text: Vec<u8> = (start..start + len).map(pattern).collect();
        let sequence = self.first.plus(start as u32);
        self.runs.store(&mut self.pool, &Beyond { sequence, text: &text, fin })
    }

    fn store(&mut self, start: usize, len: usize) -> Stored {
        self.store_with(start, len, false)
    }

    /// SACK blocks, as distances from `first`.
    fn sack(&self) -> Vec<(u32, u32)> {
        let blocks = self.runs.sack();
        blocks.iter().map(|(a, b)| (a.since(self.first), b.since(self.first))).collect()
    }

    /// Takes what follows the first `start` bytes, checks it and returns its length.
    fn take(&mut self, start: usize) -> usize {
        let mut parked = self.runs.take(&mut self.pool, self.first.plus(start as u32));
        let len = parked.len();
        let mut at = start;
        while !parked.is_empty() {
            let bytes = self.pool.slices(&parked).concat();
            assert!(bytes.iter().zip(at..).all(|(byte, n)| *byte == pattern(n)));
            at += bytes.len();
            self.pool.advance(&mut parked, bytes.len());
        }
        assert_eq!(at, start + len);
        len
    }
}

const fn all(stored: usize) -> Stored {
    Stored { stored, known: 0, refused: 0 }
}

#[test]
fn the_run_that_grew_last_is_told_of_first() {
    let mut store = Store::new(9);
    assert_eq!(store.store(1000, 100), all(100));
    assert_eq!(store.store(3000, 100), all(100));
    assert_eq!(store.sack(), [(3000, 3100), (1000, 1100)]);
    assert_eq!(store.store(1100, 100), all(100));
    assert_eq!(store.sack(), [(1000, 1200), (3000, 3100)]);
    for start in [5000, 7000] {
        store.store(start, 10);
    }
    assert_eq!(store.sack(), [(7000, 7010), (5000, 5010), (1000, 1200)]);
}

#[test]
fn a_segment_that_closes_a_gap_between_runs_makes_one_of_them() {
    let mut store = Store::new(9);
    store.store(1000, 100);
    store.store(1200, 100);
    assert_eq!(store.store(1050, 200), Stored { stored: 100, known: 100, refused: 0 });
    assert_eq!(store.sack(), [(1000, 1300)]);
    assert_eq!(store.take(1000), 300);
    assert!(store.runs.is_empty() && store.pool.in_use() == 0);
}

#[test]
fn nothing_is_stored_twice() {
    let mut store = Store::new(9);
    store.store(1000, 100);
    assert_eq!(store.store(1020, 50), Stored { stored: 0, known: 50, refused: 0 });
    assert_eq!(store.store(900, 300), Stored { stored: 200, known: 100, refused: 0 });
    assert_eq!(store.sack(), [(900, 1200)]);
    assert_eq!(store.runs.blocks(), store.pool.in_use());
}

#[test]
fn what_has_come_another_way_is_not_taken_again() {
    let mut store = Store::new(9);
    store.store(1000, 100);
    store.store(2000, 100);
    assert_eq!(store.take(1050), 50);
    assert_eq!(store.take(2500), 0);
    assert!(store.runs.is_empty() && store.pool.in_use() == 0);
}

#[test]
fn a_full_pool_refuses_the_rest_and_takes_no_fin_behind_it() {
    let mut store = Store::new(1);
    let length = BLOCK_DATA_LEN + 7;
    let result = store.store_with(10, length, true);
    assert_eq!(result, Stored { stored: BLOCK_DATA_LEN, known: 0, refused: 7 });
    assert_eq!(store.take(10), BLOCK_DATA_LEN);
    assert!(!store.runs.take_end(store.first.plus(10 + length as u32)));
    assert!(store.runs.is_empty());
}

#[test]
fn there_is_a_bound_on_runs_and_the_furthest_goes_first() {
    let mut store = Store::new(20);
    for run in 0..MAX_RUNS {
        assert_eq!(store.store(1000 * (MAX_RUNS - run), 10), all(10));
    }
    assert_eq!(store.store(500, 10), Stored { refused: 10, ..Stored::default() });
    assert_eq!(store.store(1010, 10), all(10), "a run may still grow");
    assert_eq!(store.runs.evict(&mut store.pool), 10);
    assert_eq!(store.store(500, 10), all(10));
    assert_eq!(store.take(1000 * MAX_RUNS), 0, "it was the furthest that went");
}

#[test]
fn a_fin_waits_for_the_text_before_it() {
    let mut store = Store::new(2);
    store.store_with(10, 5, true);
    assert!(!store.runs.take_end(store.first.plus(10)));
    assert_eq!(store.take(10), 5);
    assert!(store.runs.take_end(store.first.plus(15)));
    assert!(store.runs.is_empty());
}

proptest! {
    /// Against a set of byte positions.
    #[test]
    fn every_byte_that_is_told_of_is_there(
        blocks in 0..12usize,
        steps in prop::collection::vec((0..30_000usize, 1..4000usize, 0..10u8), 1..60),
    ) {
        let mut store = Store::new(blocks);
        let mut held = vec![false; 40_000];
        for (start, len, kind) in steps {
            if kind == 0 {
                let taken = store.take(start);
                let expected = held[start..].iter().take_while(|held| **held).count();
                prop_assert_eq!(taken, expected);
                held[..start + taken].fill(false);
            } else if kind == 1 {
                let furthest = store.sack_all().iter().copied().max();
                store.runs.evict(&mut store.pool);
                if let Some((from, to)) = furthest {
                    held[from..to].fill(false);
                }
            } else {
                let known = held[start..start + len].iter().filter(|held| **held).count();
                let result = store.store(start, len);
                prop_assert_eq!(result.stored + result.known + result.refused, len);
                prop_assert!(result.known <= known);
                let front = result.stored + result.known;
                held[start..start + front].fill(true);
            }
            prop_assert_eq!(store.runs.blocks(), store.pool.in_use());
            let told: usize = store.sack_all().iter().map(|(from, to)| to - from).sum();
            prop_assert_eq!(told, held.iter().filter(|held| **held).count());
            prop_assert!(store.sack_all().iter().all(|(from, to)| held[*from..*to].iter().all(|held| *held)));
        }
        store.runs.release(&mut store.pool);
        prop_assert_eq!(store.pool.in_use(), 0);
    }
}

impl Store {
    /// All runs, as distances from `first`.
    fn sack_all(&self) -> Vec<(usize, usize)> {
        let at = |number: SeqNumber| number.since(self.first) as usize;
        self.runs.ranges().map(|(start, end)| (at(start), at(end))).collect()
    }
}

/// A segment beyond a gap and one that fills it are both answered at once.
#[test]
fn stored_text_is_acknowledged_with_what_was_missing() {
    let mut lab = Lab::ethernet();
    assert_eq!(lab.in_batch("A 101+100 ack 1 win 8000").1, Fate::Gap);
    lab.settle();
    lab.expect(&["A 1 ack 1 win 8000"]);
    assert_eq!(lab.in_batch("A 1+100 ack 1 win 8000").1, Fate::Taken);
    lab.connection.on_stored(100, false);
    lab.batch += 100;
    lab.settle();
    lab.expect(&["A 1 ack 201 win 7800"]);
}

#[test]
fn a_stored_fin_ends_the_stream_behind_the_stored_text() {
    let mut lab = Lab::ethernet();
    lab.in_batch("FA 101+100 ack 1 win 8000");
    lab.settle();
    lab.expect(&["A 1 ack 1 win 8000"]);
    lab.in_batch("A 1+100 ack 1 win 8000");
    lab.connection.on_stored(100, true);
    lab.batch += 100;
    lab.settle();
    assert!(lab.guest_end);
    lab.expect(&["A 1 ack 202 win 7799"]);
    lab.expect_state(State::CloseWait);
}

/// RFC 9293 3.10.7.4: what lies beyond the window is cut off, and a FIN there with it.
#[test]
fn text_beyond_a_gap_is_cut_at_the_edge_of_the_window() {
    let mut lab = Lab::ethernet();
    let text = [0; 1000];
    let segment = lab.parse("FA 7501 ack 1 win 8000", &text);
    let beyond = lab.connection.on_segment(lab.now, &segment, None).beyond.unwrap();
    assert_eq!((beyond.sequence, beyond.text.len()), (SeqNumber(1000 + 7501), 500));
    assert!(!beyond.fin);
}

const WITH_SACK: Limits = Limits { sack: true, ..ETHERNET };

/// RFC 2018 2: both must permit it.
#[test]
fn sack_is_permitted_to_a_guest_that_permits_it() {
    for (offered, limits, expected) in [
        ("S 0 win 8000 mss 1000 sackok", WITH_SACK, "SA 0 ack 1 win 8000 mss 1460 sackok"),
        ("S 0 win 8000 mss 1000", WITH_SACK, "SA 0 ack 1 win 8000 mss 1460"),
        ("S 0 win 8000 mss 1000 sackok", ETHERNET, "SA 0 ack 1 win 8000 mss 1460"),
    ] {
        let mut lab = Lab::asked(offered, &limits);
        lab.connection.host_connected();
        lab.expect(&[expected]);
        lab.guest(ACK);
        assert_eq!(lab.connection.has_sack(), expected.ends_with("sackok"));
    }
}

#[test]
fn sack_is_asked_of_a_guest_that_is_opened_to() {
    let limits = WITH_SACK;
    let mut lab = Lab::new(1000, 5000, Connection::open(Instant::ZERO, SeqNumber(5000), &limits));
    lab.expect(&["S 0 win 8000 mss 1460 ws 0 sackok"]);
    lab.guest("SA 0 ack 1 win 8000 mss 1000 sackok");
    assert!(lab.connection.has_sack());
    let mut lab = Lab::opened(&limits);
    lab.guest("SA 0 ack 1 win 8000 mss 1000");
    assert!(!lab.connection.has_sack());
}
