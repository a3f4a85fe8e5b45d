//! Where the guest's packets may go, and under which address the guest sees the world.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::config::Config;
use crate::host::{Host, HostError};

/// Why a destination is not reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoRoute {
    /// The guest is told as if the host had said so.
    Error(HostError),
    /// Nobody answers, as on any network: multicast, broadcast, another guest.
    Silent,
}

/// The host's address behind what the guest calls `destination`.
pub(crate) fn translate_out<H: Host + ?Sized>(
    config: &Config,
    host: &mut H,
    destination: Ipv4Addr,
    port: u16,
) -> Result<SocketAddr, NoRoute> {
    if config.is_router(destination) {
        // Nobody listens on the router itself; its address stands for the host's loopback.
        return if config.host_loopback && destination == config.gateway {
            Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        } else {
            Err(NoRoute::Error(HostError::Refused))
        };
    }
    if !is_single_host(config, destination) || config.contains(destination) {
        return Err(NoRoute::Silent);
    }
    let address = IpAddr::V4(destination);
    if !config.host_loopback && is_host(host, address) {
        return Err(NoRoute::Error(HostError::Denied));
    }
    Ok(SocketAddr::new(address, port))
}

/// Whether `address` can be that of one host: no multicast, broadcast or reserved address. What is
/// sent to any other is answered by no reset and no ICMP error (RFC 1122 3.2.2, 4.2.3.10).
pub(crate) fn is_single_host(config: &Config, address: Ipv4Addr) -> bool {
    const RESERVED: u32 = 0xf000_0000;
    !address.is_multicast()
        && address.to_bits() < RESERVED
        && address != config.broadcast()
        && address != config.network
}

/// Whether `address` leads to the host itself, or to services that trust whoever is on it: all of
/// 127/8 and 0/8 (RFC 1122 3.2.1.3), link-local addresses, and the host's own.
pub(crate) fn is_host<H: Host + ?Sized>(host: &mut H, address: IpAddr) -> bool {
    let local = match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.octets()[0] == 0 || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
    };
    local || host.is_own_address(address)
}

/// The address under which the guest sees `address`: what the guest could not answer to, since it
/// would never leave the guest or not come back here, is shown as the gateway.
pub(crate) fn translate_in<H: Host + ?Sized>(
    config: &Config,
    host: &mut H,
    address: IpAddr,
) -> Ipv4Addr {
    match address.to_canonical() {
        IpAddr::V4(v4) if !v4.is_unspecified() && !config.contains(v4) => {
            if v4.is_loopback() || host.is_own_address(IpAddr::V4(v4)) {
                config.gateway
            } else {
                v4
            }
        }
        IpAddr::V4(_) | IpAddr::V6(_) => config.gateway,
    }
}
