//! Opening TCP connections from the guest: the handshake and its options.

use slirpkit_tests::build::{CWR, ECE};

use crate::prelude::*;

on_both_hosts! {
    /// RFC 3168 6.1.1: a SYN with ECE and CWR offers ECN. It is an ordinary SYN, and the answer
    /// without ECE declines.
    fn an_offer_of_ecn_is_declined_by_an_ordinary_answer(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460)).flags(SYN | ECE | CWR);
        assert_eq!(guest.open_by(&mut lab, &syn).flags, SYN | ACK);
        guest.send(&mut lab, b"hello");
        let ack = lab.take_one_tcp();
        assert_eq!((ack.flags, ack.ack), (ACK, guest.snd_nxt));
    }

    /// The history of user-mode networking: an MSS of 512 towards the guest held it at 2 MB/s.
    fn an_mss_of_1460_is_offered_and_used_on_ethernet(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        assert_eq!(guest.open(&mut lab, Some(1460)).mss(), Some(1460));
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(1460 * 3));
        lab.settle();
        let segments = lab.take_tcp();
        assert_eq!(segments.iter().map(|s| s.data.len()).collect::<Vec<_>>(), [1460; 3]);
    }

    /// An event while the host still connects says nothing yet.
    fn an_event_before_the_connect_has_ended_changes_nothing(kind) {
        let mut lab = Lab::new(kind);
        lab.world().on_connect(SERVER, Connect::Pending);
        let mut guest = TcpGuest::new(4000, SERVER);
        lab.input(&guest.syn(Some(1460)).frame());
        let stream = lab.world().stream_to(SERVER);
        for writable in [false, true] {
            let ready = slirp_nat::host::Ready { readable: true, writable, error: false };
            lab.world().spurious(stream, ready);
            lab.settle();
            lab.expect_nothing();
        }
        lab.world().complete(stream, Ok(()));
        lab.settle();
        guest.finish_open(&mut lab);
    }

    /// RFC 1122 4.2.3.10: what is sent to no single host is not answered, not even by a reset.
    fn a_syn_to_no_single_host_is_not_answered(kind) {
        let mut lab = Lab::new(kind);
        for address in ["224.0.0.1", "240.0.0.1", "255.255.255.255", "10.0.2.255", "10.0.2.77"] {
            let remote = SocketAddrV4::new(address.parse().expect("an address"), 80);
            lab.input(&TcpGuest::new(4000, remote).syn(Some(1460)).frame());
            lab.settle();
            lab.expect_nothing();
        }
        assert_eq!((lab.world().connects(), lab.nat.flow_count()), (0, 0));
        assert_eq!(lab.dropped(DropReason::IpDestination), 5);
    }

    /// libslirp: the guest's offer of 536 was forgotten while the connect was under way.
    fn the_mss_of_the_guest_survives_an_asynchronous_connect(kind) {
        let mut lab = Lab::new(kind);
        lab.world().on_connect(SERVER, Connect::Pending);
        let mut guest = TcpGuest::new(4000, SERVER);
        lab.input(&guest.syn(Some(536)).frame());
        lab.settle();
        lab.expect_nothing();
        lab.advance(millis(700));
        lab.expect_nothing();
        let stream = lab.world().stream_to(SERVER);
        lab.world().complete(stream, Ok(()));
        lab.settle();
        guest.finish_open(&mut lab);
        let data = pattern(5000);
        lab.world().sends(stream, &data);
        lab.settle();
        let segments = lab.take_tcp();
        assert!(segments.iter().all(|s| s.data.len() <= 536), "{segments:?}");
        assert_eq!(bytes_of(&segments), data);
    }

    /// RFC 9293 3.7.1: without the option, 536.
    fn without_an_mss_option_segments_carry_536_bytes(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.open(&mut lab, None);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(2000));
        lab.settle();
        let longest = lab.take_tcp().iter().map(|s| s.data.len()).max();
        assert_eq!(longest, Some(536));
    }

    /// The MSS that the guest offers is bounded by the MTU, and by a floor against tiny segments.
    fn an_mss_beyond_the_mtu_is_cut_to_it(kind) {
        let mut lab = Lab::with(kind, |setup| setup.config.mtu = 1000);
        let mut guest = TcpGuest::new(4000, SERVER);
        assert_eq!(guest.open(&mut lab, Some(9000)).mss(), Some(960));
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(3000));
        lab.settle();
        let longest = lab.take_tcp().iter().map(|s| s.data.len()).max();
        assert_eq!(longest, Some(960));
    }

    /// An MSS of 0 must neither divide by zero nor send nothing for ever.
    fn an_mss_of_zero_still_moves_data(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        guest.open(&mut lab, Some(0));
        let stream = lab.world().stream_to(SERVER);
        let data = pattern(300);
        lab.world().sends(stream, &data);
        assert_eq!(guest.receive(&mut lab, data.len()), data);
    }

    /// A window scale sent unasked cripples old stacks: no option goes into a SYN-ACK that the
    /// guest has not offered, and both ends live with segments of 536 bytes (RFC 9293 3.7.1).
    fn a_syn_without_options_is_answered_without_any(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn_ack = guest.open(&mut lab, None);
        assert_eq!(syn_ack.options, [0u8; 0]);
    }

    /// RFC 7323 2.2, and openvmm #3780: the window of a SYN-ACK is never scaled.
    fn the_window_of_a_syn_ack_is_not_scaled(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460)).window_scale(7);
        let syn_ack = guest.open_by(&mut lab, &syn);
        let shift = syn_ack.window_scale().expect("the scale was offered");
        assert_eq!(syn_ack.window, 65_408, "256 KiB of room, cut to 16 bits and to units of 128");
        guest.send(&mut lab, b"x");
        let window = usize::from(lab.take_one_tcp().window) << shift;
        assert!((60_000..=256 * 1024).contains(&window), "window {window}");
    }

    /// slirp4netns #171: with scaling more than 64 KiB are in flight to the guest.
    fn a_scaled_guest_window_lets_more_than_64_kib_fly(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460)).window_scale(7);
        guest.window = 200_000_u32.div_ceil(128) as u16;
        guest.open_by(&mut lab, &syn);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(150_000));
        lab.settle();
        assert_eq!(bytes_of(&lab.take_tcp()), pattern(150_000));
    }

    /// RFC 7323 2.3: a shift above 14 counts as 14.
    fn a_window_shift_above_14_counts_as_14(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460)).window_scale(255);
        guest.window = 1;
        guest.open_by(&mut lab, &syn);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, &pattern(40_000));
        lab.settle();
        let flying = bytes_of(&lab.take_tcp()).len();
        assert!((1..=1 << 14).contains(&flying), "{flying} bytes in a window of 1 << 14");
    }

    /// gvisor #11536: a segment without a timestamp was dropped once timestamps were agreed on.
    fn timestamps_are_not_negotiated(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        let timestamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 0];
        let syn_ack = guest.open_by(&mut lab, &guest.syn(Some(1460)).options(&timestamps));
        assert_eq!(syn_ack.option(8), None);
        guest.send(&mut lab, b"no timestamp here");
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"no timestamp here");
    }

    /// libslirp: an option whose length passes the end is the end of the options.
    fn an_option_beyond_the_end_ends_the_options(kind) {
        let mut lab = Lab::new(kind);
        for (port, options) in [(4000, [3, 40, 7, 1]), (4001, [2, 0, 5, 0]), (4002, [2, 1, 5, 0])] {
            let mut guest = TcpGuest::new(port, SERVER);
            let syn_ack = guest.open_by(&mut lab, &guest.syn(None).options(&options));
            assert_eq!(syn_ack.window_scale(), None);
        }
    }

    /// SYN-ACK only after the host has connected, and then in the very call that says so.
    /// RFC 9293 3.10.7.2, third check.
    fn the_syn_ack_comes_in_the_call_that_reports_the_connect(kind) {
        let mut lab = Lab::new(kind);
        lab.world().on_connect(SERVER, Connect::Pending);
        let guest = TcpGuest::new(4000, SERVER);
        lab.input(&guest.syn(Some(1460)).frame());
        lab.settle();
        lab.expect_nothing();
        let stream = lab.world().stream_to(SERVER);
        lab.world().complete(stream, Ok(()));
        lab.deliver_event().expect("an event");
        assert!(lab.take_one_tcp().is_syn_ack());
    }

    /// A guest repeats its SYN while the host connects: one connection, one SYN-ACK.
    fn a_repeated_syn_does_not_connect_twice(kind) {
        let mut lab = Lab::new(kind);
        lab.world().on_connect(SERVER, Connect::Pending);
        let mut guest = TcpGuest::new(4000, SERVER);
        let syn = guest.syn(Some(1460)).frame();
        for _ in 0..4 {
            lab.input(&syn);
            lab.advance(seconds(1));
        }
        assert_eq!(lab.log().count("connect s"), 1);
        let stream = lab.world().stream_to(SERVER);
        lab.world().complete(stream, Ok(()));
        lab.settle();
        guest.finish_open(&mut lab);
        assert_eq!(lab.nat.flow_count(), 1);
    }

    /// A refused port answers at once, in the call that reports it (podman #22925: it crashed).
    fn a_refused_connect_is_a_reset_at_once(kind) {
        let mut lab = Lab::new(kind);
        lab.world().on_connect(SERVER, Connect::Fails(HostError::Refused));
        let guest = TcpGuest::new(4000, SERVER);
        lab.input(&guest.syn(Some(1460)).frame());
        lab.deliver_event().expect("an event");
        let reset = lab.take_one_tcp();
        assert!(reset.has(RST | ACK), "{reset:?}");
        assert_eq!(reset.ack, guest.snd_nxt + 1);
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// Each failure of a connect is told in the call that reports it: as a reset, or as the ICMP
    /// message with the code that a router would have sent.
    fn each_failure_of_a_connect_is_told_at_once(kind) {
        for (error, code) in [
            (HostError::Refused, None),
            (HostError::Reset, None),
            (HostError::NetUnreachable, Some(0)),
            (HostError::HostUnreachable, Some(1)),
            (HostError::TimedOut, Some(1)),
            (HostError::Prohibited, Some(13)),
        ] {
            let mut lab = Lab::new(kind);
            lab.world().on_connect(SERVER, Connect::Fails(error));
            lab.input(&TcpGuest::new(4000, SERVER).syn(Some(1460)).frame());
            lab.deliver_event().expect("an event");
            let packet = one(lab.take());
            let told = packet.icmp().map(|icmp| (icmp.kind, icmp.code));
            assert_eq!(told, code.map(|code| (3, code)), "{error}");
            assert_eq!(packet.tcp().is_some_and(Tcp::is_reset), code.is_none(), "{error}");
            assert_eq!(lab.nat.flow_count(), 0);
        }
    }

    /// podman #26073: a failed connect leaked its descriptor.
    fn connects_that_fail_leave_nothing_behind(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 8);
        let errors = [
            HostError::Refused,
            HostError::NetUnreachable,
            HostError::HostUnreachable,
            HostError::Prohibited,
            HostError::TimedOut,
            HostError::Reset,
            HostError::NoResources,
            HostError::Denied,
            HostError::Other,
        ];
        for (index, error) in errors.into_iter().enumerate() {
            for outcome in [Connect::Fails(error), Connect::FailsAtOnce(error)] {
                lab.world().on_connect(SERVER, outcome);
                let guest = TcpGuest::new(5000 + index as u16, SERVER);
                lab.exchange(&[guest.syn(Some(1460)).frame()]);
                lab.advance(seconds(1));
                assert_eq!(lab.nat.flow_count(), 0, "{outcome:?}");
                assert_eq!(lab.world().open_sockets(), 0, "{outcome:?}");
            }
        }
    }

    /// An unreachable server is told of by ICMP that quotes the SYN, or by RST, at once.
    fn an_unreachable_server_is_told_of_at_once(kind) {
        for error in [HostError::NetUnreachable, HostError::HostUnreachable, HostError::Prohibited] {
            let mut lab = Lab::new(kind);
            lab.world().on_connect(SERVER, Connect::Fails(error));
            let guest = TcpGuest::new(4000, SERVER);
            let packet = one(lab.exchange(&[guest.syn(Some(1460)).frame()]));
            match (packet.icmp(), packet.tcp()) {
                (Some(icmp), _) => {
                    assert_eq!(icmp.kind, 3);
                    assert_eq!(icmp.data[9], build::TCP, "protocol of the quoted packet");
                    assert_eq!(icmp.data[20..22], 4000_u16.to_be_bytes(), "its source port");
                }
                (_, Some(tcp)) => assert!(tcp.is_reset()),
                _ => panic!("{packet:?}"),
            }
        }
    }

    /// A connect that nobody answers ends: the guest is told, and the slot is free again.
    fn a_connect_that_never_ends_is_given_up(kind) {
        let mut lab = Lab::new(kind);
        lab.world().on_connect(SERVER, Connect::Pending);
        let guest = TcpGuest::new(4000, SERVER);
        lab.exchange(&[guest.syn(Some(1460)).frame()]);
        lab.advance(seconds(600));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// A guest that takes no SYN-ACK gets it again, and in the end the host side is given up.
    fn an_unanswered_syn_ack_is_repeated_and_then_given_up(kind) {
        let mut lab = Lab::new(kind);
        let guest = TcpGuest::new(4000, SERVER);
        let first = one(lab.exchange(&[guest.syn(Some(1460)).frame()]));
        let first = first.tcp().expect("SYN-ACK").clone();
        lab.advance(seconds(20));
        let again = lab.take_tcp();
        assert!((2..=8).contains(&again.len()), "{} repetitions in 20 s", again.len());
        assert!(again.iter().all(|s| s.is_syn_ack() && s.seq == first.seq));
        lab.advance(seconds(300));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// gvisor-tap-vsock #127: SYN, SYN-ACK, RST ten times over leaked ten slots. RFC 9293 3.10.7.4,
    /// second check.
    fn a_reset_frees_a_half_open_connection(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 4);
        for port in 4000..4020 {
            let mut guest = TcpGuest::new(port, SERVER);
            let packet = one(lab.exchange(&[guest.syn(Some(1460)).frame()]));
            assert!(packet.tcp().is_some_and(Tcp::is_syn_ack), "{packet:?}");
            guest.snd_nxt += 1;
            lab.exchange(&[guest.segment().flags(RST).ack(0).frame()]);
            assert_eq!(lab.nat.flow_count(), 0);
            assert_eq!(lab.world().open_sockets(), 0);
        }
    }

    /// The same while the host is still connecting.
    fn a_reset_frees_a_connection_that_still_connects(kind) {
        let mut lab = Lab::new(kind);
        lab.world().on_connect(SERVER, Connect::Pending);
        let mut guest = TcpGuest::new(4000, SERVER);
        lab.exchange(&[guest.syn(Some(1460)).frame()]);
        guest.snd_nxt += 1;
        lab.exchange(&[guest.segment().flags(RST).ack(0).frame()]);
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// Data on the SYN is legal (RFC 9293 3.10.7.2); it is taken or asked for again, never lost.
    fn data_on_a_syn_is_not_lost(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        lab.input(&guest.syn(Some(1460)).data(b"early").frame());
        lab.settle();
        let syn_ack = lab.take_one_tcp();
        assert!(syn_ack.is_syn_ack());
        let taken = syn_ack.ack.wrapping_sub(guest.snd_nxt + 1) as usize;
        guest.snd_nxt = syn_ack.ack;
        guest.rcv_nxt = syn_ack.seq + 1;
        guest.send_ack(&mut lab);
        guest.send(&mut lab, &b"early"[taken..]);
        lab.settle();
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"early");
    }

    /// The guest's data can come on the segment that completes the handshake.
    fn data_on_the_ack_of_the_handshake_is_taken(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        let packet = one(lab.exchange(&[guest.syn(Some(1460)).frame()]));
        guest.snd_nxt += 1;
        guest.rcv_nxt = packet.tcp().expect("SYN-ACK").seq + 1;
        guest.send(&mut lab, b"GET");
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"GET");
    }

    /// An acknowledgment that fits nothing sent, during the handshake, is answered by a reset
    /// with its number (RFC 9293 3.10.7.4).
    fn a_wrong_ack_in_the_handshake_is_reset(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = TcpGuest::new(4000, SERVER);
        let packet = one(lab.exchange(&[guest.syn(Some(1460)).frame()]));
        guest.snd_nxt += 1;
        guest.rcv_nxt = packet.tcp().expect("SYN-ACK").seq + 7777;
        let reset = one(lab.exchange(&[guest.segment().frame()]));
        let reset = reset.tcp().expect("a reset");
        assert!(reset.is_reset());
        assert_eq!(reset.seq, guest.rcv_nxt);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, b"not yet");
        lab.settle();
        assert!(lab.take_tcp().iter().all(|s| s.data.is_empty()), "it is not open");
    }

    /// Each connection begins at another sequence number (RFC 6528), the same in each run.
    fn initial_sequence_numbers_are_keyed(kind) {
        let numbers = || {
            let mut lab = Lab::new(kind);
            (4000..4010)
                .map(|port| {
                    let mut guest = TcpGuest::new(port, SERVER);
                    guest.open(&mut lab, Some(1460)).seq
                })
                .collect::<Vec<_>>()
        };
        let first = numbers();
        assert_eq!(first, numbers());
        let mut steps: Vec<u32> = first.windows(2).map(|w| w[1].wrapping_sub(w[0])).collect();
        steps.sort_unstable();
        steps.dedup();
        assert_eq!(steps.len(), 9, "{first:?}");
    }
}
