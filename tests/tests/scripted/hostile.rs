//! Malformed and hostile frames: dropped, counted, never a panic.

use crate::prelude::*;

/// Well-formed frames of every kind.
fn specimens() -> Vec<Vec<u8>> {
    let guest = TcpGuest::new(4000, SERVER);
    let mut fragment = build::IpBuilder::new(*SERVER.ip(), build::UDP);
    fragment.more = true;
    vec![
        build::arp_request(GATEWAY),
        build::ping(GATEWAY, 1, 1, b"ping"),
        build::ping(*SERVER.ip(), 1, 1, b"ping"),
        build::udp(6000, (*SERVER.ip(), 7), b"udp"),
        build::udp(6000, (DNS, 53), &build::dns_query(1, "example.org")),
        guest.syn(Some(1460)).window_scale(7).frame(),
        guest.segment().data(b"data").frame(),
        build::Dhcp::discover().frame(),
        fragment.frame(&[7; 64]),
    ]
}

on_both_hosts! {
    /// Every prefix of every kind of frame.
    fn truncated_frames_are_harmless(kind) {
        let mut lab = Lab::new(kind);
        for frame in specimens() {
            for len in 0..frame.len() {
                lab.exchange(&[&frame[..len]]);
            }
        }
    }

    /// With memory for one flow and for nothing else, and at first no room on the link: all that
    /// finds no place is dropped under its name, and nothing stays behind.
    fn the_least_memory_is_enough_to_end_well(kind) {
        let mut lab = Lab::with(kind, |setup| {
            (setup.flows, setup.permits, setup.datagram, setup.replies) = (1, 0, 0, 0);
            (setup.fragments, setup.fragment_memory, setup.leases) = (0, 0, 0);
            (setup.pool, setup.recoveries, setup.forwards) = (0, 0, 0);
        });
        for frames in [0, 1, usize::MAX] {
            for frame in specimens() {
                lab.link_ready(frames);
                lab.input(&frame);
                for socket in lab.world().open_datagrams() {
                    lab.world().deliver_from(socket, SERVER, b"answer");
                }
                lab.advance(seconds(1));
            }
        }
        lab.advance(seconds(1000));
        assert_eq!((lab.nat.flow_count(), lab.world().open_sockets()), (0, 0));
        assert_eq!(lab.nat.poll_at(), None);
        assert_eq!(lab.dropped(DropReason::FragmentMemory), 3);
        assert_eq!(lab.dropped(DropReason::Dhcp), 3);
        assert!(lab.dropped(DropReason::ReplyQueueFull) >= 2, "ARP and ping without room");
        assert!(lab.dropped(DropReason::TooLong) >= 3, "no memory for any datagram");
    }

    /// Every single byte of every kind of frame changed, the checksums made right again or not.
    fn altered_frames_are_harmless(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 8);
        for frame in specimens() {
            for offset in 0..frame.len().min(100) {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut altered = frame.clone();
                    altered[offset] = value;
                    lab.exchange(&[&altered]);
                    if altered[12..14] == [8, 0] && altered[14] & 15 >= 5 {
                        let header_len = usize::from(altered[14] & 15) * 4;
                        let total = usize::from(u16::from_be_bytes([altered[16], altered[17]]));
                        if (header_len..=altered.len() - 14).contains(&total) {
                            build::fix_checksums(&mut altered);
                            lab.exchange(&[&altered]);
                        }
                    }
                }
            }
        }
        lab.advance(seconds(100));
        assert!(lab.nat.flow_count() <= 8);
    }

    /// RFC 1122 3.3.6: a packet for a single host in a frame for all is nobody's, whatever it holds.
    fn a_broadcast_frame_reaches_no_single_host(kind) {
        let mut lab = Lab::new(kind);
        for mut frame in [
            build::ping(GATEWAY, 1, 1, b"ping"),
            build::udp(6000, (*SERVER.ip(), 7), b"udp"),
            TcpGuest::new(4000, SERVER).syn(Some(1460)).frame(),
        ] {
            frame[..6].copy_from_slice(&build::BROADCAST);
            lab.input(&frame);
        }
        lab.settle();
        lab.expect_nothing();
        assert_eq!((lab.nat.flow_count(), lab.dropped(DropReason::IpDestination)), (0, 3));
    }

    /// CVE-2007-5729: a frame longer than any buffer. It is refused as such.
    fn an_overlong_frame_is_refused(kind) {
        let mut lab = Lab::new(kind);
        let mut frame = build::ping(GATEWAY, 1, 1, b"x");
        frame.resize(70_000, 0);
        lab.input(&frame);
        assert_eq!(lab.dropped(DropReason::FrameLength), 1);
        lab.settle();
        lab.expect_nothing();
    }

    /// The padding of a short frame is not data: lengths are those of the IP header.
    fn ethernet_padding_is_no_data(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let mut frame = guest.segment().data(b"x").frame();
        guest.snd_nxt += 1;
        frame.resize(60, 0xee);
        lab.input(&frame);
        assert_eq!(lab.take_one_tcp().ack, guest.snd_nxt);
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"x");
    }

    /// CVE-2020-10756: an announced length beyond the frame sent host memory back.
    fn a_length_beyond_the_frame_is_dropped(kind) {
        let mut lab = Lab::new(kind);
        let mut frame = build::ping(GATEWAY, 1, 1, b"x");
        frame[16..18].copy_from_slice(&1000_u16.to_be_bytes());
        frame[24..26].fill(0);
        let sum = slirpkit_tests::sum::checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        lab.input(&frame);
        lab.settle();
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::IpHeader), 1);
    }

    /// Header checksums are checked.
    fn wrong_checksums_are_dropped(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let mut ip = build::ping(GATEWAY, 1, 1, b"x");
        ip[24] ^= 1;
        lab.input(&ip);
        assert_eq!(lab.dropped(DropReason::IpChecksum), 1);
        let mut tcp = one(guest.segments(b"data"));
        tcp[50] ^= 1;
        lab.input(&tcp);
        assert_eq!(lab.dropped(DropReason::TcpChecksum), 1);
        lab.expect_nothing();
        let stream = lab.world().stream_to(SERVER);
        assert_eq!(lab.world().sent(stream), b"");
    }

    /// A TCP header that is shorter than itself or longer than the segment.
    fn a_wrong_data_offset_is_dropped(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        for nibble in [0, 1, 4, 15] {
            let mut frame = guest.segment().data(b"data").frame();
            frame[46] = nibble << 4;
            build::fix_checksums(&mut frame);
            lab.input(&frame);
        }
        assert_eq!(lab.dropped(DropReason::TcpHeader), 4);
        lab.expect_nothing();
    }

    /// Frames to somebody else on the link are none of the router's business.
    fn frames_to_others_are_ignored(kind) {
        let mut lab = Lab::new(kind);
        let mut frame = build::ping(GATEWAY, 1, 1, b"x");
        frame[..6].copy_from_slice(&[0x52, 0x54, 0, 0, 0, 1]);
        lab.input(&frame);
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::NotForRouter), 1);
    }

    /// Source addresses that cannot be the guest's: outside its network, the router's own,
    /// broadcast, loopback.
    fn forged_sources_are_dropped(kind) {
        let mut lab = Lab::new(kind);
        let forged = ["8.8.8.8", "10.0.2.2", "10.0.2.3", "10.0.2.255", "10.0.2.0", "127.0.0.1",
            "255.255.255.255", "224.0.0.1", "0.0.0.0"];
        for source in forged {
            let mut frame = build::udp(6000, (*SERVER.ip(), 7), b"x");
            let source: Ipv4Addr = source.parse().expect("an address");
            frame[26..30].copy_from_slice(&source.octets());
            build::fix_checksums(&mut frame);
            lab.input(&frame);
        }
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::IpSource), forged.len() as u64);
        lab.settle();
        lab.expect_nothing();
    }

    /// Other protocols and Ethernet types are counted by name.
    fn unknown_protocols_are_counted(kind) {
        let mut lab = Lab::new(kind);
        lab.input(&build::IpBuilder::new(*SERVER.ip(), 132).frame(&[0; 20]));
        assert_eq!(lab.dropped(DropReason::IpProtocol), 1);
        lab.take();
        lab.input(&build::ethernet(build::ROUTER_MAC, 0x88f8, &[0; 46]));
        assert_eq!(lab.dropped(DropReason::EtherType), 1);
        lab.settle();
        lab.expect_nothing();
    }

    /// libslirp 4.9.5: a built reply was larger than the MTU. Whatever the guest asks for, each
    /// frame fits (the link checks that), or there is none.
    fn replies_fit_the_smallest_mtu(kind) {
        let mut lab = Lab::with(kind, |setup| setup.config.mtu = 68);
        let ping = build::echo_message(8, 1, 1, &pattern(500));
        let ip = build::IpBuilder::new(GATEWAY, build::ICMP);
        lab.input_batch(&ip.fragments_for_mtu(&ping, 68));
        let (_, reply) = slirpkit_tests::packet::reassemble(&lab.take());
        assert_eq!(reply, build::echo_message(0, 1, 1, &pattern(500)));
        let mut dying = build::IpBuilder::new(*SERVER.ip(), build::UDP);
        dying.ttl = 1;
        let datagram = build::udp_datagram((GUEST_IP, 6000), (*SERVER.ip(), 7), &[0; 30]);
        assert_eq!(one(lab.exchange(&[dying.frame(&datagram)])).icmp().map(|i| i.kind), Some(11));
        lab.exchange(&[build::Dhcp::discover().frame(), build::arp_request(GATEWAY)]);
        lab.exchange(&[build::udp(6000, (DNS, 53), &build::dns_query(1, &["abcdefgh"; 20].join(".")))]);
    }

    /// CVE-2019-6778 and its kin came of text rewriting. Nothing is ever rewritten.
    fn text_is_never_rewritten(kind) {
        let mut lab = Lab::new(kind);
        for (port, line) in [
            (21, &b"PORT 10,0,2,15,4,1\r\n"[..]),
            (113, b"6000, 23\r\n"),
            (6667, b"PRIVMSG x :\x01DCC SEND f 167772687 1025 9\x01\r\n"),
        ] {
            let server = SocketAddrV4::new(*SERVER.ip(), port);
            let mut guest = lab.connect(4000 + port, server);
            guest.send(&mut lab, line);
            lab.take();
            let stream = lab.world().stream_to(server);
            assert_eq!(lab.world().sent(stream), line);
        }
    }
}
