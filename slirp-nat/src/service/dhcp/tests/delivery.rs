//! Where replies go (RFC 2131 4.1; openvmm #3996: clients ignore what comes elsewhere).

use super::*;

const fn to(ip: Ipv4Addr, mac: MacAddr) -> Delivery {
    Delivery { destination_ip: ip, destination_mac: Some(mac), port: 68 }
}

const BROADCAST: Delivery = to(Ipv4Addr::BROADCAST, MacAddr::BROADCAST);

fn delivery(server: &mut Server, message: &Message) -> Delivery {
    server.ask(message).reply.delivery
}

#[test]
fn a_client_without_address_gets_unicast_to_the_new_one() {
    let mut server = Server::new(1);
    assert_eq!(delivery(&mut server, &Message::discover(MAC)), to(net(15), MAC));
    assert_eq!(delivery(&mut server, &Message::select(MAC, net(15))), to(net(15), MAC));
    assert_eq!(delivery(&mut server, &Message::reboot(MAC, net(15))), to(net(15), MAC));
}

#[test]
fn a_client_that_cannot_take_unicast_gets_broadcast_and_its_flag_back() {
    let mut server = Server::new(1);
    for message in [Message::discover(MAC), Message::select(MAC, net(15)), Message::bootp(MAC)] {
        let answer = server.ask(&message.broadcast());
        assert_eq!(answer.reply.delivery, BROADCAST);
        assert!(answer.message().broadcast());
    }
}

#[test]
fn a_client_with_an_address_gets_unicast_whatever_its_flag() {
    let mut server = Server::new(1);
    server.bind(MAC);
    let renew = Message::renew(MAC, net(15));
    assert_eq!(delivery(&mut server, &renew), to(net(15), MAC));
    assert_eq!(delivery(&mut server, &renew.clone().broadcast()), to(net(15), MAC));
    assert_eq!(server.ask(&renew).message().ciaddr(), net(15));
}

#[test]
fn a_refusal_is_broadcast() {
    let mut server = Server::new(1);
    let renew = Message::renew(MAC, net(99));
    assert_eq!(delivery(&mut server, &renew), BROADCAST);
    assert!(!server.ask(&renew).message().broadcast());
    assert_eq!(delivery(&mut server, &Message::select(MAC, net(99))), BROADCAST);
}

#[test]
fn a_relay_agent_gets_the_reply_on_the_server_port() {
    let relay = Delivery { destination_ip: net(9), destination_mac: None, port: 67 };
    let mut server = Server::new(1);
    let messages = [
        Message::discover(MAC),
        Message::discover(MAC).broadcast(),
        Message::renew(MAC, net(15)),
        Message::bootp(MAC),
    ];
    for message in messages {
        let answer = server.ask(&message.giaddr(net(9)));
        assert_eq!((answer.reply.delivery, answer.message().giaddr()), (relay, net(9)));
    }
    let refusal = server.ask(&Message::select(MAC, net(99)).giaddr(net(9)));
    assert_eq!((refusal.kind(), refusal.reply.delivery), (Some(MessageType::Nak), relay));
    assert!(refusal.message().broadcast(), "for the relay to broadcast");
}

#[test]
fn nothing_is_sent_to_relay_agents_elsewhere() {
    let mut server = Server::new(1);
    for relay in [GATEWAY, net(0), net(255), Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::BROADCAST] {
        let message = Message::discover(MAC).giaddr(relay);
        assert_eq!(server.respond(&message).err(), Some(DhcpIgnore::Relay));
    }
}

#[test]
fn an_address_that_no_guest_can_have_is_not_sent_to() {
    let mut server = Server::new(1);
    for claimed in [GATEWAY, net(255), Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::BROADCAST] {
        assert_eq!(
            delivery(&mut server, &Message::discover(MAC).ciaddr(claimed)),
            to(net(15), MAC)
        );
        assert_eq!(delivery(&mut server, &Message::renew(MAC, claimed)), BROADCAST);
    }
}
