//! A host that takes less than it had promised, as pasta's did when measured at MTU 1500: one such
//! write, and an upload came to almost nothing, by timeouts of 0.2, 0.4 and 0.8 s.

use ipstack::pool::BLOCK_LEN;

use crate::prelude::*;

/// A guest that sends as its window allows. It sends again what three duplicate ACKs and partial
/// ACKs ask for (RFC 5681 3.2, RFC 6582) and has no timer: if it needs one, it sends no more.
struct Sender {
    guest: TcpGuest,
    data: Vec<u8>,
    shift: u8,
    /// Bytes acknowledged, sent, and allowed, from the first one on.
    una: usize,
    nxt: usize,
    edge: usize,
    duplicates: usize,
    /// What had been sent when the last loss was found.
    recover: usize,
    /// What is to be sent again next.
    asked: Option<usize>,
    /// Bytes sent twice.
    resent: usize,
}

impl Sender {
    fn open(lab: &mut Lab, scaled: bool, length: usize) -> Self {
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460));
        let syn = if scaled { syn.window_scale(7) } else { syn };
        let answer = guest.open_by(lab, &syn);
        let (shift, edge) = (answer.window_scale().unwrap_or(0), usize::from(answer.window));
        let data = pattern(length);
        let (una, nxt, duplicates, recover, asked, resent) = (0, 0, 0, 0, None, 0);
        Self { guest, data, shift, una, nxt, edge, duplicates, recover, asked, resent }
    }

    fn is_done(&self) -> bool {
        self.una == self.data.len()
    }

    fn segment(&self, from: usize, to: usize) -> Vec<u8> {
        let seq = self.guest.snd_nxt.wrapping_add(from as u32);
        self.guest.segment().seq(seq).data(&self.data[from..to]).frame()
    }

    /// Sends what may be sent, and takes the answers; returns how many segments that were.
    fn round_trip(&mut self, lab: &mut Lab) -> usize {
        let mut frames = Vec::new();
        if let Some(from) = self.asked.take() {
            let to = self.nxt.min(from + self.guest.mss);
            self.resent += to - from;
            frames.push(self.segment(from, to));
        }
        let limit = self.edge.min(self.data.len());
        while self.nxt < limit {
            let to = limit.min(self.nxt + self.guest.mss);
            frames.push(self.segment(self.nxt, to));
            self.nxt = to;
        }
        lab.input_batch(&frames);
        lab.settle();
        self.take_acks(lab);
        frames.len()
    }

    fn take_acks(&mut self, lab: &mut Lab) {
        for ack in lab.take_tcp() {
            assert!(ack.is_pure_ack(), "{ack:?}");
            let una = ack.ack.wrapping_sub(self.guest.snd_nxt) as usize;
            let edge = una + (usize::from(ack.window) << self.shift);
            if una > self.una {
                self.duplicates = 0;
                self.asked = (una < self.recover).then_some(una);
            } else if edge == self.edge && self.una < self.nxt {
                self.duplicates += 1;
                if self.duplicates == 3 && self.una >= self.recover {
                    self.recover = self.nxt;
                    self.asked = Some(self.una);
                }
            }
            assert!(edge >= self.edge, "the right edge moved back");
            (self.una, self.edge) = (una, edge);
        }
    }
}

on_both_hosts! {
    /// With a pool as large as the window a host that takes 1, 100, 1459 bytes, then nothing for a
    /// second, then all, costs no loss, no byte sent twice and no wait.
    fn a_pool_of_one_window_hides_short_writes(kind) {
        for scaled in [false, true] {
            let mut lab = Lab::with(kind, |setup| setup.pool = 160 * BLOCK_LEN);
            let mut sender = Sender::open(&mut lab, scaled, 1_000_000);
            let stream = lab.world().stream_to(SERVER);
            lab.world().take_short(stream, &[1, 100, 1459]);
            for taken in [1, 101, 1560] {
                sender.round_trip(&mut lab);
                assert_eq!((sender.una, lab.world().sent(stream).len()), (sender.nxt, taken));
                if taken < 1560 {
                    lab.world().drain(stream);
                }
            }
            lab.world().set_room(stream, 0);
            while sender.round_trip(&mut lab) > 0 {
                assert_eq!(sender.una, sender.nxt, "acknowledged at once");
            }
            assert_eq!(sender.nxt, sender.edge, "the window is what stops it");
            lab.advance(seconds(1));
            lab.expect_nothing();
            assert_eq!(lab.world().sent(stream).len(), 1560);

            lab.world().set_room(stream, 1_000_000);
            lab.deliver_event().expect("the host is writable");
            assert_eq!(lab.world().sent(stream).len(), sender.nxt);
            sender.take_acks(&mut lab);
            while sender.round_trip(&mut lab) > 0 {}
            assert!(sender.is_done(), "{} bytes acknowledged", sender.una);
            assert!(lab.world().sent(stream) == sender.data, "the bytes sent");
            let counters = lab.counters();
            assert_eq!((sender.resent, counters.tcp_duplicate_acks_out), (0, 0));
            assert_eq!(lab.nat.stats().dropped_total(), 0);
            assert!(counters.bytes_parked > 0);
        }
    }

    /// Without a pool three duplicate ACKs bring what was not taken within a round trip, and the
    /// rest of the flight follows segment by segment, without a timer.
    fn without_a_pool_three_duplicates_bring_the_rest_in_a_round_trip(kind) {
        for taken in [1, 100, 1459] {
            let mut lab = Lab::with(kind, |setup| setup.pool = 0);
            let mut sender = Sender::open(&mut lab, false, 14_600);
            let stream = lab.world().stream_to(SERVER);
            lab.world().take_short(stream, &[taken]);
            assert_eq!(sender.round_trip(&mut lab), 10);
            assert_eq!((sender.una, sender.duplicates), (taken, 3));
            assert_eq!(lab.counters().tcp_duplicate_acks_out, 3);
            assert_eq!(sender.round_trip(&mut lab), 1);
            assert_eq!(sender.una, taken + 1460, "one round trip later");
            let mut round_trips = 0;
            while sender.round_trip(&mut lab) > 0 {
                round_trips += 1;
            }
            assert!(sender.is_done(), "{} bytes acknowledged", sender.una);
            assert!(lab.world().sent(stream) == sender.data, "the bytes sent");
            assert_eq!(sender.resent, 14_600 - taken, "what was refused, once");
            assert_eq!(round_trips, (14_600 - taken).div_ceil(1460) - 1);
            assert_eq!(lab.dropped(DropReason::TcpNoRoom), 1);
        }
    }

    /// The same host without a pool: each of its short writes costs a round trip or some, and only
    /// the second in which it takes nothing, though it had promised to, needs the guest's timer.
    fn short_writes_without_a_pool_lose_no_byte(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 0);
        let mut sender = Sender::open(&mut lab, false, 1_000_000);
        let stream = lab.world().stream_to(SERVER);
        for taken in [1, 100, 1459] {
            lab.world().take_short(stream, &[taken]);
            let before = sender.una;
            sender.round_trip(&mut lab);
            assert_eq!(sender.una, before + taken);
            lab.world().drain(stream);
            while sender.una < sender.recover {
                assert!(sender.round_trip(&mut lab) > 0, "it waits at {}", sender.una);
            }
        }
        lab.world().set_room(stream, 0);
        while sender.round_trip(&mut lab) > 0 {}
        assert!(sender.una < sender.nxt, "what was promised is not taken");
        lab.advance(seconds(1));
        lab.world().set_room(stream, 1_000_000);
        lab.settle();
        sender.take_acks(&mut lab);
        // The guest's timer.
        (sender.asked, sender.recover) = (Some(sender.una), sender.nxt);
        while sender.round_trip(&mut lab) > 0 {}
        assert!(sender.is_done(), "{} bytes acknowledged", sender.una);
        assert!(lab.world().sent(stream) == sender.data, "the bytes sent");
    }
}
