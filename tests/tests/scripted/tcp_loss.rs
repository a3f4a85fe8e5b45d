//! Guests lose frames: retransmission, its timers and its restraint.

use std::collections::BTreeMap;

use slirpkit_tests::packet::is_after;

use crate::prelude::*;
use crate::tcp_ack::about_to_wrap;

/// A connection whose server has just sent `len` bytes, with the segments that came out.
fn sent_to_guest(kind: HostKind, len: usize) -> (Lab, TcpGuest, Vec<Tcp>) {
    let mut lab = Lab::new(kind);
    let guest = lab.connect(4000, SERVER);
    let stream = lab.world().stream_to(SERVER);
    lab.world().sends(stream, &pattern(len));
    lab.settle();
    let segments = lab.take_tcp();
    (lab, guest, segments)
}

on_both_hosts! {
    /// The host's socket is the retransmit buffer: a lost segment comes again from there.
    fn a_lost_segment_is_sent_again_by_timeout(kind) {
        let (mut lab, mut guest, segments) = sent_to_guest(kind, 500);
        let waited = lab.advance_to_output();
        assert!((millis(100)..=seconds(1)).contains(&waited), "a timeout of {waited:?}");
        assert_eq!(lab.take_tcp(), segments);
        assert_eq!(lab.counters().tcp_timeouts, 1);
        guest.absorb(&segments);
        guest.send_ack(&mut lab);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().unconsumed(stream), 0);
        lab.advance(seconds(60));
        lab.expect_nothing();
    }

    /// RFC 6298 5.5: each further timeout waits twice as long.
    fn the_timeout_backs_off(kind) {
        let (mut lab, _, _) = sent_to_guest(kind, 500);
        let mut waits = Vec::new();
        for _ in 0..6 {
            waits.push(lab.advance_to_output());
        }
        for pair in waits.windows(2) {
            // A timer may be late by a tick of about a millisecond.
            assert!(pair[1] + millis(3) >= pair[0] * 2, "{waits:?}");
        }
    }

    /// A guest that never answers is given up: told by a reset, and the host side ended.
    fn a_silent_guest_is_given_up(kind) {
        let (mut lab, _, _) = sent_to_guest(kind, 500);
        lab.advance(seconds(3600));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
        let repeats = lab.take_tcp().len();
        assert!((5..=30).contains(&repeats), "{repeats} repetitions");
    }

    /// Each seventh segment is lost while the numbers wrap, both ways.
    fn what_is_lost_where_sequence_numbers_wrap_comes_again(kind) {
        let (mut lab, mut guest) = about_to_wrap(kind);
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(100_000);
        lab.world().sends(stream, &data);
        lab.settle();
        let (mut received, mut count) = (Vec::new(), 0);
        while received.len() < data.len() {
            let mut segments = lab.take_tcp();
            if segments.is_empty() {
                lab.advance_to_output();
                segments = lab.take_tcp();
            }
            for segment in segments {
                count += 1;
                if count % 7 == 1 {
                    continue;
                }
                if segment.seq == guest.rcv_nxt {
                    received.extend(guest.absorb(&[segment]).0);
                }
                guest.send_ack(&mut lab);
            }
        }
        assert!(received == data, "the bytes received");
        for piece in data.chunks(14_600) {
            let mut frames = guest.segments(piece);
            let lost = frames.remove(0);
            lab.input_batch(&frames);
            lab.input(&lost);
            assert_eq!(lab.take_tcp().pop().map(|ack| ack.ack), Some(guest.snd_nxt));
        }
        assert!(lab.world().sent(stream) == data, "the bytes sent");
        assert!(guest.snd_nxt < 1 << 20 && guest.rcv_nxt < 1 << 20, "both have wrapped");
        assert!(lab.counters().tcp_bytes_retransmitted > 0);
        assert!(lab.counters().tcp_bytes_stored > 0);
    }

    /// The first duplicate ACK brings the missing segment at once: the link does not reorder, and
    /// Linux answers a burst behind a gap by a single one if its reader holds the socket.
    fn one_duplicate_ack_brings_the_segment_at_once(kind) {
        let (mut lab, mut guest, segments) = sent_to_guest(kind, 1460 * 8);
        guest.absorb(&segments[..2]);
        guest.send_ack(&mut lab);
        lab.settle();
        lab.take();
        guest.send_ack(&mut lab);
        lab.settle();
        assert_eq!(lab.take_tcp().first(), Some(&segments[2]));
        assert_eq!(lab.counters().tcp_fast_retransmits, 1);
        assert_eq!(lab.counters().tcp_timeouts, 0);
    }

    /// RFC 6582: with several segments lost, each partial ACK brings the next one at once.
    fn a_partial_ack_brings_the_next_hole_at_once(kind) {
        let (mut lab, mut guest, segments) = sent_to_guest(kind, 1460 * 8);
        for _ in 0..5 {
            guest.send_ack(&mut lab);
        }
        lab.settle();
        assert_eq!(lab.take_tcp().first(), Some(&segments[0]));
        guest.absorb(&segments[..1]);
        guest.send_ack(&mut lab);
        lab.settle();
        assert!(lab.take_tcp().contains(&segments[1]), "the partial ACK brought nothing");
        guest.absorb(&segments[1..]);
        guest.send_ack(&mut lab);
        let data = pattern(100_000);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &data);
        assert_eq!(guest.receive(&mut lab, data.len()), data);
        assert_eq!(lab.counters().tcp_timeouts, 0);
    }

    /// Window updates and segments with data are no duplicate ACKs (RFC 5681 2).
    fn window_updates_and_data_are_no_duplicate_acks(kind) {
        let (mut lab, mut guest, _) = sent_to_guest(kind, 1460 * 4);
        for step in 1..=4 {
            guest.window = 65_535 - step;
            guest.send_ack(&mut lab);
            guest.send(&mut lab, b"data");
        }
        lab.settle();
        assert_eq!(lab.counters().tcp_fast_retransmits, 0);
    }

    /// Keep-alives of the guest are no duplicate ACKs.
    fn keep_alives_are_no_duplicate_acks(kind) {
        let (mut lab, guest, _) = sent_to_guest(kind, 1460 * 4);
        for _ in 0..5 {
            lab.input(&guest.segment().seq(guest.snd_nxt.wrapping_sub(1)).frame());
        }
        lab.settle();
        assert_eq!(lab.counters().tcp_fast_retransmits, 0);
    }

    /// Duplicate ACKs with nothing in flight send nothing.
    fn duplicate_acks_of_an_idle_connection_send_nothing(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        for _ in 0..10 {
            guest.send_ack(&mut lab);
        }
        lab.settle();
        lab.expect_nothing();
    }

    /// A flow has no congestion limit until its first loss: the first flight fills the window.
    fn the_first_flight_fills_the_window(kind) {
        let (_, _, segments) = sent_to_guest(kind, 60_000);
        assert_eq!(bytes_of(&segments), pattern(60_000));
    }

    /// After a loss it has: what flies after a timeout is one segment, then it grows.
    fn after_a_timeout_the_flight_is_small(kind) {
        let (mut lab, mut guest, segments) = sent_to_guest(kind, 60_000);
        lab.advance_to_output();
        let again = lab.take_tcp();
        assert!(bytes_of(&again).len() <= 3 * 1460, "{} segments at once", again.len());
        assert_eq!(again.first(), Some(&segments[0]));
        let (mut all, _) = guest.absorb(&again);
        guest.send_ack(&mut lab);
        all.extend(guest.drain(&mut lab).0);
        assert_eq!(all, pattern(60_000));
    }

    /// RFC 6675: what a guest with SACK misses is peeked anew where it lies, all of it in one round
    /// trip, and nothing that the guest holds.
    fn holes_are_sent_again_in_one_round_trip(kind) {
        let mut lab = Lab::new(kind);
        let (mut guest, segments) = sent_with_sack(&mut lab, 4000, 14_600);
        let at = |segment: u32| 1460 * segment;
        lab.input(&guest.telling_of(&[(at(1), at(4))]).frame());
        assert_eq!(lab.take_one_tcp(), segments[0]);
        lab.input(&guest.telling_of(&[(at(5), at(7)), (at(1), at(4))]).frame());
        lab.expect_nothing();
        lab.input(&guest.telling_of(&[(at(5), at(10)), (at(1), at(4))]).frame());
        let again = lab.take_one_tcp();
        assert_eq!((again.seq, &again.data), (segments[4].seq, &segments[4].data));
        guest.rcv_nxt = guest.rcv_nxt.wrapping_add(14_600);
        guest.send_ack(&mut lab);
        lab.expect_nothing();
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().unconsumed(stream), 0);
        let counters = lab.counters();
        assert_eq!((counters.tcp_fast_retransmits, counters.tcp_timeouts), (1, 0));
        assert_eq!(counters.tcp_bytes_retransmitted, 2 * 1460);
    }

    /// A flow whose entry another one has got goes on without, as towards a guest without SACK.
    fn a_flow_that_loses_its_scoreboard_recovers_all_the_same(kind) {
        let mut lab = Lab::with(kind, |setup| setup.recoveries = 1);
        let (mut guest, segments) = sent_with_sack(&mut lab, 4000, 14_600);
        lab.input(&guest.telling_of(&[(1460, 4 * 1460)]).frame());
        assert_eq!(lab.take_one_tcp(), segments[0]);
        let (other, others) = sent_with_sack(&mut lab, 4001, 14_600);
        lab.input(&other.telling_of(&[(1460, 4 * 1460)]).frame());
        assert_eq!(lab.take_one_tcp(), others[0]);
        guest.rcv_nxt = guest.rcv_nxt.wrapping_add(4 * 1460);
        guest.send_ack(&mut lab);
        assert_eq!(lab.take_one_tcp().seq, guest.rcv_nxt, "the next hole, by the partial ACK");
        guest.rcv_nxt = segments[9].seq_end();
        guest.send_ack(&mut lab);
        lab.expect_nothing();
        assert_eq!(lab.counters().tcp_timeouts, 0);
    }

    /// A timeout leaves known what the guest holds, up to the end of the flight. If what is sent again
    /// gets lost, too, only that is repaired: the holes behind it come in their turn, not all at once.
    fn what_is_lost_since_a_timeout_brings_no_burst(kind) {
        const SEGMENT: u32 = 1460;
        let mut lab = Lab::new(kind);
        let (mut guest, flight) = sent_with_sack(&mut lab, 4000, 44 * 1460);
        assert_eq!(flight.len(), 44);
        let held: Vec<_> = (1..44).step_by(3).map(|n| (n * SEGMENT, (n + 1) * SEGMENT)).collect();
        for blocks in held.chunks(3) {
            lab.input(&guest.telling_of(blocks).frame());
        }
        lab.take();
        lab.advance_to_output();
        assert_eq!(lab.take_tcp(), flight[..1], "what was sent again is lost, and that was the timer");
        let mut sent = Vec::new();
        for acked in [2, 5, 8] {
            guest.rcv_nxt = flight[acked].seq;
            guest.send_ack(&mut lab);
            sent = lab.take_tcp();
        }
        assert_eq!(sent, [&flight[9..10], &flight[11..13]].concat(), "8 is on its way");
        let mut again = 0;
        for end in [11, 12, 14] {
            lab.input(&guest.telling_of(&[(SEGMENT, (end - 8) * SEGMENT)]).frame());
            again += lab.take_tcp().len();
        }
        assert!((1..=8).contains(&again), "{again} segments in a window of four");
    }

    /// SACK blocks of a guest that never permitted it are not looked at: the ACK is a duplicate, of
    /// which one brings the segment, whereas a block of one segment would prove nothing yet.
    fn blocks_that_were_not_agreed_upon_are_passed_over(kind) {
        let (mut lab, guest, segments) = sent_to_guest(kind, 14_600);
        lab.input(&guest.telling_of(&[(1460, 2920)]).frame());
        assert_eq!(lab.take_tcp(), segments[..1]);
        assert_eq!(lab.counters().tcp_fast_retransmits, 1);
    }

    /// Every byte arrives with one frame in six lost either way; the guest keeps what comes out of
    /// order.
    fn a_download_survives_heavy_loss(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(200_000);
        lab.world().sends(stream, &data);
        lab.world().ends(stream);
        let mut random = 1_u32;
        let mut lost = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random >> 16 < u32::from(u16::MAX) / 6
        };
        let start = guest.rcv_nxt;
        let (mut kept, mut received) = (BTreeMap::<u32, Tcp>::new(), Vec::<u8>::new());
        for _ in 0..2000 {
            lab.settle();
            for segment in lab.take_tcp() {
                if lost() {
                    continue;
                }
                kept.insert(segment.seq.wrapping_sub(start), segment);
                while let Some((_, next)) = kept.range(..=guest.rcv_nxt.wrapping_sub(start)).last()
                    && is_after(next.seq_end(), guest.rcv_nxt)
                {
                    let known = guest.rcv_nxt.wrapping_sub(next.seq) as usize;
                    received.extend(&next.data[known.min(next.data.len())..]);
                    guest.rcv_nxt = next.seq_end();
                }
                if !lost() {
                    guest.send_ack(&mut lab);
                }
            }
            if guest.rcv_nxt.wrapping_sub(start) as usize > data.len() {
                break;
            }
            lab.advance(millis(50));
        }
        assert!(received == data, "{} bytes received", received.len());
        assert_eq!(guest.rcv_nxt.wrapping_sub(start) as usize, data.len() + 1, "FIN");
        assert!(lab.counters().tcp_fast_retransmits > 0);
    }

    /// Where something was lost before, the tail of a flight is probed for (RFC 8985 7). If that goes
    /// unanswered, too, the timeout behind it makes a small beginning like any other.
    fn a_timeout_behind_an_unanswered_probe_is_one_like_any_other(kind) {
        let (mut lab, mut guest, segments) = sent_to_guest(kind, 14_600);
        guest.send_ack(&mut lab);
        assert_eq!(lab.take_tcp(), segments[..1]);
        guest.absorb(&segments);
        guest.send_ack(&mut lab);
        let stream = lab.world().stream_to(SERVER);
        for _ in 0..20 {
            lab.world().sends(stream, &pattern(29_200));
            guest.receive(&mut lab, 29_200);
        }
        lab.world().sends(stream, &pattern(29_200));
        lab.settle();
        let flight = lab.take_tcp();
        assert_eq!(flight.len(), 20);
        for _ in ["probe", "timeout"] {
            lab.advance_to_output();
            assert_eq!(lab.take_tcp(), flight[..1]);
        }
        assert_eq!((lab.counters().tcp_probes, lab.counters().tcp_timeouts), (1, 1));
        guest.absorb(&flight[..1]);
        guest.send_ack(&mut lab);
        assert_eq!(lab.take_tcp(), flight[1..3], "two segments");
    }

    /// Time in which the guest could not be reached counts towards no timeout, and a clock that
    /// jumps (a paused guest, a sleeping laptop) fires each timer at most once and kills no flow.
    fn a_jump_of_the_clock_kills_no_flow(kind) {
        let (mut lab, mut guest, segments) = sent_to_guest(kind, 500);
        lab.jump(seconds(24 * 3600));
        lab.settle();
        assert!(lab.take_tcp().len() <= 1, "each timer fires once");
        guest.absorb(&segments);
        guest.send_ack(&mut lab);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, b"good morning");
        assert_eq!(guest.receive(&mut lab, 12), b"good morning");
    }
}

/// A connection with SACK, and what the guest was sent first of `length` bytes, which it has not
/// acknowledged.
fn sent_with_sack(lab: &mut Lab, port: u16, length: usize) -> (TcpGuest, Vec<Tcp>) {
    let mut guest = TcpGuest::new(port, SERVER);
    guest.open_with_sack(lab);
    let stream = *lab.world().open_streams().last().expect("a stream");
    lab.world().sends(stream, &pattern(length));
    lab.settle();
    (guest, lab.take_tcp())
}
