//! Which addresses are the host's own.

use core::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// Any port: nothing is ever sent there.
const DISCARD: u16 = 9;

/// Asks the kernel's routes, which know more than the list of interfaces: a whole network may be
/// local (`ip route add local`), and an address may have come a moment ago.
#[derive(Debug, Default)]
pub(super) struct OwnAddresses {
    ipv4: Option<OwnedFd>,
    ipv6: Option<OwnedFd>,
}

impl OwnAddresses {
    /// Whether `address` reaches the host itself. If the kernel cannot be asked, every address is
    /// taken for one of the host's, since that is what is refused.
    pub(super) fn contains(&mut self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        // Connecting to the unspecified address reaches the host.
        if address.is_loopback() || address.is_unspecified() {
            return true;
        }
        match self.source_for(address) {
            Ok(source) => source.ip() == address || source.ip().is_loopback(),
            // What has no route is nobody's.
            Err(error) => !matches!(error, Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS),
        }
    }

    /// The address from which the host would write to `address`: to one of its own, from itself.
    fn source_for(&mut self, address: IpAddr) -> Result<SocketAddr, Errno> {
        let (place, family) = match address {
            IpAddr::V4(_) => (&mut self.ipv4, AddressFamily::INET),
            IpAddr::V6(_) => (&mut self.ipv6, AddressFamily::INET6),
        };
        let socket = match place {
            Some(socket) => socket,
            None => place.insert(rustix::net::socket_with(
                family,
                SocketType::DGRAM,
                SocketFlags::CLOEXEC,
                None,
            )?),
        };
        // Else the socket would keep the source it was given by the last question.
        rustix::net::connect_unspec(&*socket)?;
        rustix::net::connect(&*socket, &SocketAddr::new(address, DISCARD))?;
        let source = rustix::net::getsockname(&*socket)?;
        SocketAddr::try_from(source).map_err(|_| Errno::AFNOSUPPORT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(own: &mut OwnAddresses, address: &str) -> bool {
        own.contains(address.parse().unwrap())
    }

    #[test]
    fn loopback_and_the_unspecified_address_are_the_hosts() {
        let mut own = OwnAddresses::default();
        for address in ["127.0.0.1", "127.255.255.254", "0.0.0.0", "::1", "::", "::ffff:127.0.0.2"]
        {
            assert!(is_own(&mut own, address), "{address}");
        }
    }

    #[test]
    fn interface_addresses_are_the_hosts_and_their_neighbours_are_not() {
        let mut own = OwnAddresses::default();
        let interfaces = nix::ifaddrs::getifaddrs().unwrap();
        for interface in interfaces {
            let Some(v4) = interface.address.as_ref().and_then(|a| a.as_sockaddr_in()) else {
                continue;
            };
            assert!(own.contains(IpAddr::V4(v4.ip())), "{}", v4.ip());
        }
        // TEST-NET-3 (RFC 5737) is nobody's, routed or not.
        assert!(!is_own(&mut own, "203.0.113.7"));
    }
}
