//! `--forward [udp:]HOSTADDR:PORT-[GUEST]:PORT`, QEMU's and libslirp's hostfwd.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use slirp_nat::{Forward, Protocol};

/// Parses one rule. An empty or `*` host address is every IPv4 address of the host, as with QEMU;
/// an empty guest address is the guest.
///
/// # Errors
/// A line that says what is wrong.
pub(crate) fn parse(text: &str) -> Result<Forward, String> {
    let (protocol, rule) = match (text.strip_prefix("udp:"), text.strip_prefix("tcp:")) {
        (Some(rule), _) => (Protocol::Udp, rule),
        (None, Some(rule)) => (Protocol::Tcp, rule),
        (None, None) => (Protocol::Tcp, text),
    };
    let form = || {
        "expected [udp:]HOSTADDR:PORT-[GUEST]:PORT, as 127.0.0.1:8080-:80 or udp:[::1]:53-:53"
            .to_owned()
    };
    let (host, guest) = rule.split_once('-').ok_or_else(form)?;
    let (host_address, host_port) = split_endpoint(host).ok_or_else(form)?;
    let (guest_address, guest_port) = split_endpoint(guest).ok_or_else(form)?;
    let guest_address = match guest_address {
        "" => Ipv4Addr::UNSPECIFIED,
        given => given.parse().map_err(|_| format!("the guest address {given} is not IPv4"))?,
    };
    Ok(Forward {
        protocol,
        host: SocketAddr::new(parse_host(host_address)?, parse_port(host_port)?),
        guest: SocketAddr::new(guest_address.into(), parse_port(guest_port)?),
    })
}

/// Writes a rule as [`parse`] reads it.
pub(crate) fn format(forward: &Forward) -> String {
    let protocol = match forward.protocol {
        Protocol::Tcp => "",
        Protocol::Udp => "udp:",
    };
    if forward.guest.ip().is_unspecified() {
        format!("{protocol}{}-:{}", forward.host, forward.guest.port())
    } else {
        format!("{protocol}{}-{}", forward.host, forward.guest)
    }
}

/// Cuts `ADDRESS:PORT`, the address as written, in brackets if it has colons itself.
fn split_endpoint(text: &str) -> Option<(&str, &str)> {
    let (address, port) = text.rsplit_once(':')?;
    let bracketed = address.starts_with('[') && address.ends_with(']');
    (bracketed || !address.contains(':')).then_some((address, port))
}

fn parse_host(text: &str) -> Result<IpAddr, String> {
    if matches!(text, "" | "*") {
        return Ok(Ipv4Addr::UNSPECIFIED.into());
    }
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner
        .map_or_else(
            || text.parse().map(IpAddr::V4).ok(),
            |v6| v6.parse::<Ipv6Addr>().map(IpAddr::V6).ok(),
        )
        .ok_or_else(|| format!("the host address {text} is neither IPv4 nor IPv6 in brackets"))
}

fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("the port {text:?} is not a number from 1 to 65535")),
        Ok(port) => Ok(port),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn forward(protocol: Protocol, host: &str, guest: &str) -> Result<Forward, String> {
        Ok(Forward { protocol, host: host.parse().unwrap(), guest: guest.parse().unwrap() })
    }

    #[test]
    fn every_form_of_the_manual_is_read() {
        use Protocol::{Tcp, Udp};
        assert_eq!(parse("127.0.0.1:8080-:80"), forward(Tcp, "127.0.0.1:8080", "0.0.0.0:80"));
        assert_eq!(parse("tcp::2222-:22"), forward(Tcp, "0.0.0.0:2222", "0.0.0.0:22"));
        assert_eq!(parse("*:2222-:22"), forward(Tcp, "0.0.0.0:2222", "0.0.0.0:22"));
        assert_eq!(parse("udp:[::1]:53-10.0.2.15:53"), forward(Udp, "[::1]:53", "10.0.2.15:53"));
        assert_eq!(parse("udp::53-:53"), forward(Udp, "0.0.0.0:53", "0.0.0.0:53"));
    }

    #[test]
    fn errors_name_the_part_that_is_wrong() {
        let error = |text: &str| parse(text).unwrap_err();
        assert!(error("8080").starts_with("expected [udp:]HOSTADDR:PORT-[GUEST]:PORT"));
        assert!(error("8080-80").starts_with("expected"));
        assert!(error("::1:80-:80").starts_with("expected"));
        assert_eq!(error("1.2.3.4:0-:80"), "the port \"0\" is not a number from 1 to 65535");
        assert_eq!(
            error("1.2.3.4:80-:99999"),
            "the port \"99999\" is not a number from 1 to 65535"
        );
        assert_eq!(
            error("localhost:80-:80"),
            "the host address localhost is neither IPv4 nor IPv6 in brackets"
        );
        assert_eq!(
            error("[1.2.3.4]:80-:80"),
            "the host address [1.2.3.4] is neither IPv4 nor IPv6 in brackets"
        );
        assert_eq!(error(":80-[fe80::1]:80"), "the guest address [fe80::1] is not IPv4");
    }

    fn any_address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
            any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits))),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            udp: bool, host in any_address(), guest: u32, host_port in 1..=u16::MAX, guest_port in 1..=u16::MAX,
        ) {
            let rule = Forward {
                protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
                host: SocketAddr::new(host, host_port),
                guest: SocketAddr::new(Ipv4Addr::from_bits(guest).into(), guest_port),
            };
            prop_assert_eq!(parse(&format(&rule)), Ok(rule));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "(udp:)?[\\[\\]:.0-9a-f*-]{0,40}|.{0,40}") {
            let _ = parse(&text);
        }
    }
}
