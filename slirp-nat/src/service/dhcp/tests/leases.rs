//! Who gets which address, and for how long (RFC 2131 4.3).

use super::*;

#[test]
fn a_client_is_offered_the_same_address_again() {
    let mut server = Server::new(4);
    let first = server.offered(&Message::discover(MAC));
    assert_eq!(server.offered(&Message::discover(mac(1))), net(16));
    server.wait(10);
    assert_eq!(server.offered(&Message::discover(MAC).requested(net(17))), first);
    server.bind(MAC);
    server.wait(200_000);
    assert_eq!(server.offered(&Message::discover(MAC)), first);
}

#[test]
fn a_requested_address_is_offered_if_it_is_free_and_can_be_leased() {
    let mut server = Server::new(4);
    assert_eq!(server.offered(&Message::discover(mac(1)).requested(net(17))), net(17));
    for (index, taken_or_foreign) in
        [net(17), net(19), net(14), GATEWAY, Ipv4Addr::new(192, 168, 1, 16)].into_iter().enumerate()
    {
        let client = mac(u8::try_from(index).unwrap() + 10);
        let Ok(answer) = server.respond(&Message::discover(client).requested(taken_or_foreign))
        else {
            assert_eq!(index, 3, "three are left");
            break;
        };
        assert_ne!(answer.unwrap().message().yiaddr(), taken_or_foreign);
    }
}

#[test]
fn discovering_anew_does_not_shorten_a_lease() {
    let mut server = Server::new(1);
    server.bind(MAC);
    server.offered(&Message::discover(MAC));
    server.wait(3600);
    assert_eq!(server.respond(&Message::discover(mac(1))).err(), Some(DhcpIgnore::NoLease));
    assert_eq!(server.guest(), Some(net(15)));
}

#[test]
fn an_offer_not_requested_is_free_again_after_a_minute() {
    let mut server = Server::new(1);
    server.offered(&Message::discover(mac(1)));
    server.wait(59);
    assert_eq!(server.respond(&Message::discover(mac(2))).err(), Some(DhcpIgnore::NoLease));
    server.wait(1);
    assert_eq!(server.offered(&Message::discover(mac(2))), net(15));
    assert!(server.refuses(&Message::select(mac(1), net(15))));
}

#[test]
fn a_lease_ends_after_a_day_unless_renewed() {
    let mut server = Server::new(1);
    server.bind(mac(1));
    server.wait(43_200);
    assert_eq!(server.ask(&Message::renew(mac(1), net(15))).bound(), Some(net(15)));
    server.wait(86_399);
    assert_eq!(server.respond(&Message::discover(mac(2))).err(), Some(DhcpIgnore::NoLease));
    server.wait(1);
    assert_eq!(server.offered(&Message::discover(mac(2))), net(15));
    assert!(server.refuses(&Message::renew(mac(1), net(15))));
}

#[test]
fn addresses_never_used_go_first_then_the_one_free_for_longest() {
    let mut server = Server::new(3);
    for (client, address) in [(1, 15), (2, 16)] {
        assert_eq!(server.bind(mac(client)), net(address));
        server.wait(1);
    }
    for client in [2, 1] {
        let release = Message::new(mac(client), MessageType::Release);
        assert!(server.is_silent_on(&release.ciaddr(net(14 + client)).server(GATEWAY)));
        server.wait(1);
    }
    let offered: Vec<_> = (3..6).map(|c| server.offered(&Message::discover(mac(c)))).collect();
    assert_eq!(offered, [net(17), net(16), net(15)]);
}

#[test]
fn choosing_another_server_frees_the_offer() {
    let mut server = Server::new(1);
    server.offered(&Message::discover(mac(1)));
    let other = Message::new(mac(1), MessageType::Request).requested(net(15)).server(net(9));
    assert!(server.is_silent_on(&other));
    assert_eq!(server.bind(mac(2)), net(15));
    assert!(server.is_silent_on(&Message::new(mac(2), MessageType::Request).server(net(9))));
    assert_eq!(server.respond(&Message::discover(mac(1))).err(), Some(DhcpIgnore::NoLease));
}

#[test]
fn selecting_an_address_that_was_not_offered_is_refused() {
    let mut server = Server::new(4);
    server.offered(&Message::discover(mac(1)));
    server.bind(mac(2));
    for address in [net(16), net(17), net(100), GATEWAY, net(255), Ipv4Addr::new(8, 8, 8, 8)] {
        assert!(server.refuses(&Message::select(mac(1), address)), "{address}");
    }
    assert!(!server.refuses(&Message::select(mac(1), net(15))));
}

/// RFC 2131 4.3.2, INIT-REBOOT.
#[test]
fn a_rebooting_client_is_confirmed_refused_or_left_alone() {
    let mut server = Server::new(4);
    assert!(server.is_silent_on(&Message::reboot(mac(1), net(15))), "no record");
    assert!(server.refuses(&Message::reboot(mac(1), Ipv4Addr::new(192, 168, 1, 5))), "wrong net");
    server.bind(mac(1));
    assert!(server.refuses(&Message::reboot(mac(1), net(16))), "wrong address");
    assert_eq!(server.ask(&Message::reboot(mac(1), net(15))).bound(), Some(net(15)));
}

/// The NAT may have been started anew under a guest that has its lease.
#[test]
fn a_renewal_without_a_record_is_granted_if_the_address_is_free() {
    let mut server = Server::new(4);
    assert_eq!(server.ask(&Message::renew(mac(1), net(17))).bound(), Some(net(17)));
    assert!(server.refuses(&Message::renew(mac(2), net(17))));
    assert!(server.refuses(&Message::renew(mac(2), net(19))));
    assert!(server.refuses(&Message::renew(mac(1), net(16))));
}

#[test]
fn a_released_address_is_free_but_kept_for_its_client_while_nobody_needs_it() {
    let mut server = Server::new(2);
    server.bind(mac(1));
    let release = |client| Message::new(client, MessageType::Release).ciaddr(net(15));
    assert!(server.is_silent_on(&release(mac(2)).server(GATEWAY)), "another client's");
    assert!(server.is_silent_on(&release(mac(1)).server(net(9))), "another server's");
    assert_eq!(server.guest(), Some(net(15)));
    assert!(server.is_silent_on(&release(mac(1)).server(GATEWAY)));
    assert_eq!(server.guest(), None);
    assert_eq!(server.bind(mac(2)), net(16));
    assert_eq!(server.bind(mac(1)), net(15));
}

#[test]
fn a_declined_address_is_set_aside_for_ten_minutes() {
    let mut server = Server::new(2);
    server.bind(mac(1));
    let decline = |client| Message::new(client, MessageType::Decline).requested(net(15));
    assert!(server.is_silent_on(&decline(mac(2)).server(GATEWAY)), "another client's");
    assert_eq!(server.offered(&Message::discover(mac(1))), net(15));
    assert!(server.is_silent_on(&decline(mac(1)).server(GATEWAY)));
    assert_eq!(server.bind(mac(1)), net(16));
    assert_eq!(server.respond(&Message::discover(mac(2))).err(), Some(DhcpIgnore::NoLease));
    server.wait(600);
    assert_eq!(server.offered(&Message::discover(mac(2))), net(15));
}

#[test]
fn the_addresses_of_router_and_network_are_never_leased() {
    let mut server = Server::new(300);
    server.config.first_lease = net(1);
    let mut leased: Vec<_> = core::iter::from_fn({
        let mut client = 0_u16;
        move || {
            client += 1;
            let [high, low] = client.to_be_bytes();
            let discover = Message::discover(MacAddr([2, 0, 0, 0, high, low]));
            Some(server.respond(&discover).ok()??.message().yiaddr())
        }
    })
    .collect();
    leased.sort();
    let expected: Vec<_> = (1..=254).filter(|last| ![2, 3].contains(last)).map(net).collect();
    assert_eq!(leased, expected);
}

#[test]
fn clients_are_told_apart_by_identifier_before_hardware_address() {
    let mut server = Server::new(4);
    let discover = |id: &[u8]| Message::discover(MAC).identifier(id);
    assert_eq!(server.offered(&Message::discover(MAC)), net(15));
    assert_eq!(server.offered(&discover(&[0xff, 1, 2])), net(16));
    assert_eq!(server.offered(&discover(&[0xff, 1, 3])), net(17));
    assert_eq!(server.offered(&Message::discover(mac(9)).identifier(&[0xff, 1, 2])), net(16));
}

#[test]
fn an_identifier_that_is_the_hardware_address_is_none() {
    let mut server = Server::new(4);
    let address = server.bind(MAC);
    let named = [&[1][..], &MAC.0].concat();
    assert_eq!(server.offered(&Message::discover(MAC).identifier(&named)), address);
    assert_eq!(server.offered(&Message::discover(MAC).identifier(&[5])), address, "too short");
}

#[test]
fn a_forward_leads_to_the_guest_bound_last_and_renewals_do_not_move_it() {
    let mut server = Server::new(4);
    for client in 1..=2 {
        server.bind(mac(client));
        server.wait(10);
    }
    assert_eq!(server.guest(), Some(net(16)));
    server.ask(&Message::renew(mac(1), net(15)));
    assert_eq!(server.guest(), Some(net(16)));
    server.wait(200_000);
    assert_eq!(server.guest(), Some(net(16)), "a paused guest is still there");
    server.bind(mac(1));
    assert_eq!(server.guest(), Some(net(15)));
}

#[test]
fn a_clock_that_goes_back_harms_no_lease() {
    let mut server = Server::new(1);
    server.wait(1000);
    server.bind(mac(1));
    server.now = Instant::ZERO;
    assert_eq!(server.respond(&Message::discover(mac(2))).err(), Some(DhcpIgnore::NoLease));
    assert_eq!(server.ask(&Message::renew(mac(1), net(15))).bound(), Some(net(15)));
}
