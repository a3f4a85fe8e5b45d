//! Memory for a NAT, from the heap.

use slirp_nat::{Flow, ForwardSlot, Lease, Permit, Recovery, Storage};

/// How much of everything. [`Sizes::default`] suits one guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Sizes {
    /// Flows at a time; each may hold a descriptor.
    pub flows: usize,
    /// Permitted UDP remotes.
    pub permits: usize,
    /// Datagrams in reassembly, 64 KiB for each.
    pub fragments: usize,
    /// Bytes parked after short writes, and beyond gaps of a stream.
    pub pool: usize,
    /// TCP flows in want of something lost at a time.
    pub recoveries: usize,
    /// Bytes of frames waiting for room on the link.
    pub replies: usize,
    /// DHCP leases.
    pub leases: usize,
    /// Port forwards.
    pub forwards: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            flows: 16_384,
            permits: 8192,
            fragments: 16,
            pool: 4 << 20,
            recoveries: 128,
            replies: 256 << 10,
            leases: 64,
            forwards: 64,
        }
    }
}

/// Bytes of the longest datagram in reassembly, 65,535, rounded up.
const FRAGMENT_BYTES: usize = 64 << 10;

/// Bytes of the longest IP packet, which a raw socket delivers with its header, behind those that
/// the NAT keeps for a header of UDP.
const DATAGRAM_BYTES: usize = 8 + 65_535;

impl Sizes {
    /// Allocates it all. What is bytes comes in zeroed pages, which cost nothing before they are
    /// used.
    #[must_use]
    pub fn allocate(&self) -> Storage<'static> {
        Storage {
            flows: vec![Flow::EMPTY; self.flows].into(),
            buckets: vec![0; self.flows].into(),
            permits: vec![Permit::EMPTY; self.permits].into(),
            fragments: vec![ipstack::frag::FragmentSlot::EMPTY; self.fragments].into(),
            fragment_memory: vec![0; self.fragments.saturating_mul(FRAGMENT_BYTES)].into(),
            pool: vec![0; self.pool].into(),
            recoveries: vec![Recovery::EMPTY; self.recoveries].into(),
            datagram: vec![0; DATAGRAM_BYTES].into(),
            replies: vec![0; self.replies].into(),
            leases: vec![Lease::EMPTY; self.leases].into(),
            forwards: vec![ForwardSlot::EMPTY; self.forwards].into(),
        }
    }
}
