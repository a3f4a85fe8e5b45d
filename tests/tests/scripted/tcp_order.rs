//! Text of the guest that comes before its turn: stored as far as the pool allows, told of by SACK,
//! and given up for what is in order.

use ipstack::pool::{BLOCK_DATA_LEN, BLOCK_LEN};
use slirpkit_tests::build::TcpBuilder;
use slirpkit_tests::numbers::Numbers;

use crate::prelude::*;

/// A connection of a guest that permits SACK; returns the SYN-ACK, too.
fn connect_with_sack(lab: &mut Lab, port: u16, remote: SocketAddrV4) -> (TcpGuest, Tcp) {
    let mut guest = TcpGuest::new(port, remote);
    let answer = guest.open_with_sack(lab);
    (guest, answer)
}

/// The segment with bytes `range` of the pattern, counted from the first byte of the stream.
fn piece(guest: &TcpGuest, start: usize, len: usize) -> TcpBuilder {
    let data = &pattern(start + len)[start..];
    guest.segment().seq(guest.snd_nxt.wrapping_add(start as u32)).data(data)
}

/// SACK blocks of a segment, as distances from the guest's first byte.
fn sack(guest: &TcpGuest, segment: &Tcp) -> Vec<(u32, u32)> {
    let word = |bytes: &[u8]| {
        u32::from_be_bytes(bytes.try_into().expect("four bytes")).wrapping_sub(guest.snd_nxt)
    };
    let blocks = segment.option(5).unwrap_or_default();
    blocks.chunks_exact(8).map(|block| (word(&block[..4]), word(&block[4..]))).collect()
}

on_both_hosts! {
    /// openvmm #3074: any reordering cost a timeout. Here it costs nothing: what fills the gap is
    /// acknowledged at once, with all that came before it.
    fn what_fills_a_gap_acknowledges_all_that_was_stored_behind_it(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let frames = guest.segments(&pattern(1460 * 5));
        let start = guest.snd_nxt.wrapping_sub(1460 * 5);
        for frame in [&frames[3], &frames[1], &frames[4], &frames[2]] {
            lab.input(frame);
            assert_eq!(lab.take_one_tcp().ack, start, "asked for at once");
        }
        lab.input(&frames[0]);
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), pattern(1460 * 5));
        assert_eq!(lab.counters().tcp_bytes_stored, 4 * 1460);
        assert_eq!(lab.counters().tcp_bytes_in, 5 * 1460);
        assert_eq!(lab.nat.stats().dropped_total(), 0);
    }

    /// The same in one batch: one ACK, and every byte there. Duplicates behind it would be taken for
    /// those of a loss of what follows (RFC 5681 3.2).
    fn a_shuffled_batch_is_put_in_order(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let mut frames = guest.segments(&pattern(1460 * 6));
        frames.swap(0, 4);
        frames.swap(2, 5);
        lab.input_batch(&frames);
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), pattern(1460 * 6));
    }

    /// RFC 2018 4: the block that the segment is in comes first, then the others by their age.
    fn an_ack_tells_of_the_newest_block_first(kind) {
        let mut lab = Lab::new(kind);
        let (guest, answer) = connect_with_sack(&mut lab, 4000, SERVER);
        assert_eq!(answer.option(4), Some(&[][..]));
        let steps: [(usize, &[(u32, u32)]); 5] = [
            (1000, &[(1000, 1100)]),
            (3000, &[(3000, 3100), (1000, 1100)]),
            (5000, &[(5000, 5100), (3000, 3100), (1000, 1100)]),
            (1100, &[(1000, 1200), (5000, 5100), (3000, 3100)]),
            (7000, &[(7000, 7100), (1000, 1200), (5000, 5100)]),
        ];
        for (start, blocks) in steps {
            lab.input(&piece(&guest, start, 100).frame());
            let ack = lab.take_one_tcp();
            assert_eq!((ack.ack, ack.window), (guest.snd_nxt, answer.window));
            assert_eq!(sack(&guest, &ack), blocks);
        }
        lab.input(&piece(&guest, 0, 1000).frame());
        let ack = lab.take_one_tcp();
        assert_eq!(ack.ack, guest.snd_nxt + 1200);
        assert_eq!(sack(&guest, &ack), [(7000, 7100), (5000, 5100), (3000, 3100)]);
    }

    /// RFC 2018 2: SACK goes to nobody who has not asked for it.
    fn a_guest_without_sack_is_sent_no_block(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        assert_eq!(guest.open(&mut lab, Some(1460)).option(4), None);
        lab.input(&piece(&guest, 100, 10).frame());
        let ack = lab.take_one_tcp();
        assert_eq!((ack.options.len(), lab.counters().tcp_bytes_stored), (0, 10));
    }

    /// A sender with SACK takes duplicate ACKs without blocks for nothing, so that without memory
    /// for such text it is better not to have it.
    fn without_a_pool_sack_is_not_negotiated_and_duplicate_acks_ask(kind) {
        for (pool, recoveries) in [(0, 16), (65_536, 0)] {
            let mut lab =
                Lab::with(kind, |setup| (setup.pool, setup.recoveries) = (pool, recoveries));
            let (guest, answer) = connect_with_sack(&mut lab, 4000, SERVER);
            assert_eq!(answer.option(4), None);
            for start in [1000, 2000, 3000] {
                lab.input(&piece(&guest, start, 1000).frame());
                let ack = lab.take_one_tcp();
                assert_eq!((ack.ack, ack.options.len()), (guest.snd_nxt, 0));
            }
            assert_eq!(lab.dropped(DropReason::TcpGap), 3);
            lab.input(&piece(&guest, 0, 1000).frame());
            assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt + 1000);
        }
    }

    /// Each byte is stored once, whatever comes again, and each fate has its counter.
    fn what_comes_twice_is_counted_and_not_stored_again(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        for (start, len) in [(1000, 500), (1100, 200), (1400, 300), (0, 100), (0, 100), (50, 100)] {
            lab.input(&piece(&guest, start, len).frame());
        }
        assert_eq!(lab.counters().tcp_bytes_stored, 700);
        assert_eq!(lab.dropped(DropReason::TcpDuplicate), 2);
        assert_eq!(lab.counters().tcp_segments_overlapped, 2);
        lab.input(&piece(&guest, 150, 1000).frame());
        assert_eq!(lab.take_tcp().last().expect("an ACK").ack, guest.snd_nxt + 1700);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), pattern(1700));
    }

    /// A FIN before its turn is kept, too.
    fn a_fin_behind_a_gap_ends_the_stream_once_the_gap_is_filled(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.input(&piece(&guest, 100, 100).flags(FIN | ACK).frame());
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        assert!(!lab.world().is_write_shut(stream));
        lab.input(&piece(&guest, 0, 100).frame());
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt + 201);
        assert_eq!(lab.world().sent(stream), pattern(200));
        assert!(lab.world().is_write_shut(stream));
    }

    /// A guest ends its stream where it had sent text before: a byte of that went missing, and the
    /// rest of it came behind the end.
    fn an_end_before_text_that_was_stored_gives_it_up(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.input(&piece(&guest, 10, 20).frame());
        lab.input(&piece(&guest, 0, 15).flags(ACK | FIN).frame());
        lab.settle();
        assert_eq!(lab.world().sent(stream), pattern(15));
        assert!(lab.world().is_write_shut(stream));
        assert_eq!(lab.take_tcp().last().map(|ack| ack.ack), Some(guest.snd_nxt + 16));
        assert_eq!(lab.nat.pool_blocks_in_use(), 0);
    }

    /// What is acknowledged stays; what is only told of goes when a short write needs the room.
    fn text_beyond_a_gap_gives_way_to_a_short_write(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 3 * BLOCK_LEN);
        let (guest, _) = connect_with_sack(&mut lab, 4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        for start in [5000, 6000, 9000] {
            lab.input(&piece(&guest, start, 1000).frame());
        }
        assert_eq!(lab.counters().tcp_bytes_stored, 3000);
        lab.take();
        lab.world().take_short(stream, &[0]);
        lab.input(&piece(&guest, 0, 2 * BLOCK_DATA_LEN).frame());
        let ack = lab.take_one_tcp();
        assert_eq!(ack.ack, guest.snd_nxt + 2 * BLOCK_DATA_LEN as u32);
        assert_eq!(sack(&guest, &ack), [(5000, 7000)], "the furthest went");
        assert_eq!(lab.counters().tcp_bytes_evicted, 1000);
        // The rest of the gap needs the last block, and then there is none left.
        lab.input(&piece(&guest, 2 * BLOCK_DATA_LEN, 5000 - 2 * BLOCK_DATA_LEN).frame());
        let ack = lab.take_tcp().pop().expect("an ACK");
        assert_eq!(ack.ack, guest.snd_nxt + 5000);
        assert_eq!(sack(&guest, &ack), []);
        assert_eq!(lab.counters().tcp_bytes_evicted, 3000);
        lab.world().drain(stream);
        lab.settle();
        assert!(lab.world().sent(stream) == pattern(5000), "the bytes sent");
        lab.input(&piece(&guest, 5000, 5000).frame());
        assert!(lab.world().sent(stream) == pattern(10_000), "the bytes sent");
        assert_eq!(lab.dropped(DropReason::TcpNoRoom), 0);
    }

    /// One flow with a gap may have all of the pool; once there are two, it is shared.
    fn the_pool_is_shared_between_flows_with_gaps(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 4 * BLOCK_LEN);
        let a = lab.connect(4000, SERVER);
        let b = lab.connect(4001, OTHER);
        for start in [10_000, 20_000, 30_000, 40_000] {
            lab.input(&piece(&a, start, 1000).frame());
        }
        assert_eq!(lab.counters().tcp_bytes_stored, 4000);
        for start in [10_000, 20_000, 30_000] {
            lab.input(&piece(&b, start, 1000).frame());
        }
        assert_eq!(lab.counters().tcp_bytes_stored, 6000, "two for each");
        assert_eq!(lab.counters().tcp_bytes_evicted, 2000);
        assert_eq!(lab.dropped(DropReason::TcpGap), 1);
        for (guest, remote) in [(&a, SERVER), (&b, OTHER)] {
            lab.take();
            lab.input(&piece(guest, 0, 10_000).frame());
            assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt + 11_000);
            let stream = lab.world().stream_to(remote);
            assert_eq!(lab.world().sent(stream), pattern(11_000));
        }
    }

    /// More flows with gaps than there are entries for: they give way in turn, and lose no byte.
    fn flows_with_gaps_give_way_in_turn(kind) {
        let mut lab = Lab::with(kind, |setup| setup.recoveries = 2);
        let guests: Vec<TcpGuest> =
            (0..3).map(|n| lab.connect(4000 + n, SERVER)).collect();
        for guest in &guests {
            lab.input(&piece(guest, 100, 100).frame());
        }
        assert_eq!(lab.counters().tcp_bytes_evicted, 100);
        lab.take();
        let mut reached = Vec::new();
        for guest in &guests {
            lab.input(&piece(guest, 0, 100).frame());
            reached.push(lab.take_one_tcp().ack - guest.snd_nxt);
        }
        assert_eq!(reached, [100, 200, 200]);
    }

    /// A flow that ends leaves nothing behind.
    fn a_reset_frees_what_was_stored(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = BLOCK_LEN);
        for port in 4000..4020 {
            let guest = lab.connect(port, SERVER);
            lab.input(&piece(&guest, 100, 100).frame());
            guest.send_reset(&mut lab);
            // It counts as one that sends for a while.
            lab.advance(seconds(1));
        }
        assert_eq!(lab.counters().tcp_bytes_stored, 20 * 100);
        assert_eq!(lab.counters().tcp_bytes_evicted, 0);
    }

    /// The host fails between what fills a gap and what was stored behind it: the guest is reset,
    /// and nothing stays behind.
    fn a_host_that_fails_behind_a_gap_resets_the_guest(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.input(&piece(&guest, 100, 100).frame());
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        lab.world().fails_behind_writes(stream, 1, HostError::Reset);
        lab.input(&piece(&guest, 0, 100).frame());
        lab.settle();
        assert!(lab.take_tcp().last().is_some_and(Tcp::is_reset));
        assert_eq!(lab.world().sent(stream), pattern(100));
        assert_eq!((lab.nat.flow_count(), lab.world().state(stream)), (0, State::Reset));
        assert_eq!(lab.dropped(DropReason::HostError), 1);
    }

    /// Random order, repetition, short writes and a pool that is too small: what was acknowledged
    /// arrives, and what arrives is right.
    fn acknowledged_bytes_survive_any_pressure_on_the_pool(kind) {
        for seed in 0..20 {
            press(&mut Lab::with(kind, |setup| {
                setup.pool = seed as usize % 7 * BLOCK_LEN;
                setup.recoveries = 2;
            }), Numbers(seed));
        }
    }
}

/// Three guests send 100,000 bytes each, in pieces from anywhere in their windows.
fn press(lab: &mut Lab, mut numbers: Numbers) {
    const LENGTH: usize = 100_000;
    let guests: Vec<TcpGuest> = (0..3).map(|n| lab.connect(4000 + n, SERVER)).collect();
    let streams = lab.world().open_streams();
    let mut acked = [0_usize; 3];
    for _ in 0..200_000 {
        let which = numbers.below(3);
        let guest = &guests[which];
        let ahead = if numbers.below(2) == 0 { 0 } else { numbers.below(12_000) };
        let start = (acked[which] + ahead).min(LENGTH - 1);
        let len = (1 + numbers.below(4000)).min(LENGTH - start);
        let room = [0, 100, 5000, 100_000][numbers.below(4)];
        lab.world().set_room(streams[which], room);
        lab.input(&piece(guest, start, len).frame());
        lab.settle();
        for segment in lab.take_tcp() {
            let place = guests.iter().position(|guest| guest.local == segment.dst);
            let place = place.expect("a guest");
            let reached = segment.ack.wrapping_sub(guests[place].snd_nxt) as usize;
            acked[place] = acked[place].max(reached);
        }
        if acked == [LENGTH; 3] {
            break;
        }
    }
    assert_eq!(acked, [LENGTH; 3]);
    let expected = pattern(LENGTH);
    for stream in streams {
        lab.world().set_room(stream, LENGTH);
        lab.settle();
        assert!(lab.world().sent(stream) == expected, "the bytes sent");
    }
}
