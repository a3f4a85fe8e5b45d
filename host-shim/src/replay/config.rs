//! The header: what a NAT was made from.

use core::net::{Ipv4Addr, SocketAddr};

use heapless::String as HeaplessString;
use managed::ManagedSlice;
use serde::{Deserialize, Serialize};
use slirp_nat::{
    Config, Flow, ForwardSlot, Lease, MAX_NAME_LEN, Permit, Recovery, Secret, Storage,
    UdpFiltering, UdpMapping,
};

use super::{FORMAT, VERSION};

/// The first line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u32,
    secret: [u64; 2],
    config: Configuration,
    memory: Memory,
}

impl Header {
    /// `None` if `config` has something that the format cannot express.
    pub(super) fn new(config: &Config, secret: Secret, storage: &Storage<'_>) -> Option<Self> {
        let header = Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            secret: secret.0,
            config: Configuration::new(config),
            memory: Memory::new(storage),
        };
        // A field that was added to `Config` and not here shows in its debug output.
        let same = format!("{:?}", header.config.config()?) == format!("{config:?}");
        same.then_some(header)
    }

    /// Whether this is a recording of a version that can be read.
    pub(super) fn is_known(&self) -> bool {
        self.format == FORMAT && self.version == VERSION
    }

    /// What is needed to make such a NAT; `None` if the configuration is not valid.
    pub(super) fn parts(&self) -> Option<(Config, Secret, Storage<'static>)> {
        Some((self.config.config()?, Secret(self.secret), self.memory.allocate()?))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Configuration {
    mtu: u16,
    network: Ipv4Addr,
    prefix_len: u8,
    gateway: Ipv4Addr,
    dns: Ipv4Addr,
    first_lease: Ipv4Addr,
    default_guest: Ipv4Addr,
    hostname: String,
    domain: String,
    #[serde(default, skip_serializing_if = "Boot::is_none")]
    boot: Boot,
    resolvers: Vec<SocketAddr>,
    host_loopback: bool,
    /// UDP mapping by address and port.
    symmetric_udp: bool,
    /// UDP filtering by address.
    filtered_udp: bool,
}

impl Configuration {
    fn new(config: &Config) -> Self {
        Self {
            mtu: config.mtu,
            network: config.network,
            prefix_len: config.prefix_len,
            gateway: config.gateway,
            dns: config.dns,
            first_lease: config.first_lease,
            default_guest: config.default_guest,
            hostname: config.hostname.as_str().to_owned(),
            domain: config.domain.as_str().to_owned(),
            boot: Boot::new(config),
            resolvers: config.resolvers.to_vec(),
            host_loopback: config.host_loopback,
            symmetric_udp: config.udp_mapping == UdpMapping::AddressAndPortDependent,
            filtered_udp: config.udp_filtering == UdpFiltering::AddressDependent,
        }
    }

    fn config(&self) -> Option<Config> {
        let name = |text: &str| HeaplessString::<MAX_NAME_LEN>::try_from(text).ok();
        let mut config = Config::default();
        config.mtu = self.mtu;
        config.network = self.network;
        config.prefix_len = self.prefix_len;
        config.gateway = self.gateway;
        config.dns = self.dns;
        config.first_lease = self.first_lease;
        config.default_guest = self.default_guest;
        config.hostname = name(&self.hostname)?;
        config.domain = name(&self.domain)?;
        self.boot.apply(&mut config)?;
        config.resolvers = heapless::Vec::from_slice(&self.resolvers).ok()?;
        config.host_loopback = self.host_loopback;
        config.udp_mapping = if self.symmetric_udp {
            UdpMapping::AddressAndPortDependent
        } else {
            UdpMapping::EndpointIndependent
        };
        config.udp_filtering = if self.filtered_udp {
            UdpFiltering::AddressDependent
        } else {
            UdpFiltering::EndpointIndependent
        };
        Some(config)
    }
}

/// What the guest boots. Recordings made before there were such options have none.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Boot {
    file: String,
    next_server: Option<Ipv4Addr>,
    server_name: String,
}

impl Boot {
    fn new(config: &Config) -> Self {
        Self {
            file: config.boot_file.as_str().to_owned(),
            next_server: config.next_server,
            server_name: config.tftp_server_name.as_str().to_owned(),
        }
    }

    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn apply(&self, config: &mut Config) -> Option<()> {
        config.boot_file = self.file.as_str().try_into().ok()?;
        config.next_server = self.next_server;
        config.tftp_server_name = self.server_name.as_str().try_into().ok()?;
        Some(())
    }
}

/// Lengths of all the slices in a [`Storage`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Memory {
    flows: usize,
    buckets: usize,
    permits: usize,
    fragments: usize,
    fragment_memory: usize,
    pool: usize,
    /// Older recordings have none.
    #[serde(default)]
    recoveries: usize,
    datagram: usize,
    replies: usize,
    leases: usize,
    forwards: usize,
}

/// Most bytes that a recording may ask for in one table: it is somebody else's file.
const MAX_TABLE_BYTES: usize = 1 << 30;

impl Memory {
    fn new(storage: &Storage<'_>) -> Self {
        let Storage {
            flows,
            buckets,
            permits,
            fragments,
            fragment_memory,
            pool,
            recoveries,
            datagram,
            replies,
            leases,
            forwards,
        } = storage;
        Self {
            flows: flows.len(),
            buckets: buckets.len(),
            permits: permits.len(),
            fragments: fragments.len(),
            fragment_memory: fragment_memory.len(),
            pool: pool.len(),
            recoveries: recoveries.len(),
            datagram: datagram.len(),
            replies: replies.len(),
            leases: leases.len(),
            forwards: forwards.len(),
        }
    }

    fn allocate(&self) -> Option<Storage<'static>> {
        Some(Storage {
            flows: table(Flow::EMPTY, self.flows)?,
            buckets: table(0, self.buckets)?,
            permits: table(Permit::EMPTY, self.permits)?,
            fragments: table(ipstack::frag::FragmentSlot::EMPTY, self.fragments)?,
            fragment_memory: table(0, self.fragment_memory)?,
            pool: table(0, self.pool)?,
            recoveries: table(Recovery::EMPTY, self.recoveries)?,
            datagram: table(0, self.datagram)?,
            replies: table(0, self.replies)?,
            leases: table(Lease::EMPTY, self.leases)?,
            forwards: table(ForwardSlot::EMPTY, self.forwards)?,
        })
    }
}

fn table<T: Clone>(empty: T, len: usize) -> Option<ManagedSlice<'static, T>> {
    let bytes = size_of::<T>().checked_mul(len)?;
    (bytes <= MAX_TABLE_BYTES).then(|| vec![empty; len].into())
}
