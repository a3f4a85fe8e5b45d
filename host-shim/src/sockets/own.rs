//! Which addresses are the host's own.

use core::net::IpAddr;
use core::time::Duration;
use std::io;

use ipstack::Instant;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

use crate::clock;

/// How long a list of addresses is believed.
const LIFETIME: Duration = Duration::from_secs(1);

/// The addresses of all interfaces, as of a moment ago.
#[derive(Debug, Default)]
pub(super) struct OwnAddresses {
    /// When the list was read; `None` if that has not yet succeeded.
    read_at: Option<Instant>,
    list: Vec<IpAddr>,
}

impl OwnAddresses {
    /// Whether `address` reaches the host itself. If the list cannot be had, every address is
    /// taken for one of the host's, since that is what is refused.
    pub(super) fn contains(&mut self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        // Connecting to the unspecified address reaches the host.
        if address.is_loopback() || address.is_unspecified() {
            return true;
        }
        let now = clock::now();
        if self.read_at.is_none_or(|read_at| now.since(read_at) >= LIFETIME) {
            match interface_addresses() {
                Ok(list) => (self.read_at, self.list) = (Some(now), list),
                Err(error) => log::warn!("cannot list the host's addresses: {error}"),
            }
        }
        self.read_at.is_none() || self.list.contains(&address)
    }
}

fn interface_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(getifaddrs()?.filter_map(|interface| ip_address(&interface.address?)).collect())
}

fn ip_address(address: &SockaddrStorage) -> Option<IpAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(IpAddr::V4(v4.ip()));
    }
    address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip()))
}
