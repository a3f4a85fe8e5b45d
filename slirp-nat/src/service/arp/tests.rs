use super::*;

const GUEST: MacAddr = MacAddr([0x52, 0x54, 0, 0x12, 0x34, 0x56]);

const fn net(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 2, last)
}

const fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

fn who_has(target_ip: Ipv4Addr, sender_ip: Ipv4Addr) -> ArpPacket {
    ArpPacket {
        operation: ArpOperation::Request,
        sender_mac: GUEST,
        sender_ip,
        target_mac: MacAddr::ZERO,
        target_ip,
    }
}

#[test]
fn requests_for_gateway_and_name_server_are_answered() {
    let config = Config::default();
    for address in [config.gateway, config.dns] {
        let [a, b, c, d] = address.octets();
        assert_eq!(
            respond(&config, &who_has(address, net(15))),
            Some(ArpPacket {
                operation: ArpOperation::Reply,
                sender_mac: MacAddr([0x52, 0x55, a, b, c, d]),
                sender_ip: address,
                target_mac: GUEST,
                target_ip: net(15),
            })
        );
    }
}

/// A guest that gets an answer for its own address gives it up (RFC 5227 2.1.1).
#[test]
fn requests_and_probes_for_other_addresses_are_not_answered() {
    let config = Config::default();
    for target in
        [net(15), net(1), net(0), net(255), Ipv4Addr::new(8, 8, 8, 8), Ipv4Addr::BROADCAST]
    {
        for sender in [Ipv4Addr::UNSPECIFIED, net(15), target] {
            assert_eq!(respond(&config, &who_has(target, sender)), None);
        }
    }
}

#[test]
fn a_probe_for_a_router_address_learns_that_it_is_taken() {
    let config = Config::default();
    let reply = respond(&config, &who_has(config.gateway, Ipv4Addr::UNSPECIFIED)).unwrap();
    assert_eq!((reply.sender_ip, reply.target_ip), (config.gateway, Ipv4Addr::UNSPECIFIED));
}

#[test]
fn a_guest_that_announces_a_router_address_is_contradicted() {
    let config = Config::default();
    let reply = respond(&config, &who_has(config.gateway, config.gateway)).unwrap();
    assert_eq!(reply.sender_mac, router_mac(config.gateway));
}

#[test]
fn replies_and_unknown_operations_are_not_answered() {
    let config = Config::default();
    for operation in [ArpOperation::Reply, ArpOperation::Other(0), ArpOperation::Other(3)] {
        let packet = ArpPacket { operation, ..who_has(config.gateway, net(15)) };
        assert_eq!(respond(&config, &packet), None);
    }
}

#[test]
fn a_sender_that_is_no_station_is_not_answered() {
    let config = Config::default();
    for sender_mac in [MacAddr::ZERO, MacAddr::BROADCAST, MacAddr([0x33, 0x33, 0, 0, 0, 1])] {
        let packet = ArpPacket { sender_mac, ..who_has(config.gateway, net(15)) };
        assert_eq!(respond(&config, &packet), None);
    }
}

#[test]
fn the_gateway_asks_for_a_guest() {
    let config = Config::default();
    assert_eq!(
        request(&config, net(15)),
        ArpPacket {
            operation: ArpOperation::Request,
            sender_mac: MacAddr([0x52, 0x55, 10, 0, 2, 2]),
            sender_ip: net(2),
            target_mac: MacAddr::ZERO,
            target_ip: net(15),
        }
    );
}

#[test]
fn a_neighbour_is_found_under_its_latest_address() {
    let config = Config::default();
    let mut neighbours = Neighbours::new();
    assert_eq!(neighbours.find(net(15)), None);
    neighbours.learn(Instant::ZERO, &config, net(15), mac(1));
    neighbours.learn(Instant::ZERO, &config, net(16), mac(2));
    neighbours.learn(Instant::ZERO, &config, net(15), mac(3));
    assert_eq!(neighbours.find(net(15)), Some(mac(3)));
    assert_eq!(neighbours.find(net(16)), Some(mac(2)));
}

#[test]
fn the_neighbour_known_first_makes_room() {
    let config = Config::default();
    let mut neighbours = Neighbours::new();
    for last in 20..36 {
        neighbours.learn(Instant::ZERO, &config, net(last), mac(last));
    }
    neighbours.learn(Instant::ZERO, &config, net(20), mac(99));
    for last in 36..54 {
        neighbours.learn(Instant::ZERO, &config, net(last), mac(last));
        let known: Vec<u8, 64> = (20..54).filter(|l| neighbours.find(net(*l)).is_some()).collect();
        let expected: Vec<u8, 64> = (last - 15..=last).collect();
        assert_eq!(known, expected);
    }
}

#[test]
fn addresses_that_no_guest_has_are_not_learned() {
    let config = Config::default();
    let mut neighbours = Neighbours::new();
    let foreign = Ipv4Addr::new(192, 0, 2, 1);
    for address in
        [net(2), net(3), net(0), net(255), foreign, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]
    {
        neighbours.learn(Instant::ZERO, &config, address, GUEST);
        assert_eq!(neighbours.find(address), None);
    }
}

#[test]
fn group_addresses_are_not_learned() {
    let config = Config::default();
    let mut neighbours = Neighbours::new();
    neighbours.learn(Instant::ZERO, &config, net(15), GUEST);
    for mac in [MacAddr::ZERO, MacAddr::BROADCAST, MacAddr([1, 0, 0x5e, 0, 0, 1])] {
        neighbours.learn(Instant::ZERO, &config, net(15), mac);
        neighbours.learn(Instant::ZERO, &config, net(16), mac);
    }
    assert_eq!(neighbours.find(net(15)), Some(GUEST));
    assert_eq!(neighbours.find(net(16)), None);
}
