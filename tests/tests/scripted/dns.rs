//! The DNS relay at the name server's address.

use slirpkit_tests::packet::Udp;

use crate::prelude::*;

const FIRST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53)), 53);
const SECOND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 53)), 53);

fn lab_with(kind: HostKind, resolvers: &[SocketAddr]) -> Lab {
    let mut lab = Lab::new(kind);
    lab.nat.set_resolvers(resolvers);
    lab
}

/// The guest asks from `port`; returns the datagrams that went to resolvers.
fn ask(lab: &mut Lab, port: u16, id: u16) -> Vec<slirpkit_tests::host::SentDatagram> {
    lab.input(&build::udp(port, (DNS, 53), &build::dns_query(id, "www.example.org")));
    lab.settle();
    lab.world().take_sent_datagrams()
}

/// A response to a query, with `tail` behind the question.
fn response(query: &[u8], tail: &[u8]) -> Vec<u8> {
    let mut message = query.to_vec();
    message[2] |= 0x80;
    message[3] |= 0x80;
    message.extend(tail);
    message
}

fn assert_servfail(answer: &Udp, id: u16) {
    assert_eq!(answer.src, SocketAddrV4::new(DNS, 53));
    assert_eq!(answer.data[..2], id.to_be_bytes());
    assert_eq!(answer.data[2] & 0x80, 0x80, "a response");
    assert_eq!(answer.data[3] & 15, 2, "SERVFAIL");
}

on_both_hosts! {
    /// A query and its answer, from the address that was asked.
    fn a_query_is_relayed_and_its_answer_too(kind) {
        let mut lab = lab_with(kind, &[FIRST]);
        let sent = one(ask(&mut lab, 6000, 0xbeef));
        assert_eq!(sent.meta.remote, FIRST);
        assert_eq!(sent.data[2..], build::dns_query(0xbeef, "www.example.org")[2..]);
        let answer = response(&sent.data, b"records");
        lab.world().deliver_from(sent.token, FIRST, &answer);
        lab.settle();
        let udp = lab.take_one_udp();
        assert_eq!(udp.src, SocketAddrV4::new(DNS, 53));
        assert_eq!(udp.dst, SocketAddrV4::new(GUEST_IP, 6000));
        assert_eq!(udp.data[..2], [0xbe, 0xef]);
        assert!(udp.data.ends_with(b"records"));
        assert_eq!(lab.counters().dns_queries, 1);
    }

    /// slirp4netns #280: queries failed where the resolver is at 127.0.0.53. The ban on the
    /// host's loopback is for the guest, not for the relay.
    fn a_resolver_on_loopback_is_not_banned(kind) {
        let stub = "127.0.0.53:53".parse().expect("an address");
        let mut lab = lab_with(kind, &[stub]);
        let sent = one(ask(&mut lab, 6000, 1));
        assert_eq!(sent.meta.remote, stub);
        let answer = response(&sent.data, b"");
        lab.world().deliver_from(sent.token, stub, &answer);
        lab.settle();
        assert_eq!(lab.take_one_udp().src, SocketAddrV4::new(DNS, 53));
    }

    /// slirp4netns #347: only the first name server was ever used. When it is silent the guest's
    /// repetition goes to the next.
    fn a_silent_resolver_is_followed_by_the_next(kind) {
        let mut lab = lab_with(kind, &[FIRST, SECOND]);
        assert_eq!(one(ask(&mut lab, 6000, 7)).meta.remote, FIRST);
        lab.advance(seconds(5));
        let again = one(ask(&mut lab, 6000, 7));
        assert_eq!(again.meta.remote, SECOND);
        let answer = response(&again.data, b"");
        lab.world().deliver_from(again.token, SECOND, &answer);
        lab.settle();
        assert_eq!(lab.take_one_udp().data[..2], [0, 7]);
        assert_eq!(one(ask(&mut lab, 6001, 8)).meta.remote, SECOND, "who answers is kept");
    }

    /// A resolver that refuses is followed by the next at once.
    fn a_refusing_resolver_is_followed_by_the_next(kind) {
        let mut lab = lab_with(kind, &[FIRST, SECOND]);
        lab.world().fail_send_datagram(HostError::NetUnreachable);
        let sent = one(ask(&mut lab, 6000, 7));
        assert_eq!(sent.meta.remote, SECOND);
        lab.world().report(sent.token, DatagramError {
            error: HostError::Refused,
            offender: None,
            remote: SECOND,
            quoted: None,
        });
        lab.settle();
        lab.expect_nothing();
        assert_eq!(one(ask(&mut lab, 6001, 8)).meta.remote, FIRST);
    }

    /// slirp4netns #280: an unusable resolver was silence. With none at all, and with all of them
    /// out of reach, the guest is told at once.
    fn without_a_usable_resolver_the_answer_is_servfail(kind) {
        let mut lab = lab_with(kind, &[]);
        assert!(ask(&mut lab, 6000, 0x1234).is_empty());
        assert_servfail(&lab.take_one_udp(), 0x1234);
        lab.nat.set_resolvers(&[FIRST, SECOND]);
        for _ in 0..2 {
            lab.world().fail_send_datagram(HostError::NetUnreachable);
        }
        assert!(ask(&mut lab, 6001, 0x5678).is_empty());
        assert_servfail(&lab.take_one_udp(), 0x5678);
        assert_eq!((lab.counters().dns_failures, lab.dropped(DropReason::NoResolver)), (2, 2));
    }

    /// openvmm #3196, lima #501: a flood hung the guest's resolver. Beyond what there is memory
    /// for the answer is SERVFAIL or the oldest query gives way; the last one is answered.
    fn a_flood_of_queries_is_bounded_and_the_last_is_answered(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 16);
        lab.nat.set_resolvers(&[FIRST]);
        let mut last = None;
        for n in 0..500 {
            last = ask(&mut lab, 6000 + n, n).pop().or(last);
        }
        assert!(lab.nat.flow_count() <= 16);
        assert!(lab.world().open_sockets() <= 17);
        lab.take();
        let last = last.expect("queries went out");
        let answer = response(&last.data, b"");
        lab.world().deliver_from(last.token, FIRST, &answer);
        lab.settle();
        assert_eq!(lab.take_one_udp().data.len(), answer.len());
    }

    /// Ten queries at once from one port, as resolvers send A and AAAA: each has its answer.
    fn queries_of_one_port_do_not_mix(kind) {
        let mut lab = lab_with(kind, &[FIRST]);
        let mut sent = Vec::new();
        for id in 0..10 {
            sent.extend(ask(&mut lab, 6000, id));
        }
        for query in sent.iter().rev() {
            let answer = response(&query.data, b"");
            lab.world().deliver_from(query.token, FIRST, &answer);
        }
        lab.settle();
        let mut ids: Vec<u8> =
            lab.take().iter().map(|packet| packet.udp().expect("UDP").data[1]).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..10).collect::<Vec<u8>>());
    }

    /// A stranger's datagram to the relay's socket goes no further.
    fn a_strangers_answer_is_dropped(kind) {
        let mut lab = lab_with(kind, &[FIRST]);
        let sent = one(ask(&mut lab, 6000, 1));
        let answer = response(&sent.data, b"poison");
        lab.world().deliver_from(sent.token, SECOND, &answer);
        lab.settle();
        lab.expect_nothing();
    }

    /// virtualbox #136, UTM #2353: the host's resolvers change while the guest runs.
    fn resolvers_can_be_replaced_at_run_time(kind) {
        let mut lab = lab_with(kind, &[FIRST]);
        ask(&mut lab, 6000, 1);
        lab.nat.set_resolvers(&[SECOND]);
        assert_eq!(lab.nat.config().resolvers, [SECOND]);
        assert_eq!(one(ask(&mut lab, 6001, 2)).meta.remote, SECOND);
    }

    /// rootlesskit PR 438: a resolver of the other family serves a guest of this one.
    fn a_resolver_can_have_an_ipv6_address(kind) {
        let six = "[2001:db8::53]:53".parse().expect("an address");
        let mut lab = lab_with(kind, &[six]);
        let sent = one(ask(&mut lab, 6000, 9));
        assert_eq!(sent.meta.remote, six);
        let answer = response(&sent.data, b"");
        lab.world().deliver_from(sent.token, six, &answer);
        lab.settle();
        assert_eq!(lab.take_one_udp().src, SocketAddrV4::new(DNS, 53));
    }

    /// Resolvers of both families: each is asked by a socket of its own family, also where the
    /// guest asks again from the same port, and one that there is no socket for is passed over.
    fn resolvers_of_both_families_follow_each_other(kind) {
        let six = "[2001:db8::53]:53".parse().expect("an address");
        let mut lab = lab_with(kind, &[FIRST, six]);
        assert_eq!(one(ask(&mut lab, 6000, 7)).meta.remote, FIRST);
        let again = one(ask(&mut lab, 6000, 7));
        assert_eq!(again.meta.remote, six);
        assert_eq!(lab.world().open_sockets(), 1, "the other socket is closed");
        lab.world().deliver_from(again.token, six, &response(&again.data, b""));
        lab.settle();
        assert_eq!(lab.take_one_udp().data[..2], [0, 7]);
        lab.world().fail_open(HostError::Unsupported);
        assert_eq!(one(ask(&mut lab, 6001, 8)).meta.remote, FIRST);
        lab.expect_nothing();
        assert_eq!(lab.dropped(DropReason::HostError), 0, "it was not dropped");
    }

    /// The socket that a query went out by is given up for one of the other family, which there is
    /// not. What it had to say comes too late and harms nothing, and the next query is relayed.
    fn an_event_of_a_socket_given_up_is_harmless(kind) {
        let six = "[2001:db8::53]:53".parse().expect("an address");
        let mut lab = lab_with(kind, &[FIRST]);
        let sent = one(ask(&mut lab, 6000, 7));
        lab.world().report(sent.token, DatagramError {
            error: HostError::Refused,
            offender: None,
            remote: FIRST,
            quoted: None,
        });
        lab.nat.set_resolvers(&[six]);
        lab.world().fail_open(HostError::Unsupported);
        lab.input(&build::udp(6000, (DNS, 53), &build::dns_query(8, "www.example.org")));
        assert_eq!(lab.world().state(sent.token), State::Closed);
        assert_servfail(&lab.take_one_udp(), 8);
        lab.settle();
        lab.expect_nothing();
        assert_eq!(one(ask(&mut lab, 6000, 9)).meta.remote, six);
    }

    /// Malformed queries, and responses posing as queries, go nowhere.
    fn malformed_queries_go_nowhere(kind) {
        let mut lab = lab_with(kind, &[FIRST]);
        let query = build::dns_query(1, "example.org");
        for len in 0..12 {
            lab.input(&build::udp(6000, (DNS, 53), &query[..len]));
        }
        lab.input(&build::udp(6000, (DNS, 53), &response(&query, b"")));
        lab.settle();
        assert!(lab.world().sent_datagrams().is_empty());
        assert_eq!(lab.dropped(DropReason::Dns), 13);
        lab.expect_nothing();
    }

    /// libslirp #16: all ports of the name server's address were redirected. Only 53 is.
    fn only_port_53_is_relayed(kind) {
        let mut lab = lab_with(kind, &[FIRST]);
        lab.input(&build::udp(6000, (DNS, 54), &build::dns_query(1, "example.org")));
        lab.settle();
        assert!(lab.world().sent_datagrams().is_empty());
    }

    /// DNS over TCP, which a truncated answer asks for, goes to the resolver in use.
    fn dns_over_tcp_reaches_the_resolver(kind) {
        let mut lab = lab_with(kind, &[SECOND, FIRST]);
        lab.world().fail_send_datagram(HostError::NetUnreachable);
        assert_eq!(one(ask(&mut lab, 6000, 7)).meta.remote, FIRST);
        let mut guest = TcpGuest::new(4000, SocketAddrV4::new(DNS, 53));
        guest.open(&mut lab, Some(1460));
        guest.send(&mut lab, b"\0\x0cquery");
        let stream = lab.world().stream_to(FIRST);
        assert_eq!(lab.world().sent(stream), b"\0\x0cquery");
    }
}
