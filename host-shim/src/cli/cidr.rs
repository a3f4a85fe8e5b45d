//! `--cidr`: the guest's network, and the addresses that follow from it.

use core::net::Ipv4Addr;
use core::str::FromStr;

use crate::netns::{Addresses, netmask};

/// Offsets from the network's own address, as libslirp and slirp4netns have them.
const GATEWAY: u32 = 2;
const DNS: u32 = 3;
const FIRST_LEASE: u32 = 15;
const GUEST: u32 = 100;

/// The longest prefix that has room for all of them: 128 addresses hold .100.
const MAX_PREFIX: u8 = 25;
/// The shortest prefix: a network of its own class A.
const MIN_PREFIX: u8 = 8;

/// The guest's network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cidr {
    network: Ipv4Addr,
    prefix_len: u8,
}

impl Cidr {
    /// Its own address.
    pub(crate) const fn network(self) -> Ipv4Addr {
        self.network
    }

    /// Length of its prefix.
    pub(crate) const fn prefix_len(self) -> u8 {
        self.prefix_len
    }

    /// The virtual router.
    pub(crate) const fn gateway(self) -> Ipv4Addr {
        self.nth(GATEWAY)
    }

    /// The virtual name server.
    pub(crate) const fn dns(self) -> Ipv4Addr {
        self.nth(DNS)
    }

    /// The first address given by DHCP.
    pub(crate) const fn first_lease(self) -> Ipv4Addr {
        self.nth(FIRST_LEASE)
    }

    /// The fixed address of a namespace.
    pub(crate) const fn guest(self) -> Ipv4Addr {
        self.nth(GUEST)
    }

    /// What an interface of this network with an MTU of `mtu` bytes is given.
    pub(crate) const fn addresses(self, mtu: u16) -> Addresses {
        Addresses { guest: self.guest(), prefix_len: self.prefix_len, gateway: self.gateway(), mtu }
    }

    /// Whether `address` lies in it.
    pub(crate) const fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & netmask(self.prefix_len) == self.network.to_bits()
    }

    const fn nth(self, offset: u32) -> Ipv4Addr {
        // The network has no host bits, so that nothing can carry.
        Ipv4Addr::from_bits(self.network.to_bits() | offset)
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "expected ADDRESS/PREFIX, as 10.0.2.0/24".to_owned();
        let (address, prefix) = text.split_once('/').ok_or_else(form)?;
        let address: Ipv4Addr = address.parse().map_err(|_| form())?;
        let prefix_len = prefix.parse().map_err(|_| form())?;
        if !(MIN_PREFIX..=MAX_PREFIX).contains(&prefix_len) {
            return Err(format!(
                "the prefix must be {MIN_PREFIX} to {MAX_PREFIX}: a network has to hold the address .{GUEST}"
            ));
        }
        let network = Ipv4Addr::from_bits(address.to_bits() & netmask(prefix_len));
        if network != address {
            return Err(format!(
                "{address} is not the start of a network: give {network}/{prefix_len}"
            ));
        }
        if matches!(network.octets(), [0 | 127 | 224.., ..]) {
            return Err("a guest cannot have addresses of 0/8, 127/8 or above 223".to_owned());
        }
        Ok(Self { network, prefix_len })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_address_is_shifted_into_the_network() {
        let cidr: Cidr = "192.168.7.128/25".parse().unwrap();
        assert_eq!(cidr.gateway(), Ipv4Addr::new(192, 168, 7, 130));
        assert_eq!(cidr.dns(), Ipv4Addr::new(192, 168, 7, 131));
        assert_eq!(cidr.first_lease(), Ipv4Addr::new(192, 168, 7, 143));
        assert_eq!(cidr.guest(), Ipv4Addr::new(192, 168, 7, 228));
        assert!(!cidr.contains(Ipv4Addr::new(192, 168, 7, 127)));
    }

    #[test]
    fn errors_say_what_to_give_instead() {
        let error = |text: &str| text.parse::<Cidr>().unwrap_err();
        assert_eq!(
            error("10.0.2.5/24"),
            "10.0.2.5 is not the start of a network: give 10.0.2.0/24"
        );
        assert!(error("10.0.2.0/26").contains("8 to 25"));
        assert!(error("10.0.2.0/0").contains("8 to 25"));
        assert!(error("10.0.2.0").contains("ADDRESS/PREFIX"));
        assert!(error("fd00::/64").contains("ADDRESS/PREFIX"));
        assert!(error("127.0.0.0/8").contains("127/8"));
        assert!(error("224.0.0.0/8").contains("223"));
    }

    proptest! {
        #[test]
        fn what_is_accepted_makes_a_valid_configuration(bits: u32, prefix in 0_u8..40) {
            let text = format!("{}/{prefix}", Ipv4Addr::from_bits(bits & netmask(prefix.min(32))));
            if let Ok(cidr) = text.parse::<Cidr>() {
                let mut config = slirp_nat::Config::default();
                config.network = cidr.network();
                config.prefix_len = cidr.prefix_len();
                config.gateway = cidr.gateway();
                config.dns = cidr.dns();
                config.first_lease = cidr.first_lease();
                config.default_guest = cidr.guest();
                prop_assert_eq!(config.validate(), Ok(()));
            }
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,40}") {
            let _ = text.parse::<Cidr>();
        }
    }
}
