//! Whole exchanges, and what stands in each reply (RFC 2131 tables 3 and 4).

use std::string::String;

use super::*;

/// What busybox udhcpc sends, but for the version string.
fn udhcpc(kind: u8, further: &[u8]) -> Message {
    let mut bytes = vec![1, 1, 6, 0, 0x3d, 0x1e, 0x5b, 0x07, 0, 0, 0, 0];
    bytes.resize(28, 0);
    bytes.extend([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    bytes.resize(236, 0);
    bytes.extend([0x63, 0x82, 0x53, 0x63, 53, 1, kind]);
    bytes.extend([61, 7, 1, 0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    bytes.extend(further);
    bytes.extend([57, 2, 0x02, 0x40, 55, 7, 1, 3, 6, 12, 15, 28, 42]);
    bytes.extend([60, 6, b'u', b'd', b'h', b'c', b'p', b' ', 255]);
    bytes.resize(300, 0);
    Message(bytes)
}

fn udhcpc_reply(kind: u8) -> Vec<u8> {
    let mut bytes = vec![2, 1, 6, 0, 0x3d, 0x1e, 0x5b, 0x07, 0, 0, 0, 0];
    bytes.extend([0, 0, 0, 0, 10, 0, 2, 15, 10, 0, 2, 2, 0, 0, 0, 0]);
    bytes.extend([0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    bytes.resize(236, 0);
    bytes.extend([0x63, 0x82, 0x53, 0x63, 53, 1, kind, 54, 4, 10, 0, 2, 2]);
    bytes.extend([51, 4, 0, 1, 0x51, 0x80, 1, 4, 255, 255, 255, 0, 3, 4, 10, 0, 2, 2]);
    bytes.extend([6, 4, 10, 0, 2, 3, 61, 7, 1, 0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    bytes.extend([26, 2, 0x05, 0xdc, 255]);
    bytes.resize(300, 0);
    bytes
}

#[test]
fn udhcpc_gets_the_first_lease_byte_for_byte() {
    let mut server = Server::new(16);
    let offer = server.ask(&udhcpc(1, &[]));
    assert_eq!(offer.bytes, udhcpc_reply(2));
    let to_client =
        Delivery { destination_ip: net(15), destination_mac: Some(MAC), port: CLIENT_PORT };
    assert_eq!(offer.reply, Reply { len: 300, delivery: to_client });
    assert_eq!(server.guest(), None);
    let ack = server.ask(&udhcpc(3, &[50, 4, 10, 0, 2, 15, 54, 4, 10, 0, 2, 2]));
    assert_eq!(ack.bytes, udhcpc_reply(5));
    assert_eq!(ack.reply, Reply { len: 300, delivery: to_client });
    assert_eq!(ack.bound(), Some(net(15)));
    assert_eq!(server.guest(), Some(net(15)));
}

#[test]
fn an_offer_carries_parameters_and_times() {
    let mut server = Server::new(1);
    let offer = server.ask(&Message::discover(MAC));
    assert_eq!(offer.codes(), [53, 54, 51, 1, 3, 6, 26]);
    assert_eq!(offer.option(51), Some(vec![0, 1, 0x51, 0x80]));
    assert_eq!(offer.option(1), Some(vec![255, 255, 255, 0]));
    let message = offer.message();
    assert_eq!((message.ciaddr(), message.yiaddr(), message.siaddr()), (NONE, net(15), GATEWAY));
    assert_eq!((message.xid(), message.secs()), (0x1234_5678, 0));
}

#[test]
fn names_are_given_if_configured_and_in_the_order_asked_for() {
    let mut server = Server::new(1);
    server.config.hostname.push_str("box").unwrap();
    server.config.domain.push_str("lan").unwrap();
    assert_eq!(server.ask(&Message::discover(MAC)).codes(), [53, 54, 51, 1, 3, 6, 26, 12, 15]);
    let offer = server.ask(&Message::discover(MAC).option(55, &[15, 59, 12, 1, 58, 15, 99]));
    assert_eq!(offer.codes(), [53, 54, 51, 1, 3, 6, 15, 59, 12, 58, 26]);
    assert_eq!(offer.option(12), Some(b"box".to_vec()));
    assert_eq!(offer.option(15), Some(b"lan".to_vec()));
    assert_eq!(offer.option(58), Some(43_200_u32.to_be_bytes().to_vec()));
    assert_eq!(offer.option(59), Some(75_600_u32.to_be_bytes().to_vec()));
}

#[test]
fn the_mtu_given_is_the_links() {
    let mut server = Server::new(1);
    server.config.mtu = 65_520;
    assert_eq!(server.ask(&Message::discover(MAC)).option(26), Some(vec![0xff, 0xf0]));
}

/// RFC 6842.
#[test]
fn the_client_identifier_comes_back_in_every_reply() {
    let id = [0xff, 1, 2, 3, 4];
    let mut server = Server::new(1);
    server.bind(MAC);
    let inform = Message::new(MAC, MessageType::Inform).ciaddr(net(15));
    for message in [Message::reboot(MAC, Ipv4Addr::new(192, 0, 2, 1)), inform] {
        assert_eq!(server.ask(&message.identifier(&id)).option(61), Some(id.to_vec()));
    }
}

#[test]
fn a_refusal_says_why_and_gives_nothing() {
    let mut server = Server::new(2);
    server.bind(MAC);
    let refusal = server.ask(&Message::reboot(MAC, net(16)));
    assert_eq!(refusal.codes(), [53, 54, 56]);
    assert_eq!(refusal.option(56), Some(b"address not available".to_vec()));
    let message = refusal.message();
    assert_eq!((message.ciaddr(), message.yiaddr(), message.siaddr()), (NONE, NONE, NONE));
    let refusal = server.ask(&Message::renew(MAC, Ipv4Addr::new(192, 168, 1, 7)));
    assert_eq!(refusal.option(56), Some(b"address of another network".to_vec()));
    assert_eq!(refusal.message().ciaddr(), NONE);
}

/// RFC 2131 4.3.5.
#[test]
fn inform_is_answered_without_a_lease() {
    let mut server = Server::new(1);
    let ack = server.ask(&Message::new(MAC, MessageType::Inform).ciaddr(net(100)));
    assert_eq!(ack.kind(), Some(MessageType::Ack));
    assert_eq!(ack.codes(), [53, 54, 1, 3, 6, 26]);
    assert_eq!((ack.message().ciaddr(), ack.message().yiaddr()), (net(100), NONE));
    assert_eq!(ack.reply.delivery.destination_ip, net(100));
    assert_eq!(ack.bound(), None);
    let asked = Message::new(MAC, MessageType::Inform).ciaddr(net(100)).option(55, &[51, 58, 59]);
    assert_eq!(server.ask(&asked).codes(), [53, 54, 1, 3, 6, 26]);
    assert!(server.leases.iter().all(|lease| *lease == Lease::EMPTY));
}

#[test]
fn inform_without_an_address_of_the_network_is_ignored() {
    let mut server = Server::new(1);
    for address in [NONE, GATEWAY, net(0), net(255), Ipv4Addr::new(8, 8, 8, 8)] {
        let inform = Message::new(MAC, MessageType::Inform).ciaddr(address);
        assert_eq!(server.respond(&inform).err(), Some(DhcpIgnore::Incomplete));
    }
}

/// openvmm #3996: clients drop shorter ones.
#[test]
fn every_reply_has_at_least_300_bytes() {
    let mut server = Server::new(1);
    let inform = Message::new(MAC, MessageType::Inform).ciaddr(net(15));
    let messages = [
        Message::discover(MAC),
        Message::select(MAC, net(15)),
        Message::select(MAC, net(16)),
        Message::bootp(MAC),
        inform,
    ];
    for message in messages {
        assert_eq!(server.ask(&message).bytes.len(), 300);
    }
}

/// libslirp #96: a reply is bounded by what link and client take.
#[test]
fn a_reply_is_no_longer_than_client_and_link_take() {
    let mut server = Server::new(1);
    let long: String = core::iter::repeat_n('x', 255).collect();
    server.config.hostname.push_str(&long).unwrap();
    server.config.domain.push_str(&long).unwrap();
    let mut codes = |mtu, message: &Message| {
        server.config.mtu = mtu;
        let answer = server.ask(message);
        assert!(answer.bytes.len() >= 300);
        (answer.bytes.len(), answer.codes().contains(&12), answer.codes().contains(&15))
    };
    let plain = Message::discover(MAC);
    let without_names = 240 + 3 + 6 + 6 + 6 + 6 + 6 + 4 + 1;
    let (one, whole) = (without_names + 257, without_names + 2 * 257);
    assert_eq!(codes(1500, &plain), (one, true, false));
    assert_eq!(codes(1500, &plain.clone().option(57, &[5, 0xdc])), (whole, true, true));
    assert_eq!(codes(576, &plain.clone().option(57, &[5, 0xdc])), (one, true, false));
    assert_eq!(codes(1500, &plain.clone().option(57, &[1, 0])), (300, false, false));
    assert_eq!(codes(68, &plain), (300, false, false));
}
