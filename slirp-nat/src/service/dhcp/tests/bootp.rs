//! Clients that know nothing of DHCP (RFC 951, RFC 1534).

use super::*;

/// libslirp #48, #51: a request of 236 bytes and anything above is good.
#[test]
fn a_bootp_request_of_any_size_gets_an_address() {
    for vendor in [&[][..], &[0; 3], &[0; 64], &[99, 130, 83, 99], &[99, 130, 83, 99, 255]] {
        let mut server = Server::new(1);
        let mut request = Message::bootp(MAC);
        request.0.extend(vendor);
        let answer = server.ask(&request);
        assert_eq!(answer.message().yiaddr(), net(15));
        assert_eq!(answer.bound(), Some(net(15)));
        assert_eq!(server.guest(), Some(net(15)));
    }
}

#[test]
fn a_bootp_reply_has_no_dhcp_options() {
    let answer = Server::new(1).ask(&Message::bootp(MAC));
    assert_eq!(answer.codes(), [1, 3, 6, 26]);
    assert_eq!((answer.bytes.len(), answer.message().siaddr()), (300, GATEWAY));
}

#[test]
fn a_bootp_reply_never_exceeds_300_bytes() {
    let mut server = Server::new(1);
    server.config.hostname.push_str(core::str::from_utf8(&[b'x'; 100]).unwrap()).unwrap();
    server.config.domain.push_str("lan").unwrap();
    let answer = server.ask(&Message::bootp(MAC));
    assert_eq!((answer.bytes.len(), answer.codes()), (300, vec![1, 3, 6, 26, 15]));
}

#[test]
fn a_bootp_client_keeps_its_address_for_good() {
    let mut server = Server::new(1);
    server.ask(&Message::bootp(mac(1)));
    server.wait(1_000_000_000);
    assert_eq!(server.respond(&Message::discover(mac(2))).err(), Some(DhcpIgnore::NoLease));
    assert_eq!(server.ask(&Message::bootp(mac(1))).message().yiaddr(), net(15));
}

#[test]
fn the_system_booted_gets_the_address_of_its_boot_loader() {
    let mut server = Server::new(2);
    server.ask(&Message::bootp(MAC));
    assert_eq!(server.bind(MAC), net(15));
    server.wait(86_400);
    assert_eq!(server.ask(&Message::bootp(mac(1))).message().yiaddr(), net(16));
    assert_eq!(server.offered(&Message::discover(mac(2))), net(15), "leased for a day only");
}

#[test]
fn a_client_that_has_an_address_gets_the_parameters_there() {
    let mut server = Server::new(1);
    let answer = server.ask(&Message::bootp(MAC).ciaddr(net(100)));
    assert_eq!((answer.message().ciaddr(), answer.message().yiaddr()), (net(100), NONE));
    assert_eq!(answer.reply.delivery.destination_ip, net(100));
    assert_eq!(answer.bound(), None);
    assert_eq!(server.leases, [Lease::EMPTY]);
}
