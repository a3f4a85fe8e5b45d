//! Back-pressure of the link, and the frames on it.

use slirp_nat::link::Room;

use crate::prelude::*;

on_both_hosts! {
    /// Room is asked for before the host is read: a full link loses nothing, and the data comes
    /// once there is room, without any event of the host.
    fn a_full_link_loses_nothing(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(1460 * 30);
        lab.link.set_frames(0);
        lab.world().sends(stream, &data);
        lab.settle();
        lab.expect_nothing();
        assert_eq!(lab.world().unconsumed(stream), data.len());
        let mut received = Vec::new();
        for _ in 0..100 {
            lab.link_ready(4);
            let segments = lab.take_tcp();
            assert!(segments.len() <= 4);
            received.extend(guest.absorb(&segments).0);
            lab.link.set_frames(0);
            guest.send_ack(&mut lab);
            lab.settle();
        }
        assert!(received == data, "{} of {} bytes", received.len(), data.len());
        assert_eq!(lab.counters().tcp_bytes_retransmitted, 0);
    }

    /// An ACK that found no room is owed, not lost, and is sent when room is back; so is a FIN.
    fn acks_and_fins_are_owed_while_there_is_no_room(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.link.set_frames(0);
        for _ in 0..3 {
            guest.send(&mut lab, &pattern(1000));
        }
        lab.world().ends(stream);
        lab.settle();
        lab.expect_nothing();
        assert_eq!(lab.world().sent(stream).len(), 3000);
        lab.link_ready(10);
        lab.settle();
        let out = lab.take_tcp();
        assert_eq!(out.last().map(|s| s.ack), Some(guest.snd_nxt));
        assert_eq!(out.iter().filter(|s| s.has(FIN)).count(), 1);
        assert!(out.len() <= 2, "owed as flags, not as a queue: {out:?}");
    }

    /// A SYN-ACK and a reset that found no room come later.
    fn a_syn_ack_is_owed_while_there_is_no_room(kind) {
        let mut lab = Lab::new(kind);
        lab.link.set_frames(0);
        let mut guest = TcpGuest::new(4000, SERVER);
        lab.input(&guest.syn(Some(1460)).frame());
        lab.settle();
        lab.expect_nothing();
        lab.link_ready(10);
        guest.finish_open(&mut lab);
    }

    /// Stateless replies wait in a small queue; beyond it they are dropped and counted.
    fn stateless_replies_wait_in_a_bounded_queue(kind) {
        let mut lab = Lab::with(kind, |setup| setup.replies = 1000);
        lab.link.set_frames(0);
        for sequence in 0..100 {
            lab.input(&build::ping(GATEWAY, 1, sequence, b"x"));
        }
        lab.expect_nothing();
        lab.link_ready(usize::MAX);
        lab.settle();
        let replies = lab.take();
        assert!((2..=100).contains(&replies.len()), "{} replies", replies.len());
        let lost = lab.dropped(DropReason::ReplyQueueFull);
        assert_eq!(lost + replies.len() as u64, 100);
        let first = replies[0].icmp().expect("ICMP");
        assert_eq!(first.rest, [0, 1, 0, 0], "the first ones are kept");
    }

    /// Room is no promise of a buffer. A reply, a datagram and text of a stream that get none wait
    /// until the link is ready again.
    fn what_gets_no_buffer_waits(kind) {
        let mut lab = Lab::new(kind);
        lab.link.refusals = 2;
        lab.input(&build::ping(GATEWAY, 1, 7, b"x"));
        lab.expect_nothing();
        lab.link_ready(usize::MAX);
        assert_eq!(lab.take_one_icmp().rest, [0, 1, 0, 7]);
        lab.exchange(&[build::udp(6000, (*SERVER.ip(), 7), b"question")]);
        let socket = one(lab.world().take_sent_datagrams()).token;
        lab.link.refusals = 1;
        lab.world().deliver_from(socket, SERVER, b"answer");
        lab.settle();
        lab.expect_nothing();
        lab.link_ready(usize::MAX);
        assert_eq!(lab.take_one_udp().data, b"answer");
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.link.refusals = 1;
        lab.world().sends(stream, b"hello");
        lab.settle();
        lab.expect_nothing();
        lab.link_ready(usize::MAX);
        assert_eq!(guest.absorb(&lab.take_tcp()).0, b"hello");
        guest.send_ack(&mut lab);
        lab.link.largest = 200;
        lab.world().sends(stream, &pattern(1000));
        lab.settle();
        lab.expect_nothing();
        lab.link.largest = usize::MAX;
        lab.link_ready(usize::MAX);
        assert_eq!(guest.absorb(&lab.take_tcp()).0, pattern(1000));
        assert_eq!(lab.nat.stats().dropped_total(), 0);
    }

    /// A segment without data waits for a buffer, too: nobody would send an ACK again, nor the reset
    /// of a connection that is over.
    fn a_segment_that_gets_no_buffer_waits(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        lab.link.refusals = 1;
        lab.input(&guest.syn(Some(1460)).frame());
        lab.settle();
        lab.expect_nothing();
        lab.link_ready(usize::MAX);
        guest.finish_open(&mut lab);
        lab.link.refusals = 1;
        guest.send(&mut lab, b"hello");
        lab.expect_nothing();
        lab.link_ready(usize::MAX);
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        let stream = lab.world().stream_to(SERVER);
        lab.link.refusals = 1;
        lab.world().fails(stream, HostError::Reset);
        lab.settle();
        lab.expect_nothing();
        lab.link_ready(usize::MAX);
        assert!(lab.take_one_tcp().is_reset());
        assert_eq!(lab.nat.stats().dropped_total(), 0);
    }

    /// Room counted in bytes is kept, too.
    fn room_in_bytes_is_kept(kind) {
        let mut lab = Lab::new(kind);
        lab.link.set_room(Room { frames: usize::MAX, bytes: 59 });
        lab.input(&build::arp_request(GATEWAY));
        lab.expect_nothing();
        lab.link_ready(usize::MAX);
        assert!(one(lab.take()).arp().is_some());
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(20_000);
        lab.link.set_room(Room { frames: usize::MAX, bytes: 4000 });
        lab.world().sends(stream, &data);
        lab.settle();
        let (mut received, _) = guest.absorb(&lab.take_tcp());
        assert!(!received.is_empty() && received.len() <= 4000);
        lab.link_ready(usize::MAX);
        guest.send_ack(&mut lab);
        received.extend(guest.drain(&mut lab).0);
        assert_eq!(received, data);
    }

    /// Time without room counts towards no timeout: a guest that is paused for an hour behind a
    /// full link finds its connections alive.
    fn time_without_room_kills_no_flow(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(500));
        lab.settle();
        lab.take();
        lab.link.set_frames(0);
        lab.advance(seconds(3600));
        lab.link_ready(usize::MAX);
        lab.advance(seconds(2));
        assert_eq!(lab.world().state(stream), State::Open);
        let mut segments = lab.take_tcp();
        segments.truncate(1);
        assert_eq!(guest.absorb(&segments).0, pattern(500));
    }

    /// A link that queues few frames bounds what the guest is offered: the sum of all windows
    /// stays below it, so that nothing the guest sends is lost at the door.
    fn windows_respect_the_guests_queue(kind) {
        let mut lab = Lab::new(kind);
        lab.link.guest_queue_frames = 16;
        let mut guests = Vec::new();
        for port in 4000..4004 {
            let mut guest = TcpGuest::new(port, SERVER);
            let window = usize::from(guest.open(&mut lab, Some(1460)).window);
            assert!((1460..=16 * 1460).contains(&window), "{window} bytes offered to a new flow");
            guests.push(guest);
        }
        let mut offered = 0;
        for _ in 0..60 {
            offered = 0;
            for guest in &mut guests {
                guest.send(&mut lab, &pattern(1460));
                offered += usize::from(lab.take_one_tcp().window);
            }
            lab.advance(millis(30));
        }
        assert!(offered <= 16 * 1460, "{offered} bytes offered");
        assert!(offered >= 4 * 1460, "{offered} bytes offered");
    }

    /// A link without offload whose buffer holds one frame gets single segments.
    fn a_small_buffer_gets_single_segments(kind) {
        let mut lab = Lab::with(kind, |setup| setup.link_capacity = 1514);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(50_000);
        lab.world().sends(stream, &data);
        assert_eq!(guest.receive(&mut lab, data.len()), data);
        assert_eq!(lab.link.super_segments(), 0);
    }

    /// A link with a large one gets super-segments, few host reads, and the same wire frames.
    fn a_large_buffer_gets_super_segments(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(50_000);
        lab.log().take();
        lab.world().sends(stream, &data);
        lab.settle();
        assert!(lab.link.super_segments() >= 1);
        assert!(lab.log().count("peek") <= 4, "{} reads", lab.log().count("peek"));
        let segments = lab.take_tcp();
        assert!(segments[..segments.len() - 1].iter().all(|s| s.data.len() == 1460));
        assert_eq!(guest.absorb(&segments).0, data);
    }

    /// passt bug 166: some guests reject short frames. Each is at least 60 bytes (the link checks
    /// every frame of every test; here are the shortest).
    fn short_frames_are_padded_with_zeros(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        guest.send(&mut lab, b"x");
        lab.input(&build::arp_request(GATEWAY));
        lab.input(&build::ping(GATEWAY, 1, 1, b""));
        let lens: Vec<usize> = lab.take().iter().map(|packet| packet.bytes.len()).collect();
        assert_eq!(lens, [60, 60, 60]);
    }

    /// The smallest MTU that IPv4 has, and the largest that a frame has: all that is sent fits,
    /// and the bytes are the same.
    fn the_smallest_and_the_largest_mtu(kind) {
        for mtu in [68, 576, 1500, 9000, 65_521] {
            let mut lab = Lab::with(kind, |setup| setup.config.mtu = mtu);
            let mut guest = TcpGuest::new(4000, SERVER);
            guest.mss = usize::from(mtu) - 40;
            guest.open(&mut lab, Some(mtu - 40));
            let stream = lab.world().stream_to(SERVER);
            let data = pattern(100_000);
            lab.world().sends(stream, &data);
            assert!(guest.receive(&mut lab, data.len()) == data, "download at MTU {mtu}");
            for piece in data.chunks(20_000) {
                guest.send(&mut lab, piece);
                lab.settle();
                lab.take();
            }
            assert!(lab.world().sent(stream) == data, "upload at MTU {mtu}");
        }
    }

    /// passt bug 108: a sum over an odd-aligned buffer was wrong. The link checks every frame;
    /// here are all lengths and many contents.
    fn checksums_hold_for_every_length(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        for len in 1..=300 {
            let data = vec![(len * 37) as u8 | 0x80; len];
            lab.world().sends(stream, &data);
            assert_eq!(guest.receive(&mut lab, len), data);
        }
    }

    /// The same at every alignment of the frames' memory, either way.
    fn checksums_hold_at_every_alignment(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        for alignment in 0..16 {
            lab.link.alignment = alignment;
            for len in 1..=40 {
                let data = vec![0xd1 + len as u8; len];
                lab.world().sends(stream, &data);
                assert_eq!(guest.receive(&mut lab, len), data);
                lab.world().take_sent(stream);
                let frame = [vec![0xff; alignment], one(guest.segments(&data))].concat();
                lab.input(&frame[alignment..]);
                assert_eq!(lab.world().take_sent(stream), data);
                assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
            }
        }
    }

    /// Work that the guest left undone is not held against it: a partial checksum is not checked,
    /// a super-segment is one segment.
    fn offloaded_frames_are_taken(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let data = pattern(20_000);
        let mut frame = guest.segment().data(&data).flags(ACK | PSH).frame();
        frame[50] ^= 0x5a;
        let offload = slirp_nat::link::Offload { checksum_partial: true, segment_size: 1460 };
        lab.input_offloaded(&frame, offload);
        guest.snd_nxt = guest.snd_nxt.wrapping_add(20_000);
        assert_eq!(lab.take_tcp().last().expect("an ACK").ack, guest.snd_nxt);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), data);
    }
}
