//! UDP: mapping, filtering, lifetimes, sizes and errors.

use slirp_nat::{UdpFiltering, UdpMapping};
use slirpkit_tests::packet::{Udp, reassemble, udp_of};

use crate::prelude::*;

const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 77), 5000);

fn target(address: SocketAddrV4) -> (Ipv4Addr, u16) {
    (*address.ip(), address.port())
}

/// Sends from the guest's port 6000 to `to`; returns the host socket that it went out by.
fn send(lab: &mut Lab, to: SocketAddrV4, data: &[u8]) -> slirp_nat::host::Token {
    lab.input(&build::udp(6000, target(to), data));
    lab.settle();
    let sent = lab.world().sent_datagrams().last().expect("a datagram went out").clone();
    assert_eq!(sent.meta.remote, to.into());
    assert_eq!(sent.data, data);
    sent.token
}

fn about(error: HostError, offender: Option<IpAddr>) -> DatagramError {
    DatagramError { error, offender, remote: PEER.into(), quoted: None }
}

fn reply(lab: &mut Lab, socket: slirp_nat::host::Token, from: SocketAddrV4, data: &[u8]) {
    lab.world().deliver_from(socket, from, data);
    lab.settle();
}

on_both_hosts! {
    /// A question and its answer, the answer in the very call that reports it.
    fn a_datagram_and_its_answer(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"question");
        lab.world().deliver_from(socket, PEER, b"answer");
        lab.deliver_event().expect("an event");
        let answer = lab.take_one_udp();
        let to = SocketAddrV4::new(GUEST_IP, 6000);
        assert_eq!(answer, Udp { src: PEER, dst: to, data: b"answer".to_vec() });
    }

    /// An empty datagram is a datagram.
    fn an_empty_datagram_passes_both_ways(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"");
        reply(&mut lab, socket, PEER, b"");
        assert_eq!(lab.take_one_udp().data, b"");
    }

    /// RFC 4787 REQ-1: one host socket for all destinations of a guest port.
    fn the_mapping_does_not_depend_on_the_destination(kind) {
        let mut lab = Lab::new(kind);
        let first = send(&mut lab, PEER, b"a");
        assert_eq!(send(&mut lab, SERVER, b"b"), first);
        assert_eq!(lab.world().open_sockets(), 1);
    }

    /// The other mapping, if chosen: a host socket for each destination.
    fn the_mapping_can_depend_on_the_destination(kind) {
        let mut lab = Lab::with(kind, |setup| {
            setup.config.udp_mapping = UdpMapping::AddressAndPortDependent;
        });
        let first = send(&mut lab, PEER, b"a");
        let second = send(&mut lab, SERVER, b"b");
        assert_ne!(first, second);
        reply(&mut lab, second, SERVER, b"c");
        assert_eq!(lab.take_one_udp().src, SERVER);
        assert_eq!(send(&mut lab, SERVER, b"d"), second);
    }

    /// RFC 4787 REQ-8: any port of an address that was written to may answer, nobody else.
    fn filtering_is_by_address(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        let same_host = SocketAddrV4::new(*PEER.ip(), 9);
        reply(&mut lab, socket, same_host, b"another port");
        assert_eq!(lab.take_one_udp().src, same_host);
        reply(&mut lab, socket, SERVER, b"a stranger");
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::UdpFiltered), 1);
        send(&mut lab, SERVER, b"hello");
        reply(&mut lab, socket, SERVER, b"no stranger now");
        assert_eq!(lab.take_one_udp().src, SERVER);
    }

    /// The other filtering, if chosen.
    fn filtering_can_be_left_out(kind) {
        let mut lab = Lab::with(kind, |setup| {
            setup.config.udp_filtering = UdpFiltering::EndpointIndependent;
            setup.permits = 0;
        });
        let socket = send(&mut lab, PEER, b"a");
        reply(&mut lab, socket, SERVER, b"a stranger");
        assert_eq!(lab.take_one_udp().src, SERVER);
    }

    /// passt bug 197: a chatty flow expired too early. 30 s are enough without a reply; with
    /// replies RFC 4787 REQ-5 asks for two minutes, counted from the last datagram.
    fn a_flow_with_replies_lives_longer(kind) {
        let mut lab = Lab::new(kind);
        send(&mut lab, PEER, b"a");
        lab.advance(seconds(25));
        assert_eq!(lab.nat.flow_count(), 1, "it lives before a reply, too");
        lab.advance(seconds(60));
        assert_eq!(lab.nat.flow_count(), 0, "without a reply it goes");
        let socket = send(&mut lab, PEER, b"a");
        for _ in 0..5 {
            reply(&mut lab, socket, PEER, b"b");
            lab.advance(seconds(115));
            assert_eq!(send(&mut lab, PEER, b"a"), socket);
        }
        lab.advance(seconds(3600));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// As after a sleep of the host: nobody could have answered.
    fn a_jump_of_the_clock_ends_no_flow(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        lab.jump(seconds(3600));
        reply(&mut lab, socket, PEER, b"b");
        assert_eq!(lab.take_one_udp().data, b"b");
        lab.advance(seconds(121));
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// gvisor-tap-vsock #393: a source port was dead after its flow had expired.
    fn an_expired_port_works_again(kind) {
        let mut lab = Lab::new(kind);
        let first = send(&mut lab, PEER, b"a");
        lab.advance(seconds(3600));
        assert_eq!(lab.world().state(first), State::Closed);
        let second = send(&mut lab, PEER, b"b");
        assert_ne!(first, second);
        reply(&mut lab, second, PEER, b"c");
        assert_eq!(lab.take_one_udp().data, b"c");
        let counters = lab.counters();
        assert_eq!((counters.flows_created, counters.flows_expired), (2, 1));
        assert_eq!((counters.datagrams_in, counters.datagrams_out), (2, 1));
    }

    /// libslirp: a flow made before the first poll had no time to live. Its lifetime starts at
    /// the input's time, at whatever time the clock stands.
    fn a_lifetime_starts_at_the_time_of_the_input(kind) {
        let mut lab = Lab::new(kind);
        lab.advance(seconds(100_000));
        send(&mut lab, PEER, b"a");
        lab.advance(seconds(20));
        assert_eq!(lab.nat.flow_count(), 1);
    }

    /// docker/for-mac #1311, slirp4netns #306: datagrams beyond the MTU vanished. The largest
    /// passes both ways, byte for byte.
    fn datagrams_of_8_32_and_64_kib_pass_both_ways(kind) {
        for len in [8 * 1024, 32 * 1024, 65_507] {
            let mut lab = Lab::new(kind);
            let data = pattern(len);
            let datagram = build::udp_datagram((GUEST_IP, 6000), target(PEER), &data);
            let ip = build::IpBuilder::new(*PEER.ip(), build::UDP);
            lab.input_batch(&ip.fragments_for_mtu(&datagram, 1500));
            let sent = one(lab.world().take_sent_datagrams());
            assert!(sent.data == data, "{len} bytes to the world");
            reply(&mut lab, sent.token, PEER, &data);
            let packets = lab.take();
            assert_eq!(packets.len(), (len + 8).div_ceil(1480));
            let (ip, payload) = reassemble(&packets);
            assert!(udp_of(&ip, &payload).data == data, "{len} bytes to the guest");
        }
    }

    /// A train of fragments that meets a full link goes on where it stopped.
    fn a_fragment_train_is_resumed(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        lab.link.set_frames(3);
        let data = pattern(20_000);
        reply(&mut lab, socket, PEER, &data);
        let mut packets = lab.take();
        assert_eq!(packets.len(), 3);
        while packets.len() < 14 {
            lab.link_ready(2);
            lab.settle();
            let more = lab.take();
            assert!(!more.is_empty(), "the train stands at {}", packets.len());
            packets.extend(more);
        }
        let (ip, payload) = reassemble(&packets);
        assert!(udp_of(&ip, &payload).data == data, "the bytes received");
    }

    /// Trains do not mix: two datagrams through a narrow link, one after the other, whole.
    fn trains_do_not_mix(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        lab.link.set_frames(2);
        for len in [6000, 7000] {
            lab.world().deliver_from(socket, PEER, &pattern(len));
        }
        let mut packets = Vec::new();
        for _ in 0..20 {
            lab.settle();
            packets.extend(lab.take());
            lab.link_ready(1);
        }
        lab.settle();
        packets.extend(lab.take());
        let (first, second) = packets.split_at(5);
        for (train, len) in [(first, 6000), (second, 7000)] {
            let (ip, payload) = reassemble(train);
            assert!(udp_of(&ip, &payload).data == pattern(len), "{len} bytes");
        }
    }

    /// A datagram longer than the NAT's buffer is dropped and counted, never cut.
    fn a_truncated_datagram_is_dropped(kind) {
        let mut lab = Lab::with(kind, |setup| setup.datagram = 2000);
        let socket = send(&mut lab, PEER, b"a");
        reply(&mut lab, socket, PEER, &pattern(3000));
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::TooLong), 1);
        reply(&mut lab, socket, PEER, b"short");
        assert_eq!(lab.take_one_udp().data, b"short");
    }

    /// Nor is one sent that no IP packet could carry, whatever the host says it has received.
    fn a_datagram_longer_than_any_is_dropped(kind) {
        let mut lab = Lab::with(kind, |setup| setup.datagram = 70_000);
        let socket = send(&mut lab, PEER, b"a");
        reply(&mut lab, socket, PEER, &pattern(65_508));
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::TooLong), 1);
        reply(&mut lab, socket, PEER, &pattern(65_507));
        let (_, payload) = reassemble(&lab.take());
        assert_eq!(payload.len(), 65_515);
    }

    /// A datagram under way to a guest that has been forgotten for others goes nowhere, and those
    /// behind it go on.
    fn a_train_to_a_guest_that_is_forgotten_ends(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        lab.link.set_frames(1);
        reply(&mut lab, socket, PEER, &pattern(4000));
        assert_eq!(lab.take().len(), 1);
        for host in 100..116 {
            let address = Ipv4Addr::new(10, 0, 2, host);
            lab.input(&build::arp(1, ([0x52, 0x54, 0, 0, 0, host], address), ([0; 6], address)));
        }
        lab.link_ready(usize::MAX);
        let question = one(lab.take());
        assert_eq!(question.arp().map(|arp| (arp.operation, arp.target)), Some((1, GUEST_IP)));
        assert_eq!(lab.dropped(DropReason::NoNeighbour), 2, "fragments");
        lab.input(&build::gratuitous_arp());
        reply(&mut lab, socket, PEER, b"b");
        assert_eq!(lab.take_one_udp().data, b"b");
    }

    /// libslirp, passt: a refused datagram is a port unreachable that quotes it, from the
    /// address that refused.
    fn a_refused_datagram_is_a_port_unreachable(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"knock");
        lab.world().report(socket, about(HostError::Refused, None));
        lab.settle();
        let packet = one(lab.take());
        let icmp = packet.icmp().expect("ICMP");
        assert_eq!((icmp.kind, icmp.code), (3, 3));
        assert_eq!(packet.ip().map(|ip| ip.src), Some(*PEER.ip()));
        assert_quotes(&icmp.data, 6000, PEER);
    }

    /// Errors name the router that sent them.
    fn an_error_comes_from_the_real_offender(kind) {
        let router = Ipv4Addr::new(198, 51, 100, 1);
        for (error, expected) in [
            (HostError::HopLimit, (11, 0)),
            (HostError::NetUnreachable, (3, 0)),
            (HostError::HostUnreachable, (3, 1)),
            (HostError::Prohibited, (3, 13)),
        ] {
            let mut lab = Lab::new(kind);
            let socket = send(&mut lab, PEER, b"probe");
            let offender = Some(IpAddr::V4(router));
            lab.world().report(socket, about(error, offender));
            lab.settle();
            let packet = one(lab.take());
            let icmp = packet.icmp().expect("ICMP");
            assert_eq!((icmp.kind, icmp.code), expected, "{error}");
            assert_eq!(packet.ip().map(|ip| ip.src), Some(router));
            assert_quotes(&icmp.data, 6000, PEER);
        }
    }

    /// A datagram too big for the path is told of with the path's MTU (RFC 1191).
    fn a_path_mtu_is_handed_on(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, &pattern(1400));
        let error = HostError::TooBig { mtu: 1280 };
        lab.world().report(socket, about(error, None));
        lab.settle();
        let icmp = lab.take_one_icmp();
        assert_eq!((icmp.kind, icmp.code), (3, 4));
        assert_eq!(icmp.rest, [0, 0, 5, 0], "1280");
    }

    /// passt bug 95: an error event with an empty queue does nothing and never spins.
    fn an_error_event_without_an_error_does_nothing(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        let error = slirp_nat::host::Ready { error: true, ..Default::default() };
        lab.world().spurious(socket, error);
        lab.settle();
        lab.expect_nothing();
        reply(&mut lab, socket, PEER, b"b");
        assert_eq!(lab.take_one_udp().data, b"b");
    }

    /// openvmm #222: an error on receive killed the endpoint. The flow goes on.
    fn a_receive_error_leaves_the_socket_usable(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        lab.world().fail_receive(socket, HostError::Other);
        lab.world().deliver_from(socket, PEER, b"b");
        lab.settle();
        assert_eq!(lab.take_one_udp().data, b"b");
        assert_eq!(lab.nat.flow_count(), 1);
    }

    /// gvisor-tap-vsock #370: one ENOBUFS ended the link. The datagram is dropped and counted.
    fn a_host_without_room_drops_one_datagram(kind) {
        let mut lab = Lab::new(kind);
        send(&mut lab, PEER, b"a");
        lab.world().fail_send_datagram(HostError::WouldBlock);
        lab.input(&build::udp(6000, target(PEER), b"lost"));
        lab.settle();
        assert_eq!(lab.dropped(DropReason::HostBusy), 1);
        send(&mut lab, PEER, b"b");
    }

    /// A datagram that the host cannot send at all: the guest is told why, and the flow goes on.
    fn a_datagram_that_cannot_be_sent_is_told_of(kind) {
        let mut lab = Lab::new(kind);
        send(&mut lab, PEER, b"a");
        lab.world().fail_send_datagram(HostError::NetUnreachable);
        let packet = one(lab.exchange(&[build::udp(6000, target(PEER), b"lost")]));
        let icmp = packet.icmp().expect("ICMP");
        assert_eq!((icmp.kind, icmp.code), (3, 0));
        assert_eq!(packet.ip().map(|ip| ip.src), Some(GATEWAY));
        assert_quotes(&icmp.data, 6000, PEER);
        assert_eq!(lab.dropped(DropReason::HostError), 1);
        send(&mut lab, PEER, b"b");
    }

    /// Datagram flows push out no connection that is in use: where those fill the table, the
    /// datagram is dropped, and counted.
    fn a_table_full_of_connections_takes_no_flow(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 2);
        let guests = [4000, 4001].map(|port| lab.connect(port, SERVER));
        lab.exchange(&[build::udp(6000, target(PEER), b"lost")]);
        assert_eq!(lab.dropped(DropReason::FlowTableFull), 1);
        assert_eq!(lab.nat.flow_count(), 2);
        let [first, _] = guests;
        first.send_reset(&mut lab);
        send(&mut lab, PEER, b"b");
    }

    /// A host that has no socket left: the flow is not made, and the next may be.
    fn a_host_without_sockets_makes_no_flow(kind) {
        let mut lab = Lab::new(kind);
        lab.world().fail_open(HostError::NoResources);
        lab.input(&build::udp(6000, target(PEER), b"lost"));
        lab.settle();
        assert_eq!(lab.nat.flow_count(), 0);
        lab.take();
        send(&mut lab, PEER, b"b");
    }

    /// virtualbox #479: TTL always 255. It is carried, less one, and ends here when it runs out.
    fn the_ttl_is_carried_and_runs_out_here(kind) {
        let mut lab = Lab::new(kind);
        let datagram = build::udp_datagram((GUEST_IP, 6000), target(PEER), b"probe");
        let mut ip = build::IpBuilder::new(*PEER.ip(), build::UDP);
        ip.ttl = 7;
        lab.input(&ip.frame(&datagram));
        assert_eq!(one(lab.world().take_sent_datagrams()).meta.ttl, 6);
        ip.ttl = 1;
        lab.input(&ip.frame(&datagram));
        assert!(lab.world().sent_datagrams().is_empty());
        let packet = one(lab.take());
        let icmp = packet.icmp().expect("ICMP");
        assert_eq!((icmp.kind, icmp.code), (11, 0));
        assert_eq!(packet.ip().map(|ip| ip.src), Some(GATEWAY));
        assert_quotes(&icmp.data, 6000, PEER);
        assert_eq!(lab.dropped(DropReason::TtlExceeded), 1);
    }

    /// A reply loses a hop here as well, but what has come this far is not given up for that; nor
    /// is what came without telling.
    fn the_ttl_of_a_reply_never_runs_out(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        for (ttl, seen) in [(0, 64), (1, 1), (2, 1), (255, 254)] {
            let meta = DatagramMeta { ttl, ..DatagramMeta::new(PEER.into()) };
            lab.world().deliver(socket, b"b", meta);
            lab.settle();
            assert_eq!(one(lab.take()).ip().map(|ip| ip.ttl), Some(seen), "{ttl}");
        }
    }

    /// ECN bits pass both ways (RFC 3168).
    fn ecn_bits_pass_both_ways(kind) {
        let mut lab = Lab::new(kind);
        let datagram = build::udp_datagram((GUEST_IP, 6000), target(PEER), b"probe");
        let mut ip = build::IpBuilder::new(*PEER.ip(), build::UDP);
        ip.tos = 2;
        lab.input(&ip.frame(&datagram));
        let sent = one(lab.world().take_sent_datagrams());
        assert_eq!(sent.meta.ecn, 2);
        let meta = DatagramMeta { ecn: 3, ..DatagramMeta::new(PEER.into()) };
        lab.world().deliver(sent.token, b"marked", meta);
        lab.settle();
        assert_eq!(one(lab.take()).ip().map(|ip| ip.tos & 3), Some(3));
    }

    /// A burst that a host hands over as one buffer (UDP_GRO) is several datagrams.
    fn a_segmented_receive_is_several_datagrams(kind) {
        let mut lab = Lab::new(kind);
        let socket = send(&mut lab, PEER, b"a");
        let meta = DatagramMeta { segment_size: 1000, ..DatagramMeta::new(PEER.into()) };
        let data = pattern(2500);
        lab.world().deliver(socket, &data, meta);
        lab.settle();
        let datagrams: Vec<Udp> =
            lab.take().iter().map(|p| p.udp().expect("UDP").clone()).collect();
        let lens: Vec<usize> = datagrams.iter().map(|d| d.data.len()).collect();
        assert_eq!(lens, [1000, 1000, 500]);
        let whole: Vec<u8> = datagrams.into_iter().flat_map(|d| d.data).collect();
        assert_eq!(whole, data);
    }

    /// CVE-2014-3640: source port 0 matched a list head. It is dropped or an ordinary flow.
    fn port_zero_is_harmless(kind) {
        let mut lab = Lab::new(kind);
        lab.exchange(&[build::udp(0, target(PEER), b"zero"), build::udp(6000, (*PEER.ip(), 0), b"")]);
        let mut from_nowhere = build::udp(0, target(PEER), b"zero");
        from_nowhere[26..30].fill(0);
        build::fix_checksums(&mut from_nowhere);
        lab.exchange(&[from_nowhere]);
        send(&mut lab, PEER, b"fine");
    }

    /// A checksum of zero means none (RFC 768); a wrong one is dropped.
    fn a_missing_checksum_is_fine_and_a_wrong_one_is_not(kind) {
        let mut lab = Lab::new(kind);
        let mut frame = build::udp(6000, target(PEER), b"unchecked");
        frame[40..42].fill(0);
        lab.input(&frame);
        assert_eq!(one(lab.world().take_sent_datagrams()).data, b"unchecked");
        frame[40] = 0x55;
        lab.input(&frame);
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::UdpChecksum), 1);
    }

    /// CVE-2021-3594: a UDP length below its header, or beyond the packet, is dropped.
    fn a_wrong_udp_length_is_dropped(kind) {
        let mut lab = Lab::new(kind);
        for len in [0_u16, 7, 100] {
            let mut frame = build::udp(6000, target(PEER), b"x");
            frame[38..40].copy_from_slice(&len.to_be_bytes());
            build::fix_checksums(&mut frame);
            lab.input(&frame);
        }
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::UdpHeader), 3);
    }

    /// passt bug 209: multicast was reflected. It is not forwarded, nor is broadcast.
    fn multicast_and_broadcast_are_not_forwarded(kind) {
        let mut lab = Lab::new(kind);
        for address in ["224.0.0.251", "239.255.255.250", "255.255.255.255", "10.0.2.255", "10.0.2.77"] {
            lab.input(&build::udp(6000, (address.parse().expect("an address"), 1900), b"x"));
        }
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::IpDestination), 5, "nor are those to another guest");
        lab.settle();
        lab.expect_nothing();
    }

    /// passt bug 99: a reply leaves from the address that was written to, and shows it as its
    /// source, also when the remote answers from elsewhere.
    fn a_reply_shows_the_address_it_came_from(kind) {
        let mut lab = Lab::with(kind, |setup| {
            setup.config.udp_filtering = UdpFiltering::EndpointIndependent;
        });
        let socket = send(&mut lab, PEER, b"a");
        for from in [PEER, SERVER, OTHER] {
            reply(&mut lab, socket, from, b"b");
            assert_eq!(lab.take_one_udp().src, from);
        }
    }
}

/// An ICMP error quotes IP header and at least eight bytes of what the guest sent (RFC 792).
fn assert_quotes(data: &[u8], src_port: u16, dst: SocketAddrV4) {
    let ip = slirpkit_tests::packet::parse_ip_header(data);
    assert_eq!((ip.src, ip.dst), (GUEST_IP, *dst.ip()));
    assert_eq!(data[20..22], src_port.to_be_bytes());
    assert_eq!(data[22..24], dst.port().to_be_bytes());
}
