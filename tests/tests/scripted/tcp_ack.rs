//! Acknowledgments to the guest, and data for it: all in the call that gave cause.

use crate::prelude::*;

/// A connection whose sequence numbers wrap after 3,000 bytes, both ways. Those for the guest grow by
/// one each 4 microseconds (RFC 6528 3), so that it waits for the right ones.
pub(crate) fn about_to_wrap(kind: HostKind) -> (Lab, TcpGuest) {
    let mut lab = Lab::new(kind);
    let probe = TcpGuest::new(4000, SERVER);
    lab.input(&probe.syn(Some(1460)).frame());
    lab.settle();
    let ticks = (u32::MAX - 3000).wrapping_sub(lab.take_one_tcp().seq);
    lab.advance(Duration::from_micros(4 * u64::from(ticks)));
    lab.take();
    let mut guest = TcpGuest::new(4000, SERVER);
    guest.snd_nxt = u32::MAX - 3000;
    assert_eq!(guest.open(&mut lab, Some(1460)).seq, u32::MAX - 3000);
    (lab, guest)
}

on_both_hosts! {
    /// ACKs used to be delayed and throughput with them; here none ever waits for a timer.
    /// RFC 9293 3.10.7.4, seventh check.
    fn data_is_acknowledged_in_the_same_call(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        for len in [1, 1460, 536, 2, 1460] {
            guest.send(&mut lab, &pattern(len));
            let ack = lab.take_one_tcp();
            assert!(ack.is_pure_ack(), "{ack:?}");
            assert_eq!(ack.ack, guest.snd_nxt);
        }
    }

    /// A batch is one gathered write and one ACK.
    fn a_batch_is_one_write_and_one_ack(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        lab.log().take();
        guest.send(&mut lab, &pattern(1460 * 20));
        let ack = lab.take_one_tcp();
        assert_eq!(ack.ack, guest.snd_nxt);
        assert_eq!(lab.log().count("send "), 1);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), pattern(1460 * 20));
    }

    /// Batches that mix flows are sorted by flow, in the order of each flow.
    fn a_batch_of_two_flows_keeps_each_in_order(kind) {
        let mut lab = Lab::new(kind);
        let mut a = lab.connect(4000, SERVER);
        let mut b = lab.connect(4001, OTHER);
        lab.log().take();
        let (from_a, from_b) = (a.segments(&pattern(7300)), b.segments(&pattern(5840)));
        let mixed: Vec<_> =
            from_a.iter().zip(&from_b).flat_map(|(x, y)| [x, y]).chain(&from_a[4..]).collect();
        lab.input_batch(&mixed);
        let acks = lab.take_tcp();
        assert_eq!(acks.len(), 2, "{acks:?}");
        assert_eq!(lab.log().count("send "), 2);
        let (to_a, to_b) = (lab.world().stream_to(SERVER), lab.world().stream_to(OTHER));
        assert_eq!(lab.world().sent(to_a), pattern(7300));
        assert_eq!(lab.world().sent(to_b), pattern(5840));
    }

    /// void-box 6a5d8b5: output waited for a wake-up that nobody gave. Data ready on a host socket
    /// is with the guest when the call that reports it returns.
    fn data_from_the_host_is_sent_in_the_call_that_reports_it(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, b"hello");
        lab.deliver_event().expect("an event");
        let (bytes, _) = guest.absorb(&lab.take_tcp());
        assert_eq!(bytes, b"hello");
    }

    /// The host's answer to what a frame has just written rides in the same settling, and every
    /// later event is delivered, too: no edge is lost.
    fn no_edge_is_lost_over_many_rounds(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        for round in 0..50 {
            guest.send(&mut lab, b"ping");
            lab.world().sends(stream, &[round; 10]);
            let (bytes, _) = guest.drain(&mut lab);
            assert_eq!(bytes, [round; 10]);
        }
        assert_eq!(lab.world().sent(stream).len(), 200);
    }

    /// PSH goes on the last segment of what is available.
    fn push_is_set_on_the_last_segment_only(kind) {
        let mut lab = Lab::new(kind);
        lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(4000));
        lab.settle();
        let segments = lab.take_tcp();
        let pushed: Vec<bool> = segments.iter().map(|s| s.has(PSH)).collect();
        assert_eq!(pushed, [false, false, true]);
    }

    /// A gap is told of at once: each segment behind it is a duplicate ACK (RFC 5681 4.2), and the
    /// one that fills it is acknowledged at once.
    fn a_gap_is_acknowledged_at_once_and_so_is_what_fills_it(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let start = guest.snd_nxt;
        let frames = guest.segments(&pattern(1460 * 5));
        for frame in &frames[1..4] {
            lab.input(frame);
            let duplicate = lab.take_one_tcp();
            assert_eq!(duplicate.ack, start);
            assert!(duplicate.is_pure_ack());
        }
        lab.input(&frames[0]);
        assert!(lab.take_one_tcp().ack.wrapping_sub(start) >= 1460);
        lab.input_batch(&frames[1..]);
        assert_eq!(lab.take_tcp().last().expect("an ACK").ack, guest.snd_nxt);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), pattern(1460 * 5));
    }

    /// Old data is not taken twice, and what is new in an overlapping segment is taken.
    fn an_overlapping_segment_gives_its_new_bytes_only(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let start = guest.snd_nxt;
        guest.send(&mut lab, b"abcdef");
        guest.snd_nxt = start + 3;
        guest.send(&mut lab, b"defghi");
        guest.snd_nxt = start;
        guest.send(&mut lab, b"abc");
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"abcdefghi");
        assert_eq!(lab.take_tcp().last().expect("an ACK").ack, start + 9);
    }

    /// A keep-alive (RFC 9293 3.8.4), with its garbage byte or without, is answered.
    fn keep_alives_are_answered(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        guest.send(&mut lab, b"x");
        lab.take();
        for garbage in [&b""[..], b"\0"] {
            let seq = guest.snd_nxt.wrapping_sub(1);
            lab.input(&guest.segment().seq(seq).data(garbage).frame());
            let answer = lab.take_one_tcp();
            assert!(answer.is_pure_ack());
            assert_eq!((answer.seq, answer.ack), (guest.rcv_nxt, guest.snd_nxt));
        }
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"x");
    }

    /// libslirp #93, CVE-2026-9539: an urgent pointer beyond the data. It is ignored.
    /// RFC 9293 3.10.7.4, sixth check.
    fn an_urgent_pointer_beyond_the_data_is_harmless(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let mut segment = guest.segment().flags(ACK | URG | PSH).data(b"urgent");
        segment.urgent = 60_000;
        lab.input(&segment.frame());
        guest.snd_nxt += 6;
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"urgent");
    }

    /// An ACK of what was never sent is answered by an ACK and goes no further (RFC 5961 5).
    /// RFC 9293 3.10.7.4, fifth check.
    fn an_ack_of_the_future_is_answered_and_ignored(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let ahead = guest.rcv_nxt.wrapping_add(5000);
        lab.input(&guest.segment().ack(ahead).data(b"evil").frame());
        let answer = lab.take_one_tcp();
        assert_eq!((answer.seq, answer.ack), (guest.rcv_nxt, guest.snd_nxt));
        assert_eq!(lab.world().sent(stream), b"");
        assert_eq!(lab.world().state(stream), State::Open);
    }

    /// Sequence numbers wrap in mid-stream both ways (ipstack #56).
    fn sequence_numbers_wrap(kind) {
        let (mut lab, mut guest) = about_to_wrap(kind);
        let data = pattern(200_000);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &data);
        assert_eq!(guest.receive(&mut lab, data.len()), data);
        for piece in data.chunks(14_600) {
            guest.send(&mut lab, piece);
            assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        }
        assert!(lab.world().sent(stream) == data, "the bytes sent");
        assert!(guest.snd_nxt < 1 << 20 && guest.rcv_nxt < 1 << 20, "both have wrapped");
        assert_eq!((lab.counters().tcp_bytes_retransmitted, lab.world().unconsumed(stream)), (0, 0));
    }

    /// 86Box #1776: transfers went on only when other traffic occurred. A transfer of many
    /// windows needs nothing but the guest's ACKs: no timer, no other event.
    fn a_download_needs_no_timer(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(1_000_000);
        lab.world().sends(stream, &data);
        assert_eq!(guest.receive(&mut lab, data.len()), data);
        assert_eq!(lab.world().unconsumed(stream), 0);
        let counters = lab.counters();
        assert_eq!((counters.tcp_timeouts, counters.tcp_bytes_retransmitted), (0, 0));
        assert_eq!((counters.tcp_bytes_out, counters.tcp_acks_out), (1_000_000, 1), "one SYN-ACK");
        assert_eq!(counters.frames_out, counters.tcp_segments_out + counters.tcp_acks_out);
    }

    /// The same for an upload: every batch is acknowledged as it is handed over.
    fn an_upload_needs_no_timer(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let data = pattern(1_000_000);
        for piece in data.chunks(1460 * 20) {
            guest.send(&mut lab, piece);
            assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        }
        let stream = lab.world().stream_to(SERVER);
        assert!(lab.world().sent(stream) == data, "the bytes sent");
    }
}
