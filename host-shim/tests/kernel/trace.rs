//! The way to a server, as its hops report it.

use crate::guest::{ROUTER, each_entered};
use crate::world::{HOP, SERVER, World};

/// Who answered, hop by hop: the second word of every line but the first.
fn hops(text: &str) -> Vec<&str> {
    text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect()
}

#[test]
fn every_hop_is_shown_by_its_own_address() {
    each_entered("traceroute", &["traceroute", "ip"], |setup| {
        let world = World::new();
        let guest = setup.guest(Some(&world.host.path()), &[]);
        let expected = [ROUTER, HOP, SERVER].map(|address| address.to_string());
        for method in ["", "-I"] {
            let output = guest.outcome(&format!("traceroute {method} -n -q 1 -w 5 {SERVER}"));
            let text = String::from_utf8_lossy(&output.stdout);
            assert_eq!(hops(&text), expected, "{} {method}: {output:?}", setup.name());
        }
    });
}

#[test]
fn an_unreachable_host_is_reported_by_who_found_out() {
    each_entered("unreachable", &["ping", "ip"], |setup| {
        let world = World::new();
        world.host.script("ip route add blackhole 192.0.2.0/24");
        let guest = setup.guest(Some(&world.host.path()), &[]);
        let output = guest.outcome("ping -n -c 1 -W 10 203.0.113.77");
        let text = String::from_utf8_lossy(&output.stdout);
        let report = format!("From {HOP} icmp_seq=1 Destination Host Unreachable");
        assert!(text.contains(&report), "{}: {output:?}", setup.name());
    });
}
