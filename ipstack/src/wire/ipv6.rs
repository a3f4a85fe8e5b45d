//! IPv6 (RFC 8200): the header itself. What may stand behind it is in
//! [`ipv6_extension`](super::ipv6_extension).

use core::net::Ipv6Addr;

use byteorder::{ByteOrder, NetworkEndian};

use super::ipv6_extension::{FRAGMENT, FRAGMENT_HEADER_LEN, Ipv6Fragment};
use super::{IpProtocol, WireError};

/// Bytes of the header.
pub const HEADER_LEN: usize = 40;

/// Bytes of what [`Ipv6Packet::quoted_header`] makes.
pub const QUOTED_HEADER_LEN: usize = HEADER_LEN + FRAGMENT_HEADER_LEN;

const FLOW_LABEL: u32 = 0x000f_ffff;

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6Packet<'a> {
    header: &'a [u8; HEADER_LEN],
    bytes: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv6Packet<'a> {
    /// Reads a packet. Bytes beyond its payload length are padding of the frame and cut off.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there are fewer bytes than a header, or than the payload length
    /// promises, [`WireError::BadVersion`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (header, rest) = bytes.split_first_chunk().ok_or(WireError::Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(WireError::BadVersion);
        }
        let payload_len = usize::from(payload_len(header));
        let (payload, _) = rest.split_at_checked(payload_len).ok_or(WireError::Truncated)?;
        let bytes = bytes.get(..HEADER_LEN + payload_len).ok_or(WireError::Truncated)?;
        Ok(Self { header, bytes, payload })
    }

    /// Traffic class: DSCP and ECN (RFC 2474 3, RFC 3168 5).
    #[must_use]
    pub fn traffic_class(&self) -> u8 {
        self.header[0] << 4 | self.header[1] >> 4
    }

    /// The two ECN bits (RFC 3168 5).
    #[must_use]
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 0b11
    }

    /// The flow label, 20 bits (RFC 6437).
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        NetworkEndian::read_u32(&self.header[0..4]) & FLOW_LABEL
    }

    /// Bytes behind the header, extension headers among them.
    #[must_use]
    pub fn payload_len(&self) -> u16 {
        payload_len(self.header)
    }

    /// What the payload begins with: an extension header, or the protocol of an upper layer.
    #[must_use]
    pub const fn next_header(&self) -> u8 {
        self.header[6]
    }

    /// Hops that it may still make.
    #[must_use]
    pub const fn hop_limit(&self) -> u8 {
        self.header[7]
    }

    /// Address of the sender.
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(NetworkEndian::read_u128(&self.header[8..24]))
    }

    /// Address of the receiver.
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from_bits(NetworkEndian::read_u128(&self.header[24..40]))
    }

    /// The whole packet, without padding of the frame.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Everything behind the header up to the payload length, extension headers first.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header that this packet would have if the fragment header were its only extension: what
    /// reassembly keeps of a first fragment, since extension headers have no bound, and what an
    /// ICMP error can quote.
    #[must_use]
    pub fn quoted_header(&self, fragment: &Ipv6Fragment<'_>) -> [u8; QUOTED_HEADER_LEN] {
        let mut quoted = [0; QUOTED_HEADER_LEN];
        let payload_len = fragment.payload.len().saturating_add(FRAGMENT_HEADER_LEN);
        let header = Ipv6Header {
            traffic_class: self.traffic_class(),
            flow_label: self.flow_label(),
            payload_len: u16::try_from(payload_len).unwrap_or(u16::MAX),
            next_header: FRAGMENT,
            hop_limit: self.hop_limit(),
            source: self.source(),
            destination: self.destination(),
        };
        if let Some((front, back)) = quoted.split_first_chunk_mut() {
            header.emit(front);
            if let Some(back) = back.first_chunk_mut() {
                fragment.emit_header(back);
            }
        }
        quoted
    }
}

fn payload_len(header: &[u8; HEADER_LEN]) -> u16 {
    NetworkEndian::read_u16(&header[4..6])
}

/// The header of a packet to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// The flow label; bits above the lowest 20 are not sent.
    pub flow_label: u32,
    /// Bytes behind the header.
    pub payload_len: u16,
    /// What the payload begins with.
    pub next_header: u8,
    /// Hops that it may make.
    pub hop_limit: u8,
    /// Address of the sender.
    pub source: Ipv6Addr,
    /// Address of the receiver.
    pub destination: Ipv6Addr,
}

impl Ipv6Header {
    /// Hop limit of packets that somebody makes rather than forwards (RFC 1700, "IP TIME TO
    /// LIVE").
    pub const DEFAULT_HOP_LIMIT: u8 = 64;

    /// The header of a packet without payload.
    #[must_use]
    pub fn new(protocol: IpProtocol, source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self {
            traffic_class: 0,
            flow_label: 0,
            payload_len: 0,
            next_header: protocol.into(),
            hop_limit: Self::DEFAULT_HOP_LIMIT,
            source,
            destination,
        }
    }

    /// Writes the header.
    pub fn emit(&self, buffer: &mut [u8; HEADER_LEN]) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & FLOW_LABEL;
        NetworkEndian::write_u32(&mut buffer[0..4], first);
        NetworkEndian::write_u16(&mut buffer[4..6], self.payload_len);
        buffer[6] = self.next_header;
        buffer[7] = self.hop_limit;
        buffer[8..24].copy_from_slice(&self.source.octets());
        buffer[24..40].copy_from_slice(&self.destination.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const GUEST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 15);
    const WORLD: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

    fn packet(header: &Ipv6Header, payload: &[u8]) -> Vec<u8> {
        let mut bytes = [0; HEADER_LEN];
        header.emit(&mut bytes);
        [&bytes, payload].concat()
    }

    #[test]
    fn the_bytes_of_a_header_are_where_the_rfc_puts_them() {
        let header = Ipv6Header {
            traffic_class: 0xab,
            flow_label: 0xfff1_2345,
            payload_len: 0x0102,
            hop_limit: 7,
            ..Ipv6Header::new(IpProtocol::Udp, GUEST, WORLD)
        };
        let mut expected = std::vec![0x6a, 0xb1, 0x23, 0x45, 0x01, 0x02, 17, 7];
        expected.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15]);
        expected.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(packet(&header, &[]), expected);
    }

    /// libslirp #96: the announced length was not what was read.
    #[test]
    fn frame_padding_is_cut_off() {
        let header =
            Ipv6Header { payload_len: 4, ..Ipv6Header::new(IpProtocol::Udp, GUEST, WORLD) };
        let bytes = packet(&header, b"abcdPADDING");
        let parsed = Ipv6Packet::parse(&bytes).unwrap();
        assert_eq!((parsed.payload(), parsed.bytes()), (&b"abcd"[..], &bytes[..44]));
    }

    #[test]
    fn malformed_headers_are_refused_each_for_its_reason() {
        let header =
            Ipv6Header { payload_len: 4, ..Ipv6Header::new(IpProtocol::Udp, GUEST, WORLD) };
        let good = packet(&header, b"abcd");
        assert_eq!(Ipv6Packet::parse(&good[..39]).unwrap_err(), WireError::Truncated);
        assert_eq!(Ipv6Packet::parse(&good[..43]).unwrap_err(), WireError::Truncated);
        let mut other_version = good;
        other_version[0] = 0x45;
        assert_eq!(Ipv6Packet::parse(&other_version).unwrap_err(), WireError::BadVersion);
    }

    proptest! {
        #[test]
        fn parse_reads_what_emit_wrote(
            traffic_class: u8, flow_label in 0..=FLOW_LABEL, next_header: u8, hop_limit: u8,
            source: u128, destination: u128,
            payload in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let header = Ipv6Header {
                traffic_class,
                flow_label,
                payload_len: u16::try_from(payload.len()).unwrap(),
                next_header,
                hop_limit,
                source: source.into(),
                destination: destination.into(),
            };
            let bytes = packet(&header, &payload);
            let parsed = Ipv6Packet::parse(&bytes).unwrap();
            prop_assert_eq!(parsed.payload(), &payload[..]);
            prop_assert_eq!(parsed.ecn(), traffic_class & 3);
            prop_assert_eq!(header, Ipv6Header {
                traffic_class: parsed.traffic_class(),
                flow_label: parsed.flow_label(),
                payload_len: parsed.payload_len(),
                next_header: parsed.next_header(),
                hop_limit: parsed.hop_limit(),
                source: parsed.source(),
                destination: parsed.destination(),
            });
        }
    }
}
