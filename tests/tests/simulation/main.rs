//! Guests with a stack that nobody here wrote (smoltcp), behind a network that loses, doubles,
//! delays, reorders, corrupts and narrows, and in front of servers that read and write little,
//! stall, and reset: all of it decided by a seed.
//!
//! Every byte of every stream is compared, every segment watched, and at the end no flow is left.
//! Some of the seeds are run by `cargo test`; `.ci/run seeds N` runs N of them. What fails shows its
//! last segments, as many as `SLIRPKIT_TRACE` says, and how to run it again.

#![expect(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "a test's mistake is to stop the test"
)]

mod faults;
mod flow;
mod guest;
mod lifetime;
mod network;
mod plan;
mod simulation;
mod snapshot;
mod trace;

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::thread;

use simulation::{Outcome, Simulation};

/// How many seeds `cargo test` runs.
const FEW: u64 = 200;

/// After how many seeds it is said how far it has come.
const A_LOT: usize = 200;

/// A number that the environment gives.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What seeds came to, each with its number; those that failed have nothing.
type Outcomes = Vec<(u64, Option<Outcome>)>;

/// Runs some seeds, as many at a time as there are processors.
fn run(seeds: Range<u64>) -> Outcomes {
    let next = AtomicU64::new(seeds.start);
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let outcome = catch_unwind(|| Simulation::new(seed).run()).ok();
            if outcome.is_none() {
                eprintln!("seed {seed} fails; to run it again: .ci/run seeds 1 {seed}");
            }
            let mut outcomes = outcomes.lock().unwrap();
            outcomes.push((seed, outcome));
            if outcomes.len().is_multiple_of(A_LOT) {
                println!("{} seeds: {} failed", outcomes.len(), failures(&outcomes).len());
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    outcomes.into_inner().unwrap()
}

/// The seeds that failed, in order.
fn failures(outcomes: &[(u64, Option<Outcome>)]) -> Vec<u64> {
    let failed = outcomes.iter().filter(|(_, outcome)| outcome.is_none());
    let mut failed: Vec<u64> = failed.map(|(seed, _)| *seed).collect();
    failed.sort_unstable();
    failed
}

#[test]
fn every_byte_arrives_and_no_flow_outlives_its_time() {
    let (first, count) = (given("SLIRPKIT_FIRST_SEED"), given("SLIRPKIT_SEEDS"));
    let first = first.unwrap_or(0);
    let outcomes = run(first..first + count.unwrap_or(FEW));
    let done = || outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref());
    let bytes: u64 = done().map(|outcome| outcome.bytes).sum();
    let longest = done().map(|outcome| outcome.took).max().unwrap_or(Duration::ZERO);
    println!("{} seeds from {first}: {bytes} bytes, the longest {longest:?}", outcomes.len());
    let failed = failures(&outcomes);
    assert!(failed.is_empty(), "{} of {} seeds fail: {failed:?}", failed.len(), outcomes.len());
}

/// A seed that fails can only be looked into if it always does the same.
#[test]
fn a_seed_is_the_same_each_time() {
    let [once, again] = [(); 2].map(|()| Simulation::new(3).run());
    assert_eq!((once.took, once.bytes), (again.took, again.bytes));
}
