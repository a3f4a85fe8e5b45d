//! What the embedder decides: addresses, policy and the memory handed over.

use core::net::{Ipv4Addr, SocketAddr};

use heapless::{String, Vec};
use ipstack::frag::FragmentSlot;
use managed::ManagedSlice;

use crate::flow::{Flow, Permit, Recovery};
use crate::forward::ForwardSlot;
use crate::policy::is_single_host;
use crate::service::dhcp::Lease;

/// Resolvers that the DNS relay tries, at most.
pub const MAX_RESOLVERS: usize = 4;

/// Longest host or domain name handed out by DHCP (RFC 1035 2.3.4).
pub const MAX_NAME_LEN: usize = 255;

/// Longest name or URL of a boot file: the longest value of an option (RFC 2132 2).
pub const MAX_BOOT_FILE_LEN: usize = 255;

/// Smallest MTU, the least that every IPv4 link carries (RFC 791 3.2).
pub const MIN_MTU: u16 = 68;

/// Largest MTU: a frame of 65,535 bytes less the Ethernet header, as libslirp has it.
pub const MAX_MTU: u16 = 65_521;

/// The largest window offered by default, 8 MiB: twice what Linux lets a send buffer grow to.
const DEFAULT_MAX_WINDOW: u32 = 65_535 << 7;

/// How a guest's UDP port is mapped to a port of the host (RFC 4787 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UdpMapping {
    /// One host port for all destinations of a guest port.
    #[default]
    EndpointIndependent,
    /// One host port for each pair of guest port and destination.
    AddressAndPortDependent,
}

/// Who may send to a guest's mapped UDP port (RFC 4787 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UdpFiltering {
    /// Anybody ("full cone").
    EndpointIndependent,
    /// Any port of an address the guest has sent to ("address-restricted").
    #[default]
    AddressDependent,
}

/// Addresses and policy. [`Config::default`] gives libslirp's network, 10.0.2.0/24.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Largest IP packet on the guest's link, in bytes: [`MIN_MTU`] to [`MAX_MTU`].
    pub mtu: u16,
    /// The largest window offered to the guest on a TCP connection, in bytes, up to 1 GiB. Name no
    /// more than the host's largest send buffer: a window is told in units of 2 to the power of its
    /// scale, 128 bytes for 8 MiB, and this is what the scale follows from (RFC 7323 2.3).
    pub max_window: u32,
    /// The guest's network.
    pub network: Ipv4Addr,
    /// Length of its prefix, 1 to 30.
    pub prefix_len: u8,
    /// The virtual router.
    pub gateway: Ipv4Addr,
    /// The virtual name server.
    pub dns: Ipv4Addr,
    /// The first address that DHCP leases; the others follow it.
    pub first_lease: Ipv4Addr,
    /// The guest that a forward without an address means, before any lease was given.
    pub default_guest: Ipv4Addr,
    /// Host name for the guest (DHCP option 12); empty for none.
    pub hostname: String<MAX_NAME_LEN>,
    /// Domain name for the guest (DHCP option 15); empty for none.
    pub domain: String<MAX_NAME_LEN>,
    /// The file that the guest boots, or its URL (DHCP field `file` and option 67); empty for none.
    /// A BOOTP client, which knows the field alone, is told of no name longer than 127 bytes.
    pub boot_file: String<MAX_BOOT_FILE_LEN>,
    /// The server that has the boot file (DHCP field `siaddr`); `None` for the gateway.
    pub next_server: Option<Ipv4Addr>,
    /// The same server's name (DHCP field `sname` and option 66); empty for none.
    pub tftp_server_name: String<MAX_NAME_LEN>,
    /// Where the DNS relay sends queries, the best first. May be changed at run time by
    /// [`Nat::set_resolvers`](crate::Nat::set_resolvers).
    pub resolvers: Vec<SocketAddr, MAX_RESOLVERS>,
    /// Whether the guest may reach the host itself: its loopback at the gateway's address, and its
    /// own addresses.
    pub host_loopback: bool,
    /// UDP mapping behaviour.
    pub udp_mapping: UdpMapping,
    /// UDP filtering behaviour.
    pub udp_filtering: UdpFiltering,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: 1500,
            max_window: DEFAULT_MAX_WINDOW,
            network: Ipv4Addr::new(10, 0, 2, 0),
            prefix_len: 24,
            gateway: Ipv4Addr::new(10, 0, 2, 2),
            dns: Ipv4Addr::new(10, 0, 2, 3),
            first_lease: Ipv4Addr::new(10, 0, 2, 15),
            default_guest: Ipv4Addr::new(10, 0, 2, 15),
            hostname: String::new(),
            domain: String::new(),
            boot_file: String::new(),
            next_server: None,
            tftp_server_name: String::new(),
            resolvers: Vec::new(),
            host_loopback: false,
            udp_mapping: UdpMapping::default(),
            udp_filtering: UdpFiltering::default(),
        }
    }
}

/// What is wrong with a [`Config`] or a [`Storage`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The MTU is outside [`MIN_MTU`]..=[`MAX_MTU`].
    Mtu,
    /// The prefix length is outside 1..=30, or the network has host bits set.
    Network,
    /// Gateway, name server or first lease lies outside the network, or two are the same.
    Address,
    /// The boot file's or the server's name has a NUL, which would end it in its field, or the next
    /// server is no single host.
    Boot,
    /// There is no room for a single flow, or no hash bucket.
    Storage,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Mtu => "the MTU must be 68 to 65521",
            Self::Network => {
                "the network must be an address without host bits and a prefix of 1 to 30"
            }
            Self::Address => {
                "gateway, name server and first lease must be different addresses of the network"
            }
            Self::Boot => {
                "names of boot file and server must be without NUL, and the next server a single host"
            }
            Self::Storage => "storage must hold at least one flow and one hash bucket",
        })
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Checks what [`Nat::new`](crate::Nat::new) relies on.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(MIN_MTU..=MAX_MTU).contains(&self.mtu) {
            return Err(ConfigError::Mtu);
        }
        if !(1..=30).contains(&self.prefix_len) || self.network.to_bits() & !self.mask() != 0 {
            return Err(ConfigError::Network);
        }
        let inside = |a: Ipv4Addr| self.contains(a) && a != self.network && a != self.broadcast();
        let named = [self.gateway, self.dns, self.first_lease, self.default_guest];
        let distinct = self.gateway != self.dns
            && ![self.first_lease, self.default_guest]
                .iter()
                .any(|a| *a == self.gateway || *a == self.dns);
        if !named.into_iter().all(inside) || !distinct {
            return Err(ConfigError::Address);
        }
        self.validate_boot()
    }

    fn validate_boot(&self) -> Result<(), ConfigError> {
        let has_nul = self.boot_file.contains('\0') || self.tftp_server_name.contains('\0');
        let next = self.next_server();
        let host = is_single_host(self, next) && !next.is_unspecified() && !next.is_loopback();
        if has_nul || !host { Err(ConfigError::Boot) } else { Ok(()) }
    }

    /// The server that the guest boots from.
    pub(crate) fn next_server(&self) -> Ipv4Addr {
        self.next_server.unwrap_or(self.gateway)
    }

    /// The network mask as a number.
    pub(crate) const fn mask(&self) -> u32 {
        u32::MAX.unbounded_shl(32_u32.saturating_sub(self.prefix_len as u32))
    }

    /// Whether `address` lies in the guest's network.
    pub(crate) const fn contains(&self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask() == self.network.to_bits()
    }

    /// The directed broadcast address.
    pub(crate) const fn broadcast(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network.to_bits() | !self.mask())
    }

    /// Whether `address` is one that the virtual router answers for.
    pub(crate) fn is_router(&self, address: Ipv4Addr) -> bool {
        address == self.gateway || address == self.dns
    }
}

/// Key for flow hashing, initial sequence numbers and identifiers. Draw it at random, once for
/// each instance: who knows it can predict them.
#[derive(Clone, Copy)]
pub struct Secret(pub [u64; 2]);

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// All memory that the NAT ever uses, handed over at creation. Borrowed slices or, where there is
/// an allocator, `Vec`s; either may be of any size, and 0 where the table says so.
///
/// | field | unit | when full |
/// |---|---|---|
/// | `flows` | flow | of half-open connections and of UDP and ping flows, whichever are more, the oldest half-open or the most idle goes, then the oldest TIME_WAIT; then new flows are refused |
/// | `buckets` | hash chain, as many as flows is good | – |
/// | `permits` | permitted UDP remote, a multiple of 4; may be 0 with endpoint-independent filtering | the oldest of its set of four goes |
/// | `fragments`, `fragment_memory` | datagram in reassembly, and bytes shared evenly by them; may be 0 | the oldest goes; one source has half at most |
/// | `pool` | bytes parked after short writes, and beyond gaps of a stream, in blocks of [`BLOCK_LEN`](ipstack::pool::BLOCK_LEN); may be 0 | those beyond gaps go; then the rest is not acknowledged |
/// | `recoveries` | TCP flow in want of something lost, up to 65,535; may be 0 | they give way in turn |
/// | `datagram` | bytes of the longest datagram for the guest | longer ones are dropped |
/// | `replies` | bytes of frames waiting for room on the link; may be 0 | further ones are dropped |
/// | `leases` | DHCP lease; may be 0 | no reply |
/// | `forwards` | port forward; may be 0 | [`ForwardError::TableFull`](crate::ForwardError) |
#[derive(Debug)]
pub struct Storage<'a> {
    /// Flow table.
    pub flows: ManagedSlice<'a, Flow>,
    /// Hash chains of the flow table; all zero.
    pub buckets: ManagedSlice<'a, u32>,
    /// Remotes that may send to a mapped UDP port.
    pub permits: ManagedSlice<'a, Permit>,
    /// Datagrams in reassembly.
    pub fragments: ManagedSlice<'a, FragmentSlot>,
    /// Their payload.
    pub fragment_memory: ManagedSlice<'a, u8>,
    /// Bytes that a host did not take at once, and text of the guest that came before its turn.
    pub pool: ManagedSlice<'a, u8>,
    /// What TCP flows keep while something of their streams is missing. Without them, or without a
    /// pool, text that comes before its turn is dropped, and SACK is not negotiated.
    pub recoveries: ManagedSlice<'a, Recovery>,
    /// The datagram on its way to the guest.
    pub datagram: ManagedSlice<'a, u8>,
    /// Frames waiting for room.
    pub replies: ManagedSlice<'a, u8>,
    /// DHCP leases.
    pub leases: ManagedSlice<'a, Lease>,
    /// Port forwards.
    pub forwards: ManagedSlice<'a, ForwardSlot>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut Config)) -> Result<(), ConfigError> {
        let mut config = Config::default();
        change(&mut config);
        config.validate()
    }

    #[test]
    fn a_network_has_guests_and_no_host_bits() {
        let network = |address: [u8; 4], prefix_len| {
            with(|config| (config.network, config.prefix_len) = (address.into(), prefix_len))
        };
        assert_eq!(network([10, 0, 2, 0], 25), Ok(()));
        assert_eq!(network([10, 0, 0, 0], 8), Ok(()));
        for (address, prefix_len) in
            [([10, 0, 2, 0], 0), ([10, 0, 2, 0], 31), ([10, 0, 2, 0], 255), ([10, 0, 2, 1], 24)]
        {
            assert_eq!(network(address, prefix_len), Err(ConfigError::Network), "{prefix_len}");
        }
    }

    #[test]
    fn the_addresses_of_the_router_and_of_guests_differ_and_lie_in_the_network() {
        let gateway = |address: [u8; 4]| with(|config| config.gateway = address.into());
        assert_eq!(gateway([10, 0, 2, 1]), Ok(()));
        for bad in [[10, 0, 2, 0], [10, 0, 2, 255], [10, 0, 3, 2], [10, 0, 2, 3], [10, 0, 2, 15]] {
            assert_eq!(gateway(bad), Err(ConfigError::Address), "{bad:?}");
        }
        assert_eq!(with(|config| config.default_guest = config.dns), Err(ConfigError::Address));
    }

    #[test]
    fn a_secret_is_not_printed() {
        let text = std::format!("{:?}", Secret([0x1234, 0x5678]));
        assert_eq!(text, "Secret(..)");
    }

    #[test]
    fn an_error_names_what_is_wrong() {
        for (error, named) in [
            (ConfigError::Mtu, "MTU"),
            (ConfigError::Network, "prefix"),
            (ConfigError::Address, "gateway"),
            (ConfigError::Boot, "boot file"),
            (ConfigError::Storage, "storage"),
        ] {
            assert!(std::format!("{error}").contains(named), "{error:?}: {error}");
        }
    }

    #[test]
    fn a_name_with_a_nul_is_refused() {
        assert_eq!(with(|config| config.boot_file.push_str("boot.ipxe").unwrap()), Ok(()));
        let error = Err(ConfigError::Boot);
        assert_eq!(with(|config| config.boot_file.push_str("boot\0").unwrap()), error);
        assert_eq!(with(|config| config.tftp_server_name.push('\0').unwrap()), error);
    }

    #[test]
    fn a_boot_server_is_a_single_host() {
        let next = |address: [u8; 4]| with(|config| config.next_server = Some(address.into()));
        for good in [[10, 0, 2, 2], [10, 0, 2, 20], [192, 0, 2, 9]] {
            assert_eq!(next(good), Ok(()), "{good:?}");
        }
        for bad in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4], [10, 0, 2, 255]] {
            assert_eq!(next(bad), Err(ConfigError::Boot), "{bad:?}");
        }
    }
}
