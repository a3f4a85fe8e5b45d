//! All the memory that the machine has, and what each part of it is for. The tables are apart from
//! the buffers, which begin as zeros and so take no room in an image.

use ipstack::frag::FragmentSlot;
use managed::ManagedSlice;
use slirp_nat::card::RING_LEN;
use slirp_nat::ring_host::RingSlot;
use slirp_nat::{Flow, Lease, Permit, Recovery, Storage};

const FLOWS: usize = 16;
const PERMITS: usize = 16;
const FRAGMENTS: usize = 2;
const RECOVERIES: usize = 2;
const DATAGRAM_LEN: usize = 8192;
const STREAMS: usize = 4;
const STREAM_LEN: usize = 16 * 1024;
const POOL_LEN: usize = 16 * 1024;
const REPLIES_LEN: usize = 4 * 1514;

/// What has entries.
#[derive(Debug)]
pub struct Tables {
    flows: [Flow; FLOWS],
    buckets: [u32; FLOWS],
    permits: [Permit; PERMITS],
    fragments: [FragmentSlot; FRAGMENTS],
    recoveries: [Recovery; RECOVERIES],
    leases: [Lease; 1],
    rings: [RingSlot; STREAMS],
}

/// What has bytes.
#[derive(Debug)]
pub struct Buffers {
    fragment_memory: [u8; FRAGMENTS * DATAGRAM_LEN],
    pool: [u8; POOL_LEN],
    datagram: [u8; DATAGRAM_LEN],
    replies: [u8; REPLIES_LEN],
    cable: [u8; RING_LEN],
    ring_memory: [u8; STREAMS * STREAM_LEN],
}

/// How large one of the fields is.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The field's name, as the NAT and `RingHost` have it.
    pub name: &'static str,
    /// How many entries or bytes.
    pub count: usize,
    /// All of their bytes.
    pub bytes: usize,
}

/// The extents of the fields named.
macro_rules! extents {
    ($unused:expr, $($field:ident),*) => {
        [$(Extent {
            name: stringify!($field),
            count: $unused.$field.len(),
            bytes: size_of_val(&$unused.$field),
        }),*]
    };
}

impl Tables {
    /// Tables without an entry.
    pub const EMPTY: Self = Self {
        flows: [Flow::EMPTY; FLOWS],
        buckets: [0; FLOWS],
        permits: [Permit::EMPTY; PERMITS],
        fragments: [FragmentSlot::EMPTY; FRAGMENTS],
        recoveries: [Recovery::EMPTY; RECOVERIES],
        leases: [Lease::EMPTY; 1],
        rings: [RingSlot::EMPTY; STREAMS],
    };

    /// How large they are.
    pub const EXTENTS: [Extent; 7] =
        extents!(Self::EMPTY, flows, buckets, permits, fragments, recoveries, leases, rings);
}

impl Buffers {
    /// Unused buffers.
    pub const EMPTY: Self = Self {
        fragment_memory: [0; FRAGMENTS * DATAGRAM_LEN],
        pool: [0; POOL_LEN],
        datagram: [0; DATAGRAM_LEN],
        replies: [0; REPLIES_LEN],
        cable: [0; RING_LEN],
        ring_memory: [0; STREAMS * STREAM_LEN],
    };

    /// How large they are.
    pub const EXTENTS: [Extent; 6] =
        extents!(Self::EMPTY, fragment_memory, pool, datagram, replies, cable, ring_memory);
}

/// Lends each part to whom it is for: to the NAT, and to the others.
pub(crate) const fn storage<'a>(
    tables: &'a mut Tables,
    buffers: &'a mut Buffers,
) -> (Storage<'a>, Rest<'a>) {
    let Tables { flows, buckets, permits, fragments, recoveries, leases, rings } = tables;
    let Buffers { fragment_memory, pool, datagram, replies, cable, ring_memory } = buffers;
    let storage = Storage {
        flows: ManagedSlice::Borrowed(flows),
        buckets: ManagedSlice::Borrowed(buckets),
        permits: ManagedSlice::Borrowed(permits),
        fragments: ManagedSlice::Borrowed(fragments),
        fragment_memory: ManagedSlice::Borrowed(fragment_memory),
        pool: ManagedSlice::Borrowed(pool),
        recoveries: ManagedSlice::Borrowed(recoveries),
        datagram: ManagedSlice::Borrowed(datagram),
        replies: ManagedSlice::Borrowed(replies),
        leases: ManagedSlice::Borrowed(leases),
        forwards: ManagedSlice::Borrowed(&mut []),
    };
    (storage, Rest { cable, rings, ring_memory })
}

/// What cable and `RingHost` are lent.
pub(crate) struct Rest<'a> {
    pub(crate) cable: &'a mut [u8],
    pub(crate) rings: &'a mut [RingSlot],
    pub(crate) ring_memory: &'a mut [u8],
}
