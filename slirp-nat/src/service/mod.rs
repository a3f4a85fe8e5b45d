//! What the virtual router answers itself: decisions without I/O. The caller wraps what they say
//! in UDP, IP and Ethernet.

use core::net::Ipv4Addr;

use ipstack::wire::MacAddr;

use crate::config::Config;

pub(crate) mod arp;
pub(crate) mod dhcp;
pub(crate) mod dns;

/// Whether a guest may have `address`: it lies in the guests' network and is neither the router's
/// nor that of the network itself, nor its broadcast address.
pub(crate) fn is_guest(config: &Config, address: Ipv4Addr) -> bool {
    config.contains(address)
        && !config.is_router(address)
        && address != config.network
        && address != config.broadcast()
}

/// Whether `mac` can be that of one station.
pub(crate) fn is_station(mac: MacAddr) -> bool {
    !mac.is_multicast() && mac != MacAddr::ZERO
}
