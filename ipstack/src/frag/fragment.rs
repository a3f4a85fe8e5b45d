//! What goes into the fragment queue and what comes out.

use core::fmt;
use core::net::Ipv6Addr;

/// Longest IPv4 header in bytes (RFC 791 3.1).
pub const MAX_HEADER_LEN: usize = 60;

/// Longest datagram in bytes, header included (RFC 791 3.1).
pub const MAX_TOTAL_LEN: usize = 65_535;

/// What fragments of one datagram have in common (RFC 791 3.2). IPv4 addresses are mapped into
/// IPv6 (RFC 4291 2.5.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FragmentKey {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Identification field; IPv4 has 16 bits of it.
    pub identification: u32,
    /// Protocol number of the payload.
    pub protocol: u8,
}

/// One fragment as received.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// The datagram it belongs to.
    pub key: FragmentKey,
    /// Its own IP header with options, at most [`MAX_HEADER_LEN`] bytes.
    pub header: &'a [u8],
    /// ECN codepoint, the lower two bits of the traffic class (RFC 3168 5).
    pub ecn: u8,
    /// Where its payload belongs in the datagram's payload, in bytes; a multiple of 8.
    pub offset: u16,
    /// Whether more fragments follow it.
    pub more: bool,
    /// Its payload, as long as its own IP header says.
    pub payload: &'a [u8],
}

impl Fragment<'_> {
    /// The end of its payload in the datagram's payload, in bytes.
    pub(super) fn end(&self) -> usize {
        usize::from(self.offset).saturating_add(self.payload.len())
    }

    /// Whether it can be a fragment of anything.
    pub(super) fn is_well_formed(&self) -> bool {
        let whole_units = self.payload.len().is_multiple_of(8);
        self.header.len() <= MAX_HEADER_LEN
            && self.offset.is_multiple_of(8)
            && !self.payload.is_empty()
            && (whole_units || !self.more)
    }
}

/// What became of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Insert<'a> {
    /// It was the last one missing.
    Complete(Datagram<'a>),
    /// It is kept, or repeats what is kept, and others are still missing.
    Held,
    /// It was dropped, perhaps with its whole datagram.
    Dropped(FragmentDrop),
}

/// A datagram put together. It is no longer in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The IP header of the first fragment, as that fragment had it: total length, fragment fields,
    /// ECN and checksum are still the fragment's.
    pub header: &'a [u8],
    /// ECN codepoint of the whole (RFC 3168 5.3).
    pub ecn: u8,
    /// All of the payload.
    pub payload: &'a [u8],
}

/// A datagram whose fragments did not all come in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired<'a> {
    /// Which datagram.
    pub key: FragmentKey,
    /// Its beginning, if that came. Without it no ICMP error may be sent (RFC 792, time exceeded).
    pub first: Option<FirstFragment<'a>>,
}

/// What an ICMP error quotes of a datagram (RFC 792).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstFragment<'a> {
    /// The IP header of the first fragment.
    pub header: &'a [u8],
    /// The first 8 bytes of payload.
    pub payload: &'a [u8; 8],
}

/// Why a fragment was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FragmentDrop {
    /// It is empty, or not the last and no multiple of 8 bytes long, or its header is too long.
    Malformed,
    /// Its datagram would be longer than [`MAX_TOTAL_LEN`].
    TooLong,
    /// There is no slot, or its datagram is longer than the memory of one.
    Memory,
    /// It overlaps other bytes than its own.
    Overlap,
    /// It contradicts what is known about the datagram's length.
    Length,
    /// Congestion was experienced by a datagram that is only partly ECN-capable (RFC 3168 5.3).
    Ecn,
    /// Its datagram was dropped before it came (RFC 5722 4).
    Discarded,
}

impl fmt::Display for FragmentDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "malformed fragment",
            Self::TooLong => "datagram longer than 65535 bytes",
            Self::Memory => "no memory for the datagram",
            Self::Overlap => "fragments overlap and differ",
            Self::Length => "fragments contradict each other about the length",
            Self::Ecn => "congestion experienced, but not ECN-capable",
            Self::Discarded => "fragment of a dropped datagram",
        })
    }
}

impl core::error::Error for FragmentDrop {}

/// What a queue has counted since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FragmentCounters {
    /// Fragments kept, or repeating what was kept, that completed nothing.
    pub held: u64,
    /// Datagrams completed.
    pub completed: u64,
    /// Datagrams whose time was over.
    pub expired: u64,
    /// Datagrams pushed out by newer ones.
    pub evicted: u64,
    /// Fragments dropped for [`FragmentDrop::Malformed`].
    pub malformed: u64,
    /// Fragments dropped for [`FragmentDrop::TooLong`].
    pub too_long: u64,
    /// Fragments dropped for [`FragmentDrop::Memory`].
    pub memory: u64,
    /// Fragments dropped for [`FragmentDrop::Overlap`].
    pub overlap: u64,
    /// Fragments dropped for [`FragmentDrop::Length`].
    pub length: u64,
    /// Fragments dropped for [`FragmentDrop::Ecn`].
    pub ecn: u64,
    /// Fragments dropped for [`FragmentDrop::Discarded`].
    pub discarded: u64,
}

impl FragmentCounters {
    /// Fragments dropped for `reason`.
    #[must_use]
    pub const fn dropped(&self, reason: FragmentDrop) -> u64 {
        match reason {
            FragmentDrop::Malformed => self.malformed,
            FragmentDrop::TooLong => self.too_long,
            FragmentDrop::Memory => self.memory,
            FragmentDrop::Overlap => self.overlap,
            FragmentDrop::Length => self.length,
            FragmentDrop::Ecn => self.ecn,
            FragmentDrop::Discarded => self.discarded,
        }
    }

    pub(super) const fn count(&mut self, reason: FragmentDrop) {
        let counter = match reason {
            FragmentDrop::Malformed => &mut self.malformed,
            FragmentDrop::TooLong => &mut self.too_long,
            FragmentDrop::Memory => &mut self.memory,
            FragmentDrop::Overlap => &mut self.overlap,
            FragmentDrop::Length => &mut self.length,
            FragmentDrop::Ecn => &mut self.ecn,
            FragmentDrop::Discarded => &mut self.discarded,
        };
        *counter = counter.wrapping_add(1);
    }
}
