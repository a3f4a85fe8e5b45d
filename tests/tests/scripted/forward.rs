//! Port forwards: connections and datagrams from outside.

use slirp_nat::{ForwardError, Protocol};
use slirpkit_tests::packet::Udp;

use crate::prelude::*;

const PUBLIC: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 2222);
const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 2222);
const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 200), 51_000);

fn forwarded(kind: HostKind, protocol: Protocol, host: SocketAddr) -> Lab {
    let mut lab = Lab::new(kind);
    lab.forward(protocol, host, 22).expect("a forward");
    lab
}

on_both_hosts! {
    /// A client reaches the guest, with its own address (slirp4netns #250).
    fn a_client_reaches_the_guest_under_its_own_address(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.deliver_event().expect("an event");
        let (mut guest, syn) = TcpGuest::accept(&mut lab, 22);
        assert_eq!(syn.src, CLIENT);
        assert_eq!(syn.mss(), Some(1460));
        lab.take();
        lab.world().sends(client, b"hello");
        assert_eq!(guest.receive(&mut lab, 5), b"hello");
        guest.send(&mut lab, b"welcome");
        assert_eq!(lab.world().sent(client), b"welcome");
        assert_eq!(lab.counters().tcp_accepted, 1);
    }

    /// openvmm #3742: a client on the host's loopback was shown as 127.0.0.1. It is the gateway.
    fn a_client_on_loopback_is_shown_as_the_gateway(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, LOCAL);
        lab.world().dial(LOCAL, "127.0.0.1:51000".parse::<SocketAddr>().expect("an address"));
        lab.settle();
        let (_, syn) = TcpGuest::accept(&mut lab, 22);
        assert_eq!(syn.src, SocketAddrV4::new(GATEWAY, 51_000));
    }

    /// Two clients with the same port, one of them on loopback and one the gateway's twin, are
    /// two connections.
    fn clients_with_equal_ports_stay_apart(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        let clients = ["192.0.2.1:5000", "192.0.2.2:5000", "127.0.0.1:5000", "127.0.0.2:5000"];
        for client in clients {
            lab.world().dial(PUBLIC, client.parse::<SocketAddr>().expect("an address"));
        }
        lab.settle();
        let syns = lab.take_tcp();
        let mut sources: Vec<_> = syns.iter().map(|syn| syn.src).collect();
        sources.sort();
        sources.dedup();
        assert_eq!(sources.len(), 4, "{syns:?}");
    }

    /// libslirp: the client was accepted before the guest had answered. Nothing is read from it
    /// until then, and if the guest refuses, it is reset, never closed. RFC 9293 3.10.7.3, second
    /// check.
    fn a_guest_that_refuses_resets_the_client(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.world().sends(client, b"too early");
        lab.settle();
        let syn = lab.take_one_tcp();
        assert_eq!(syn.data, b"");
        assert_eq!(lab.world().unconsumed(client), 9, "nothing was read");
        let guest = TcpGuest::answering(&syn, 22);
        lab.input(&guest.segment().flags(RST | ACK).seq(0).frame());
        lab.settle();
        assert_eq!(lab.world().state(client), State::Reset);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// passt bug 153: a booting guest got one single SYN. It is repeated with backoff; a guest
    /// that comes up late gets the connection and what the client had sent.
    fn a_guest_that_boots_late_gets_the_connection(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.world().sends(client, b"waiting");
        lab.settle();
        let first = lab.take_one_tcp();
        lab.advance(seconds(20));
        let again = lab.take_tcp();
        assert!((2..=8).contains(&again.len()), "{} repetitions in 20 s", again.len());
        assert!(again.iter().all(|s| s.flags == SYN && s.seq == first.seq));
        let mut guest = TcpGuest::answering(&first, 22);
        let seq = guest.snd_nxt.wrapping_sub(1);
        lab.input(&guest.segment().flags(SYN | ACK).seq(seq).mss(1460).frame());
        assert_eq!(guest.receive(&mut lab, 7), b"waiting");
    }

    /// A guest that never answers: the client is reset in the end, and nothing stays.
    fn a_guest_that_never_answers_is_given_up(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.advance(seconds(600));
        assert_eq!(lab.world().state(client), State::Reset);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// microsoft/WSL #41139, libslirp: of ten simultaneous clients two were served. One
    /// event may announce many.
    fn ten_clients_at_once_are_all_accepted(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        for port in 0..10 {
            lab.world().dial(PUBLIC, SocketAddrV4::new(*CLIENT.ip(), 51_000 + port));
        }
        lab.settle();
        assert_eq!(lab.take_tcp().iter().filter(|s| s.flags == SYN).count(), 10);
        assert_eq!(lab.nat.flow_count(), 10);
    }

    /// An accept that fails is no end of the listener.
    fn a_failed_accept_leaves_the_listener(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        lab.world().fail_accept(PUBLIC, HostError::NoResources);
        lab.settle();
        lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        assert_eq!(lab.take_one_tcp().flags, SYN);
    }

    /// A full table refuses clients by a reset, and takes them again later.
    fn a_full_table_resets_clients(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 2);
        lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
        let _first = lab.connect(4000, SERVER);
        let second = lab.connect(4001, SERVER);
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        assert_eq!(lab.world().state(client), State::Reset);
        second.send_reset(&mut lab);
        lab.take();
        lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        assert_eq!(lab.take_one_tcp().flags, SYN);
    }

    /// openvmm #3780: the window of the guest's SYN-ACK was scaled by mistake.
    fn the_window_of_the_guests_syn_ack_is_not_scaled(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.world().sends(client, &pattern(20_000));
        lab.settle();
        let syn = lab.take_one_tcp();
        let guest = TcpGuest::answering(&syn, 22);
        let mut answer =
            guest.segment().flags(SYN | ACK).seq(guest.snd_nxt.wrapping_sub(1)).window(3000).mss(1460);
        if syn.window_scale().is_some() {
            answer = answer.window_scale(7);
        }
        lab.input(&answer.frame());
        lab.settle();
        let flying = bytes_of(&lab.take_tcp()).len();
        assert!(flying <= 3000, "{flying} bytes in a window of 3000");
    }

    /// Both open at once (RFC 9293 3.5, figure 8): the guest connects to the client's very address
    /// while our SYN is under way. RFC 9293 3.10.7.3, fourth check.
    fn both_open_at_once(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        let syn = lab.take_one_tcp();
        let mut guest = TcpGuest::answering(&syn, 22);
        guest.snd_nxt -= 1;
        lab.input(&guest.syn(Some(1460)).frame());
        lab.settle();
        guest.snd_nxt += 1;
        let answer = lab.take_one_tcp();
        assert!(answer.is_syn_ack(), "{answer:?}");
        assert_eq!((answer.seq, answer.ack), (syn.seq, guest.snd_nxt));
        let both = guest.segment().flags(SYN | ACK).seq(guest.snd_nxt.wrapping_sub(1)).mss(1460);
        lab.input(&both.frame());
        guest.send_ack(&mut lab);
        lab.settle();
        lab.take();
        lab.world().sends(client, b"hello");
        assert_eq!(guest.receive(&mut lab, 5), b"hello");
    }

    /// A client that resets while the guest is asked: the guest is reset, too.
    fn a_client_that_gives_up_resets_the_guest(kind) {
        let mut lab = forwarded(kind, Protocol::Tcp, PUBLIC);
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        let (guest, _) = TcpGuest::accept(&mut lab, 22);
        lab.take();
        lab.world().fails(client, HostError::Reset);
        lab.settle();
        let reset = lab.take_one_tcp();
        assert!(reset.is_reset());
        assert_eq!(reset.seq, guest.rcv_nxt);
        assert_eq!(lab.nat.flow_count(), 0);
    }

    /// passt bug 80: a UDP forward between differing ports was answered from the wrong one.
    fn a_udp_forward_translates_ports_both_ways(kind) {
        let mut lab = forwarded(kind, Protocol::Udp, PUBLIC);
        let socket = lab.world().bound(PUBLIC);
        lab.world().deliver_from(socket, CLIENT, b"question");
        lab.deliver_event().expect("an event");
        let question = lab.take_one_udp();
        let expected = Udp {
            src: CLIENT,
            dst: SocketAddrV4::new(GUEST_IP, 22),
            data: b"question".to_vec(),
        };
        assert_eq!(question, expected);
        lab.input(&build::udp(22, (*CLIENT.ip(), CLIENT.port()), b"answer"));
        lab.settle();
        let sent = one(lab.world().take_sent_datagrams());
        assert_eq!((sent.token, sent.meta.remote), (socket, CLIENT.into()));
        assert_eq!(sent.data, b"answer");
    }

    /// passt bug 99: the answer leaves from the address that the client had written to.
    fn a_udp_answer_leaves_from_the_address_written_to(kind) {
        let mut lab = forwarded(kind, Protocol::Udp, PUBLIC);
        let socket = lab.world().bound(PUBLIC);
        let written_to = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9));
        let meta = DatagramMeta { local: Some(written_to), ..DatagramMeta::new(CLIENT.into()) };
        lab.world().deliver(socket, b"question", meta);
        lab.settle();
        lab.take();
        lab.input(&build::udp(22, (*CLIENT.ip(), CLIENT.port()), b"answer"));
        lab.settle();
        assert_eq!(one(lab.world().take_sent_datagrams()).meta.local, Some(written_to));
    }

    /// The same for a client that writes to two addresses of the host from one port.
    fn answers_leave_from_each_of_the_addresses_written_to(kind) {
        let mut lab = forwarded(kind, Protocol::Udp, PUBLIC);
        let socket = lab.world().bound(PUBLIC);
        let addresses = [9, 10].map(|last| IpAddr::V4(Ipv4Addr::new(198, 51, 100, last)));
        let mut shown = Vec::new();
        for local in addresses {
            let meta = DatagramMeta { local: Some(local), ..DatagramMeta::new(CLIENT.into()) };
            lab.world().deliver(socket, b"question", meta);
            lab.settle();
            shown.push(lab.take_one_udp().src);
        }
        for (client, local) in shown.iter().zip(addresses) {
            lab.input(&build::udp(22, (*client.ip(), client.port()), b"answer"));
            let sent = one(lab.world().take_sent_datagrams());
            assert_eq!((sent.meta.remote, sent.meta.local), (CLIENT.into(), Some(local)));
        }
    }

    /// RFC 4787 REQ-5: a client that the guest has answered is not forgotten before two minutes,
    /// and what the guest sends meanwhile leaves by the forward.
    fn a_udp_client_that_was_answered_is_kept_for_two_minutes(kind) {
        let mut lab = forwarded(kind, Protocol::Udp, PUBLIC);
        let socket = lab.world().bound(PUBLIC);
        lab.world().deliver_from(socket, CLIENT, b"question");
        lab.settle();
        let answer = build::udp(22, (*CLIENT.ip(), CLIENT.port()), b"answer");
        for _ in 0..3 {
            lab.input(&answer);
            assert_eq!(one(lab.world().take_sent_datagrams()).token, socket);
            lab.advance(seconds(119));
        }
        lab.advance(seconds(2));
        assert_eq!(lab.nat.flow_count(), 0);
        lab.world().deliver_from(socket, CLIENT, b"question");
        lab.advance(seconds(31));
        assert_eq!(lab.nat.flow_count(), 0, "one that nobody answers goes sooner");
    }

    /// One client of two forwards to one port of the guest: each answer leaves by its own.
    fn two_forwards_keep_one_client_apart(kind) {
        let mut lab = forwarded(kind, Protocol::Udp, PUBLIC);
        let second = SocketAddr::new(PUBLIC.ip(), PUBLIC.port() + 1);
        lab.forward(Protocol::Udp, second, 22).expect("a forward");
        let sockets = [PUBLIC, second].map(|address| lab.world().bound(address));
        for socket in sockets {
            lab.world().deliver_from(socket, CLIENT, b"question");
            lab.settle();
            let shown = lab.take_one_udp().src;
            lab.input(&build::udp(22, (*shown.ip(), shown.port()), b"answer"));
            let sent = one(lab.world().take_sent_datagrams());
            assert_eq!((sent.token, sent.meta.remote), (socket, CLIENT.into()));
        }
    }

    /// A datagram of a client that is longer than the NAT's buffer is dropped, never cut.
    fn a_truncated_datagram_of_a_client_is_dropped(kind) {
        let mut lab = Lab::with(kind, |setup| setup.datagram = 2000);
        lab.forward(Protocol::Udp, PUBLIC, 22).expect("a forward");
        let socket = lab.world().bound(PUBLIC);
        lab.world().deliver_from(socket, CLIENT, &pattern(3000));
        lab.settle();
        lab.expect_nothing();
        assert_eq!((lab.dropped(DropReason::TooLong), lab.nat.flow_count()), (1, 0));
    }

    /// So is a client at the host's own address, which the guest may not write to.
    fn a_udp_client_at_the_host_itself_is_shown_as_the_gateway(kind) {
        let mut lab = forwarded(kind, Protocol::Udp, PUBLIC);
        let socket = lab.world().bound(PUBLIC);
        let client = SocketAddr::new(lab.world().own_addresses[0], 51_000);
        lab.world().deliver_from(socket, client, b"question");
        lab.settle();
        let shown = lab.take_one_udp().src;
        assert_eq!(*shown.ip(), GATEWAY);
        lab.input(&build::udp(22, (GATEWAY, shown.port()), b"answer"));
        assert_eq!(one(lab.world().take_sent_datagrams()).meta.remote, client);
    }

    /// A UDP client on loopback is shown as the gateway, and answers find it.
    fn a_udp_client_on_loopback_is_shown_as_the_gateway(kind) {
        let mut lab = forwarded(kind, Protocol::Udp, LOCAL);
        let socket = lab.world().bound(LOCAL);
        let client: SocketAddr = "127.0.0.1:51000".parse().expect("an address");
        lab.world().deliver_from(socket, client, b"question");
        lab.settle();
        let question = lab.take_one_udp();
        assert_eq!(*question.src.ip(), GATEWAY);
        lab.input(&build::udp(22, (GATEWAY, question.src.port()), b"answer"));
        lab.settle();
        let sent = one(lab.world().take_sent_datagrams());
        assert_eq!((sent.token, sent.meta.remote), (socket, client));
    }

    /// libslirp: a datagram for a guest whose hardware address is not known yet. It is asked for,
    /// once, and the datagrams wait in the host's socket.
    fn udp_clients_before_the_guest_is_known_wait(kind) {
        let mut lab = Lab::without_guest(kind, |_| {});
        lab.forward(Protocol::Udp, PUBLIC, 22).expect("a forward");
        let socket = lab.world().bound(PUBLIC);
        for text in [b"hello?", b"hello!"] {
            lab.world().deliver_from(socket, CLIENT, text);
            lab.settle();
        }
        let question = one(lab.take());
        assert_eq!(question.arp().map(|arp| (arp.operation, arp.target)), Some((1, GUEST_IP)));
        let packets = lab.exchange(&[build::gratuitous_arp()]);
        let texts: Vec<_> =
            packets.iter().filter_map(|p| p.udp().map(|udp| udp.data.clone())).collect();
        assert_eq!(texts, [b"hello?".to_vec(), b"hello!".to_vec()]);
        assert_eq!(lab.dropped(DropReason::NoNeighbour), 0);
    }

    /// A TCP client in the same state: the guest is asked for, and gets its SYN once known.
    fn a_tcp_client_before_the_guest_is_known_waits(kind) {
        let mut lab = Lab::without_guest(kind, |_| {});
        lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
        lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        for packet in lab.take() {
            assert_eq!(packet.arp().map(|arp| (arp.operation, arp.target)), Some((1, GUEST_IP)));
        }
        lab.exchange(&[build::gratuitous_arp()]);
        lab.advance(seconds(10));
        assert!(lab.take_tcp().iter().all(|s| s.flags == SYN));
        assert_eq!(lab.nat.flow_count(), 1);
    }

    /// The guest of a forward without an address is the one that has the latest lease.
    fn the_latest_lease_is_the_guest_meant(kind) {
        let mut lab = Lab::without_guest(kind, |setup| {
            setup.config.first_lease = Ipv4Addr::new(10, 0, 2, 40);
        });
        lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
        lab.exchange(&[build::Dhcp::discover().frame()]);
        let leased = Ipv4Addr::new(10, 0, 2, 40);
        lab.exchange(&[build::Dhcp::request(leased, GATEWAY).frame()]);
        lab.exchange(&[build::arp(1, (GUEST_MAC, leased), ([0; 6], leased))]);
        lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        assert_eq!(lab.take_one_tcp().dst, SocketAddrV4::new(leased, 22));
    }

    /// utmapp/libslirp #1, libslirp #92: duplicates are refused with a reason, others are not
    /// (ports were compared in two byte orders: 0x0100 against 0x0001).
    fn duplicates_are_refused_and_byte_swapped_twins_are_not(kind) {
        let mut lab = Lab::new(kind);
        let at = |port| SocketAddr::new(PUBLIC.ip(), port);
        lab.forward(Protocol::Tcp, at(0x0100), 22).expect("the first");
        assert_eq!(lab.forward(Protocol::Tcp, at(0x0100), 23), Err(ForwardError::Duplicate));
        lab.forward(Protocol::Tcp, at(0x0001), 22).expect("its twin");
        lab.forward(Protocol::Udp, at(0x0100), 22).expect("the other protocol");
        lab.world().fail_bind(at(80), HostError::Denied);
        let denied = ForwardError::Host(HostError::Denied);
        assert_eq!(lab.forward(Protocol::Tcp, at(80), 80), Err(denied));
        assert_eq!(lab.world().open_sockets(), 3);
    }

    /// Impossible guests are refused, and so is one forward too many.
    fn impossible_forwards_are_refused(kind) {
        let mut lab = Lab::with(kind, |setup| setup.forwards = 1);
        assert_eq!(lab.forward(Protocol::Tcp, PUBLIC, 0), Err(ForwardError::Guest));
        let rule = slirp_nat::Forward {
            protocol: Protocol::Tcp,
            host: PUBLIC,
            guest: "192.168.7.7:22".parse().expect("an address"),
        };
        assert_eq!(lab.add_forward(rule), Err(ForwardError::Guest));
        let guest = "[2001:db8::15]:22".parse().expect("an address");
        assert_eq!(lab.add_forward(slirp_nat::Forward { guest, ..rule }), Err(ForwardError::Guest));
        lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
        let other = SocketAddr::new(PUBLIC.ip(), 1);
        assert_eq!(lab.forward(Protocol::Tcp, other, 22), Err(ForwardError::TableFull));
    }

    /// A forward that is removed closes its listener; its connections go on.
    fn a_removed_forward_keeps_its_connections(kind) {
        let mut lab = Lab::new(kind);
        let id = lab.forward(Protocol::Tcp, PUBLIC, 22).expect("a forward");
        let client = lab.world().dial(PUBLIC, CLIENT);
        lab.settle();
        let (mut guest, _) = TcpGuest::accept(&mut lab, 22);
        lab.take();
        let listener = lab.world().bound(PUBLIC);
        assert!(lab.nat.remove_forward(id, &mut *lab.host));
        assert!(!lab.nat.remove_forward(id, &mut *lab.host));
        assert_eq!(lab.world().state(listener), State::Closed);
        guest.send(&mut lab, b"still here");
        assert_eq!(lab.world().sent(client), b"still here");
        lab.forward(Protocol::Tcp, PUBLIC, 23).expect("the port is free again");
    }

    /// Its UDP flows share its socket, and end with it.
    fn a_removed_udp_forward_ends_its_flows(kind) {
        let mut lab = Lab::new(kind);
        let id = lab.forward(Protocol::Udp, PUBLIC, 22).expect("a forward");
        let socket = lab.world().bound(PUBLIC);
        for port in [51_000, 51_001] {
            let client = SocketAddrV4::new(*CLIENT.ip(), port);
            lab.world().deliver_from(socket, client, b"question");
        }
        lab.exchange(&[build::udp(6000, (*SERVER.ip(), 7), b"another flow")]);
        assert_eq!(lab.nat.flow_count(), 3);
        lab.world().take_sent_datagrams();
        assert!(lab.nat.remove_forward(id, &mut *lab.host));
        assert_eq!(lab.nat.flow_count(), 1);
        assert_eq!(lab.world().state(socket), State::Closed);
        lab.input(&build::udp(22, (*CLIENT.ip(), CLIENT.port()), b"answer"));
        let sent = one(lab.world().take_sent_datagrams());
        assert_ne!(sent.token, socket, "a datagram of its own");
    }

    /// A crowd of clients is taken in turns, with output due at once in between, so that others
    /// are served as well.
    fn a_crowd_is_taken_in_turns(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 128);
        lab.forward(Protocol::Udp, PUBLIC, 22).expect("a forward");
        let socket = lab.world().bound(PUBLIC);
        for port in 0..100 {
            let client = SocketAddrV4::new(*CLIENT.ip(), 51_000 + port);
            lab.world().deliver_from(socket, client, b"question");
        }
        lab.deliver_event().expect("an event");
        assert_eq!(lab.take().len(), 64);
        let due = lab.nat.poll_at().expect("the rest is due");
        assert_eq!((due.at, due.why), (lab.now(), slirp_nat::Due::Output));
        lab.settle();
        assert_eq!(lab.take().len(), 36);
    }

    /// Clients that the guest sees under one address and port get ports near their own, as far as
    /// 64 of those go.
    fn more_twins_than_ports_are_dropped(kind) {
        let mut lab = Lab::with(kind, |setup| setup.flows = 128);
        lab.forward(Protocol::Udp, LOCAL, 22).expect("a forward");
        let socket = lab.world().bound(LOCAL);
        for host in 1..=65 {
            let client = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, host), 5000);
            lab.world().deliver_from(socket, client, b"question");
        }
        lab.settle();
        let mut ports: Vec<_> =
            lab.take().iter().map(|packet| packet.udp().expect("UDP").src.port()).collect();
        ports.sort_unstable();
        assert_eq!(ports, (5000..5064).collect::<Vec<_>>());
        assert_eq!(lab.dropped(DropReason::FlowTableFull), 1);
    }
}
