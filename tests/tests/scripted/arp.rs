//! ARP.

use slirpkit_tests::packet::Arp;

use crate::prelude::*;

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
}
