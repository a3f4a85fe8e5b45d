//! IPv6 extension headers (RFC 8200 4): what stands between the IPv6 header and the upper layer.
//!
//! [`Ipv6Packet::payload_behind_extensions`] walks over them. What it decides where the standards
//! leave room, or where this is no ordinary host:
//!
//! * **Order.** Hop-by-hop options are first or not at all (RFC 8200 4.3). The others may come in
//!   any order and repeat, as RFC 8200 4.1 wants it of a receiver, but for the fragment header, of
//!   which there is one: fragments of fragments have no use but evasion.
//! * **Limits.** [`MAX_HEADERS`] in all, and in each header [`MAX_OPTIONS`] options beside padding
//!   and [`MAX_PADDING`] bytes of padding in a row (RFC 8504 5.3).
//! * **Options.** None needs an act of ours. One that may be passed over is, as its two highest
//!   bits say (RFC 8200 4.2); any other is refused.
//! * **Routing.** A header with no segments left is passed over, whatever its type. With segments
//!   left it is refused: type 0 must not be acted upon (RFC 5095 3), and no other type is known
//!   (RFC 8200 4.4).
//! * **Jumbograms** (RFC 2675) are refused: frames here carry at most 65,535 bytes of IP, and the
//!   option is only for links that carry more (RFC 2675 1).
//! * **Authentication** (51) and encryption (50) end the walk as upper layers do. The former signs
//!   the addresses, which a NAT changes, and the latter hides what follows.
//! * **Fragments.** A fragment that is a whole datagram is taken as if its header were not there,
//!   apart from whatever else has its identification (RFC 6946). A first fragment has all headers
//!   up to the whole one of the upper layer (RFC 7112 5), so that nothing is decided about a
//!   datagram by less. What comes behind the header of another fragment is not looked at before
//!   reassembly; [`Ipv6Payload::of_reassembled`] is for afterwards.

use core::fmt;

use byteorder::{ByteOrder, NetworkEndian};

use super::IpProtocol;
use super::ipv6::{HEADER_LEN, Ipv6Packet};

/// Next header: hop-by-hop options (RFC 8200 4.3).
pub const HOP_BY_HOP: u8 = 0;
/// Next header: routing (RFC 8200 4.4).
pub const ROUTING: u8 = 43;
/// Next header: fragment (RFC 8200 4.5).
pub const FRAGMENT: u8 = 44;
/// Next header: none follows (RFC 8200 4.7).
pub const NO_NEXT_HEADER: u8 = 59;
/// Next header: destination options (RFC 8200 4.6).
pub const DESTINATION_OPTIONS: u8 = 60;

/// Bytes of a fragment header.
pub const FRAGMENT_HEADER_LEN: usize = 8;

/// Most extension headers of a packet.
pub const MAX_HEADERS: usize = 8;
/// Most options of one header beside padding (RFC 8504 5.3).
pub const MAX_OPTIONS: usize = 8;
/// Most bytes of padding in a row: what aligns to 8 (RFC 8504 5.3).
pub const MAX_PADDING: usize = 7;

const ICMPV6: u8 = 58;
const PAD_1: u8 = 0;
const PAD_N: u8 = 1;
const JUMBO_PAYLOAD: u8 = 0xc2;
/// Bits of an option that say what to do if it is not known; none set: pass over it.
const IF_UNKNOWN: u8 = 0b1100_0000;

/// Where the payload length is in the IPv6 header.
const PAYLOAD_LEN_AT: usize = 4;
/// Where the next header is in the IPv6 header.
const NEXT_HEADER_AT: usize = 6;

/// What a packet carries behind its extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipv6Payload<'a> {
    /// A packet of an upper layer, or of a protocol that is not known.
    Upper {
        /// Which one.
        protocol: IpProtocol,
        /// All of it.
        payload: &'a [u8],
    },
    /// A part of a datagram.
    Fragment(Ipv6Fragment<'a>),
    /// Nothing; bytes that follow have no meaning (RFC 8200 4.7).
    Nothing,
}

/// A fragment header, and what it is about (RFC 8200 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Fragment<'a> {
    /// What the payload of the datagram begins with; that of its first fragment counts.
    pub next_header: u8,
    /// Where in the datagram's payload this one belongs, in bytes: a multiple of 8.
    pub offset: u16,
    /// Whether more fragments follow it.
    pub more: bool,
    /// What fragments of one datagram have in common beside their addresses.
    pub identification: u32,
    /// What follows the fragment header: not empty, and a multiple of 8 bytes if more follows.
    pub payload: &'a [u8],
}

impl Ipv6Fragment<'_> {
    /// Writes the fragment header; the lowest three bits of the offset are not sent.
    pub fn emit_header(&self, buffer: &mut [u8; FRAGMENT_HEADER_LEN]) {
        buffer[0] = self.next_header;
        buffer[1] = 0;
        NetworkEndian::write_u16(&mut buffer[2..4], self.offset & !7 | u16::from(self.more));
        NetworkEndian::write_u32(&mut buffer[4..8], self.identification);
    }
}

/// Why the extension headers of a packet are refused. Each says what RFC 4443 3.4 answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ExtensionError {
    /// A header that reaches beyond the packet. Parameter problem, code 0.
    Truncated,
    /// Hop-by-hop options that are not first (RFC 8200 4.1). Code 1.
    HopByHopMisplaced,
    /// A second fragment header. Code 1.
    SecondFragment,
    /// More than [`MAX_HEADERS`]. Code 8 (RFC 8883), or silence.
    TooManyHeaders,
    /// More than [`MAX_OPTIONS`]. Code 9 (RFC 8883), or silence.
    TooManyOptions,
    /// More than [`MAX_PADDING`]. Silence (RFC 8504 5.3).
    TooMuchPadding,
    /// An option that reaches beyond its header. Code 0.
    OptionTruncated,
    /// An option of this number, which must not be passed over. Its two highest bits (RFC 8200
    /// 4.2) are 01 for silence, 10 for code 2, 11 for code 2 unless the packet was for many.
    UnknownOption(u8),
    /// A jumbogram, or what has its beginning (RFC 2675 3). Code 0.
    JumboPayload,
    /// A routing header of type 0 with segments left (RFC 5095 3). Code 0.
    RoutingType0,
    /// A routing header of another type with segments left (RFC 8200 4.4). Code 0.
    SegmentsLeft,
    /// A fragment that is empty, or not the last and no multiple of 8 bytes (RFC 8200 4.5). Code 0.
    FragmentLength,
    /// A fragment of a datagram of more than 65,535 bytes (RFC 8200 4.5). Code 0.
    FragmentTooLong,
    /// A first fragment without all headers (RFC 7112 5). Code 3.
    FirstFragmentIncomplete,
}

impl fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "extension header beyond the packet",
            Self::HopByHopMisplaced => "hop-by-hop options that are not first",
            Self::SecondFragment => "second fragment header",
            Self::TooManyHeaders => "too many extension headers",
            Self::TooManyOptions => "too many options",
            Self::TooMuchPadding => "too much padding",
            Self::OptionTruncated => "option beyond its header",
            Self::UnknownOption(_) => "unknown option",
            Self::JumboPayload => "jumbogram",
            Self::RoutingType0 => "routing header of type 0",
            Self::SegmentsLeft => "routing header with segments left",
            Self::FragmentLength => "bad length of a fragment",
            Self::FragmentTooLong => "datagram longer than 65535 bytes",
            Self::FirstFragmentIncomplete => "first fragment without all headers",
        })
    }
}

/// An error, and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ExtensionFault {
    /// What is wrong.
    pub reason: ExtensionError,
    /// Bytes from the start of the IPv6 header to the field at fault (RFC 4443 3.4).
    pub pointer: usize,
}

impl fmt::Display for ExtensionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.pointer)
    }
}

impl core::error::Error for ExtensionFault {}

impl<'a> Ipv6Packet<'a> {
    /// Walks over the extension headers. The [module](super::ipv6_extension) says what is refused.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn payload_behind_extensions(&self) -> Result<Ipv6Payload<'a>, ExtensionFault> {
        if self.payload_len() == 0 && self.next_header() == HOP_BY_HOP {
            return fault(ExtensionError::JumboPayload, PAYLOAD_LEN_AT);
        }
        Walk {
            next: self.next_header(),
            next_at: NEXT_HEADER_AT,
            rest: self.payload(),
            at: HEADER_LEN,
            fragmented: false,
            first: None,
        }
        .run()
    }
}

impl<'a> Ipv6Payload<'a> {
    /// Walks over the extension headers of a datagram put together, whose first fragment had
    /// `next_header` in its fragment header. Pointers count from where an IPv6 header alone would
    /// be in front of `payload`.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn of_reassembled(next_header: u8, payload: &'a [u8]) -> Result<Self, ExtensionFault> {
        Walk {
            next: next_header,
            next_at: NEXT_HEADER_AT,
            rest: payload,
            at: HEADER_LEN,
            fragmented: true,
            first: None,
        }
        .run()
    }
}

/// How far a walk has come.
struct Walk<'a> {
    /// What `rest` begins with.
    next: u8,
    /// Where it was said.
    next_at: usize,
    /// What is still to be looked at.
    rest: &'a [u8],
    /// Where that is, from the start of the IPv6 header.
    at: usize,
    /// Whether there was a fragment header.
    fragmented: bool,
    /// The first fragment, whose headers are looked at only to see that they are there.
    first: Option<Ipv6Fragment<'a>>,
}

impl<'a> Walk<'a> {
    fn run(mut self) -> Result<Ipv6Payload<'a>, ExtensionFault> {
        for _ in 0..MAX_HEADERS {
            if let Some(payload) = self.step()? {
                return Ok(payload);
            }
        }
        match self.next {
            HOP_BY_HOP | DESTINATION_OPTIONS | ROUTING | FRAGMENT => {
                fault(ExtensionError::TooManyHeaders, self.next_at)
            }
            _ => self.end(),
        }
    }

    /// Passes over one header, or ends the walk.
    fn step(&mut self) -> Result<Option<Ipv6Payload<'a>>, ExtensionFault> {
        match self.next {
            HOP_BY_HOP if self.next_at != NEXT_HEADER_AT || self.fragmented => {
                fault(ExtensionError::HopByHopMisplaced, self.next_at)
            }
            HOP_BY_HOP | DESTINATION_OPTIONS => self.options().map(|()| None),
            ROUTING => self.routing().map(|()| None),
            FRAGMENT if self.fragmented => fault(ExtensionError::SecondFragment, self.next_at),
            FRAGMENT => self.fragment(),
            _ => self.end().map(Some),
        }
    }

    fn end(&self) -> Result<Ipv6Payload<'a>, ExtensionFault> {
        match self.first {
            Some(_) if self.rest.len() < upper_header_len(self.next, self.rest) => {
                fault(ExtensionError::FirstFragmentIncomplete, self.at)
            }
            Some(fragment) => Ok(Ipv6Payload::Fragment(fragment)),
            None if self.next == NO_NEXT_HEADER => Ok(Ipv6Payload::Nothing),
            None => {
                Ok(Ipv6Payload::Upper { protocol: IpProtocol::from(self.next), payload: self.rest })
            }
        }
    }

    /// Takes a header of the usual form, whose second byte counts 8-byte units after the first.
    fn take(&mut self) -> Result<&'a [u8], ExtensionFault> {
        let units = self.rest.get(1).map_or(0, |units| usize::from(*units));
        self.take_bytes(units.wrapping_add(1).wrapping_mul(8))
    }

    fn take_bytes(&mut self, len: usize) -> Result<&'a [u8], ExtensionFault> {
        let Some((header, rest)) = self.rest.split_at_checked(len) else {
            let reason = match self.first {
                Some(_) => ExtensionError::FirstFragmentIncomplete,
                None => ExtensionError::Truncated,
            };
            return fault(reason, self.at);
        };
        self.next = header.first().copied().unwrap_or(NO_NEXT_HEADER);
        self.next_at = self.at;
        self.rest = rest;
        self.at = self.at.wrapping_add(len);
        Ok(header)
    }

    fn options(&mut self) -> Result<(), ExtensionFault> {
        let (at, hop_by_hop) = (self.at, self.next == HOP_BY_HOP);
        let header = self.take()?;
        let mut options =
            Options { rest: header.get(2..).unwrap_or_default(), at: at.wrapping_add(2) };
        let (mut count, mut padding) = (0_usize, 0_usize);
        while let Some((kind, at, len)) = options.next()? {
            if matches!(kind, PAD_1 | PAD_N) {
                padding = padding.wrapping_add(len);
                if padding > MAX_PADDING {
                    return fault(ExtensionError::TooMuchPadding, at);
                }
                continue;
            }
            padding = 0;
            count = count.wrapping_add(1);
            if count > MAX_OPTIONS {
                return fault(ExtensionError::TooManyOptions, at);
            }
            if kind == JUMBO_PAYLOAD && hop_by_hop {
                return fault(ExtensionError::JumboPayload, at);
            }
            if kind & IF_UNKNOWN != 0 {
                return fault(ExtensionError::UnknownOption(kind), at);
            }
        }
        Ok(())
    }

    fn routing(&mut self) -> Result<(), ExtensionFault> {
        let at = self.at;
        let header = self.take()?;
        let pointer = at.wrapping_add(2);
        match header {
            [_, _, _, 0, ..] => Ok(()),
            [_, _, 0, ..] => fault(ExtensionError::RoutingType0, pointer),
            _ => fault(ExtensionError::SegmentsLeft, pointer),
        }
    }

    /// Passes over the header of a first fragment or of a whole datagram; any other ends the walk.
    fn fragment(&mut self) -> Result<Option<Ipv6Payload<'a>>, ExtensionFault> {
        let at = self.at;
        let header = self.take_bytes(FRAGMENT_HEADER_LEN)?;
        let Some(header) = header.first_chunk::<FRAGMENT_HEADER_LEN>() else {
            return fault(ExtensionError::Truncated, at);
        };
        self.fragmented = true;
        let word = NetworkEndian::read_u16(&header[2..4]);
        let fragment = Ipv6Fragment {
            next_header: header[0],
            offset: word & !7,
            more: word & 1 != 0,
            identification: NetworkEndian::read_u32(&header[4..8]),
            payload: self.rest,
        };
        if fragment.offset == 0 && !fragment.more {
            return Ok(None);
        }
        let len = fragment.payload.len();
        if len == 0 || fragment.more && !len.is_multiple_of(8) {
            return fault(ExtensionError::FragmentLength, PAYLOAD_LEN_AT);
        }
        let before = at.saturating_sub(HEADER_LEN);
        let total = usize::from(fragment.offset).saturating_add(len).saturating_add(before);
        if total > usize::from(u16::MAX) {
            return fault(ExtensionError::FragmentTooLong, at.wrapping_add(2));
        }
        if fragment.offset > 0 {
            return Ok(Some(Ipv6Payload::Fragment(fragment)));
        }
        self.first = Some(fragment);
        Ok(None)
    }
}

/// What is left of the options of one header.
struct Options<'a> {
    rest: &'a [u8],
    at: usize,
}

impl Options<'_> {
    /// Number, place and length of the next one.
    fn next(&mut self) -> Result<Option<(u8, usize, usize)>, ExtensionFault> {
        let at = self.at;
        let (kind, len) = match *self.rest {
            [] => return Ok(None),
            [PAD_1, ..] => (PAD_1, 1),
            [_] => return fault(ExtensionError::OptionTruncated, at),
            [kind, len, ..] => (kind, usize::from(len).wrapping_add(2)),
        };
        let Some((_, rest)) = self.rest.split_at_checked(len) else {
            return fault(ExtensionError::OptionTruncated, at);
        };
        self.rest = rest;
        self.at = at.wrapping_add(len);
        Ok(Some((kind, at, len)))
    }
}

/// Bytes of the upper layer's header that a first fragment must have (RFC 7112 3).
fn upper_header_len(protocol: u8, payload: &[u8]) -> usize {
    match IpProtocol::from(protocol) {
        IpProtocol::Tcp => {
            let data_offset = payload.get(12).map_or(0, |byte| usize::from(byte >> 4));
            data_offset.wrapping_mul(4).max(20)
        }
        IpProtocol::Udp => 8,
        IpProtocol::Other(ICMPV6) => 4,
        _ => 0,
    }
}

const fn fault<T>(reason: ExtensionError, pointer: usize) -> Result<T, ExtensionFault> {
    Err(ExtensionFault { reason, pointer })
}

#[cfg(test)]
mod tests;
