//! What a guest can do at worst is use up leases.

use proptest::prelude::*;

use super::*;

fn ignored(message: &Message) -> Option<DhcpIgnore> {
    let mut server = Server::new(2);
    let reason = server.respond(message).err();
    assert_eq!(server.leases, [Lease::EMPTY; 2]);
    reason
}

/// libslirp: more clients than leases.
#[test]
fn more_clients_than_leases_get_no_reply_and_no_memory() {
    let mut server = Server::new(3);
    for client in 0..=255 {
        let reply = server.respond(&Message::discover(mac(client)));
        assert_eq!(reply.err(), (client > 2).then_some(DhcpIgnore::NoLease));
    }
    assert_eq!(server.respond(&Message::bootp(mac(99))).err(), Some(DhcpIgnore::NoLease));
    assert_eq!(Server::new(0).respond(&Message::discover(MAC)).err(), Some(DhcpIgnore::NoLease));
    assert!(Server::new(0).refuses(&Message::renew(MAC, net(15))));
}

#[test]
fn one_client_has_one_lease_whatever_it_asks_for() {
    let mut server = Server::new(8);
    for last in 15..23 {
        let _ = server.respond(&Message::discover(MAC).requested(net(last)));
        let _ = server.respond(&Message::select(MAC, net(last)));
        let _ = server.respond(&Message::renew(MAC, net(last)));
    }
    assert_eq!(server.leases.iter().filter(|lease| **lease != Lease::EMPTY).count(), 1);
}

/// CVE-2017-11434.
#[test]
fn an_option_that_passes_the_end_is_dropped() {
    let mut message = Message::discover(MAC);
    message.0.extend([61, 200, 1, 2]);
    assert_eq!(ignored(&message), Some(DhcpIgnore::Malformed(WireError::BadLength)));
}

/// CVE-2021-3592.
#[test]
fn a_message_shorter_than_bootp_is_dropped() {
    for len in [0, 1, 28, 235] {
        let message = Message(Message::discover(MAC).0[..len].to_vec());
        assert_eq!(ignored(&message), Some(DhcpIgnore::Malformed(WireError::Truncated)));
    }
}

#[test]
fn what_a_server_sends_is_dropped() {
    assert_eq!(ignored(&Message::discover(MAC).set(0, &[2])), Some(DhcpIgnore::NotFromClient));
    for kind in [MessageType::Offer, MessageType::Ack, MessageType::Nak] {
        assert_eq!(ignored(&Message::new(MAC, kind)), Some(DhcpIgnore::NotFromClient));
    }
    for kind in [0, 9, 255] {
        let message = Message::discover(MAC).set(242, &[kind]);
        assert_eq!(ignored(&message), Some(DhcpIgnore::NotFromClient));
    }
}

#[test]
fn a_client_must_have_the_address_of_one_ethernet_station() {
    for mac in [MacAddr::ZERO, MacAddr::BROADCAST, MacAddr([1, 0, 0x5e, 0, 0, 1])] {
        assert_eq!(ignored(&Message::discover(mac)), Some(DhcpIgnore::ClientAddress));
    }
    for (offset, value) in [(1, 6), (2, 0), (2, 7), (2, 255)] {
        let message = Message::discover(MAC).set(offset, &[value]);
        assert_eq!(ignored(&message), Some(DhcpIgnore::ClientAddress));
    }
}

#[test]
fn what_lacks_its_address_is_dropped() {
    for kind in [MessageType::Request, MessageType::Decline, MessageType::Inform] {
        assert_eq!(ignored(&Message::new(MAC, kind)), Some(DhcpIgnore::Incomplete));
    }
}

#[test]
fn a_buffer_too_short_for_a_reply_is_an_error() {
    let (config, payload) = (Config::default(), Message::discover(MAC).0);
    for len in [0, 299] {
        let mut out = vec![0; len];
        let reply = respond(Instant::ZERO, &config, &mut [Lease::EMPTY], &payload, &mut out);
        assert_eq!(reply, Err(DhcpIgnore::NoBuffer));
    }
}

fn any_message() -> impl Strategy<Value = Message> {
    let address = prop_oneof![
        Just(NONE),
        (0_u8..40).prop_map(net),
        any::<u32>().prop_map(Ipv4Addr::from_bits),
    ];
    let addresses = [address.clone(), address.clone(), address.clone(), address];
    (
        0_u8..10,
        1_u8..6,
        addresses,
        any::<[bool; 4]>(),
        proptest::collection::vec(any::<u8>(), 0..40),
    )
        .prop_map(|(kind, client, [ciaddr, giaddr, requested, server], with, tail)| {
            let mut message = Message::discover(mac(client)).set(242, &[kind]).ciaddr(ciaddr);
            if with[0] {
                message = message.giaddr(giaddr);
            }
            if with[1] {
                message = message.requested(requested);
            }
            if with[2] {
                message = message.server(if with[3] { GATEWAY } else { server });
            }
            message.0.extend(tail);
            message
        })
}

proptest! {
    #[test]
    fn any_bytes_are_answered_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
        let _ = Server::new(2).respond(&Message(bytes));
    }

    /// No sequence of messages brings an address to two clients, or one that is not for guests.
    #[test]
    fn no_address_has_two_clients(messages in proptest::collection::vec((any_message(), 0_u64..90), 0..60)) {
        let mut server = Server::new(4);
        for (message, pause) in messages {
            server.wait(pause);
            let Ok(Some(answer)) = server.respond(&message) else { continue };
            prop_assert!(answer.bytes.len() >= 300);
            let delivery = answer.reply.delivery;
            prop_assert!(
                is_guest(&server.config, delivery.destination_ip)
                    || delivery.destination_ip == Ipv4Addr::BROADCAST
            );
            let yiaddr = answer.message().yiaddr();
            if yiaddr.is_unspecified() {
                continue;
            }
            prop_assert!((15..19).any(|last| net(last) == yiaddr));
            let owners = (1..6).filter(|client| {
                let mut probe = Server { now: server.now, leases: server.leases.clone(), ..Server::new(0) };
                !probe.refuses(&Message::renew(mac(*client), yiaddr))
            });
            prop_assert!(owners.count() <= 1);
        }
    }
}
