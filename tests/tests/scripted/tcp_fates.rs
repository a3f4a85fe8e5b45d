//! Every TCP segment of the guest comes to exactly one end, which has a name and a counter. The lab
//! holds the sum in every test; here is one segment for each.

use slirp_nat::SegmentFate;

use crate::prelude::*;

/// What became of the one segment in `frame`.
fn fate(lab: &mut Lab, frame: &[u8]) -> SegmentFate {
    let before: Vec<u64> = counts(lab);
    lab.input(frame);
    let after = counts(lab);
    let changed: Vec<_> = SegmentFate::ALL
        .iter()
        .zip(before.iter().zip(&after))
        .filter(|(_, (before, after))| before != after)
        .collect();
    let [(fate, (before, after))] = changed[..] else { panic!("not one fate: {changed:?}") };
    assert_eq!(before + 1, *after);
    lab.settle();
    lab.take();
    *fate
}

fn counts(lab: &Lab) -> Vec<u64> {
    SegmentFate::ALL.iter().map(|fate| lab.nat.stats().segments(*fate)).collect()
}

on_both_hosts! {
    fn each_segment_has_one_fate(kind) {
        use SegmentFate::*;
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stranger = TcpGuest::new(4001, SERVER);
        let denied = TcpGuest::new(4002, SocketAddrV4::new(GATEWAY, 80));
        let opening = TcpGuest::new(4003, SERVER);
        let next = guest.snd_nxt;
        let at = |guest: &TcpGuest, seq: u32, data: &[u8]| guest.segment().seq(seq).data(data);
        let segments = [
            (Refused, denied.syn(None)),
            (NoFlow, stranger.segment().flags(ACK)),
            (NoFlow, stranger.segment().flags(RST)),
            (Flags, stranger.segment().flags(0)),
            (Flags, at(&guest, next, b"no ACK").flags(0)),
            (Taken, at(&guest, next, b"0123456789")),
            (Duplicate, at(&guest, next, b"01234")),
            (Overlapped, at(&guest, next + 5, b"56789abcde")),
            (Ahead, at(&guest, next + 20, b"klmno")),
            (Unacceptable, at(&guest, next.wrapping_add(1 << 30), b"far away")),
            (StrayReset, guest.segment().flags(RST).seq(next.wrapping_add(1 << 30))),
            (Challenged, guest.segment().flags(SYN).seq(next + 16)),
            (ChallengeWithheld, guest.segment().flags(SYN).seq(next + 16)),
            (Opened, opening.syn(None)),
            (Taken, opening.syn(None)),
            (BadHandshake, opening.segment().flags(ACK).seq(opening.snd_nxt.wrapping_add(1))),
        ];
        let (handshake, count) = (lab.counters().tcp_segments_in, segments.len() as u64);
        let mut seen = Vec::new();
        for (expected, segment) in segments {
            assert_eq!(fate(&mut lab, &segment.frame()), expected, "{segment:?}");
            seen.push(expected);
        }
        assert_eq!(lab.counters().tcp_segments_in, handshake + count);
        assert_eq!(lab.counters().tcp_challenge_acks, 1);
        let missing: Vec<_> = SegmentFate::ALL.iter().filter(|fate| !seen.contains(fate)).collect();
        assert!(missing.is_empty(), "no segment for {missing:?}");
    }

    /// In a batch, too, and though the first ends the flow.
    fn segments_of_a_batch_have_one_fate_each(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let before = lab.counters().tcp_segments_in;
        let reset = guest.segment().flags(RST).frame();
        let late = guest.segment().data(b"late").frame();
        let syn = TcpGuest::new(4001, SERVER).syn(None).frame();
        lab.input_batch(&[reset, late.clone(), syn, late]);
        let stats = lab.nat.stats();
        assert_eq!(stats.counters.tcp_segments_in, before + 4);
        assert_eq!(stats.segments(SegmentFate::NoFlow), 2);
        assert_eq!(stats.segments(SegmentFate::Opened), 2, "this one and the one before");
    }
}
