//! What the guest may reach of the host itself: nothing, unless allowed.

use crate::prelude::*;

const OWN: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

fn forbidden() -> Vec<Ipv4Addr> {
    let mut addresses = vec![GATEWAY, OWN, Ipv4Addr::UNSPECIFIED];
    let others = ["127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.254", "0.1.2.3"];
    // The last is where clouds tell secrets to whoever is on the host.
    for other in others.into_iter().chain(["169.254.1.1", "169.254.169.254"]) {
        addresses.push(other.parse().expect("an address"));
    }
    addresses
}

on_both_hosts! {
    /// openvmm #3617, passt bugs 113 and 212: all of 127/8, the gateway and the host's own
    /// addresses are refused by default, and the guest is told.
    fn tcp_to_the_host_itself_is_refused(kind) {
        for address in forbidden() {
            let mut lab = Lab::new(kind);
            let guest = TcpGuest::new(4000, SocketAddrV4::new(address, 22));
            let packets = lab.exchange(&[guest.syn(Some(1460)).frame()]);
            assert!(!packets.iter().any(|p| p.tcp().is_some_and(Tcp::is_syn_ack)), "{address}");
            assert_eq!(lab.world().connects(), 0, "{address}");
            assert_eq!(lab.nat.flow_count(), 0, "{address}");
        }
        let mut lab = Lab::new(kind);
        let guest = TcpGuest::new(4000, SocketAddrV4::new(GATEWAY, 22));
        let packet = one(lab.exchange(&[guest.syn(Some(1460)).frame()]));
        assert!(
            packet.tcp().is_some_and(Tcp::is_reset) || packet.icmp().is_some_and(|i| i.kind == 3),
            "the guest is told: {packet:?}"
        );
    }

    /// The same for UDP and ping.
    fn datagrams_to_the_host_itself_are_refused(kind) {
        for address in forbidden() {
            let mut lab = Lab::new(kind);
            lab.exchange(&[build::udp(6000, (address, 111), b"x")]);
            if address != GATEWAY {
                lab.exchange(&[build::ping(address, 1, 1, b"x")]);
            }
            assert!(lab.world().sent_datagrams().is_empty(), "{address}");
            assert_eq!(lab.world().open_sockets(), 0, "{address}");
            assert!(lab.nat.stats().dropped_total() >= 1, "{address}: the refusal is counted");
        }
    }

    /// The name server's address leads to resolvers at its one port, and nowhere at any other.
    fn other_ports_of_the_name_server_lead_nowhere(kind) {
        let mut lab = Lab::with(kind, |setup| {
            let resolver = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
            setup.config.resolvers.push(resolver).expect("room for a resolver");
        });
        let guest = TcpGuest::new(4000, SocketAddrV4::new(DNS, 22));
        lab.input(&guest.syn(Some(1460)).frame());
        lab.input(&build::udp(6000, (DNS, 54), &build::dns_query(1, "example.org")));
        assert_eq!((lab.world().connects(), lab.world().open_sockets()), (0, 0));
        assert_eq!(lab.dropped(DropReason::Denied), 2);
        let query = TcpGuest::new(4001, SocketAddrV4::new(DNS, 53));
        lab.input(&query.syn(Some(1460)).frame());
        assert_eq!(lab.world().connects(), 1);
    }

    /// The address finally connected to is looked at, too: a host may have substituted it.
    fn a_connection_that_ends_up_at_the_host_itself_is_refused(kind) {
        for address in ["127.0.0.1", "127.9.9.9", "198.51.100.7", "::1", "::", "fe80::1"] {
            let mut lab = Lab::new(kind);
            let real = SocketAddr::new(address.parse().expect("an address"), 80);
            lab.world().on_connect(SERVER, Connect::SucceedsAt(real));
            let guest = TcpGuest::new(4000, SERVER);
            let packets = lab.exchange(&[guest.syn(Some(1460)).frame()]);
            assert!(!packets.iter().any(|p| p.tcp().is_some_and(Tcp::is_syn_ack)), "{address}");
            assert_eq!(lab.world().open_sockets(), 0, "{address}");
            assert_eq!(lab.nat.flow_count(), 0, "{address}");
            let stream = lab.world().stream_to(real);
            assert_eq!(lab.world().sent(stream), b"");
        }
    }

    /// Where it is allowed, the gateway's address means the host's loopback.
    fn if_allowed_the_gateway_is_the_hosts_loopback(kind) {
        let mut lab = Lab::with(kind, |setup| setup.config.host_loopback = true);
        let mut guest = TcpGuest::new(4000, SocketAddrV4::new(GATEWAY, 8080));
        guest.open(&mut lab, Some(1460));
        guest.send(&mut lab, b"hello");
        let local: SocketAddr = "127.0.0.1:8080".parse().expect("an address");
        let stream = lab.world().stream_to(local);
        assert_eq!(lab.world().sent(stream), b"hello");
        lab.world().sends(stream, b"hi");
        assert_eq!(guest.receive(&mut lab, 2), b"hi");
    }

    /// openvmm #3407: a datagram from 127.0.0.1 reached the guest as such. It comes from the
    /// gateway.
    fn if_allowed_a_reply_from_loopback_comes_from_the_gateway(kind) {
        let mut lab = Lab::with(kind, |setup| setup.config.host_loopback = true);
        lab.exchange(&[build::udp(6000, (GATEWAY, 7), b"x")]);
        let sent = one(lab.world().take_sent_datagrams());
        let local: SocketAddr = "127.0.0.1:7".parse().expect("an address");
        assert_eq!(sent.meta.remote, local);
        lab.world().deliver_from(sent.token, local, b"y");
        lab.settle();
        assert_eq!(lab.take_one_udp().src, SocketAddrV4::new(GATEWAY, 7));
    }

    /// The host's own addresses are reached under their own name, if allowed.
    fn if_allowed_the_hosts_own_address_is_reached(kind) {
        let mut lab = Lab::with(kind, |setup| setup.config.host_loopback = true);
        let mut guest = TcpGuest::new(4000, SocketAddrV4::new(OWN, 80));
        guest.open(&mut lab, Some(1460));
        let stream = lab.world().stream_to(SocketAddr::from((OWN, 80)));
        guest.send(&mut lab, b"x");
        assert_eq!(lab.world().sent(stream), b"x");
        lab.take();
        lab.input(&build::udp(6000, (OWN, 7), b"x"));
        let sent = one(lab.world().take_sent_datagrams());
        lab.world().deliver_from(sent.token, SocketAddrV4::new(OWN, 7), b"y");
        lab.settle();
        assert_eq!(lab.take_one_udp().src, SocketAddrV4::new(OWN, 7));
    }
}
