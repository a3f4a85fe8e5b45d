//! DHCP and BOOTP (RFC 2131, RFC 2132, RFC 951).

use slirpkit_tests::Packet;
use slirpkit_tests::build::Dhcp;

use crate::prelude::*;

const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);

/// A reply, taken apart.
#[derive(Debug)]
struct Reply {
    packet: Packet,
    message: Vec<u8>,
}

impl Reply {
    fn new(packet: Packet) -> Self {
        let udp = packet.udp().expect("UDP");
        assert_eq!((udp.src.port(), udp.dst.port()), (67, 68));
        assert!(udp.data.len() >= 300, "a reply of {} bytes", udp.data.len());
        let message = udp.data.clone();
        assert_eq!(message[..4], [2, 1, 6, 0]);
        assert_eq!(message[236..240], [99, 130, 83, 99], "magic cookie");
        Self { packet, message }
    }

    fn option(&self, wanted: u8) -> Option<&[u8]> {
        let mut rest = &self.message[240..];
        loop {
            match rest {
                [255, ..] => return None,
                [0, after @ ..] => rest = after,
                [code, len, ..] => {
                    let len = usize::from(*len);
                    if *code == wanted {
                        return Some(&rest[2..2 + len]);
                    }
                    rest = &rest[2 + len..];
                }
                _ => panic!("no end option"),
            }
        }
    }

    fn kind(&self) -> u8 {
        self.option(53).expect("a type")[0]
    }

    fn yiaddr(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.message[16], self.message[17], self.message[18], self.message[19])
    }

    fn destination(&self) -> (Ipv4Addr, [u8; 6]) {
        (self.packet.ip().expect("IP").dst, self.packet.dst_mac)
    }
}

fn ask(lab: &mut Lab, message: &Dhcp) -> Reply {
    Reply::new(one(lab.exchange(&[message.frame()])))
}

fn new_lab(kind: HostKind) -> Lab {
    Lab::without_guest(kind, |setup| {
        setup.config.hostname = "guest".try_into().expect("a name");
        setup.config.domain = "example.org".try_into().expect("a name");
    })
}

const OFFER: u8 = 2;
const PACK: u8 = 5;
const NAK: u8 = 6;

on_both_hosts! {
    /// A lease from nothing: DISCOVER, OFFER, REQUEST, ACK, with all the options.
    fn a_lease_from_nothing(kind) {
        let mut lab = new_lab(kind);
        let offer = ask(&mut lab, &Dhcp::discover());
        assert_eq!((offer.kind(), offer.yiaddr()), (OFFER, FIRST));
        let ack = ask(&mut lab, &Dhcp::request(FIRST, GATEWAY));
        assert_eq!((ack.kind(), ack.yiaddr()), (PACK, FIRST));
        for reply in [offer, ack] {
            assert_eq!(reply.message[4..8], 0x1122_3344_u32.to_be_bytes(), "transaction id");
            assert_eq!(reply.message[28..34], GUEST_MAC, "client hardware address");
            assert_eq!(reply.option(1), Some(&[255, 255, 255, 0][..]));
            assert_eq!(reply.option(3), Some(&GATEWAY.octets()[..]));
            assert_eq!(reply.option(6), Some(&DNS.octets()[..]));
            assert_eq!(reply.option(12), Some(&b"guest"[..]));
            assert_eq!(reply.option(15), Some(&b"example.org"[..]));
            assert_eq!(reply.option(26), Some(&1500_u16.to_be_bytes()[..]));
            assert_eq!(reply.option(54), Some(&GATEWAY.octets()[..]));
            let lease = reply.option(51).expect("a lease time");
            assert!(u32::from_be_bytes(lease.try_into().expect("4 bytes")) >= 3600);
            assert_eq!(reply.packet.ip().map(|ip| ip.src), Some(GATEWAY));
        }
        assert_eq!(lab.counters().dhcp_replies, 2);
    }

    /// Every client has its own address and keeps it.
    fn a_client_keeps_its_address(kind) {
        let mut lab = new_lab(kind);
        let other = [0x52, 0x54, 0, 1, 1, 1];
        let first = ask(&mut lab, &Dhcp::discover()).yiaddr();
        let second = ask(&mut lab, &Dhcp::discover().mac(other)).yiaddr();
        assert_ne!(first, second);
        ask(&mut lab, &Dhcp::request(first, GATEWAY));
        lab.advance(seconds(100));
        assert_eq!(ask(&mut lab, &Dhcp::discover()).yiaddr(), first);
        assert_eq!(ask(&mut lab, &Dhcp::discover().mac(other)).yiaddr(), second);
    }

    /// openvmm #3996: clients ignored replies. RFC 2131 4.1: to the address that the client has;
    /// else by broadcast if it asked for that; else to the hardware address and the new address.
    fn replies_are_delivered_as_the_client_can_take_them(kind) {
        let mut lab = new_lab(kind);
        let unicast = ask(&mut lab, &Dhcp::discover());
        assert_eq!(unicast.destination(), (FIRST, GUEST_MAC));
        let broadcast = ask(&mut lab, &Dhcp { broadcast: true, ..Dhcp::discover() });
        assert_eq!(broadcast.destination(), (Ipv4Addr::BROADCAST, build::BROADCAST));
        ask(&mut lab, &Dhcp::request(FIRST, GATEWAY));
        let renew = Dhcp { ciaddr: FIRST, src: FIRST, dst: GATEWAY, ..Dhcp::new(3) };
        let ack = ask(&mut lab, &renew);
        assert_eq!(ack.kind(), PACK);
        assert_eq!(ack.destination(), (FIRST, GUEST_MAC));
    }

    /// RFC 2131 4.3.2: a request that cannot be met is refused, by broadcast.
    fn an_address_of_another_network_is_refused(kind) {
        let mut lab = new_lab(kind);
        let nak = ask(&mut lab, &Dhcp::new(3).option(50, &[192, 168, 1, 7]));
        assert_eq!(nak.kind(), NAK);
        assert_eq!(nak.yiaddr(), Ipv4Addr::UNSPECIFIED);
        assert_eq!(nak.destination(), (Ipv4Addr::BROADCAST, build::BROADCAST));
        assert_eq!(nak.option(51), None, "no lease time");
        assert_eq!(nak.option(54), Some(&GATEWAY.octets()[..]));
    }

    /// Somebody else's address is refused, too.
    fn an_address_of_another_client_is_refused(kind) {
        let mut lab = new_lab(kind);
        ask(&mut lab, &Dhcp::discover());
        ask(&mut lab, &Dhcp::request(FIRST, GATEWAY));
        let thief = Dhcp::request(FIRST, GATEWAY).mac([0x52, 0x54, 0, 1, 1, 1]);
        assert_eq!(ask(&mut lab, &thief).kind(), NAK);
    }

    /// A request that names another server is none of ours (RFC 2131 4.3.2).
    fn a_request_to_another_server_is_not_answered(kind) {
        let mut lab = new_lab(kind);
        let elsewhere = Dhcp::request(FIRST, Ipv4Addr::new(10, 0, 2, 99));
        let answers = lab.exchange(&[elsewhere.frame()]);
        assert!(answers.is_empty(), "{answers:?}");
    }

    /// INFORM asks for options only (RFC 2131 4.3.5): no address, no lease time.
    fn inform_gives_options_without_a_lease(kind) {
        let mut lab = new_lab(kind);
        let address = Ipv4Addr::new(10, 0, 2, 50);
        let inform = Dhcp { ciaddr: address, src: address, ..Dhcp::new(8) };
        let ack = ask(&mut lab, &inform);
        assert_eq!((ack.kind(), ack.yiaddr()), (PACK, Ipv4Addr::UNSPECIFIED));
        assert_eq!(ack.option(51), None);
        assert_eq!(ack.option(3), Some(&GATEWAY.octets()[..]));
        assert_eq!(ack.destination(), (address, GUEST_MAC));
    }

    /// libslirp: DISCOVER from more clients than there are leases. No reply, no memory.
    fn more_clients_than_leases_get_no_reply(kind) {
        let mut lab = Lab::without_guest(kind, |setup| setup.leases = 4);
        let mut given = Vec::new();
        for n in 0..40 {
            let mac = [0x52, 0x54, 0, 2, 2, n];
            let replies = lab.exchange(&[Dhcp::discover().mac(mac).frame()]);
            given.extend(replies.into_iter().map(|r| Reply::new(r).yiaddr()));
        }
        given.sort();
        given.dedup();
        assert!(!given.is_empty() && given.len() <= 4, "{given:?}");
    }

    /// A released address can be had again by others.
    fn a_released_lease_is_free(kind) {
        let mut lab = Lab::without_guest(kind, |setup| setup.leases = 1);
        ask(&mut lab, &Dhcp::discover());
        ask(&mut lab, &Dhcp::request(FIRST, GATEWAY));
        let other = [0x52, 0x54, 0, 1, 1, 1];
        let none = lab.exchange(&[Dhcp::discover().mac(other).frame()]);
        assert!(none.is_empty(), "the only lease is taken: {none:?}");
        let release = Dhcp { ciaddr: FIRST, src: FIRST, dst: GATEWAY, ..Dhcp::new(7) };
        let silent = lab.exchange(&[release.frame()]);
        assert!(silent.is_empty(), "RELEASE has no answer: {silent:?}");
        assert_eq!(ask(&mut lab, &Dhcp::discover().mac(other)).yiaddr(), FIRST);
    }

    /// libslirp #48, #51: stricter length checks broke BOOTP and short requests. A message
    /// without a type and with no options at all is a BOOTP request, answered by one.
    fn a_bootp_request_is_answered(kind) {
        let mut lab = new_lab(kind);
        let reply = ask(&mut lab, &Dhcp::bootp());
        assert_eq!(reply.yiaddr(), FIRST);
        let short = Dhcp { ended: false, ..Dhcp::discover() };
        assert_eq!(ask(&mut lab, &short).kind(), OFFER);
    }

    /// CVE-2017-11434: an option whose length passes the end.
    fn an_option_beyond_the_end_is_harmless(kind) {
        let mut lab = new_lab(kind);
        for tail in [&[61, 200, 1][..], &[53], &[53, 9], &[12, 255]] {
            let mut message = Dhcp { ended: false, ..Dhcp::bootp() };
            message.options.extend(tail);
            lab.exchange(&[message.frame()]);
        }
        assert_eq!(ask(&mut lab, &Dhcp::discover()).kind(), OFFER);
    }

    /// CVE-2021-3592: BOOTP read past a short packet. Every prefix is harmless, and one without
    /// its fixed part gets no reply.
    fn every_short_message_is_harmless(kind) {
        let mut lab = new_lab(kind);
        let message = Dhcp::discover().message();
        for len in 0..240 {
            let datagram = build::udp_datagram(
                (Ipv4Addr::UNSPECIFIED, 68),
                (Ipv4Addr::BROADCAST, 67),
                &message[..len],
            );
            let mut ip = build::IpBuilder::new(Ipv4Addr::BROADCAST, build::UDP);
            ip.src = Ipv4Addr::UNSPECIFIED;
            ip.mac = build::BROADCAST;
            let answers = lab.exchange(&[ip.frame(&datagram)]);
            assert!(len >= 236 || answers.is_empty(), "{len} bytes: {answers:?}");
        }
        assert_eq!(ask(&mut lab, &Dhcp::discover()).kind(), OFFER);
    }

    /// With no memory for leases there is no DHCP, and nothing else changes.
    fn without_lease_memory_there_is_no_dhcp(kind) {
        let mut lab = Lab::without_guest(kind, |setup| setup.leases = 0);
        let none = lab.exchange(&[Dhcp::discover().frame()]);
        assert!(none.is_empty(), "{none:?}");
        lab.input(&build::ping(GATEWAY, 1, 1, b"x"));
        assert_eq!(lab.take_one_icmp().kind, 0);
    }

    /// libslirp#82, !135: a boot loader gets file and server, in the fields and as the options that
    /// it asks for. Without an address for it, the server is the router.
    fn a_boot_loader_is_told_file_and_server(kind) {
        let url = "http://10.0.2.2:8000/boot.ipxe";
        for next_server in [None, Some(Ipv4Addr::new(192, 0, 2, 9))] {
            let mut lab = Lab::without_guest(kind, |setup| {
                setup.config.boot_file = url.try_into().expect("a name");
                setup.config.tftp_server_name = "tftp.example".try_into().expect("a name");
                setup.config.next_server = next_server;
            });
            let discover = Dhcp::discover().option(55, &[1, 3, 66, 67]);
            let request = Dhcp::request(FIRST, GATEWAY).option(55, &[1, 3, 66, 67]);
            for message in [discover, request, Dhcp::bootp()] {
                let reply = ask(&mut lab, &message);
                let siaddr = next_server.unwrap_or(GATEWAY).octets();
                assert_eq!(reply.message[20..24], siaddr, "siaddr");
                assert_eq!(reply.message[44..57], *b"tftp.example\0", "sname");
                assert_eq!(reply.message[108..138], *url.as_bytes(), "file");
                assert_eq!(reply.message[138..236], [0; 98], "the rest of file");
                let asked = message.options.contains(&67);
                assert_eq!(reply.option(67), asked.then_some(url.as_bytes()));
                assert_eq!(reply.option(66), asked.then_some(&b"tftp.example"[..]));
            }
        }
    }

    /// The network that the embedder has chosen is the one handed out.
    fn the_configured_network_is_handed_out(kind) {
        let mut lab = Lab::without_guest(kind, |setup| {
            setup.config.network = Ipv4Addr::new(172, 20, 0, 0);
            setup.config.prefix_len = 20;
            setup.config.gateway = Ipv4Addr::new(172, 20, 0, 1);
            setup.config.dns = Ipv4Addr::new(172, 20, 0, 2);
            setup.config.first_lease = Ipv4Addr::new(172, 20, 1, 0);
            setup.config.default_guest = Ipv4Addr::new(172, 20, 1, 0);
            setup.config.mtu = 9000;
        });
        let offer = ask(&mut lab, &Dhcp::discover());
        assert_eq!(offer.yiaddr(), Ipv4Addr::new(172, 20, 1, 0));
        assert_eq!(offer.option(1), Some(&[255, 255, 240, 0][..]));
        assert_eq!(offer.option(3), Some(&[172, 20, 0, 1][..]));
        assert_eq!(offer.option(26), Some(&9000_u16.to_be_bytes()[..]));
    }
}
