//! Ping of the gateway and of the world, and ICMP from the guest.

use slirp_nat::host::DatagramKind;

use crate::prelude::*;

const FAR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// An ICMP error of the guest about `packet`, which it was sent: not what was asked for at its
/// port (3), or out of time (11).
fn about(packet: &[u8], kind: u8) -> Vec<u8> {
    let code = if kind == 3 { 3 } else { 1 };
    let message = build::icmp_message(kind, code, [0; 4], &packet[..28]);
    build::IpBuilder::new(GATEWAY, build::ICMP).frame(&message)
}

/// The guest, or a router before it, says that `packet` is longer than what it carries (RFC 1191).
fn too_long(packet: &[u8], mtu: u16) -> Vec<u8> {
    let [high, low] = mtu.to_be_bytes();
    let message = build::icmp_message(3, 4, [0, 0, high, low], &packet[..28]);
    build::IpBuilder::new(GATEWAY, build::ICMP).frame(&message)
}

/// The same packet with another sequence number.
fn renumbered(packet: &[u8], sequence: u32) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[24..28].copy_from_slice(&sequence.to_be_bytes());
    packet
}

fn far() -> SocketAddr {
    SocketAddr::from((FAR, 0))
}

on_both_hosts! {
    /// The gateway and the name server answer by themselves, with the bytes that were sent
    /// (serenity #3428), at any size that fits.
    fn the_gateway_answers_with_the_same_bytes(kind) {
        let mut lab = Lab::new(kind);
        for address in [GATEWAY, DNS] {
            for len in [0, 1, 56, 1472] {
                lab.input(&build::ping(address, 77, 3, &pattern(len)));
                let packet = one(lab.take());
                let reply = packet.icmp().expect("ICMP");
                assert_eq!((reply.kind, reply.code), (0, 0));
                assert_eq!(reply.rest, [0, 77, 0, 3]);
                assert_eq!(reply.data, pattern(len));
                let ip = packet.ip().expect("IP");
                assert_eq!((ip.src, ip.dst), (address, GUEST_IP));
            }
        }
        assert_eq!(lab.counters().echo_replies, 8);
        assert_eq!(lab.world().open_sockets(), 0);
    }

    /// A ping larger than the MTU, in fragments, is answered in fragments.
    fn the_gateway_answers_a_ping_larger_than_the_mtu(kind) {
        let mut lab = Lab::new(kind);
        let message = build::echo_message(8, 1, 1, &pattern(4000));
        let ip = build::IpBuilder::new(GATEWAY, build::ICMP);
        lab.input_batch(&ip.fragments_for_mtu(&message, 1500));
        lab.settle();
        let (_, payload) = slirpkit_tests::packet::reassemble(&lab.take());
        assert_eq!(payload, build::echo_message(0, 1, 1, &pattern(4000)));
    }

    /// The same with too little memory for the answer, and with another answer on its way: each
    /// has its own name.
    fn a_long_ping_that_cannot_be_answered_is_a_named_drop(kind) {
        let ip = build::IpBuilder::new(GATEWAY, build::ICMP);
        let ping = ip.fragments_for_mtu(&build::echo_message(8, 1, 1, &pattern(4000)), 1500);
        let mut lab = Lab::with(kind, |setup| setup.datagram = 4000);
        lab.input_batch(&ping);
        assert_eq!(lab.dropped(DropReason::TooLong), 1);
        let mut lab = Lab::new(kind);
        lab.link.set_frames(1);
        lab.input_batch(&ping);
        lab.input_batch(&ping);
        assert_eq!(lab.dropped(DropReason::ReplyQueueFull), 1);
        assert_eq!((lab.dropped(DropReason::TooLong), lab.counters().echo_replies), (0, 1));
    }

    /// gvisor-tap-vsock #428: pings of dead hosts were answered. A reply comes if the host has
    /// one, and not before; its identifier is the guest's, its bytes are the far end's.
    fn the_world_answers_only_if_it_does(kind) {
        let mut lab = Lab::new(kind);
        lab.input(&build::ping(FAR, 4242, 7, b"payload"));
        lab.settle();
        lab.expect_nothing();
        let sent = one(lab.world().take_sent_datagrams());
        assert_eq!(lab.world().datagram_kind(sent.token), DatagramKind::Ping);
        assert_eq!(sent.meta.remote.ip(), IpAddr::V4(FAR));
        assert_eq!(sent.data[0], 8);
        assert_eq!(sent.data[6..], *b"\x00\x07payload");
        // Hosts may put an identifier of their own in its place.
        let meta = DatagramMeta { ttl: 55, ..DatagramMeta::new(far()) };
        lab.world().deliver(sent.token, &build::echo_message(0, 9, 7, b"payload"), meta);
        lab.settle();
        let packet = one(lab.take());
        let reply = packet.icmp().expect("ICMP");
        assert_eq!((reply.kind, reply.rest), (0, [0x10, 0x92, 0, 7]));
        assert_eq!(reply.data, b"payload");
        assert_eq!(packet.ip().map(|ip| (ip.src, ip.ttl)), Some((FAR, 54)));
    }

    /// lima #537: duplicate and corrupt replies. Two pings in flight, answered the other way
    /// round, stay apart, and so do two programs that ping one host.
    fn replies_find_the_ping_they_answer(kind) {
        let mut lab = Lab::new(kind);
        for (id, sequence) in [(1, 1), (1, 2), (2, 1)] {
            lab.input(&build::ping(FAR, id, sequence, &[id as u8, sequence as u8]));
        }
        lab.settle();
        let sent = lab.world().take_sent_datagrams();
        for ping in sent.iter().rev() {
            let mut reply = ping.data.clone();
            reply[0] = 0;
            reply[2..4].fill(0);
            let field = slirpkit_tests::sum::checksum(&reply);
            reply[2..4].copy_from_slice(&field.to_be_bytes());
            lab.world().deliver_from(ping.token, far(), &reply);
        }
        lab.settle();
        let mut seen: Vec<_> = lab.take().iter().map(|p| {
            let reply = p.icmp().expect("ICMP");
            (reply.rest[1], reply.rest[3], reply.data.clone())
        }).collect();
        seen.sort();
        assert_eq!(seen, [(1, 1, vec![1, 1]), (1, 2, vec![1, 2]), (2, 1, vec![2, 1])]);
    }

    /// virtualbox #479: `traceroute -I` was useless. The TTL is carried, and what a router on the
    /// way reports is told with its address.
    fn traceroute_sees_each_hop(kind) {
        let mut lab = Lab::new(kind);
        let message = build::echo_message(8, 5, 1, b"probe");
        let mut ip = build::IpBuilder::new(FAR, build::ICMP);
        ip.ttl = 1;
        let packet = one(lab.exchange(&[ip.frame(&message)]));
        assert_eq!(packet.ip().map(|ip| ip.src), Some(GATEWAY));
        assert_eq!(packet.icmp().map(|icmp| icmp.kind), Some(11));
        ip.ttl = 2;
        lab.exchange(&[ip.frame(&message)]);
        let sent = one(lab.world().take_sent_datagrams());
        assert_eq!(sent.meta.ttl, 1);
        let router = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
        lab.world().report(sent.token, DatagramError {
            error: HostError::HopLimit,
            offender: Some(router),
            remote: far(),
            quoted: sent.data.first_chunk().copied(),
        });
        lab.settle();
        let packet = one(lab.take());
        assert_eq!(packet.ip().map(|ip| IpAddr::V4(ip.src)), Some(router));
        let icmp = packet.icmp().expect("ICMP");
        assert_eq!(icmp.kind, 11);
        assert_eq!(icmp.data[20], 8, "the quoted echo request");
        assert_eq!(icmp.data[24..26], [0, 5], "with the guest's identifier");
    }

    /// OP-TEE #1521: where ping does not pass there is a clear error, not silence.
    fn a_host_that_cannot_ping_is_told_of(kind) {
        let mut lab = Lab::new(kind);
        lab.world().fail_open(HostError::Denied);
        let packet = one(lab.exchange(&[build::ping(FAR, 1, 1, b"x")]));
        assert_eq!(packet.icmp().map(|icmp| icmp.kind), Some(3));
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// A host without ping at all is not asked.
    fn a_host_without_ping_is_not_asked(kind) {
        let mut lab = Lab::new(kind);
        lab.world().capabilities.ping = false;
        let packet = one(lab.exchange(&[build::ping(FAR, 1, 1, b"x")]));
        assert_eq!(packet.icmp().map(|icmp| icmp.kind), Some(3));
        assert_eq!((lab.nat.flow_count(), lab.world().open_sockets()), (0, 0));
        assert_eq!(lab.dropped(DropReason::HostError), 1);
    }

    /// RFC 9293 3.9.2.2: a guest that says by ICMP that nobody listens refuses, as by a reset.
    fn an_unreachable_port_of_the_guest_refuses_a_client(kind) {
        let mut lab = Lab::new(kind);
        let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 2222));
        lab.forward(slirp_nat::Protocol::Tcp, at, 22).expect("a forward");
        let client = lab.world().dial(at, SERVER);
        lab.settle();
        let syn = one(lab.take());
        let number = syn.tcp().expect("TCP").seq;
        for other in [number.wrapping_sub(1), number.wrapping_add(1)] {
            lab.exchange(&[about(&renumbered(&syn.bytes[14..], other), 3)]);
        }
        assert_eq!((lab.dropped(DropReason::IcmpQuote), lab.nat.flow_count()), (2, 1));
        lab.exchange(&[about(&syn.bytes[14..], 3)]);
        assert_eq!(lab.world().state(client), State::Reset);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// RFC 5927: once connected, anybody could make up such an error. It changes nothing, nor does
    /// one about what was never sent, or about a datagram, whose sender cannot be told.
    fn other_errors_of_the_guest_change_nothing(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().sends(stream, b"hello");
        lab.settle();
        let segment = one(lab.take());
        let mut stranger = segment.bytes[14..].to_vec();
        stranger[22..24].copy_from_slice(&4001_u16.to_be_bytes());
        lab.exchange(&[build::udp(6000, (FAR, 7), b"x")]);
        let socket = one(lab.world().take_sent_datagrams()).token;
        lab.world().deliver_from(socket, SocketAddr::from((FAR, 7)), b"y");
        lab.settle();
        let datagram = one(lab.take());
        for quoted in [&segment.bytes[14..], &stranger, &datagram.bytes[14..]] {
            lab.exchange(&[about(quoted, 3)]);
        }
        lab.exchange(&[about(&segment.bytes[14..], 11)]);
        assert_eq!(lab.dropped(DropReason::IcmpType), 4);
        assert_eq!((lab.nat.flow_count(), lab.world().state(stream)), (2, State::Open));
        assert_eq!(guest.absorb(&[segment.tcp().expect("TCP").clone()]).0, b"hello");
    }

    /// RFC 5927 4.1: a lower MTU is believed of a segment that is on its way, and of no other.
    fn a_lower_mtu_is_believed_of_what_is_on_its_way_only(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        let first = guest.rcv_nxt;
        lab.world().sends(stream, &pattern(2000));
        lab.settle();
        let old = lab.take()[0].bytes[14..].to_vec();
        for forged in [first.wrapping_sub(1), first + 2000, first + 70_000, !first] {
            lab.exchange(&[too_long(&renumbered(&old, forged), 576)]);
        }
        assert_eq!(lab.dropped(DropReason::IcmpQuote), 4);
        guest.rcv_nxt = first + 2000;
        guest.send_ack(&mut lab);
        lab.exchange(&[too_long(&old, 576)]);
        assert_eq!(lab.dropped(DropReason::IcmpQuote), 5);
        lab.world().sends(stream, &pattern(1460));
        lab.settle();
        let whole = one(lab.take());
        assert_eq!(whole.tcp().map(|tcp| tcp.data.len()), Some(1460));
        lab.exchange(&[too_long(&whole.bytes[14..], 0)]);
        assert_eq!(lab.dropped(DropReason::IcmpType), 1, "as before RFC 1191");
        lab.exchange(&[too_long(&renumbered(&old, first + 3459), 576)]);
        guest.rcv_nxt = first + 3460;
        guest.send_ack(&mut lab);
        lab.world().sends(stream, &pattern(1460));
        lab.settle();
        let lengths: Vec<usize> = lab.take_tcp().iter().map(|tcp| tcp.data.len()).collect();
        assert_eq!(lengths, [536, 536, 388]);
        assert_eq!(lab.dropped(DropReason::IcmpQuote), 5);
    }

    /// ICMP other than echo requests makes nothing.
    fn other_messages_are_dropped(kind) {
        let mut lab = Lab::new(kind);
        let ip = build::IpBuilder::new(FAR, build::ICMP);
        for kind in [0, 4, 5, 9, 10, 13, 15, 17, 40, 255] {
            lab.input(&ip.frame(&build::icmp_message(kind, 0, [0; 4], &[0; 28])));
        }
        assert_eq!(lab.dropped(DropReason::IcmpType), 10);
        assert_eq!(lab.nat.flow_count(), 0);
        lab.settle();
        lab.expect_nothing();
    }

    /// Wrong checksum, and messages shorter than their header.
    fn malformed_messages_are_dropped(kind) {
        let mut lab = Lab::new(kind);
        let mut frame = build::ping(GATEWAY, 1, 1, b"abcdefgh");
        frame[45] ^= 1;
        lab.exchange(&[frame]);
        assert_eq!(lab.dropped(DropReason::IcmpChecksum), 1);
        let ip = build::IpBuilder::new(GATEWAY, build::ICMP);
        for len in 0..8 {
            lab.exchange(&[ip.frame(&build::icmp_message(8, 0, [0; 4], b"")[..len])]);
        }
        assert_eq!(lab.dropped(DropReason::IcmpHeader) + lab.dropped(DropReason::IcmpChecksum), 9);
        assert_eq!(lab.counters().echo_replies, 0);
    }

    /// RFC 1122 3.2.2: no error about an error, a fragment behind the first, or a broadcast.
    fn errors_are_not_answered_by_errors(kind) {
        let mut lab = Lab::new(kind);
        let mut ip = build::IpBuilder::new(FAR, build::ICMP);
        ip.ttl = 1;
        lab.input(&ip.frame(&build::icmp_message(3, 3, [0; 4], &[0; 28])));
        ip.offset = 800;
        lab.input(&ip.frame(&[0; 40]));
        lab.settle();
        lab.expect_nothing();
    }

    /// Ping flows end by themselves.
    fn a_ping_flow_expires(kind) {
        let mut lab = Lab::new(kind);
        lab.exchange(&[build::ping(FAR, 1, 1, b"x")]);
        assert_eq!(lab.nat.flow_count(), 1);
        lab.advance(seconds(600));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_eq!(lab.world().open_sockets(), 0);
    }
}
