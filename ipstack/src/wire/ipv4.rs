//! IPv4 (RFC 791).

use core::net::Ipv4Addr;

use byteorder::{ByteOrder, NetworkEndian};

use super::WireError;
use crate::checksum::checksum;

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
/// The part of the flags and offset word that counts units of eight bytes.
const OFFSET_UNITS: u16 = 0x1fff;

/// The protocol inside an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum IpProtocol {
    /// 1.
    Icmp,
    /// 6.
    Tcp,
    /// 17.
    Udp,
    /// Anything else.
    Other(u8),
}

impl From<u8> for IpProtocol {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Icmp,
            6 => Self::Tcp,
            17 => Self::Udp,
            other => Self::Other(other),
        }
    }
}

impl From<IpProtocol> for u8 {
    fn from(protocol: IpProtocol) -> Self {
        match protocol {
            IpProtocol::Icmp => 1,
            IpProtocol::Tcp => 6,
            IpProtocol::Udp => 17,
            IpProtocol::Other(number) => number,
        }
    }
}

/// A received packet, or a fragment of one.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4Packet<'a> {
    header: &'a [u8; HEADER_LEN],
    bytes: &'a [u8],
    header_bytes: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4Packet<'a> {
    /// Reads a packet. Bytes beyond its total length are padding of the frame and cut off.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if there are fewer bytes than a header or than the total length,
    /// [`WireError::BadVersion`], [`WireError::BadLength`] if the header is shorter than 20 bytes
    /// or longer than the packet, [`WireError::BadChecksum`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let header: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(WireError::Truncated)?;
        if header[0] >> 4 != 4 {
            return Err(WireError::BadVersion);
        }
        let header_len = usize::from(header[0] & 0x0f) * 4;
        if header_len < HEADER_LEN {
            return Err(WireError::BadLength);
        }
        let total_len = usize::from(NetworkEndian::read_u16(&header[2..4]));
        let (packet, _) = bytes.split_at_checked(total_len).ok_or(WireError::Truncated)?;
        let (header_bytes, payload) =
            packet.split_at_checked(header_len).ok_or(WireError::BadLength)?;
        if checksum(header_bytes) != 0 {
            return Err(WireError::BadChecksum);
        }
        Ok(Self { header, bytes: packet, header_bytes, payload })
    }

    /// Reads what an ICMP error quotes: the packet may have been cut behind its header, and its
    /// header was changed on the way, so that neither length nor checksum need be right.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::BadVersion`], [`WireError::BadLength`].
    pub fn parse_quoted(bytes: &'a [u8]) -> Result<Self, WireError> {
        let header: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(WireError::Truncated)?;
        if header[0] >> 4 != 4 {
            return Err(WireError::BadVersion);
        }
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let (header_bytes, payload) = bytes
            .split_at_checked(header_len)
            .filter(|(header, _)| header.len() >= HEADER_LEN)
            .ok_or(WireError::BadLength)?;
        Ok(Self { header, bytes, header_bytes, payload })
    }

    /// Type of service: DSCP and ECN (RFC 2474 3, RFC 3168 5).
    #[must_use]
    pub const fn tos(&self) -> u8 {
        self.header[1]
    }

    /// The two ECN bits (RFC 3168 5).
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.tos() & 0b11
    }

    /// Bytes of header and payload.
    #[must_use]
    pub fn total_len(&self) -> u16 {
        NetworkEndian::read_u16(&self.header[2..4])
    }

    /// What fragments of one datagram have in common.
    #[must_use]
    pub fn identification(&self) -> u16 {
        NetworkEndian::read_u16(&self.header[4..6])
    }

    /// Whether routers must not fragment it.
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        self.flags_and_offset() & DONT_FRAGMENT != 0
    }

    /// Whether it is a fragment other than the last.
    #[must_use]
    pub fn more_fragments(&self) -> bool {
        self.flags_and_offset() & MORE_FRAGMENTS != 0
    }

    /// Where in the datagram the payload begins, in bytes: a multiple of 8 up to 65,528.
    #[must_use]
    pub fn fragment_offset(&self) -> u16 {
        (self.flags_and_offset() & OFFSET_UNITS) << 3
    }

    /// Whether it is a part of a datagram only.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.flags_and_offset() & (MORE_FRAGMENTS | OFFSET_UNITS) != 0
    }

    /// Hops that it may still make.
    #[must_use]
    pub const fn ttl(&self) -> u8 {
        self.header[8]
    }

    /// The protocol of the payload.
    #[must_use]
    pub fn protocol(&self) -> IpProtocol {
        self.header[9].into()
    }

    /// Address of the sender.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(NetworkEndian::read_u32(&self.header[12..16]))
    }

    /// Address of the receiver.
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(NetworkEndian::read_u32(&self.header[16..20]))
    }

    /// The whole packet, without padding of the frame.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header with its options.
    #[must_use]
    pub const fn header_bytes(&self) -> &'a [u8] {
        self.header_bytes
    }

    /// The options, at most 40 bytes.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        self.header_bytes.get(HEADER_LEN..).unwrap_or_default()
    }

    /// Everything after the header up to the total length.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    fn flags_and_offset(&self) -> u16 {
        NetworkEndian::read_u16(&self.header[6..8])
    }
}

/// The header of a packet to be sent, without options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Type of service: DSCP and ECN.
    pub tos: u8,
    /// Bytes of header and payload.
    pub total_len: u16,
    /// What fragments of one datagram have in common.
    pub identification: u16,
    /// Whether routers must not fragment it.
    pub dont_fragment: bool,
    /// Whether it is a fragment other than the last.
    pub more_fragments: bool,
    /// Where in the datagram the payload begins, in bytes; the lowest three bits are not sent.
    pub fragment_offset: u16,
    /// Hops that it may make.
    pub ttl: u8,
    /// The protocol of the payload.
    pub protocol: IpProtocol,
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Address of the receiver.
    pub destination: Ipv4Addr,
}

impl Ipv4Header {
    /// TTL of packets that somebody makes rather than forwards (RFC 1700, "IP TIME TO LIVE").
    pub const DEFAULT_TTL: u8 = 64;

    /// The header of an unfragmented packet without payload.
    #[must_use]
    pub const fn new(protocol: IpProtocol, source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self {
            tos: 0,
            total_len: 20,
            identification: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            ttl: Self::DEFAULT_TTL,
            protocol,
            source,
            destination,
        }
    }

    /// Writes the header with its checksum.
    pub fn emit(&self, buffer: &mut [u8; HEADER_LEN]) {
        let mut flags_and_offset = self.fragment_offset >> 3;
        if self.dont_fragment {
            flags_and_offset |= DONT_FRAGMENT;
        }
        if self.more_fragments {
            flags_and_offset |= MORE_FRAGMENTS;
        }
        buffer[0] = 0x45;
        buffer[1] = self.tos;
        NetworkEndian::write_u16(&mut buffer[2..4], self.total_len);
        NetworkEndian::write_u16(&mut buffer[4..6], self.identification);
        NetworkEndian::write_u16(&mut buffer[6..8], flags_and_offset);
        buffer[8] = self.ttl;
        buffer[9] = self.protocol.into();
        NetworkEndian::write_u16(&mut buffer[10..12], 0);
        buffer[12..16].copy_from_slice(&self.source.octets());
        buffer[16..20].copy_from_slice(&self.destination.octets());
        let check = checksum(buffer);
        NetworkEndian::write_u16(&mut buffer[10..12], check);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const HEADER: Ipv4Header = Ipv4Header {
        total_len: 24,
        ..Ipv4Header::new(IpProtocol::Udp, Ipv4Addr::new(10, 0, 2, 15), Ipv4Addr::new(1, 2, 3, 4))
    };

    fn packet(header: &Ipv4Header, payload: &[u8]) -> Vec<u8> {
        let mut bytes = [0; HEADER_LEN];
        header.emit(&mut bytes);
        [&bytes, payload].concat()
    }

    /// Repairs the checksum after a test has changed the header.
    fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        let header_len = (usize::from(bytes[0] & 15) * 4).clamp(HEADER_LEN, bytes.len());
        bytes[10..12].fill(0);
        let check = checksum(&bytes[..header_len]);
        bytes[10..12].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    #[test]
    fn the_bytes_of_a_header_are_where_the_rfc_puts_them() {
        let header = Ipv4Header {
            total_len: 115,
            dont_fragment: true,
            ..Ipv4Header::new(
                IpProtocol::Udp,
                Ipv4Addr::new(192, 168, 0, 1),
                Ipv4Addr::new(192, 168, 0, 199),
            )
        };
        let expected = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 192, 168, 0, 1,
            192, 168, 0, 199,
        ];
        assert_eq!(packet(&header, &[]), expected);
    }

    #[test]
    fn frame_padding_is_cut_off() {
        let bytes = packet(&HEADER, b"abcdPADDING");
        let parsed = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!(parsed.payload(), b"abcd");
        assert_eq!(parsed.bytes(), &bytes[..24]);
        assert!(parsed.options().is_empty());
    }

    #[test]
    fn options_belong_to_the_header() {
        let mut bytes = packet(&Ipv4Header { total_len: 28, ..HEADER }, b"OPT.abcd");
        bytes[0] = 0x46;
        let bytes = with_checksum(bytes);
        let parsed = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!(parsed.options(), b"OPT.");
        assert_eq!(parsed.header_bytes().len(), 24);
        assert_eq!(parsed.payload(), b"abcd");
    }

    /// A router decrements the TTL and may leave the old checksum in what it quotes.
    #[test]
    fn a_quoted_header_is_read_however_little_is_quoted_behind_it() {
        let mut bytes = packet(&HEADER, b"");
        bytes[8] ^= 1;
        let quoted = Ipv4Packet::parse_quoted(&bytes).unwrap();
        assert_eq!((quoted.source(), quoted.payload()), (HEADER.source, &[][..]));
        for (first, error) in [(0x65, WireError::BadVersion), (0x44, WireError::BadLength)] {
            bytes[0] = first;
            assert_eq!(Ipv4Packet::parse_quoted(&bytes).err(), Some(error));
        }
        assert_eq!(Ipv4Packet::parse_quoted(&bytes[..19]).err(), Some(WireError::Truncated));
    }

    #[test]
    fn malformed_headers_are_refused_each_for_its_reason() {
        let good = packet(&HEADER, b"abcd");
        let with = |index: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[index] = value;
            Ipv4Packet::parse(&with_checksum(bytes)).unwrap_err()
        };
        assert_eq!(Ipv4Packet::parse(&good[..19]).unwrap_err(), WireError::Truncated);
        assert_eq!(Ipv4Packet::parse(&good[..23]).unwrap_err(), WireError::Truncated);
        assert_eq!(with(0, 0x65), WireError::BadVersion);
        assert_eq!(with(0, 0x44), WireError::BadLength);
        assert_eq!(with(0, 0x4f), WireError::BadLength);
        assert_eq!(with(3, 19), WireError::BadLength);
        assert_eq!(with(2, 1), WireError::Truncated);
    }

    #[test]
    fn each_flipped_bit_of_a_header_is_noticed() {
        let good = packet(&HEADER, b"abcd");
        for bit in 0..8 * HEADER_LEN {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Ipv4Packet::parse(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn offsets_are_unsigned_up_to_65_528() {
        let bytes = packet(&Ipv4Header { fragment_offset: 65_528, ..HEADER }, b"abcd");
        let parsed = Ipv4Packet::parse(&bytes).unwrap();
        assert_eq!(parsed.fragment_offset(), 65_528);
        assert!(parsed.is_fragment() && !parsed.more_fragments());
    }

    proptest! {
        #[test]
        fn parse_reads_what_emit_wrote(
            tos: u8, identification: u16, flags: (bool, bool), units in 0u16..0x2000, ttl: u8,
            protocol: u8, addresses: (u32, u32), payload in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let header = Ipv4Header {
                tos,
                total_len: u16::try_from(20 + payload.len()).unwrap(),
                identification,
                dont_fragment: flags.0,
                more_fragments: flags.1,
                fragment_offset: units * 8,
                ttl,
                protocol: protocol.into(),
                source: Ipv4Addr::from_bits(addresses.0),
                destination: Ipv4Addr::from_bits(addresses.1),
            };
            let bytes = packet(&header, &payload);
            let parsed = Ipv4Packet::parse(&bytes).unwrap();
            prop_assert_eq!(parsed.payload(), &payload[..]);
            prop_assert_eq!(parsed.ecn(), tos & 3);
            prop_assert_eq!(header, Ipv4Header {
                tos: parsed.tos(),
                total_len: parsed.total_len(),
                identification: parsed.identification(),
                dont_fragment: parsed.dont_fragment(),
                more_fragments: parsed.more_fragments(),
                fragment_offset: parsed.fragment_offset(),
                ttl: parsed.ttl(),
                protocol: parsed.protocol(),
                source: parsed.source(),
                destination: parsed.destination(),
            });
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Ipv4Packet::parse(&bytes);
        }
    }
}
