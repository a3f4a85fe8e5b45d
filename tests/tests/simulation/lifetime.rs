//! How long flows live at most, by the table of timers in `ipstack::tcp`: held against each of them
//! at every step of a simulation.

use core::net::SocketAddrV4;
use std::collections::HashMap;

use slirpkit_tests::build::{ACK, FIN, RST, SYN};
use slirpkit_tests::guest::{GUEST_IP, SERVER};
use slirpkit_tests::packet::{Tcp, is_after};

const SECOND: u64 = 1_000_000;

/// The first SYN and six retransmissions, each wait twice the one before, up to a minute.
const HANDSHAKE: u64 = (1 + 2 + 4 + 8 + 16 + 32 + 60) * SECOND;

/// Twelve retransmissions of data or FIN, or probes of a window that nobody answers, with no more
/// than a minute after each of them and before the first.
const TRIES: u64 = 13 * 60 * SECOND;

/// Two hours and nine keep-alives.
const KEEP_ALIVE: u64 = (2 * 3600 + 9 * 75) * SECOND;

/// FIN-WAIT-2 without a segment of the guest.
const FIN_WAIT_2: u64 = 600 * SECOND;

/// TIME-WAIT, from the last FIN of the guest on.
const TIME_WAIT: u64 = 10 * SECOND;

/// Each of fourteen waits at most ends with a tick of the timer wheel.
const TICKS: u64 = 14 * 1024;

/// The guest's end and the far one.
type Ends = (SocketAddrV4, SocketAddrV4);

/// What has been seen of all connections, and when.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    connections: HashMap<Ends, Life>,
    last_of_guest: u64,
}

/// One connection, by the segments on its way.
#[derive(Debug)]
struct Life {
    /// Numbers of the NAT: its SYN, what the guest has acknowledged, and the next.
    syn: u32,
    acknowledged: u32,
    next: u32,
    /// The number behind its FIN.
    end: Option<u32>,
    /// What the NAT has acknowledged, which its first SYN may not, and the number behind the guest's
    /// FIN.
    received: Option<u32>,
    guest_end: Option<u32>,
    /// When something new was sent, or the guest was heard that is still in step.
    since: u64,
}

/// What a segment acknowledges: the field is 0 where it does not count.
fn acknowledged_by(segment: &Tcp) -> Option<u32> {
    segment.has(ACK).then_some(segment.ack)
}

impl Lifetimes {
    /// A segment of the guest reaches the NAT.
    pub(crate) fn on_guest_segment(&mut self, now: u64, segment: &Tcp) {
        self.last_of_guest = now;
        if let Some(life) = self.connections.get_mut(&(segment.src, segment.dst))
            && life.is_in_step(segment)
        {
            (life.since, life.acknowledged) = (now, segment.ack);
            if segment.has(FIN) {
                life.guest_end = Some(segment.seq_end());
            }
        }
    }

    /// The NAT has made a segment.
    pub(crate) fn on_nat_segment(&mut self, now: u64, segment: &Tcp) {
        if segment.has(RST) {
            return;
        }
        let ends = (segment.dst, segment.src);
        let life = self.connections.entry(ends).or_insert_with(|| Life::new(now, segment));
        if segment.has(SYN) && life.syn != segment.seq {
            *life = Life::new(now, segment);
        }
        life.received = acknowledged_by(segment);
        if is_after(segment.seq_end(), life.next) {
            (life.next, life.since) = (segment.seq_end(), now);
            life.end = segment.has(FIN).then_some(life.next);
        }
    }

    /// There is no room on the link, and such time counts towards no timeout.
    pub(crate) fn put_off(&mut self, now: u64) {
        self.connections.values_mut().for_each(|life| life.since = now);
    }

    /// A connection is there, with a socket of the host.
    ///
    /// # Panics
    /// If it should not be any more.
    pub(crate) fn check(&self, now: u64, guest: SocketAddrV4, remote: SocketAddrV4) {
        let Some(life) = self.connections.get(&(guest, remote)) else { return };
        let Some(limit) = life.limit() else { return };
        assert!(now <= life.since + limit + TICKS, "outlives {} s: {life:?}", limit / SECOND);
    }

    /// Whether every TIME-WAIT must be over.
    pub(crate) fn is_time_wait_over(&self, now: u64) -> bool {
        now > self.last_of_guest + TIME_WAIT + TICKS
    }
}

impl Life {
    fn new(now: u64, syn: &Tcp) -> Self {
        Self {
            syn: syn.seq,
            acknowledged: syn.seq,
            next: syn.seq_end(),
            end: None,
            received: acknowledged_by(syn),
            guest_end: None,
            since: now,
        }
    }

    /// Whether the guest knows what has been said; keep-alives lag by one number.
    fn is_in_step(&self, segment: &Tcp) -> bool {
        segment.has(ACK)
            && !segment.has(RST)
            && !is_after(self.acknowledged, segment.ack)
            && !is_after(segment.ack, self.next)
            && self.received.is_none_or(|ack| !is_after(ack.wrapping_sub(1), segment.seq_end()))
    }

    /// How long it lives from `since` on, if that is not up to the host.
    fn limit(&self) -> Option<u64> {
        let guest_ended = self.guest_end.is_some() && self.guest_end == self.received;
        if self.acknowledged == self.syn {
            Some(HANDSHAKE)
        } else if self.acknowledged != self.next {
            Some(TRIES)
        } else if self.end.is_none() {
            Some(KEEP_ALIVE)
        } else {
            (!guest_ended).then_some(FIN_WAIT_2)
        }
    }
}

const GUEST: SocketAddrV4 = SocketAddrV4::new(GUEST_IP, 8000);

fn segment((src, dst): Ends, flags: u8, seq: u32, ack: u32) -> Tcp {
    Tcp { src, dst, seq, ack, flags, window: 0, options: vec![], data: vec![] }
}

/// What is known when a client's SYN is with the guest.
fn asked() -> Lifetimes {
    let mut lifetimes = Lifetimes::default();
    lifetimes.on_nat_segment(0, &segment((SERVER, GUEST), SYN, 500, 0));
    lifetimes
}

#[test]
#[should_panic(expected = "outlives 123 s")]
fn a_handshake_that_nobody_answers_is_noticed() {
    asked().check(HANDSHAKE + TICKS + 1, GUEST, SERVER);
}

/// The first SYN acknowledges nothing, so that a guest is in step whatever its number is.
#[test]
fn an_answer_of_any_number_ends_the_handshake() {
    for number in [0, 1, 1 << 31, u32::MAX] {
        let mut lifetimes = asked();
        lifetimes.on_guest_segment(0, &segment((GUEST, SERVER), SYN | ACK, number, 501));
        lifetimes.check(KEEP_ALIVE, GUEST, SERVER);
    }
}
