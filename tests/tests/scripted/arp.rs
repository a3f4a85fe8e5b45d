//! ARP.

use slirp_nat::{Forward, Protocol};
use slirpkit_tests::packet::{Arp, Packet};

use crate::prelude::*;

const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 7), 7);

const fn guest(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 2, last)
}

/// Whom the frames for the guests ask for; all that is not a question is `others`.
fn questions(lab: &mut Lab) -> (Vec<Ipv4Addr>, Vec<Packet>) {
    let (questions, others): (Vec<_>, Vec<_>) =
        lab.take().into_iter().partition(|packet| packet.arp().is_some());
    (questions.iter().filter_map(|packet| packet.arp().map(|arp| arp.target)).collect(), others)
}

on_both_hosts! {
    /// The gateway and the name server have hardware addresses, and nobody else does, so that a
    /// guest's probe for its own address (RFC 5227) is not answered.
    fn only_the_router_addresses_are_answered_for(kind) {
        let mut lab = Lab::new(kind);
        for address in [GATEWAY, DNS] {
            lab.input(&build::arp_request(address));
            let packet = one(lab.take());
            let reply = *packet.arp().expect("ARP");
            assert_eq!(reply.operation, 2);
            assert_eq!((reply.sender, reply.target), (address, GUEST_IP));
            assert_eq!(reply.target_mac, GUEST_MAC);
            assert_eq!(reply.sender_mac, packet.src_mac);
            assert_eq!(packet.dst_mac, GUEST_MAC);
            assert_eq!(packet.bytes.len(), 60);
        }
        for address in [GUEST_IP, Ipv4Addr::new(10, 0, 2, 4), Ipv4Addr::new(8, 8, 8, 8)] {
            lab.input(&build::arp_request(address));
            lab.expect_nothing();
        }
        assert_eq!(lab.counters().arp_replies, 2);
    }

    /// The router can be written to at the address its reply has named.
    fn frames_to_the_address_in_the_reply_arrive(kind) {
        let mut lab = Lab::new(kind);
        lab.input(&build::arp_request(GATEWAY));
        let Arp { sender_mac, .. } = *one(lab.take()).arp().expect("ARP");
        let mut frame = build::ping(GATEWAY, 1, 1, b"x");
        frame[..6].copy_from_slice(&sender_mac);
        lab.input(&frame);
        assert_eq!(lab.take_one_icmp().kind, 0);
    }

    /// A probe (sender address 0) for a router address is answered: the address is taken.
    fn a_probe_for_a_router_address_is_answered(kind) {
        let mut lab = Lab::new(kind);
        lab.input(&build::arp(1, (GUEST_MAC, Ipv4Addr::UNSPECIFIED), ([0; 6], GATEWAY)));
        let packet = one(lab.take());
        let reply = packet.arp().expect("ARP");
        assert_eq!((reply.operation, reply.sender), (2, GATEWAY));
    }

    /// CVE-2020-29130: ARP shorter than its header. Every prefix is dropped without an answer.
    fn truncated_arp_is_dropped(kind) {
        let mut lab = Lab::new(kind);
        let frame = build::arp_request(GATEWAY);
        for len in 14..frame.len() {
            lab.input(&frame[..len]);
        }
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::Arp), (frame.len() - 14) as u64);
    }

    /// Fields that are not Ethernet and IPv4 are dropped.
    fn foreign_arp_is_dropped(kind) {
        let mut lab = Lab::new(kind);
        for (offset, value) in [(15, 6), (16, 0x86), (18, 8), (19, 16), (21, 9)] {
            let mut frame = build::arp_request(GATEWAY);
            frame[offset] = value;
            lab.input(&frame);
        }
        lab.expect_nothing();
    }

    /// Two guests on one link: each gets what is its own.
    fn replies_go_to_the_hardware_address_that_asked(kind) {
        let mut lab = Lab::new(kind);
        let (other_mac, other_ip) = ([0x52, 0x54, 0, 9, 9, 9], Ipv4Addr::new(10, 0, 2, 16));
        let mut frame = build::ping(GATEWAY, 1, 1, b"x");
        frame[6..12].copy_from_slice(&other_mac);
        frame[26..30].copy_from_slice(&other_ip.octets());
        build::fix_checksums(&mut frame);
        lab.input(&frame);
        let packet = one(lab.take());
        assert_eq!(packet.dst_mac, other_mac);
        assert_eq!(packet.ip().map(|ip| ip.dst), Some(other_ip));
        lab.input(&build::ping(GATEWAY, 1, 1, b"x"));
        assert_eq!(one(lab.take()).dst_mac, GUEST_MAC);
    }

    /// RFC 1122 2.3.2.1: each once a second, however often a forward to a guest that is gone gets
    /// its turn.
    fn two_guests_that_are_gone_are_asked_for_once_a_second_each(kind) {
        let mut lab = Lab::new(kind);
        for last in [50, 51] {
            let host = SocketAddr::from((Ipv4Addr::UNSPECIFIED, u16::from(last)));
            let rule = Forward { protocol: Protocol::Udp, host, guest: (guest(last), 53).into() };
            lab.add_forward(rule).expect("a forward");
            let socket = lab.world().bound(host);
            lab.world().deliver_from(socket, PEER, b"hello");
        }
        lab.settle();
        for _ in 0..3 {
            for _ in 0..100 {
                lab.input(&build::gratuitous_arp());
            }
            let (asked, others) = questions(&mut lab);
            assert_eq!((asked, others.len()), (vec![guest(50), guest(51)], 0));
            lab.advance(seconds(1));
        }
    }

    /// Flows that wait for many guests ask for some of them in a second, whoever shows up
    /// meanwhile, and each gets what waits for it once it answers.
    fn a_frame_sets_off_no_flood_of_questions(kind) {
        let mut lab = Lab::with(kind, |setup| setup.rings = 64);
        for last in 100..150 {
            let source = (guest(last), 6000);
            let ip = build::IpBuilder { src: source.0, ..build::IpBuilder::new(*PEER.ip(), build::UDP) };
            lab.input(&ip.frame(&build::udp_datagram(source, (*PEER.ip(), PEER.port()), b"a")));
        }
        for socket in lab.world().open_datagrams() {
            lab.world().deliver_from(socket, PEER, b"b");
        }
        lab.settle();
        let (asked, others) = questions(&mut lab);
        assert_eq!((asked.len(), others.len()), (16, 16), "the last sixteen are known");
        let before = lab.counters().flow_visits;
        for last in 20..60 {
            lab.input(&build::arp(2, (GUEST_MAC, guest(last)), (build::ROUTER_MAC, GATEWAY)));
        }
        assert!(questions(&mut lab).0.is_empty(), "within the same second");
        assert_eq!(lab.counters().flow_visits, before + 34, "those that wait look again once");
        let mut received = others.len();
        let mut asked = asked;
        for _ in 0..4 {
            for guest in asked {
                lab.input(&build::arp(2, (GUEST_MAC, guest), (build::ROUTER_MAC, GATEWAY)));
            }
            lab.advance(seconds(1));
            lab.input(&build::arp(2, (GUEST_MAC, guest(20)), (build::ROUTER_MAC, GATEWAY)));
            let (more, others) = questions(&mut lab);
            (asked, received) = (more, received + others.len());
        }
        assert_eq!((asked.len(), received), (0, 50));
    }
}
