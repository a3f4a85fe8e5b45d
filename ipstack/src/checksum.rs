//! The Internet checksum (RFC 1071): whole, incremental (RFC 1624) and partial.
//!
//! A [`Sum`] takes bytes and integers in the order of transmission and may be cut anywhere, also
//! after an odd number of bytes:
//!
//! ```
//! use ipstack::checksum::{Sum, checksum};
//!
//! let bytes = [0x45, 0x00, 0x00, 0x1c, 0x12];
//! let (head, tail) = bytes.split_at(3);
//! assert_eq!(Sum::ZERO.add_bytes(head).add_bytes(tail).finish(), checksum(&bytes));
//! ```
//!
//! Whoever leaves a checksum to the transmitter (checksum offload) puts the pseudo-header sum in
//! its field, folded and *not* complemented: `PseudoHeader::sum().fold()`. The transmitter sums
//! field and payload and gets the whole.

use core::net::IpAddr;

/// What the checksum field of a received TCP segment or UDP datagram holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ChecksumState {
    /// The checksum of the whole, to be verified.
    #[default]
    Whole,
    /// The pseudo-header sum only, or anything: the sender left the checksum to a transmitter that
    /// the packet never reached, and there is nothing to verify.
    Partial,
}

/// A running one's-complement sum of 16-bit big-endian words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Sum {
    /// Sum of words, wide enough for 2^48 pieces.
    words: u64,
    /// Whether an odd number of bytes came before, so that the next byte is the low half of a word.
    odd: bool,
}

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Self = Self { words: 0, odd: false };

    /// Appends bytes: any number of them, at any alignment.
    pub fn add_bytes(self, bytes: &[u8]) -> Self {
        let words = self.add_word(fold(sum_lanes(bytes)).to_be()).words;
        Self { words, odd: self.odd != (bytes.len() % 2 == 1) }
    }

    /// Appends the two bytes of `value` in network order.
    pub const fn add_u16(self, value: u16) -> Self {
        self.add_word(value)
    }

    /// Appends the four bytes of `value` in network order.
    pub const fn add_u32(self, value: u32) -> Self {
        self.add_word(fold(value as u64))
    }

    /// The sum in 16 bits, not complemented. Zero only if everything added was zero.
    #[must_use]
    pub const fn fold(self) -> u16 {
        fold(self.words)
    }

    /// The checksum: the folded sum, complemented. Over bytes that include their own right
    /// checksum it is 0.
    #[must_use]
    pub const fn finish(self) -> u16 {
        !self.fold()
    }

    /// Adds a sum of words that lie at even offsets of the next piece. If the piece begins at an
    /// odd offset of the whole, all its bytes have changed sides (RFC 1071 2.B).
    const fn add_word(self, word: u16) -> Self {
        let word = if self.odd { word.swap_bytes() } else { word };
        Self { words: self.words.wrapping_add(word as u64), odd: self.odd }
    }
}

/// The sum of `bytes` as words in the byte order of this machine, which differs from the sum in
/// network order by a swap of the two bytes only (RFC 1071 2.B). Too wide a sum for carries to be
/// lost before 2^32 lanes.
fn sum_lanes(bytes: &[u8]) -> u64 {
    let (lanes, tail) = bytes.as_chunks::<4>();
    let mut padded = [0; 4];
    for (to, from) in padded.iter_mut().zip(tail) {
        *to = *from;
    }
    lanes.iter().fold(u64::from(u32::from_ne_bytes(padded)), |sum, lane| {
        sum.wrapping_add(u64::from(u32::from_ne_bytes(*lane)))
    })
}

/// Adds the carries back in until 16 bits are left.
#[expect(clippy::cast_possible_truncation, reason = "no carry is left after the last step")]
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

/// The checksum of `bytes`; 0 if they include their own right checksum.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::ZERO.add_bytes(bytes).finish()
}

/// The checksum `check` after a 16-bit word under it has changed from `old` to `new`
/// (RFC 1624 3, equation 3).
#[must_use]
pub const fn update(check: u16, old: u16, new: u16) -> u16 {
    Sum::ZERO.add_u16(!check).add_u16(!old).add_u16(new).finish()
}

/// The checksum `check` after four bytes at an even offset under it have changed from `old` to
/// `new` (RFC 1624 3, equation 3).
#[must_use]
pub const fn update_u32(check: u16, old: u32, new: u32) -> u16 {
    Sum::ZERO.add_u16(!check).add_u32(!old).add_u32(new).finish()
}

/// What TCP and UDP checksums cover besides the packet itself (RFC 9293 3.1, RFC 768, RFC 8200 8.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PseudoHeader {
    /// Source address of the packet.
    pub source: IpAddr,
    /// Destination address of the packet, of the same family.
    pub destination: IpAddr,
    /// IP protocol number.
    pub protocol: u8,
    /// Bytes of transport header and payload.
    pub length: u32,
}

impl PseudoHeader {
    /// The pseudo-header of a transport packet of `length` bytes.
    #[must_use]
    pub fn new(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> Self {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        Self { source, destination, protocol, length }
    }

    /// Its sum, to which the packet's own bytes are then added.
    pub fn sum(&self) -> Sum {
        add_address(add_address(Sum::ZERO, self.source), self.destination)
            .add_u16(u16::from(self.protocol))
            .add_u32(self.length)
    }
}

fn add_address(sum: Sum, address: IpAddr) -> Sum {
    match address {
        IpAddr::V4(address) => sum.add_u32(address.to_bits()),
        IpAddr::V6(address) => sum.add_bytes(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// RFC 1071 4.1, word by word.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !u16::try_from(sum).unwrap()
    }

    #[test]
    fn rfc_1071_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::ZERO.add_bytes(&bytes).fold(), 0xddf2);
        assert_eq!(checksum(&bytes), 0x220d);
    }

    #[test]
    fn carries_of_64_kib_of_ones_are_kept() {
        let bytes = [0xff; 65_535];
        assert_eq!(checksum(&bytes), naive(&bytes));
        assert_eq!(checksum(&bytes[..65_534]), 0);
    }

    #[test]
    fn rfc_1624_example_does_not_yield_minus_zero() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn pseudo_headers_equal_their_bytes() {
        let (a, b) = (Ipv4Addr::new(10, 0, 2, 15), Ipv4Addr::new(192, 0, 2, 1));
        let v4 = [10, 0, 2, 15, 192, 0, 2, 1, 0, 17, 0x12, 0x34];
        assert_eq!(PseudoHeader::new(a.into(), b.into(), 17, 0x1234).sum().finish(), naive(&v4));

        let (a, b) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0xffff, 9));
        let v6 = [&a.octets()[..], &b.octets()[..], &[0, 1, 2, 3, 0, 0, 0, 6]].concat();
        let sum = PseudoHeader::new(a.into(), b.into(), 6, 0x0001_0203).sum();
        assert_eq!(sum.finish(), naive(&v6));
    }

    proptest! {
        #[test]
        fn any_cut_at_any_alignment_equals_the_naive_sum(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            start in 0usize..16,
            mut cuts in prop::collection::vec(0usize..300, 0..5),
        ) {
            let bytes = bytes.get(start..).unwrap_or_default();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut from = 0;
            let mut sum = Sum::ZERO;
            for cut in cuts {
                let to = cut.min(bytes.len());
                sum = sum.add_bytes(&bytes[from..to]);
                from = to;
            }
            prop_assert_eq!(sum.finish(), naive(bytes));
        }

        #[test]
        fn integers_equal_their_bytes_also_after_an_odd_number_of_bytes(
            head in prop::collection::vec(any::<u8>(), 0..5), a: u16, b: u32, tail: [u8; 3],
        ) {
            let bytes: Vec<u8> =
                [&head[..], &a.to_be_bytes(), &b.to_be_bytes(), &tail].concat();
            let sum = Sum::ZERO.add_bytes(&head).add_u16(a).add_u32(b).add_bytes(&tail);
            prop_assert_eq!(sum.finish(), naive(&bytes));
        }

        #[test]
        fn an_update_equals_a_new_checksum(mut bytes: [u8; 12], new: u32, half: u16) {
            let check = naive(&bytes);
            let old = u32::from_be_bytes(*bytes[4..].first_chunk().unwrap());
            bytes[4..8].copy_from_slice(&new.to_be_bytes());
            // All-zero data has no other representation of zero to compare with.
            prop_assume!(bytes != [0; 12]);
            prop_assert_eq!(update_u32(check, old, new), naive(&bytes));

            let old = u16::from_be_bytes([bytes[10], bytes[11]]);
            let check = naive(&bytes);
            bytes[10..].copy_from_slice(&half.to_be_bytes());
            prop_assume!(bytes != [0; 12]);
            prop_assert_eq!(update(check, old, half), naive(&bytes));
        }
    }
}
