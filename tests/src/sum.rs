//! The Internet checksum (RFC 1071).

use core::net::Ipv4Addr;

/// Sum of 16-bit big-endian words, an odd last byte padded with zero, not complemented.
#[must_use]
pub fn ones_sum(bytes: &[u8], start: u32) -> u32 {
    let mut sum = u128::from(start);
    // Longer words have the same sum once it is folded (RFC 1071 2 (C)).
    let (words, rest) = bytes.as_chunks();
    for word in words {
        sum += u128::from(u64::from_be_bytes(*word));
    }
    for pair in rest.chunks(2) {
        sum += u128::from(pair[0]) << 8 | u128::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u32
}

/// The checksum field for `bytes`, whose own field must be zero.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    !(ones_sum(bytes, 0) as u16)
}

/// Sum of the IPv4 pseudo-header (RFC 9293 3.1).
#[must_use]
pub fn pseudo_sum(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: usize) -> u32 {
    let mut header = Vec::new();
    header.extend(src.octets());
    header.extend(dst.octets());
    header.extend([0, protocol, (len >> 8) as u8, len as u8]);
    ones_sum(&header, 0)
}

/// The checksum of a transport segment with its pseudo-header.
#[must_use]
pub fn transport(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, segment: &[u8]) -> u16 {
    !(ones_sum(segment, pseudo_sum(src, dst, protocol, segment.len())) as u16)
}
