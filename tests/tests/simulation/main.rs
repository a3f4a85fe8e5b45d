//! Guests with a stack that nobody here wrote (smoltcp), behind a network that loses, doubles,
//! delays, reorders, corrupts and narrows, and in front of servers that read and write little,
//! stall, and reset: all of it decided by a seed.
//!
//! Every byte of every stream is compared, every segment watched, and at the end no flow is left.
//! Some dozens of seeds are run by `cargo test`; `.ci/run seeds N` runs N of them, and what fails
//! says how to run it again.

#![expect(
    clippy::cast_possible_truncation,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's mistake is to stop the test"
)]

mod flow;
mod guest;
mod network;
mod plan;
mod simulation;

use core::ops::Range;
use core::time::Duration;
use std::panic::catch_unwind;

use simulation::{Outcome, Simulation};

/// How many seeds `cargo test` runs.
const FEW: u64 = 40;

/// A number that the environment gives.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs some seeds; returns what they came to.
fn run(seeds: Range<u64>) -> Vec<Outcome> {
    seeds
        .map(|seed| {
            catch_unwind(|| Simulation::new(seed).run()).unwrap_or_else(|_| {
                panic!("seed {seed} fails; to run it again: .ci/run seeds 1 {seed}")
            })
        })
        .collect()
}

#[test]
fn every_byte_arrives_and_no_flow_outlives_its_time() {
    let (first, count) = (given("SLIRPKIT_FIRST_SEED"), given("SLIRPKIT_SEEDS"));
    let first = first.unwrap_or(0);
    let outcomes = run(first..first + count.unwrap_or(FEW));
    let bytes: u64 = outcomes.iter().map(|outcome| outcome.bytes).sum();
    let longest = outcomes.iter().map(|outcome| outcome.took).max().unwrap_or(Duration::ZERO);
    println!("{} seeds from {first}: {bytes} bytes, the longest {longest:?}", outcomes.len());
}

/// A seed that fails can only be looked into if it always does the same.
#[test]
fn a_seed_is_the_same_each_time() {
    let [once, again] = [(); 2].map(|()| Simulation::new(3).run());
    assert_eq!((once.took, once.bytes), (again.took, again.bytes));
}
