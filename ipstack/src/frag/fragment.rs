//! What goes into the fragment queue and what comes out.

use core::fmt;
use core::net::IpAddr;

use crate::wire::ipv6::QUOTED_HEADER_LEN;
use crate::wire::ipv6_extension::FRAGMENT;
use crate::wire::{Ipv4Packet, Ipv6Fragment, Ipv6Packet};

/// Longest IPv4 header in bytes (RFC 791 3.1).
pub const MAX_HEADER_LEN: usize = 60;

/// Longest datagram in bytes: of IPv4 with its header (RFC 791 3.1), of IPv6 without (RFC 8200 3).
pub const MAX_TOTAL_LEN: usize = 65_535;

/// What fragments of one datagram have in common (RFC 791 3.2, RFC 8200 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FragmentKey {
    /// Source address; its family decides which rules hold.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Identification field; IPv4 has 16 bits of it.
    pub identification: u32,
    /// Protocol number of the payload. Over IPv6 it is no part of the key, since fragments of one
    /// datagram may differ in it (RFC 8200 4.5), and is 44 always.
    pub protocol: u8,
}

/// One fragment as received.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// The datagram it belongs to.
    pub key: FragmentKey,
    /// Its own IP header, at most [`MAX_HEADER_LEN`] bytes: of IPv4 with options, of IPv6 as
    /// [`Ipv6Packet::quoted_header`] makes it.
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

impl<'a> Fragment<'a> {
    /// A fragment over IPv4.
    #[must_use]
    pub fn ipv4(packet: &Ipv4Packet<'a>) -> Self {
        Self {
            key: FragmentKey {
                source: packet.source().into(),
                destination: packet.destination().into(),
                identification: packet.identification().into(),
                protocol: packet.protocol().into(),
            },
            header: packet.header_bytes(),
            ecn: packet.ecn(),
            offset: packet.fragment_offset(),
            more: packet.more_fragments(),
            payload: packet.payload(),
        }
    }

    /// A fragment over IPv6: what [`Ipv6Packet::payload_behind_extensions`] found in `packet`, and
    /// `header`, which [`Ipv6Packet::quoted_header`] makes of both.
    #[must_use]
    pub fn ipv6(
        packet: &Ipv6Packet<'_>,
        fragment: &Ipv6Fragment<'a>,
        header: &'a [u8; QUOTED_HEADER_LEN],
    ) -> Self {
        Self {
            key: FragmentKey {
                source: packet.source().into(),
                destination: packet.destination().into(),
                identification: fragment.identification,
                protocol: FRAGMENT,
            },
            header,
            ecn: packet.ecn(),
            offset: fragment.offset,
            more: fragment.more,
            payload: fragment.payload,
        }
    }

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
    /// The IP header of the first fragment, as that fragment had it (RFC 791 3.2, RFC 8200 4.5):
    /// length, fragment fields, ECN and checksum are still the fragment's.
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

/// What an ICMP error quotes of a datagram: of IPv4 the first 8 bytes at least (RFC 792), of IPv6
/// as much as it has room for (RFC 4443 2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstFragment<'a> {
    /// The IP header of the first fragment.
    pub header: &'a [u8],
    /// All of its payload, at least 8 bytes.
    pub payload: &'a [u8],
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
    /// It overlaps bytes that differ from its own; over IPv6 also if only some of its bytes were
    /// there before.
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
