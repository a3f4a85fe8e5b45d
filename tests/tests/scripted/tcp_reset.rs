//! Resets, and what must not reset a connection.

use crate::prelude::*;

on_both_hosts! {
    /// RFC 9293 3.10.7.4, second check, LAST-ACK: the guest's last ACK got lost, and meanwhile it has
    /// forgotten the connection. The server has every byte, and no reset tells it otherwise.
    fn a_reset_behind_both_ends_breaks_nothing(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        guest.send(&mut lab, b"last words");
        guest.send_fin(&mut lab);
        lab.world().ends(stream);
        lab.settle();
        assert!(lab.take_tcp().last().expect("a FIN").has(FIN));
        guest.send_reset(&mut lab);
        lab.settle();
        assert_eq!(lab.world().state(stream), State::Closed);
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!((lab.counters().tcp_closed, lab.counters().tcp_aborted), (1, 0));
    }

    /// passt bug 191: a reset by the guest reached the server as FIN. RFC 9293 3.10.7.4, second
    /// check.
    fn a_reset_by_the_guest_resets_the_host_socket(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        guest.send_reset(&mut lab);
        assert_eq!(lab.world().state(stream), State::Reset);
        assert_eq!(lab.nat.flow_count(), 0);
        lab.expect_nothing();
    }

    /// A guest that gives up a connection and asks for another from the same port in one batch waits
    /// for no timer: the SYN is not taken for one of the connection before.
    fn a_new_connection_may_follow_a_reset_in_one_batch(kind) {
        let mut lab = Lab::new(kind);
        let old = lab.connect(4000, SERVER);
        let mut new = TcpGuest::new(4000, SERVER);
        new.snd_nxt = old.snd_nxt.wrapping_add(100_000);
        let reset = old.segment().flags(RST | ACK).frame();
        lab.input_batch(&[reset, new.syn(Some(1460)).frame()]);
        lab.settle();
        new.finish_open(&mut lab);
        new.send(&mut lab, b"another");
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"another");
        assert_eq!((lab.world().connects(), lab.nat.flow_count()), (2, 1));
    }

    /// virtualbox #621: data read before the reset was lost. What the server had sent is
    /// delivered, then the reset.
    fn a_reset_by_the_server_comes_after_its_data(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.window = 3000;
        guest.open(&mut lab, Some(1460));
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(10_000);
        lab.world().sends(stream, &data);
        lab.world().fails(stream, HostError::Reset);
        let (mut bytes, mut reset) = (Vec::new(), None);
        while reset.is_none() {
            lab.settle();
            let mut segments = lab.take_tcp();
            assert!(!segments.is_empty(), "neither data nor reset");
            reset = segments.pop_if(|s| s.is_reset());
            bytes.extend(guest.absorb(&segments).0);
            if reset.is_none() {
                guest.send_ack(&mut lab);
            }
        }
        assert_eq!(bytes, data);
        assert_eq!(reset.map(|r| r.seq), Some(guest.rcv_nxt));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// What the guest has sent a server that takes no more is lost, so the guest's end is not told
    /// to it as if that came behind all; what it had sent before is delivered all the same.
    fn a_server_that_missed_bytes_is_told_of_no_end_behind_them(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(1000));
        lab.world().fails(stream, HostError::Reset);
        guest.send(&mut lab, b"never read");
        guest.send_fin(&mut lab);
        let segments = lab.take_tcp();
        assert_eq!(guest.absorb(&segments).0, pattern(1000));
        assert!(!lab.world().is_write_shut(stream));
        guest.send_ack(&mut lab);
        assert!(lab.take_one_tcp().is_reset());
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// Whatever ends a connection on the host's side is a reset for the guest, in the same call.
    fn each_failure_of_a_connection_is_a_reset_at_once(kind) {
        for error in [
            HostError::Reset,
            HostError::TimedOut,
            HostError::HostUnreachable,
            HostError::NetUnreachable,
            HostError::Other,
        ] {
            let mut lab = Lab::new(kind);
            let guest = lab.connect(4000, SERVER);
            let stream = lab.world().stream_to(SERVER);
            lab.world().fails(stream, error);
            lab.deliver_event().expect("an event");
            let reset = lab.take_one_tcp();
            assert!(reset.is_reset() && reset.seq == guest.rcv_nxt, "{error}: {reset:?}");
            assert_eq!(lab.nat.flow_count(), 0, "{error}");
        }
    }

    /// A server that resets an idle connection is told of in the call that reports it.
    fn a_reset_by_the_server_is_told_at_once(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().fails(stream, HostError::Reset);
        lab.deliver_event().expect("an event");
        let reset = lab.take_one_tcp();
        assert!(reset.is_reset());
        assert_eq!((reset.seq, reset.ack), (guest.rcv_nxt, guest.snd_nxt));
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// An error met in a write is a reset, too, and is no error of another flow (openvmm #218).
    fn an_error_of_one_flow_leaves_the_others(kind) {
        let mut lab = Lab::new(kind);
        let mut broken = lab.connect(4000, SERVER);
        let mut whole = lab.connect(4001, OTHER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().fails(stream, HostError::TimedOut);
        broken.send(&mut lab, b"into the void");
        lab.settle();
        assert!(lab.take_tcp().iter().any(Tcp::is_reset));
        whole.send(&mut lab, b"still here");
        let other = lab.world().stream_to(OTHER);
        assert_eq!(lab.world().sent(other), b"still here");
        assert_eq!(lab.nat.flow_count(), 1);
    }

    /// RFC 5961 3.2: a reset in the window but not at its edge is challenged, and the true one
    /// that follows counts.
    fn a_reset_inside_the_window_is_challenged(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.input(&guest.segment().flags(RST).seq(guest.snd_nxt.wrapping_add(100)).frame());
        let challenge = lab.take_one_tcp();
        assert!(challenge.is_pure_ack());
        assert_eq!((challenge.seq, challenge.ack), (guest.rcv_nxt, guest.snd_nxt));
        assert_eq!(lab.world().state(stream), State::Open);
        assert_eq!(lab.counters().tcp_challenge_acks, 1);
        lab.input(&guest.segment().flags(RST).seq(challenge.ack).frame());
        assert_eq!(lab.world().state(stream), State::Reset);
    }

    /// RFC 5961 3.2: a reset outside the window is dropped without an answer.
    fn a_reset_outside_the_window_is_dropped(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        for seq in [guest.snd_nxt.wrapping_sub(1), guest.snd_nxt.wrapping_add(1 << 30)] {
            lab.input(&guest.segment().flags(RST).seq(seq).frame());
        }
        lab.expect_nothing();
        assert_eq!(lab.world().state(stream), State::Open);
    }

    /// RFC 5961 4.2, libslirp: a SYN on a live connection is challenged, and its options change
    /// nothing. RFC 9293 3.10.7.4, fourth check.
    fn a_syn_on_a_live_connection_is_challenged(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        for seq in [1_000_000, guest.snd_nxt, guest.snd_nxt.wrapping_add(500_000)] {
            lab.input(&guest.syn(Some(100)).window_scale(3).seq(seq).frame());
            let challenge = lab.take_one_tcp();
            assert!(challenge.is_pure_ack(), "{challenge:?}");
            assert_eq!((challenge.seq, challenge.ack), (guest.rcv_nxt, guest.snd_nxt));
            lab.advance(seconds(1));
        }
        assert_eq!(lab.world().state(stream), State::Open);
        let data = pattern(2920);
        lab.world().sends(stream, &data);
        lab.settle();
        let segments = lab.take_tcp();
        assert_eq!(segments.iter().map(|s| s.data.len()).collect::<Vec<_>>(), [1460; 2]);
        guest.absorb(&segments);
    }

    /// RFC 5961 7: challenges are limited in number, or a flood is answered by a flood.
    fn challenges_are_limited(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let syn = guest.syn(None).seq(guest.snd_nxt).frame();
        for _ in 0..5000 {
            lab.input(&syn);
        }
        let answers = lab.take().len();
        assert!((1..=1000).contains(&answers), "{answers} challenges in one instant");
        lab.advance(seconds(2));
        lab.input(&syn);
        assert_eq!(lab.take().len(), 1, "the limit is one of time");
    }

    /// A segment for no connection is answered by a reset that fits it (RFC 9293 3.10.7.1).
    fn a_segment_without_a_connection_is_reset(kind) {
        let mut lab = Lab::new(kind);
        let mut stray = TcpGuest::new(4000, SERVER);
        stray.rcv_nxt = 77;
        lab.input(&stray.segment().data(b"lost").frame());
        let reset = lab.take_one_tcp();
        assert_eq!((reset.flags, reset.seq), (RST, 77));
        assert_eq!((reset.src, reset.dst), (stray.remote, stray.local));
        lab.input(&stray.segment().flags(FIN).data(b"lost").frame());
        lab.expect_nothing();
        lab.input(&stray.segment().flags(RST).frame());
        lab.expect_nothing();
        assert_eq!(lab.world().connects(), 0);
        assert_eq!((lab.dropped(DropReason::TcpNoFlow), lab.counters().tcp_resets_out), (2, 1));
    }

    /// podman #22146: segments with none of ACK, SYN and RST reset connections. RFC 9293 3.10.7.2,
    /// fourth check.
    fn segments_without_ack_syn_or_rst_are_ignored(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        for flags in [0, PSH, URG, FIN, FIN | PSH | URG] {
            lab.input(&guest.segment().flags(flags).data(b"x").frame());
        }
        lab.expect_nothing();
        assert_eq!(lab.world().sent(stream), b"");
        assert_eq!(lab.dropped(DropReason::TcpFlags), 5);
        guest.send(&mut lab, b"alive");
        assert_eq!(lab.world().sent(stream), b"alive");
    }

    /// SYN with FIN or RST opens nothing. RFC 9293 3.10.7.2, fourth check.
    fn senseless_flags_open_nothing(kind) {
        let mut lab = Lab::new(kind);
        let guest = TcpGuest::new(4000, SERVER);
        for flags in [SYN | FIN, SYN | RST, SYN | FIN | RST | ACK, 0, FIN] {
            lab.exchange(&[guest.syn(None).flags(flags).frame()]);
        }
        assert_eq!(lab.world().connects(), 0);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// A SYN-ACK for no connection is reset and opens nothing. RFC 9293 3.10.7.2, second check.
    fn a_syn_ack_out_of_the_blue_is_reset(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.rcv_nxt = 4711;
        let answer = one(lab.exchange(&[guest.segment().flags(SYN | ACK).frame()]));
        assert_eq!(answer.tcp().map(|s| (s.flags, s.seq)), Some((RST, 4711)));
        assert_eq!(lab.world().connects(), 0);
    }

    /// CVE-2017-13711: a socket was freed while queued packets still referred to it. Output is owed
    /// while the link has no room, and the connection goes meanwhile, by either side.
    fn a_connection_that_goes_with_output_queued_leaves_nothing(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 2);
        for (port, by_guest) in [(4000, true), (4001, false), (4002, true)] {
            let mut guest = lab.connect(port, SERVER);
            let stream = lab.world().stream_to(SERVER);
            lab.link.set_frames(0);
            lab.world().sends(stream, &pattern(5000));
            guest.send(&mut lab, b"data");
            lab.settle();
            if by_guest {
                guest.send_reset(&mut lab);
            } else {
                lab.world().fails(stream, HostError::Reset);
            }
            lab.settle();
            lab.link_ready(usize::MAX);
            lab.settle();
            lab.take();
            if !by_guest {
                guest.rcv_nxt = guest.rcv_nxt.wrapping_add(5000);
                guest.send_ack(&mut lab);
                lab.settle();
                lab.take();
            }
            assert_eq!(lab.nat.flow_count(), 0);
            assert_eq!(lab.world().open_sockets(), 0);
        }
    }

    /// passt bug 95: an error event without an error made a busy loop. Spurious events of every
    /// kind do nothing.
    fn spurious_events_do_nothing(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        for bits in 0..8 {
            let ready = slirp_nat::host::Ready {
                readable: bits & 1 != 0,
                writable: bits & 2 != 0,
                error: bits & 4 != 0,
            };
            lab.world().spurious(stream, ready);
            lab.settle();
        }
        lab.expect_nothing();
        assert_eq!(lab.world().state(stream), State::Open);
        guest.send(&mut lab, b"alive");
        assert_eq!(lab.world().sent(stream), b"alive");
    }

    /// An event for a flow that has gone, and for one that never was, is harmless.
    fn late_events_are_harmless(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, b"late");
        let late = lab.host.next_event().expect("an event");
        guest.send_reset(&mut lab);
        let mut next = lab.connect(4001, OTHER);
        let HostEvent::Flow(flow, ready) = late else { panic!("{late:?}") };
        let never = slirp_nat::host::FlowId { slot: u32::MAX, generation: 9 };
        for event in [late, HostEvent::Flow(never, ready)] {
            lab.nat.on_host_event(lab.now(), event, &mut *lab.host, &mut lab.link);
        }
        lab.expect_nothing();
        assert_eq!(slirp_nat::host::FlowId::from_bits(flow.to_bits()), flow);
        next.send(&mut lab, b"fine");
        assert_eq!(lab.take_one_tcp().ack, next.snd_nxt);
    }
}
