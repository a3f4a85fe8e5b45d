//! Two connections, each the other's guest, over a link that loses, doubles, delays and reorders,
//! between hosts that take little, with pools that are too small for what comes out of order: every
//! byte arrives, once and in order, and both ends end.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::pool::{BLOCK_LEN, Pool};

/// Segments that the link may treat badly; those after are carried as they are, so that an
/// exchange ends.
const BAD_SEGMENTS: u32 = 300;

/// Timeouts in a row after which the link carries everything as it is until the end that waits has
/// got its answer. Mere bad luck would have it give up, at the seventh timeout of a SYN.
const MOST_TIMEOUTS: u8 = 4;

/// Steps after which an exchange counts as stuck.
const MOST_STEPS: u32 = 100_000;

/// Xorshift, seeded by the property test.
struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One in `n`.
    fn one_in(&mut self, n: u64) -> bool {
        n != 0 && self.throw().is_multiple_of(n)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.throw() % n.max(1)
    }
}

/// A segment on its way.
struct InFlight {
    to_second: bool,
    header: SegmentOut,
    payload: Vec<u8>,
}

/// One end with its host.
struct End {
    /// None before the first SYN has come.
    connection: Option<Connection>,
    outgoing: Vec<u8>,
    consumed: usize,
    /// How much of `outgoing` the host has written so far.
    written: usize,
    incoming: Vec<u8>,
    text: Vec<u8>,
    guest_end: bool,
    limits: Limits,
    /// What came out of order, and the memory for it.
    runs: Runs,
    pool: Pool<'static>,
    /// What the other end has of what came out of order there.
    board: Scoreboard,
}

impl End {
    fn new(outgoing: Vec<u8>, limits: Limits, blocks: usize) -> Self {
        let memory = std::vec![0; blocks * BLOCK_LEN].leak();
        Self {
            connection: None,
            outgoing,
            consumed: 0,
            written: 0,
            incoming: Vec::new(),
            text: Vec::new(),
            guest_end: false,
            limits,
            runs: Runs::EMPTY,
            pool: Pool::new(memory),
            board: Scoreboard::EMPTY,
        }
    }

    fn is_over(&self) -> bool {
        self.connection.is_some_and(|connection| connection.is_done_with_host())
    }

    /// The host writes some more, and may take some more.
    fn host_moves(&mut self, dice: &mut Dice, late: bool) {
        let Some(connection) = &mut self.connection else { return };
        let left = self.outgoing.len() - self.written;
        self.written += if late { left } else { dice.below(left as u64 + 1) as usize };
        connection.host_readable();
        let most = u64::from(self.limits.receive_window);
        connection.promise(if late { most } else { dice.below(most + 1) } as u32);
        if connection.owes_window_update() {
            connection.owe_ack();
        }
    }

    fn takes(&mut self, now: Instant, segment: &SegmentIn<'_>) {
        let limits = self.limits;
        let connection = self
            .connection
            .get_or_insert_with(|| Connection::accept(now, segment, SeqNumber(77), &limits));
        if connection.state() == State::Closed {
            return;
        }
        let board = connection.has_sack().then_some(&mut self.board);
        let arrival = connection.on_segment(now, segment, board);
        assert!(!matches!(arrival.event, Event::Reset | Event::Refused | Event::Replaced));
        self.text.extend(arrival.data);
        if let Some(beyond) = &arrival.beyond {
            let stored = self.runs.store(&mut self.pool, beyond);
            assert_eq!(stored.stored + stored.known + stored.refused, beyond.text.len());
        }
        self.consumed += arrival.acked as usize;
        assert!(self.consumed <= self.written);
    }

    fn settles(&mut self, now: Instant, dice: &mut Dice, late: bool) {
        if dice.one_in(20) {
            self.runs.evict(&mut self.pool);
        }
        let Some(connection) = &mut self.connection else { return };
        let short = !late && dice.one_in(4);
        let untaken = if short { dice.below(self.text.len() as u64 + 1) } else { 0 };
        let taken = self.text.len() - untaken as usize;
        self.incoming.extend(self.text.drain(..taken));
        self.text.clear();
        if connection.state() == State::Closed {
            return;
        }
        if let Some(expected) = connection.next_expected().filter(|_| untaken == 0) {
            let mut next = self.runs.take(&mut self.pool, expected);
            let fin = self.runs.take_end(expected.plus(next.len() as u32));
            if !next.is_empty() || fin {
                connection.on_stored(next.len() as u32, fin);
            }
            while !next.is_empty() {
                let bytes = self.pool.slices(&next).concat();
                self.pool.advance(&mut next, bytes.len());
                self.incoming.extend(bytes);
            }
        }
        assert_eq!(self.runs.blocks(), self.pool.in_use(), "a block is leaked");
        self.guest_end |= connection.settle(now, untaken as u32);
    }

    fn next_segment(&mut self, now: Instant) -> Option<(SegmentOut, Vec<u8>)> {
        let connection = self.connection.as_mut()?;
        loop {
            let has_sack = connection.has_sack();
            match connection.poll_transmit(now, Some(&self.board).filter(|_| has_sack)) {
                Transmit::Nothing => return None,
                Transmit::Segment(header) => {
                    let sack = if has_sack { self.runs.sack() } else { SackBlocks::NONE };
                    return Some((SegmentOut { sack, ..header }, Vec::new()));
                }
                Transmit::Data { offset, limit } => {
                    let from = self.consumed + offset as usize;
                    let available = &self.outgoing[from..self.written];
                    let over = self.written == self.outgoing.len();
                    if available.is_empty() && over {
                        connection.host_ended();
                    } else if available.is_empty() {
                        connection.host_drained();
                    } else {
                        let most = (limit as usize).min(usize::from(connection.mss()));
                        let payload = available[..most.min(available.len())].to_vec();
                        let drained = payload.len() == available.len();
                        let length = payload.len() as u32;
                        let board = Some(&mut self.board).filter(|_| has_sack);
                        let end = drained && over;
                        let header = connection.data_sent(now, length, drained, end, board);
                        return Some((header, payload));
                    }
                }
            }
        }
    }
}

/// The link, its queue by time and order, and its clock.
struct Exchange {
    ends: [End; 2],
    queue: BTreeMap<(u64, u32), InFlight>,
    dice: Dice,
    now: Instant,
    carried: u32,
    /// One in how many segments is lost, doubled, delayed.
    faults: [u64; 3],
}

impl Exchange {
    fn is_late(&self) -> bool {
        self.carried > BAD_SEGMENTS
    }

    /// Whether the link may treat a segment badly now.
    fn is_bad(&self) -> bool {
        let waits_long = |end: &End| {
            end.connection.is_some_and(|connection| connection.retries >= MOST_TIMEOUTS)
        };
        !self.is_late() && !self.ends.iter().any(waits_long)
    }

    fn carry(&mut self, to_second: bool, header: SegmentOut, payload: &[u8]) {
        self.carried += 1;
        let bad = self.is_bad();
        if bad && self.dice.one_in(self.faults[0]) {
            return;
        }
        let copies = if bad && self.dice.one_in(self.faults[1]) { 2 } else { 1 };
        for copy in 0..copies {
            let delayed = bad && self.dice.one_in(self.faults[2]);
            let delay = 100 + if delayed { self.dice.below(300_000) } else { 0 };
            let at = self.now.micros() + delay;
            let segment = InFlight { to_second, header, payload: payload.to_vec() };
            self.queue.insert((at, 2 * self.carried + copy), segment);
        }
    }

    /// Everything that wants to go out goes onto the link.
    fn transmit(&mut self) {
        for second in [false, true] {
            for count in 0.. {
                assert!(count < 10_000, "output without end");
                let now = self.now;
                let Some((header, payload)) = self.ends[usize::from(second)].next_segment(now)
                else {
                    break;
                };
                assert!(!header.flags.contains(TcpFlags::RST));
                self.carry(!second, header, &payload);
            }
        }
    }

    /// The next thing happens: arrivals of one moment, or a timer.
    fn step(&mut self) {
        if self.queue.is_empty() {
            // Hosts do not stay idle until a guest is given up.
            self.ends.iter_mut().for_each(|end| end.host_moves(&mut self.dice, true));
            self.transmit();
        }
        let arrival = self.queue.keys().next().map(|(at, _)| *at);
        let running = self.ends.iter().filter(|end| !end.is_over());
        let deadlines = running.filter_map(|end| end.connection.as_ref()?.deadline());
        let timer = deadlines.map(Instant::micros).min();
        let next = arrival.into_iter().chain(timer).min();
        self.now = self.now.max(Instant::from_micros(next.unwrap()));
        let late = self.is_late();
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > self.now.micros() {
                break;
            }
            let InFlight { to_second, header, payload } = entry.remove();
            let segment = SegmentIn {
                sequence: header.sequence,
                acknowledgment: header.acknowledgment,
                flags: header.flags,
                window: header.window,
                mss: header.mss,
                window_scale: header.window_scale,
                sack_permitted: header.sack_permitted,
                sack: header.sack,
                payload: &payload,
            };
            self.ends[usize::from(to_second)].takes(self.now, &segment);
        }
        for end in &mut self.ends {
            end.settles(self.now, &mut self.dice, late);
            end.host_moves(&mut self.dice, late);
            if let Some(connection) = &mut end.connection {
                connection.host_connected();
                // TIME-WAIT lasts until the other end is over, too, however often the last ACK is
                // lost.
                if connection.state() != State::TimeWait {
                    let board = connection.has_sack().then_some(&mut end.board);
                    let outcome = connection.on_timer(self.now, board);
                    assert!(outcome != TimerOutcome::GiveUp, "{connection:?}");
                }
            }
        }
    }
}

fn limits() -> impl Strategy<Value = Limits> {
    let mss = prop_oneof![28u16..100, 500u16..1500, Just(65_480)];
    (mss, 0u8..=14, 1000u32..200_000, any::<bool>()).prop_map(
        |(mss, window_scale, receive_window, sack)| Limits {
            mss,
            window_scale,
            // Less than one unit cannot be offered.
            receive_window: receive_window.max(1 << window_scale),
            sack,
        },
    )
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(0usize), 1..100usize, 1000..30_000usize]
        .prop_map(|length| (0..length).map(pattern).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_bytes_arrive_and_both_ends_end(
        streams in (stream(), stream()), limits in (limits(), limits()),
        iss in any::<u32>(), seed in 1..u64::MAX, blocks in (0..20usize, 0..20usize),
        faults in (prop_oneof![Just(0u64), 3..30u64], prop_oneof![Just(0u64), 3..30u64], prop_oneof![Just(0u64), 2..30u64]),
    ) {
        let mut ends = [
            End::new(streams.0, limits.0, blocks.0),
            End::new(streams.1, limits.1, blocks.1),
        ];
        let now = Instant::from_millis(1);
        ends[0].connection = Some(Connection::open(now, SeqNumber(iss), &ends[0].limits));
        let faults = [faults.0, faults.1, faults.2];
        let queue = BTreeMap::new();
        let mut exchange = Exchange { ends, queue, dice: Dice(seed), now, carried: 0, faults };
        let mut steps = 0;
        exchange.transmit();
        while !exchange.ends.iter().all(End::is_over) {
            exchange.step();
            exchange.transmit();
            steps += 1;
            prop_assert!(steps < MOST_STEPS, "{:?}", exchange.ends.map(|end| end.connection));
        }
        let [first, second] = exchange.ends;
        prop_assert!(first.guest_end && second.guest_end);
        prop_assert_eq!(first.consumed, first.outgoing.len());
        prop_assert_eq!(second.consumed, second.outgoing.len());
        prop_assert!(first.incoming == second.outgoing && second.incoming == first.outgoing);
    }
}
