//! resolv.conf(5): the host's, read for resolvers, and the guest's, written.

use core::fmt::Write as _;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use ipstack::wire::dns;
use nix::net::if_::if_nametoindex;

/// Where the host's own resolvers are named.
pub(crate) const PATH: &str = "/etc/resolv.conf";

/// The name servers of a resolv.conf, in its order.
pub(crate) fn nameservers(text: &str) -> Vec<SocketAddr> {
    directives(text)
        .filter(|(name, _)| *name == "nameserver")
        .filter_map(|(_, value)| parse_address(value))
        .collect()
}

/// A resolv.conf that names one server and keeps the host's search list and options.
pub(crate) fn with_nameserver(host: &str, server: Ipv4Addr) -> String {
    let mut text = format!("nameserver {server}\n");
    for (name, value) in
        directives(host).filter(|(name, _)| matches!(*name, "search" | "domain" | "options"))
    {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

/// `--dns`: an address, or an address and a port.
///
/// # Errors
/// A line that says what is expected.
pub(crate) fn parse_resolver(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .ok()
        .or_else(|| parse_address(text))
        .filter(|address: &SocketAddr| address.port() != 0 && !address.ip().is_unspecified())
        .ok_or_else(|| {
            "expected an IPv4 or IPv6 address, as 9.9.9.9, 2620:fe::fe or 127.0.0.1:5353".to_owned()
        })
}

/// An address with the usual port. A link-local one names its interface after a percent sign
/// (RFC 4007 11).
fn parse_address(text: &str) -> Option<SocketAddr> {
    match text.split_once('%') {
        None => text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, dns::PORT)),
        Some((address, zone)) => {
            let address: Ipv6Addr = address.parse().ok()?;
            let zone = zone.parse().ok().or_else(|| if_nametoindex(zone).ok())?;
            Some(SocketAddrV6::new(address, dns::PORT, 0, zone).into())
        }
    }
}

/// The directives of a resolv.conf: a keyword at the very start of a line, and the rest of it.
fn directives(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter(|line| !line.starts_with(['#', ';']))
        .filter_map(|line| line.split_once([' ', '\t']))
        .map(|(name, value)| (name, value.trim()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOST: &str = "# made by hand\n; nameserver 1.1.1.1\nnameserver 127.0.0.53\n\
        nameserver\t2001:db8::53\nnameserver fe80::1%1\nnameserver localhost\nnameserver\n\
        search example.org lan\noptions edns0 trust-ad\n nameserver 8.8.8.8\n";

    #[test]
    fn servers_are_read_in_order_and_nonsense_is_skipped() {
        let expected: Vec<SocketAddr> = vec![
            "127.0.0.53:53".parse().unwrap(),
            "[2001:db8::53]:53".parse().unwrap(),
            "[fe80::1%1]:53".parse().unwrap(),
        ];
        assert_eq!(nameservers(HOST), expected);
    }

    #[test]
    fn the_guests_file_names_one_server_and_keeps_the_search_list() {
        assert_eq!(
            with_nameserver(HOST, Ipv4Addr::new(10, 0, 2, 3)),
            "nameserver 10.0.2.3\nsearch example.org lan\noptions edns0 trust-ad\n"
        );
    }

    #[test]
    fn a_resolver_may_have_a_port_but_not_port_zero() {
        assert_eq!(parse_resolver("9.9.9.9"), Ok("9.9.9.9:53".parse().unwrap()));
        assert_eq!(parse_resolver("::1"), Ok("[::1]:53".parse().unwrap()));
        assert_eq!(parse_resolver("127.0.0.1:5353"), Ok("127.0.0.1:5353".parse().unwrap()));
        for bad in ["dns.example", "9.9.9.9:0", "0.0.0.0", "", "::%none"] {
            assert!(parse_resolver(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_file_is_read(text in "((nameserver|search|#)?[ \\t]?[0-9a-f.:%]{0,20}\n){0,6}|.{0,80}") {
            let guest = with_nameserver(&text, Ipv4Addr::new(10, 0, 2, 3));
            prop_assert_eq!(nameservers(&guest), vec!["10.0.2.3:53".parse().unwrap()]);
            let _ = nameservers(&text);
        }
    }
}
