use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const ENTRIES: usize = 12;

/// Microseconds of a tick.
const TICK: u64 = 1 << TICK_SHIFT;

/// A wheel, and beside it when each entry is due.
struct Model {
    wheel: Wheel,
    flows: Vec<Flow>,
    due: [Option<u64>; ENTRIES],
    now: u64,
}

impl Model {
    fn new() -> Self {
        let flows = vec![Flow::EMPTY; ENTRIES];
        Self { wheel: Wheel::new(), flows, due: [None; ENTRIES], now: 0 }
    }

    fn set(&mut self, entry: usize, delay: u64) {
        self.clear(entry);
        let at = self.now.saturating_add(delay);
        self.flows[entry].links.timer_at = Instant::from_micros(at);
        self.wheel.insert(&mut self.flows, index(entry), Instant::from_micros(at));
        self.due[entry] = Some(at);
    }

    fn clear(&mut self, entry: usize) {
        self.wheel.remove(&mut self.flows, index(entry));
        self.due[entry] = None;
    }

    fn advance(&mut self, by: u64) {
        self.now = self.now.saturating_add(by);
        while let Some(popped) = self.wheel.pop_due(&mut self.flows, Instant::from_micros(self.now))
        {
            let entry = popped as usize - 1;
            let due = self.due[entry].take().expect("an entry fires once, and only if it hangs");
            assert!(due <= self.now, "fired {} early", due - self.now);
        }
        for due in self.due.iter().flatten() {
            assert!(self.now.saturating_sub(*due) < TICK, "{} late", self.now - due);
        }
        let next = self.wheel.next().map(Instant::micros);
        match self.due.iter().flatten().min() {
            Some(first) => {
                let next = next.expect("something is to come");
                assert!(next <= first.saturating_add(TICK), "would wake {} late", next - first);
                assert!(next > self.now, "would wake at once, for nothing");
            }
            None => assert_eq!(next, None),
        }
    }
}

fn index(entry: usize) -> Index {
    Index::try_from(entry).unwrap() + 1
}

#[derive(Clone, Debug)]
enum Step {
    Set(usize, u64),
    Clear(usize),
    Advance(u64),
}

/// Delays of every magnitude, and those at which a wheel of 64 slots turns over.
fn delay() -> impl Strategy<Value = u64> {
    let magnitude = (0u32..64, any::<u64>()).prop_map(|(bits, noise)| noise >> bits);
    let edge = (10u32..50, 0u64..3).prop_map(|(bits, offset)| ((1 << bits) + offset * TICK) - TICK);
    prop_oneof![4 => magnitude.prop_map(|delay| delay >> 12), 2 => edge]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..ENTRIES, delay()).prop_map(|(entry, delay)| Step::Set(entry, delay)),
        1 => (0..ENTRIES).prop_map(Step::Clear),
        3 => delay().prop_map(Step::Advance),
    ]
}

proptest! {
    #[test]
    fn nothing_fires_early_or_a_tick_late_or_is_lost(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Set(entry, delay) => model.set(entry, delay),
                Step::Clear(entry) => model.clear(entry),
                Step::Advance(by) => model.advance(by),
            }
        }
    }
}

#[test]
fn a_clock_that_jumps_by_years_keeps_no_call_from_its_end() {
    // From within a slot of the highest level, which is two weeks long, to beyond all of them.
    let mut model = Model::new();
    model.advance(5_000_000);
    model.set(0, u64::MAX / 2);
    model.advance(3 * 365 * 86_400 * 1_000_000);
    assert!(model.due[0].is_some());
    model.set(1, 1_000_000);
    model.advance(2_000_000);
    assert_eq!(model.due[1], None, "a timer set after the jump fires in its time");
    model.advance(u64::MAX / 2);
    assert_eq!(model.due[0], None);
}

#[test]
fn the_end_of_time_is_an_instant_like_any_other() {
    let mut model = Model::new();
    model.set(0, u64::MAX);
    model.set(1, 1000);
    model.advance(10_000);
    assert_eq!((model.due[0], model.due[1]), (Some(u64::MAX), None));
    model.now = u64::MAX;
    let end = Instant::from_micros(u64::MAX);
    assert_eq!(model.wheel.pop_due(&mut model.flows, end), Some(index(0)));
    assert_eq!(model.wheel.pop_due(&mut model.flows, end), None);
    model.set(2, 1);
    assert_eq!(model.wheel.pop_due(&mut model.flows, end), Some(index(2)));
}

#[test]
fn a_clock_that_steps_back_delays_nothing_that_is_due() {
    let mut model = Model::new();
    model.set(0, 5_000);
    assert_eq!(model.wheel.pop_due(&mut model.flows, Instant::from_micros(1 << 40)), Some(1));
    model.now = 0;
    model.set(0, 5_000);
    assert_eq!(model.wheel.pop_due(&mut model.flows, Instant::from_micros(1 << 40)), Some(1));
}
