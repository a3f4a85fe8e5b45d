//! Windows both ways: what is promised to the guest, and what the guest has promised.

use slirp_nat::Protocol;

use crate::prelude::*;

const PUBLIC: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 2222);

/// How many bytes a segment's window lets the guest have in flight, without scaling.
fn edge(segment: &Tcp) -> u32 {
    segment.ack.wrapping_add(u32::from(segment.window))
}

on_both_hosts! {
    /// pasta advertised more than its send buffer took and lost the rest of each
    /// window. The window never exceeds what the host promises.
    fn the_window_is_no_more_than_the_host_takes(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 0);
        lab.world().room = Some(10_000);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn_ack = guest.open(&mut lab, Some(1460));
        assert!((1..=10_000).contains(&syn_ack.window), "window {}", syn_ack.window);
        guest.send(&mut lab, &pattern(1460));
        let ack = lab.take_one_tcp();
        assert!(ack.window <= 10_000 - 1460, "window {}", ack.window);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream).len(), 1460);
    }

    /// The right edge of the window never moves left (RFC 9293 3.8.6), even if the host takes
    /// less than before.
    fn the_window_never_shrinks(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        guest.send(&mut lab, &pattern(1460));
        let mut last = edge(&lab.take_one_tcp());
        for room in [20_000, 3000, 50_000, 100] {
            lab.world().set_room(stream, room);
            guest.send(&mut lab, &pattern(100));
            lab.settle();
            for ack in lab.take_tcp() {
                assert!(edge(&ack).wrapping_sub(last) < 1 << 31, "the edge moved left");
                last = edge(&ack);
            }
        }
    }

    /// passt bug 74: no update after a zero window. When room returns the guest is told in the
    /// very call, and room is what the NAT waits for.
    fn a_closed_window_is_reopened_without_being_asked(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        fill(&mut lab, &mut guest, stream);
        assert!(lab.world().is_write_armed(stream), "the NAT waits for room");
        lab.world().set_room(stream, 60_000);
        lab.deliver_event().expect("an event");
        let update = lab.take_tcp().pop().expect("a window update");
        assert!(update.is_pure_ack());
        assert!(update.window >= 1460, "window {}", update.window);
    }

    /// openvmm #3780: after a window was reopened without notice a download crawled. The same for
    /// an upload that goes through many full and drained buffers: every byte once, no timer.
    fn an_upload_through_a_small_host_buffer_arrives_whole(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().set_room(stream, 9000);
        guest.send(&mut lab, &pattern(1));
        let data = pattern(200_000);
        upload_with_refills(&mut lab, &mut guest, stream, &data, 9000);
        assert!(lab.world().sent(stream)[1..] == data[..], "the bytes sent");
    }

    /// The same without a pool, where the promise alone keeps what is sent from being lost, with
    /// the window scaled and not.
    fn a_slow_server_never_costs_the_guest_a_byte(kind) {
        for scaled in [false, true] {
            let mut lab = Lab::with(kind, |setup| setup.pool = 0);
            lab.world().room = Some(9000);
            let mut guest = TcpGuest::new(4000, SERVER);
            let syn = guest.syn(Some(1460));
            let syn = if scaled { syn.window_scale(7) } else { syn };
            let syn_ack = guest.open_by(&mut lab, &syn);
            let shift = syn_ack.window_scale().unwrap_or(0);
            let stream = lab.world().stream_to(SERVER);
            let data = pattern(200_000);
            let start = guest.snd_nxt;
            let mut limit = edge(&syn_ack);
            while lab.world().sent(stream).len() < data.len() {
                let done = guest.snd_nxt.wrapping_sub(start) as usize;
                let open = (limit.wrapping_sub(guest.snd_nxt) as usize).min(data.len() - done);
                assert!(open > 0, "closed at {done}");
                guest.send(&mut lab, &data[done..done + open]);
                lab.world().set_room(stream, 9000);
                lab.settle();
                let last = lab.take_tcp().pop().expect("an ACK");
                assert_eq!(last.ack, guest.snd_nxt, "all that was in the window is taken");
                limit = last.ack.wrapping_add(u32::from(last.window) << shift);
            }
            assert_eq!(lab.dropped(DropReason::TcpNoRoom), 0);
            assert!(lab.world().sent(stream) == data, "the bytes sent");
        }
    }

    /// RFC 7323 2.3: the scale goes up to 14, and is no coarser than the largest window asks for:
    /// what the configuration and the guest's queue allow.
    fn the_scale_is_what_the_largest_window_asks_for(kind) {
        for (max_window, queue, scale) in [
            (65_535, usize::MAX, 0),
            (65_536, usize::MAX, 1),
            (65_535 << 7, usize::MAX, 7),
            (65_535 << 7, 100, 2),
            (65_535 << 7, 8, 0),
            (1 << 30, usize::MAX, 14),
            (u32::MAX, usize::MAX, 14),
        ] {
            let mut lab = Lab::with(kind, |setup| setup.config.max_window = max_window);
            lab.link.guest_queue_frames = queue;
            let mut guest = TcpGuest::new(4000, SERVER);
            let syn = guest.syn(Some(1460)).window_scale(7);
            let syn_ack = guest.open_by(&mut lab, &syn);
            assert_eq!(syn_ack.window_scale(), Some(scale), "{max_window} {queue}");
        }
    }

    fn no_window_is_larger_than_configured(kind) {
        let mut lab = Lab::with(kind, |setup| setup.config.max_window = 100_000);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460)).window_scale(7);
        guest.open_by(&mut lab, &syn);
        guest.send(&mut lab, &pattern(40_000));
        let windows = lab.take_tcp().iter().map(|ack| u32::from(ack.window) << 1).max();
        assert_eq!(windows, Some(100_000));
    }

    /// A scaled window cannot say every byte, and RFC 7323 2.4 would have its edge move back by some.
    /// Small segments to a server that has stopped reading close it in good order nevertheless.
    fn the_edge_of_a_scaled_window_stays_where_it_is(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 0);
        lab.world().room = Some(70 * 128);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460)).window_scale(7);
        let syn_ack = guest.open_by(&mut lab, &syn);
        let shift = syn_ack.window_scale().expect("scaling");
        let limit = edge(&syn_ack);
        while guest.snd_nxt != limit {
            let length = limit.wrapping_sub(guest.snd_nxt).min(100);
            guest.send(&mut lab, &pattern(length as usize));
            let ack = lab.take_one_tcp();
            assert_eq!(ack.ack.wrapping_add(u32::from(ack.window) << shift), limit);
            assert!(guest.snd_nxt.wrapping_sub(ack.ack) < 1 << shift, "not acknowledged: {ack:?}");
        }
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream).len(), usize::from(syn_ack.window));
        assert_eq!(lab.dropped(DropReason::TcpNoRoom), 0);
    }

    /// What could not be acknowledged without moving the edge is acknowledged when there is room.
    fn room_is_told_of_with_what_was_not_acknowledged_for_want_of_it(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 0);
        lab.world().room = Some(1280);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460)).window_scale(7);
        guest.open_by(&mut lab, &syn);
        let start = guest.snd_nxt;
        guest.send(&mut lab, &pattern(1001));
        assert_eq!(lab.take_one_tcp().ack, start + 7 * 128);
        let stream = lab.world().stream_to(SERVER);
        assert!(lab.world().is_write_armed(stream), "the NAT waits for room");
        lab.world().set_room(stream, 400);
        lab.settle();
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
    }

    /// passt bug 183: a send buffer smaller than one segment rounded the window down to 0 for
    /// ever. A window below the MSS still opens when nothing is queued.
    fn a_window_below_the_mss_still_opens(kind) {
        // With a pool the guest may send one segment at its risk.
        for pool in [0, 1 << 20] {
            let mut lab = Lab::with(kind, |setup| {
                setup.config.mtu = 65_520;
                setup.pool = pool;
            });
            let mut guest = TcpGuest::new(4000, SERVER);
            guest.mss = 65_480;
            guest.open(&mut lab, Some(65_480));
            let stream = lab.world().stream_to(SERVER);
            lab.world().set_room(stream, 46_080);
            guest.send(&mut lab, &pattern(100));
            lab.world().set_room(stream, 46_080);
            lab.settle();
            let ack = lab.take_tcp().pop().expect("an ACK");
            assert!(ack.window > 20_000, "window {}", ack.window);
            let data = pattern(300_000);
            upload_with_refills(&mut lab, &mut guest, stream, &data, 46_080);
            assert!(lab.world().sent(stream)[100..] == data[..], "the bytes sent");
        }
    }

    /// A server may read between the moment at which the NAT has found no room and the one at which
    /// it asks to be told. No event comes then, and the guest has its window nevertheless.
    fn room_that_comes_before_it_is_asked_for_is_found(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        guest.send(&mut lab, &pattern(1460));
        let left = usize::from(lab.take_one_tcp().window);
        lab.world().set_room(stream, left);
        lab.world().race_for_room(stream, 60_000);
        guest.send(&mut lab, &pattern(left));
        let ack = lab.take_tcp().pop().expect("an ACK");
        assert_eq!(ack.ack, guest.snd_nxt);
        assert!(ack.window >= 1460, "window {}", ack.window);
    }

    /// A host may have no room yet when a connection begins, or less than the window can tell. It is
    /// asked to say when it has some, since a guest with nothing but a closed window sends nothing
    /// that would be the occasion.
    fn room_that_comes_after_the_handshake_is_told_of(kind) {
        for room in [0, 100] {
            let mut lab = Lab::new(kind);
            lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
            lab.world().room = Some(room);
            let mut guest = TcpGuest::new(4000, SERVER);
            let syn = guest.syn(Some(1460)).window_scale(7);
            assert_eq!(guest.open_by(&mut lab, &syn).window, 0);
            let client = lab.world().dial(PUBLIC, OTHER);
            lab.world().set_room(client, room);
            lab.settle();
            TcpGuest::accept(&mut lab, 22);
            lab.take();
            for stream in [lab.world().stream_to(SERVER), client] {
                lab.world().set_room(stream, 100_000);
                lab.deliver_event().expect("an event");
                let update = lab.take_one_tcp();
                assert!(update.is_pure_ack() && update.window > 0, "{update:?}");
            }
        }
    }

    /// While the link is away it queues nothing, and no room of the host can be promised. Once it is
    /// back no event says so, but the guest asks.
    fn a_window_closed_while_the_link_was_away_opens_when_the_guest_asks(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        fill(&mut lab, &mut guest, stream);
        lab.link.guest_queue_frames = 0;
        lab.world().set_room(stream, 100_000);
        lab.settle();
        lab.expect_nothing();
        lab.link.guest_queue_frames = usize::MAX;
        lab.input(&guest.segment().data(b"?").frame());
        let answer = lab.take_one_tcp();
        assert!(answer.ack == guest.snd_nxt && answer.window >= 1460, "{answer:?}");
    }

    /// A kernel says that it has more room only after it was two thirds full. As long as the pool
    /// can hold what the host does not take, the guest may send one segment: for less than that it
    /// would wait until its persist timer asks.
    fn one_segment_may_come_at_the_risk_of_the_pool(kind) {
        for (pool, promised) in [(1 << 20, 65_480), (0, 29_900)] {
            let mut lab = Lab::with(kind, |setup| {
                setup.config.mtu = 65_520;
                setup.pool = pool;
            });
            lab.world().room = Some(30_000);
            let mut guest = TcpGuest::new(4000, SERVER);
            guest.mss = 65_480;
            guest.open(&mut lab, Some(65_480));
            let stream = lab.world().stream_to(SERVER);
            guest.send(&mut lab, &pattern(100));
            lab.settle();
            let ack = lab.take_tcp().pop().expect("an ACK");
            assert_eq!(ack.window, promised);
            let data = pattern(usize::from(promised));
            guest.send(&mut lab, &data);
            lab.settle();
            let acks = lab.take_tcp();
            assert!(acks.iter().all(|ack| ack.ack == guest.snd_nxt), "all of it is taken");
            assert_eq!(lab.counters().bytes_parked, u64::from(promised) - 29_900);
            lab.world().set_room(stream, 65_480);
            lab.settle();
            assert!(lab.world().sent(stream)[100..] == data[..], "the bytes sent");
        }
    }

    /// passt a947839, and pasta as measured at MTU 1500: the host takes less than it had
    /// promised. The rest is parked and acknowledged, nothing is asked for again.
    fn the_rest_of_a_short_write_is_parked(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().take_short(stream, &[1000, 0]);
        let data = pattern(1460 * 8);
        guest.send(&mut lab, &data);
        let ack = lab.take_tcp().pop().expect("an ACK");
        assert_eq!(ack.ack, guest.snd_nxt, "what is parked is acknowledged");
        assert_eq!(lab.world().sent(stream), &data[..1000]);
        assert_eq!(lab.counters().short_writes, 1);
        lab.world().drain(stream);
        lab.settle();
        assert_eq!(lab.world().sent(stream), &data[..1000], "the second write took nothing");
        lab.world().drain(stream);
        lab.settle();
        assert_eq!(lab.world().sent(stream), data);
    }

    /// A host may say by an error that it takes nothing now. It is not the end of its connection.
    fn a_write_that_would_block_is_a_short_one(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().block_write(stream);
        guest.send(&mut lab, b"abc");
        lab.world().block_write(stream);
        for sent in [&b""[..], b"abc"] {
            lab.world().drain(stream);
            lab.settle();
            assert_eq!(lab.world().sent(stream), sent);
        }
        assert_eq!((lab.counters().short_writes, lab.dropped(DropReason::HostError)), (1, 0));
    }

    /// What is parked goes out before what comes later.
    fn parked_bytes_go_first(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().take_short(stream, &[10]);
        guest.send(&mut lab, b"abcdefghijklmnop");
        guest.send(&mut lab, b"qrstuvwxyz");
        lab.world().drain(stream);
        lab.settle();
        assert_eq!(lab.world().sent(stream), b"abcdefghijklmnopqrstuvwxyz");
    }

    /// Without a pool the rest is not acknowledged, and three duplicate ACKs ask for it at once,
    /// so that no guest waits for its timer (pasta, as measured: 0.2, 0.4, 0.8 s).
    fn without_a_pool_the_rest_is_asked_for_at_once(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 0);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let start = guest.snd_nxt;
        lab.world().take_short(stream, &[1000]);
        let frames = guest.segments(&pattern(1460 * 8));
        lab.input_batch(&frames);
        lab.world().drain(stream);
        lab.settle();
        let acks = lab.take_tcp();
        let same = acks.iter().filter(|ack| ack.ack == start + 1000).count();
        assert!(same >= 4, "one ACK and three duplicates: {acks:?}");
        lab.input_batch(&frames);
        assert_eq!(lab.world().sent(stream), pattern(1460 * 8));
    }

    /// podman #24219: both sides are re-armed on partial progress.
    fn single_byte_progress_ends_in_the_whole_transfer(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().take_short(stream, &[1; 40]);
        guest.send(&mut lab, &pattern(60));
        for _ in 0..40 {
            lab.world().drain(stream);
            lab.settle();
        }
        assert_eq!(lab.world().sent(stream), pattern(60));
    }

    /// The guest's window is respected, and moved by its ACKs.
    fn no_more_than_the_window_flies(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.window = 4000;
        guest.open(&mut lab, Some(1460));
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(20_000);
        lab.world().sends(stream, &data);
        lab.settle();
        let segments = lab.take_tcp();
        let (first, _) = guest.absorb(&segments);
        assert!(first.len() <= 4000 && first.len() > 4000 - 1460, "{} bytes", first.len());
        guest.send_ack(&mut lab);
        let (rest, _) = guest.drain(&mut lab);
        assert_eq!([first, rest].concat(), data);
    }

    /// podman #23686: the host socket was read round and round while the guest's window was full.
    /// A closed window costs no visit and no peek.
    fn a_closed_guest_window_costs_nothing(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.window = 1460;
        guest.open(&mut lab, Some(1460));
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(10_000));
        lab.settle();
        guest.absorb(&lab.take_tcp());
        guest.window = 0;
        guest.send_ack(&mut lab);
        lab.settle();
        let (visits, peeks) = (lab.counters().flow_visits, lab.log().count("peek"));
        lab.settle();
        assert_eq!(lab.counters().flow_visits, visits);
        assert_eq!(lab.log().count("peek"), peeks);
        lab.expect_nothing();
    }

    /// RFC 9293 3.8.6.1: a zero window is probed, with backoff, for as long as the guest answers.
    fn a_zero_window_is_probed_with_backoff(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.window = 0;
        guest.open(&mut lab, Some(1460));
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(3000);
        lab.world().sends(stream, &data);
        lab.settle();
        lab.expect_nothing();
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(lab.advance_to_output());
            let probes = lab.take_tcp();
            assert!(probes.iter().all(|p| p.data.len() <= 1), "{probes:?}");
            guest.send_ack(&mut lab);
        }
        assert!(waits[7] >= waits[0] * 4, "no backoff: {waits:?}");
        assert!(waits[0] <= seconds(1), "the first probe is late: {waits:?}");
        assert!(lab.counters().tcp_probes >= 8);
        assert_eq!(lab.world().state(stream), State::Open);
        guest.window = 65_535;
        guest.send_ack(&mut lab);
        assert_eq!(guest.receive(&mut lab, data.len()), data);
    }

    /// libslirp: the window update itself was lost; the probe is what finds the window open.
    fn a_lost_window_update_is_found_by_the_probe(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.window = 0;
        guest.open(&mut lab, Some(1460));
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(3000);
        lab.world().sends(stream, &data);
        lab.advance_to_output();
        guest.window = 65_535;
        let (first, _) = guest.absorb(&lab.take_tcp());
        guest.send_ack(&mut lab);
        let (rest, _) = guest.drain(&mut lab);
        assert_eq!([first, rest].concat(), data);
    }

    /// libslirp: a peer that shrinks its window to 0 with equal numbers. The newer window counts.
    fn a_window_closed_by_an_ack_of_equal_numbers_counts(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        guest.window = 0;
        guest.send_ack(&mut lab);
        lab.expect_nothing();
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, b"must wait");
        lab.settle();
        lab.expect_nothing();
    }

    /// slirp4netns #128: a window that never reaches one segment stalled for 5 s each time.
    /// Half of the largest window seen is enough (RFC 9293 3.8.6.2.1).
    fn a_window_smaller_than_a_segment_does_not_stall(kind) {
        let mut lab = Lab::with(kind, |setup| setup.config.mtu = 65_520);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.window = 30_000;
        guest.open(&mut lab, Some(65_480));
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(200_000);
        lab.world().sends(stream, &data);
        assert_eq!(guest.receive(&mut lab, data.len()), data);
    }

    /// Silly-window avoidance on our side of the guest's data: while room grows byte by byte the
    /// guest is not told of each.
    fn the_window_is_not_opened_by_crumbs(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        fill(&mut lab, &mut guest, stream);
        for room in 1..100 {
            lab.world().set_room(stream, room);
            lab.settle();
        }
        let updates = lab.take_tcp();
        assert!(updates.iter().all(|u| u.window == 0 || u.window >= 100), "{updates:?}");
        assert!(updates.len() <= 2, "{} updates", updates.len());
    }

    /// Data beyond the window is not taken; the guest is told where it ends. RFC 9293 3.10.7.4,
    /// first check.
    fn data_beyond_the_window_is_not_taken(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        guest.send(&mut lab, b"x");
        let limit = edge(&lab.take_one_tcp());
        let beyond = guest.segment().seq(limit.wrapping_add(10)).data(b"beyond").frame();
        lab.input(&beyond);
        let answer = lab.take_one_tcp();
        assert_eq!(answer.ack, guest.snd_nxt);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"x");
        assert_eq!(lab.dropped(DropReason::TcpWindow), 1);
    }

    /// A guest that probes our closed window is answered at once.
    fn a_probe_of_our_closed_window_is_answered(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        fill(&mut lab, &mut guest, stream);
        lab.take();
        lab.input(&guest.segment().data(b"?").frame());
        let answer = lab.take_one_tcp();
        assert!(answer.is_pure_ack());
        assert_eq!(answer.window, 0);
    }

    /// tun2proxy #67: 59.9 GB resident. What a stalled server leaves unread stays in the host and
    /// in the pool; the guest is stopped by its window.
    fn a_stalled_server_stops_the_guest(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let taken = fill(&mut lab, &mut guest, stream);
        assert!(taken < 600_000, "{taken} bytes were taken from the guest");
    }
}

/// Sends until the window is closed while the host takes no more than 20,000 bytes; returns how
/// many bytes were acknowledged.
fn fill(lab: &mut Lab, guest: &mut TcpGuest, stream: slirp_nat::host::Token) -> u32 {
    let start = guest.snd_nxt;
    lab.world().set_room(stream, 20_000);
    let mut limit = guest.snd_nxt.wrapping_add(1460);
    for _ in 0..10_000 {
        let open = limit.wrapping_sub(guest.snd_nxt) as usize;
        if open == 0 {
            assert_eq!(lab.counters().tcp_bytes_retransmitted, 0);
            return guest.snd_nxt.wrapping_sub(start);
        }
        guest.send(lab, &pattern(open.min(1460)));
        lab.settle();
        if let Some(last) = lab.take_tcp().last() {
            limit = edge(last);
            guest.snd_nxt = last.ack;
        }
    }
    panic!("the window never closes");
}

/// Sends `data` as the window allows, while the host is given `room` anew whenever it waits.
fn upload_with_refills(
    lab: &mut Lab,
    guest: &mut TcpGuest,
    stream: slirp_nat::host::Token,
    data: &[u8],
    room: usize,
) {
    lab.settle();
    let start = guest.snd_nxt;
    let mut limit = lab.take_tcp().last().map_or(guest.snd_nxt.wrapping_add(1), edge);
    for _ in 0..10_000 {
        let done = guest.snd_nxt.wrapping_sub(start) as usize;
        if done == data.len() && lab.world().sent(stream).ends_with(&data[data.len() - 64..]) {
            return;
        }
        let open = (limit.wrapping_sub(guest.snd_nxt) as usize).min(data.len() - done);
        if open > 0 {
            guest.send(lab, &data[done..done + open]);
        }
        lab.world().set_room(stream, room);
        lab.settle();
        if let Some(last) = lab.take_tcp().last() {
            limit = edge(last);
            guest.snd_nxt = last.ack;
        }
    }
    panic!("the upload stalls at {} of {}", guest.snd_nxt.wrapping_sub(start), data.len());
}
