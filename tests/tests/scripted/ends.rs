//! Every flow has an end, and what was promised is kept until then.

use slirp_nat::Protocol;
use slirp_nat::host::Ready;
use slirpkit_tests::packet::Body;

use crate::prelude::*;

const PUBLIC: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 2222);
const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 200), 51_000);

/// How many of the frames for the guest ask who has its address.
fn questions(lab: &mut Lab) -> usize {
    let is_question = |body: &Body| matches!(body, Body::Arp(arp) if arp.operation == 1 && arp.target == GUEST_IP);
    lab.take().iter().filter(|packet| is_question(&packet.body)).count()
}

on_both_hosts! {
    /// Parked bytes were acknowledged. They reach the host even if both ends have closed meanwhile
    /// and TIME-WAIT is over, and the socket is closed after them.
    fn parked_bytes_outlive_the_connection(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().ends(stream);
        lab.settle();
        guest.drain(&mut lab);
        lab.world().take_short(stream, &[3, 0, 0, 0, 0]);
        guest.send(&mut lab, b"abcdefghij");
        guest.send_fin(&mut lab);
        assert_eq!(lab.take_tcp().last().expect("an ACK").ack, guest.snd_nxt);
        lab.advance(seconds(30));
        assert_eq!(lab.world().sent(stream), b"abc");
        assert!(!lab.world().is_write_shut(stream), "bytes are parked");
        for _ in 0..5 {
            lab.world().drain(stream);
            lab.settle();
        }
        assert_eq!(lab.world().sent(stream), b"abcdefghij");
        assert_eq!(lab.world().state(stream), State::Closed);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// The same if the guest ended first.
    fn parked_bytes_outlive_a_last_ack(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().take_short(stream, &[3, 0, 0, 0, 0]);
        guest.send(&mut lab, b"abcdefghij");
        guest.send_fin(&mut lab);
        lab.world().ends(stream);
        lab.settle();
        guest.drain(&mut lab);
        assert_eq!(lab.world().sent(stream), b"abc");
        for _ in 0..5 {
            lab.world().drain(stream);
            lab.settle();
        }
        assert_eq!(lab.world().sent(stream), b"abcdefghij");
        assert_eq!(lab.world().state(stream), State::Closed);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// passt bug 179: the guest vanished while its connection was idle. Two hours of silence, nine
    /// keep-alives 75 s apart (RFC 9293 3.8.4), and the server is told.
    fn an_idle_guest_that_vanished_is_found(kind) {
        let mut lab = Lab::new(kind);
        let guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.advance(seconds(2 * 3600 - 1));
        lab.expect_nothing();
        lab.advance(seconds(9 * 75));
        let probes = lab.take_tcp();
        assert_eq!(probes.len(), 9);
        assert!(probes.iter().all(|p| p.is_pure_ack() && p.seq == guest.rcv_nxt.wrapping_sub(1)));
        assert_eq!(lab.world().state(stream), State::Open);
        lab.advance(seconds(76));
        assert_eq!(lab.world().state(stream), State::Reset);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// A host that fails while parked bytes outlive the guest's side ends the flow, too.
    fn a_failure_ends_the_wait_for_room(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().take_short(stream, &[3]);
        guest.send(&mut lab, b"abcdefghij");
        guest.send_fin(&mut lab);
        lab.world().ends(stream);
        lab.settle();
        guest.drain(&mut lab);
        assert_eq!(lab.nat.flow_count(), 1);
        lab.world().fails(stream, HostError::Reset);
        lab.world().spurious(stream, Ready { error: true, ..Ready::default() });
        lab.settle();
        assert_eq!(lab.nat.flow_count(), 0);
        assert_ne!(lab.world().state(stream), State::Open);
    }

    /// A host that has ended its stream and then takes no more: there is nothing left to peek that
    /// would tell the guest, and it is reset all the same.
    fn a_reset_behind_the_end_of_the_hosts_stream_is_told(kind) {
        let mut lab = Lab::new(kind);
        let mut guest = lab.connect(4000, SERVER);
        let stream = lab.world().stream_to(SERVER);
        lab.world().ends(stream);
        lab.settle();
        guest.drain(&mut lab);
        lab.world().fails(stream, HostError::Reset);
        guest.send(&mut lab, b"anybody there?");
        assert!(lab.take_tcp().iter().any(|segment| segment.has(RST)));
        assert_eq!(lab.nat.flow_count(), 0);
        assert_ne!(lab.world().state(stream), State::Open);
    }

    /// A client of a guest that is not there: the guest is asked for, seldom, and the client is
    /// reset in the end.
    fn a_client_of_an_absent_guest_is_given_up(kind) {
        let mut lab = Lab::without_guest(kind, |_| {});
        lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        assert_eq!(questions(&mut lab), 1);
        lab.advance(seconds(600));
        assert!((3..20).contains(&questions(&mut lab)));
        assert_eq!(lab.world().state(client), State::Reset);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// There are more guests than the router remembers. One that it has forgotten is asked for, seldom,
    /// until it says where it is, since a question may get lost; if it never does, it is given up.
    fn a_guest_that_was_forgotten_is_asked_for_again(kind) {
        for answers in [true, false] {
            let mut lab = Lab::new(kind);
            let mut guest = lab.connect(4000, SERVER);
            for number in 1..=16 {
                let other = ([0x52, 0x54, 0, 0, 0, number], Ipv4Addr::new(10, 0, 2, 100 + number));
                lab.input(&build::arp(1, other, ([0; 6], other.1)));
            }
            let stream = lab.world().stream_to(SERVER);
            lab.world().sends(stream, b"hello");
            lab.settle();
            assert_eq!(questions(&mut lab), 1);
            lab.advance(seconds(60));
            assert!((3..20).contains(&questions(&mut lab)));
            if answers {
                lab.input(&build::gratuitous_arp());
                assert_eq!(guest.absorb(&lab.take_tcp()).0, b"hello");
                guest.send_ack(&mut lab);
                lab.advance(seconds(3600));
                lab.expect_nothing();
            } else {
                lab.advance(seconds(3600));
                assert_eq!(lab.world().state(stream), State::Reset);
                assert_eq!(lab.nat.flow_count(), 0);
            }
        }
    }

    /// What waits for the guest's hardware address goes on as soon as that is known, however many
    /// flows there are, and the guest is asked once.
    fn all_that_wait_for_the_guest_go_on_at_once(kind) {
        let mut lab = Lab::without_guest(kind, |_| {});
        lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
        for port in 0..10 {
            lab.world().dial(PUBLIC, SocketAddrV4::new(*CLIENT.ip(), 51_000 + port));
        }
        lab.settle();
        assert_eq!(questions(&mut lab), 1);
        lab.input(&build::gratuitous_arp());
        assert_eq!(lab.take_tcp().iter().filter(|segment| segment.flags == SYN).count(), 10);
    }
}
