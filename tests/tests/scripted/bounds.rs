//! A call ends whatever guest and host do, no wake-up is lost, and every loss is counted once.

use slirp_nat::Protocol;
use slirp_nat::host::Ready;
use slirp_nat::link::Offload;
use slirpkit_tests::build::IpBuilder;
use slirpkit_tests::packet::Body;

use crate::prelude::*;

const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 7), 7);
const PUBLIC: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 2222);
const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 200), 51_000);

on_both_hosts! {
    /// A socket that does nothing but fail does not keep a call from its end, and is tried again
    /// whenever the guest sends.
    fn a_socket_that_fails_again_and_again_is_left_alone(kind) {
        let mut lab = Lab::new(kind);
        lab.input(&build::udp(5000, (*PEER.ip(), PEER.port()), b"a"));
        let socket = one(lab.world().open_datagrams());
        for _ in 0..100 {
            lab.world().fail_receive(socket, HostError::Other);
        }
        lab.world().deliver_from(socket, PEER, b"b");
        lab.settle();
        assert!((1..=16).contains(&lab.log().count("receive_datagram")));
        for _ in 0..10 {
            lab.input(&build::udp(5000, (*PEER.ip(), PEER.port()), b"a"));
        }
        lab.settle();
        assert_eq!(lab.take_one_udp().data, b"b");
    }

    /// More errors than one turn takes: one event announces them all, and all are told.
    fn every_error_that_one_event_announces_is_told(kind) {
        let mut lab = Lab::new(kind);
        lab.input(&build::udp(5000, (*PEER.ip(), PEER.port()), b"a"));
        let socket = one(lab.world().open_datagrams());
        for _ in 0..40 {
            let report = DatagramError {
                error: HostError::Refused,
                offender: None,
                remote: PEER.into(),
                quoted: None,
            };
            lab.world().report(socket, report);
        }
        while lab.host.next_event().is_some() {}
        lab.world().spurious(socket, Ready { error: true, ..Ready::default() });
        lab.settle();
        assert_eq!(lab.take().len(), 40);
        assert_eq!((lab.counters().icmp_errors_out, lab.dropped(DropReason::HostError)), (40, 40));
    }

    /// A host out of descriptors: the client waits in the backlog, no call loops, and it is taken
    /// as soon as something else happens.
    fn a_client_that_could_not_be_accepted_is_not_forgotten(kind) {
        let mut lab = Lab::new(kind);
        lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
        for _ in 0..16 {
            lab.world().fail_accept(PUBLIC, HostError::NoResources);
        }
        lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        assert_eq!(lab.dropped(DropReason::HostError), 16);
        lab.expect_nothing();
        lab.input(&build::gratuitous_arp());
        assert_eq!(lab.take_one_tcp().flags, SYN);
    }

    /// Datagrams for a guest that is not known yet stay with the host until it is.
    fn a_datagram_of_a_client_waits_for_the_guest(kind) {
        let mut lab = Lab::without_guest(kind, |_| {});
        lab.forward(Protocol::Udp, PUBLIC, 53).expect("a forward");
        let socket = lab.world().bound(PUBLIC);
        lab.world().deliver_from(socket, CLIENT, b"hello");
        lab.settle();
        let question = one(lab.take());
        assert!(matches!(question.body, Body::Arp(arp) if arp.target == GUEST_IP));
        lab.input(&build::gratuitous_arp());
        assert_eq!(lab.take_one_udp().data, b"hello");
    }

    /// A super-segment of datagrams reaches a host that cannot cut it as single datagrams, and one
    /// of more pieces than any stack makes goes nowhere.
    fn a_host_that_cannot_cut_gets_single_datagrams(kind) {
        let mut lab = Lab::new(kind);
        let cut = |size| Offload { segment_size: size, ..Offload::default() };
        let frame = build::udp(5000, (*PEER.ip(), PEER.port()), &pattern(250));
        lab.input_offloaded(&frame, cut(100));
        let sent = lab.world().take_sent_datagrams();
        let lengths: Vec<usize> = sent.iter().map(|datagram| datagram.data.len()).collect();
        assert_eq!(lengths, [100, 100, 50]);
        assert!(sent.iter().all(|datagram| datagram.meta.segment_size == 0));
        assert_eq!(lab.counters().datagrams_in, 3);
        lab.input_offloaded(&frame, cut(1));
        assert!(lab.world().take_sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::TooLong), 1);
    }

    /// RFC 1122 3.2.2, 4.2.3.10: what is sent to no single host is answered by nothing.
    fn nothing_answers_what_is_sent_to_many(kind) {
        let mut lab = Lab::new(kind);
        let many = [
            Ipv4Addr::BROADCAST,
            Ipv4Addr::new(10, 0, 2, 255),
            Ipv4Addr::new(10, 0, 2, 0),
            Ipv4Addr::new(224, 0, 0, 22),
            Ipv4Addr::new(240, 0, 0, 1),
        ];
        for address in many {
            let stray = TcpGuest::new(4000, SocketAddrV4::new(address, 80));
            lab.input(&stray.segment().flags(ACK).frame());
            lab.input(&stray.segment().flags(SYN).frame());
            lab.input(&build::ping(address, 1, 1, b"ping"));
            let igmp = IpBuilder { ttl: 1, ..IpBuilder::new(address, 2) };
            lab.input(&igmp.frame(b"igmp"));
        }
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::IpDestination), 20);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// A guest that goes through addresses makes no flow do anything.
    fn new_addresses_cost_no_walk_of_the_table(kind) {
        let mut lab = Lab::new(kind);
        for port in 4000..4040 {
            lab.connect(port, SERVER);
        }
        let before = lab.counters().flow_visits;
        for last in 20..250 {
            let sender = (GUEST_MAC, Ipv4Addr::new(10, 0, 2, last));
            lab.input(&build::arp(1, sender, ([0; 6], sender.1)));
        }
        assert_eq!(lab.counters().flow_visits, before);
    }

    /// A gap is asked for, and the counter says so.
    fn duplicate_acks_are_counted(kind) {
        let mut lab = Lab::with(kind, |setup| setup.pool = 0);
        let mut guest = lab.connect(4000, SERVER);
        let frames = guest.segments(&pattern(4380));
        lab.input(&frames[1]);
        lab.input(&frames[2]);
        assert_eq!(lab.counters().tcp_duplicate_acks_out, 2);
        assert_eq!(lab.dropped(DropReason::TcpGap), 2);
    }

    /// An error event alone says nothing of datagrams.
    fn an_error_event_of_a_forward_reads_nothing(kind) {
        let mut lab = Lab::new(kind);
        lab.forward(Protocol::Udp, PUBLIC, 53).expect("a forward");
        let socket = lab.world().bound(PUBLIC);
        lab.world().spurious(socket, Ready { error: true, ..Ready::default() });
        lab.settle();
        assert_eq!(lab.log().count("receive_datagram"), 0);
        assert_eq!(lab.log().count("datagram_error"), 1);
    }
}
