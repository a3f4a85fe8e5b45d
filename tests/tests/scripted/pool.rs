//! How flows share the pool: what was acknowledged stays in it, whatever comes, and what lies beyond
//! gaps has equal shares of the rest.

use ipstack::pool::{BLOCK_DATA_LEN, BLOCK_LEN};

use crate::prelude::*;

/// Blocks of the pool, two for each flow.
const BLOCKS: usize = 20;

/// Flows that want little.
const MODEST: u16 = 9;

fn lab_with_a_small_pool(kind: HostKind) -> Lab {
    Lab::with(kind, |setup| setup.pool = BLOCKS * BLOCK_LEN)
}

/// Sends `len` bytes of the stream from `start` on; returns how far the guest is acknowledged.
fn send_from(lab: &mut Lab, guest: &TcpGuest, start: usize, len: usize) -> usize {
    let seq = guest.snd_nxt.wrapping_add(start as u32);
    let data = &pattern(start + len)[start..];
    lab.input(&guest.segment().seq(seq).data(data).frame());
    let ack = lab.take_tcp().pop().expect("an ACK").ack;
    ack.wrapping_sub(guest.snd_nxt) as usize
}

on_both_hosts! {
    /// One flow fills the pool with what it sends beyond a gap, and goes on while nine others each
    /// have two blocks beyond a gap of their own: each of them keeps both.
    fn a_greedy_flow_leaves_nine_modest_ones_their_share(kind) {
        let mut lab = lab_with_a_small_pool(kind);
        let greedy = lab.connect(4000, SERVER);
        let modest: Vec<TcpGuest> =
            (1..=MODEST).map(|n| lab.connect(4000 + n, SERVER)).collect();
        let fill = |lab: &mut Lab| {
            for block in 1..=BLOCKS + 5 {
                send_from(lab, &greedy, block * BLOCK_DATA_LEN, BLOCK_DATA_LEN);
            }
        };
        fill(&mut lab);
        assert_eq!(lab.counters().tcp_bytes_stored, (BLOCKS * BLOCK_DATA_LEN) as u64);
        for guest in &modest {
            assert_eq!(send_from(&mut lab, guest, 1000, 2 * BLOCK_DATA_LEN), 0);
            fill(&mut lab);
        }
        for guest in &modest {
            let reached = send_from(&mut lab, guest, 0, 1000);
            assert_eq!(reached, 1000 + 2 * BLOCK_DATA_LEN, "nothing is sent again");
        }
        // The greedy one has its own share, which is what comes first of it.
        let reached = send_from(&mut lab, &greedy, 0, BLOCK_DATA_LEN);
        assert_eq!(reached, 3 * BLOCK_DATA_LEN);
        let mut sent: Vec<usize> = Vec::new();
        for stream in lab.world().open_streams() {
            let bytes = lab.world().sent(stream).to_vec();
            assert!(bytes == pattern(bytes.len()), "the bytes sent");
            sent.push(bytes.len());
        }
        assert_eq!(sent, [&[3 * BLOCK_DATA_LEN][..], &[1000 + 2 * BLOCK_DATA_LEN; MODEST as usize]].concat());
    }

    /// More flows than there are blocks: some of them have one, and no block is left unused.
    fn a_pool_of_fewer_blocks_than_flows_is_used_all_the_same(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 2 * BLOCK_LEN);
        let guests: Vec<TcpGuest> = (0..3).map(|n| lab.connect(4000 + n, SERVER)).collect();
        for guest in &guests {
            send_from(&mut lab, guest, 0, 100);
        }
        for guest in &guests {
            send_from(&mut lab, guest, 200, 100);
        }
        let reached: Vec<usize> =
            guests.iter().map(|guest| send_from(&mut lab, guest, 100, 100)).collect();
        assert_eq!(reached, [300, 300, 200]);
    }

    /// Bytes after a short write are acknowledged and stay; of ten flows with gaps none gets their
    /// blocks, and all ten share what is left.
    fn acknowledged_bytes_stay_whatever_lies_beyond_gaps(kind) {
        let mut lab = lab_with_a_small_pool(kind);
        let parked = lab.connect(3999, OTHER);
        let stream = lab.world().stream_to(OTHER);
        lab.world().take_short(stream, &[0]);
        assert_eq!(send_from(&mut lab, &parked, 0, 10 * BLOCK_DATA_LEN), 10 * BLOCK_DATA_LEN);
        let others: Vec<TcpGuest> = (0..10).map(|n| lab.connect(4000 + n, SERVER)).collect();
        for block in [2, 4, 6, 8] {
            for guest in &others {
                send_from(&mut lab, guest, block * BLOCK_DATA_LEN, BLOCK_DATA_LEN);
            }
        }
        for guest in &others {
            let reached = send_from(&mut lab, guest, 0, 2 * BLOCK_DATA_LEN);
            assert_eq!(reached, 3 * BLOCK_DATA_LEN, "one block each");
        }
        lab.world().drain(stream);
        lab.settle();
        assert!(lab.world().sent(stream) == pattern(10 * BLOCK_DATA_LEN), "the bytes sent");
    }
}
