//! A guest whose card keeps eight frames a round trip and loses the rest, as an NE2000 does whose
//! driver comes too late: what is sent to it finds that measure, and needs no timer for it.

use std::collections::BTreeMap;

use crate::prelude::*;

/// Frames that the card keeps.
const RING: usize = 8;

/// Full segments in a window of 65,535 bytes.
const WINDOW: usize = 44;

const LENGTH: usize = 2_000_000;

/// The guest: it acknowledges each frame that it gets, and tells of those beyond a gap if it has
/// SACK (RFC 2018).
struct Guest {
    end: TcpGuest,
    ring: usize,
    sack: bool,
    start: u32,
    received: usize,
    /// Runs of bytes beyond a gap: where each begins, and where it ends.
    kept: BTreeMap<usize, usize>,
    data: Vec<u8>,
}

impl Guest {
    /// A guest with a connection whose server has just sent `LENGTH` bytes.
    fn asking(lab: &mut Lab, sack: bool) -> Self {
        let mut end = TcpGuest::new(4000, SERVER);
        if sack {
            end.open_with_sack(lab);
        } else {
            end.open(lab, Some(1460));
        }
        let (start, data) = (end.rcv_nxt, pattern(LENGTH));
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &data);
        Self { end, ring: RING, sack, start, received: 0, kept: BTreeMap::new(), data }
    }

    /// Takes what was sent since, as far as the ring has room, and answers a round trip later.
    /// Returns how many frames were sent.
    fn round_trip(&mut self, lab: &mut Lab) -> usize {
        lab.settle();
        let mut segments = lab.take_tcp();
        segments.retain(|segment| !segment.data.is_empty());
        let kept = segments.iter().take(self.ring);
        let answers: Vec<Vec<u8>> = kept.map(|segment| self.take(segment)).collect();
        lab.advance(millis(10));
        for answer in &answers {
            lab.input(answer);
        }
        segments.len()
    }

    fn take(&mut self, segment: &Tcp) -> Vec<u8> {
        let first = segment.seq.wrapping_sub(self.start) as usize;
        let after = first + segment.data.len();
        assert!(segment.data == self.data[first..after], "the bytes at {first}");
        self.kept.entry(first).and_modify(|end| *end = after.max(*end)).or_insert(after);
        while let Some((first, end)) = self.kept.first_key_value().map(|(a, b)| (*a, *b))
            && first <= self.received
        {
            self.kept.pop_first();
            self.received = self.received.max(end);
        }
        self.end.rcv_nxt = self.start.wrapping_add(self.received as u32);
        if !self.sack || self.kept.is_empty() {
            return self.end.segment().frame();
        }
        let mut runs = self.runs();
        // The one that this segment is in comes first.
        let newest = runs.iter().position(|(start, end)| (*start..*end).contains(&first));
        runs.swap(0, newest.unwrap_or(0));
        runs.truncate(3);
        self.end.telling_of(&runs.iter().map(|run| self.ahead(*run)).collect::<Vec<_>>()).frame()
    }

    /// What is kept, where runs that touch are one.
    fn runs(&self) -> Vec<(usize, usize)> {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (start, end) in &self.kept {
            match runs.last_mut() {
                Some(last) if *start <= last.1 => last.1 = last.1.max(*end),
                _ => runs.push((*start, *end)),
            }
        }
        runs
    }

    fn ahead(&self, (start, end): (usize, usize)) -> (u32, u32) {
        ((start - self.received) as u32, (end - self.received) as u32)
    }
}

/// Downloads through a ring of that many frames; returns how many were sent in each round trip.
fn download(lab: &mut Lab, ring: usize, sack: bool) -> Vec<usize> {
    let mut guest = Guest::asking(lab, sack);
    guest.ring = ring;
    let mut flights = Vec::new();
    while guest.received < LENGTH {
        flights.push(guest.round_trip(lab));
        assert!(flights.len() < 10_000, "{} bytes received", guest.received);
    }
    flights
}

on_both_hosts! {
    /// The first flight is as long as the window, since nothing is known of a guest that has lost
    /// nothing yet. What it loses comes again without a timeout, and from then on what is on its way
    /// stays near what the ring keeps.
    fn what_is_sent_at_once_comes_down_to_what_the_ring_keeps(kind) {
        for sack in [true, false] {
            let mut lab = Lab::new(kind);
            let flights = download(&mut lab, RING, sack);
            assert_eq!(flights[0], WINDOW);
            let settled = &flights[60..];
            assert!(settled.iter().all(|flight| *flight <= 2 * RING), "{flights:?}");
            // Who halves his window at each loss gets three quarters of what there could be.
            let kept: usize = settled.iter().map(|flight| *flight.min(&RING)).sum();
            assert!(kept >= settled.len() * RING * 3 / 4, "{flights:?}");
            let counters = lab.counters();
            assert_eq!((counters.tcp_timeouts, counters.tcp_probes), (0, 0));
            assert!(counters.tcp_bytes_retransmitted < LENGTH as u64 / 8, "{counters:?}");
        }
    }

    /// SACK repairs what the first flight lost, 36 segments, in some round trips; without it each of
    /// them takes one.
    fn a_flight_mostly_lost_is_repaired_in_a_few_round_trips(kind) {
        for (sack, most) in [(true, 10), (false, 40)] {
            let mut lab = Lab::new(kind);
            let mut guest = Guest::asking(&mut lab, sack);
            let mut round_trips = 0;
            while guest.received < WINDOW * 1460 {
                guest.round_trip(&mut lab);
                round_trips += 1;
                assert!(round_trips <= most, "{} bytes received", guest.received);
            }
            assert_eq!(lab.counters().tcp_timeouts, 0);
        }
    }

    /// A guest that was away loses a whole flight, of which only the timer can tell. What is sent
    /// again comes faster and faster until some of it is lost, and that needs no second timeout.
    fn a_guest_that_was_away_costs_one_timeout(kind) {
        for sack in [true, false] {
            let mut lab = Lab::new(kind);
            let mut guest = Guest::asking(&mut lab, sack);
            guest.ring = 0;
            assert_eq!(guest.round_trip(&mut lab), WINDOW);
            guest.ring = RING;
            let mut flights = Vec::new();
            while guest.received < LENGTH {
                flights.push(guest.round_trip(&mut lab));
            }
            assert_eq!(lab.counters().tcp_timeouts, 1, "{flights:?}");
        }
    }

    /// While the guest's window is what holds the flow back, nothing is learnt of its ring: the window
    /// opens, and what is sent at once is still near what the ring keeps.
    fn a_window_that_was_small_is_answered_by_no_burst_when_it_opens(kind) {
        for sack in [true, false] {
            let mut lab = Lab::new(kind);
            let mut guest = Guest::asking(&mut lab, sack);
            for (window, round_trips) in [(u16::MAX, 60), (4 * 1460, 100), (u16::MAX, 0)] {
                guest.end.window = window;
                for _ in 0..round_trips {
                    guest.round_trip(&mut lab);
                }
            }
            while guest.received < LENGTH {
                let flight = guest.round_trip(&mut lab);
                assert!(flight <= 2 * RING, "{flight} segments");
            }
            assert_eq!(lab.counters().tcp_timeouts, 0);
        }
    }

    /// A guest that loses nothing is never held back: each flight is as long as its window.
    fn a_guest_that_loses_nothing_gets_all_that_its_window_takes(kind) {
        let mut lab = Lab::new(kind);
        let flights = download(&mut lab, usize::MAX, false);
        let (last, full) = flights.split_last().expect("flights");
        assert!(full.iter().all(|flight| *flight >= WINDOW), "{flights:?}");
        assert!(*last > 0);
        assert_eq!(lab.counters().tcp_bytes_retransmitted, 0);
    }
}
