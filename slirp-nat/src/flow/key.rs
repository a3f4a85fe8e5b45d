//! What names a flow.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipstack::hash::SipHasher;

/// What a flow carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum FlowKind {
    Tcp = 6,
    Udp = 17,
    Ping = 1,
}

/// An address and a port. IPv4 addresses are mapped into IPv6 (RFC 4291 2.5.5.2), so that both
/// families share one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: Ipv6Addr,
    pub(crate) port: u16,
}

impl Endpoint {
    /// Matches any remote end, in the key of an endpoint-independent mapping.
    pub(crate) const ANY: Self = Self { address: Ipv6Addr::UNSPECIFIED, port: 0 };

    pub(crate) const fn v4(address: Ipv4Addr, port: u16) -> Self {
        Self { address: address.to_ipv6_mapped(), port }
    }

    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self { address: wide(address.ip()), port: address.port() }
    }

    pub(crate) fn socket_addr(self) -> SocketAddr {
        SocketAddr::new(self.address.to_canonical(), self.port)
    }

    /// Whether the address is one of IPv4.
    pub(crate) const fn is_ipv4(self) -> bool {
        self.address.to_ipv4_mapped().is_some()
    }

    /// The address as IPv4; unspecified if it is not.
    pub(crate) fn ipv4(self) -> Ipv4Addr {
        self.address.to_ipv4_mapped().unwrap_or(Ipv4Addr::UNSPECIFIED)
    }
}

/// `address` as the 16 bytes that keys use.
pub(crate) const fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// Both ends as the guest sees them, and the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlowKey {
    pub(crate) guest: Endpoint,
    pub(crate) remote: Endpoint,
    pub(crate) kind: FlowKind,
}

impl FlowKey {
    /// A keyed hash, so that a guest cannot aim at one chain of the table.
    pub(crate) fn hash(&self, secret: [u64; 2]) -> u64 {
        let mut hasher = SipHasher::new(secret);
        hasher.write_u128(self.guest.address.to_bits());
        hasher.write_u128(self.remote.address.to_bits());
        let ports = u64::from(self.guest.port) << 16 | u64::from(self.remote.port);
        hasher.write_u64(ports << 8 | self.kind as u64);
        hasher.finish()
    }
}
