//! TCP segments (RFC 9293 3.1).

use core::net::IpAddr;

use byteorder::{ByteOrder, NetworkEndian};

use super::{IpProtocol, TcpOptions, WireError};
use crate::checksum::{ChecksumState, PseudoHeader};

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

/// Most bytes of a header.
pub const MAX_HEADER_LEN: usize = 60;

/// The eight control bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TcpFlags(u16);

impl TcpFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// Opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Resets the connection.
    pub const RST: Self = Self(0x04);
    /// Data should not wait for more.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x20);
    /// Congestion was experienced (RFC 3168 6.1).
    pub const ECE: Self = Self(0x40);
    /// The congestion window was reduced (RFC 3168 6.1).
    pub const CWR: Self = Self(0x80);

    /// The flags in the lowest eight bits of `bits`, as they stand in the header. The reserved bits
    /// above them are ignored on receipt (RFC 9293 3.1).
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & 0xff)
    }

    /// The flags as they stand in the header.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether all of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These flags but for `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A received segment.
#[derive(Clone, Copy, Debug)]
pub struct TcpSegment<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> TcpSegment<'a> {
    /// Reads the payload of a whole IP packet.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below [`HEADER_LEN`] bytes, [`WireError::BadLength`] if the data
    /// offset is less than that or more than there is, [`WireError::BadChecksum`].
    pub fn parse(
        payload: &'a [u8],
        source: IpAddr,
        destination: IpAddr,
        verify: ChecksumState,
    ) -> Result<Self, WireError> {
        let (header, after) =
            payload.split_first_chunk::<HEADER_LEN>().ok_or(WireError::Truncated)?;
        let options_len = (usize::from(header[12] >> 4) * 4)
            .checked_sub(HEADER_LEN)
            .ok_or(WireError::BadLength)?;
        let (options, data) = after.split_at_checked(options_len).ok_or(WireError::BadLength)?;
        if verify == ChecksumState::Whole {
            let pseudo = pseudo_header(source, destination, payload.len());
            if pseudo.sum().add_bytes(payload).finish() != 0 {
                return Err(WireError::BadChecksum);
            }
        }
        Ok(Self { header, options, payload: data })
    }

    /// Port of the sender.
    #[must_use]
    pub fn source_port(&self) -> u16 {
        NetworkEndian::read_u16(&self.header[0..2])
    }

    /// Port of the receiver.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        NetworkEndian::read_u16(&self.header[2..4])
    }

    /// Sequence number of the first byte of data, or of the SYN.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        NetworkEndian::read_u32(&self.header[4..8])
    }

    /// The next sequence number that the sender expects; without meaning unless
    /// [`TcpFlags::ACK`] is set.
    #[must_use]
    pub fn acknowledgment(&self) -> u32 {
        NetworkEndian::read_u32(&self.header[8..12])
    }

    /// The control bits.
    #[must_use]
    pub const fn flags(&self) -> TcpFlags {
        TcpFlags::from_bits(self.header[13] as u16)
    }

    /// The window as it stands in the header, not scaled.
    #[must_use]
    pub fn window(&self) -> u16 {
        NetworkEndian::read_u16(&self.header[14..16])
    }

    /// Where urgent data ends, relative to the sequence number; without meaning unless
    /// [`TcpFlags::URG`] is set.
    #[must_use]
    pub fn urgent_pointer(&self) -> u16 {
        NetworkEndian::read_u16(&self.header[18..20])
    }

    /// The options. They are read anew by each call.
    #[must_use]
    pub fn options(&self) -> TcpOptions {
        TcpOptions::parse(self.options)
    }

    /// The data.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The header of a segment to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TcpHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number of the first byte of data, or of the SYN.
    pub sequence: u32,
    /// The next sequence number that the sender expects.
    pub acknowledgment: u32,
    /// The control bits. [`TcpFlags::URG`] has no pointer here and is not to be set.
    pub flags: TcpFlags,
    /// The window as it stands in the header, already scaled.
    pub window: u16,
    /// The options. SACK blocks that do not fit are left out.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// Bytes of the header with its options: a multiple of 4, at most [`MAX_HEADER_LEN`].
    #[must_use]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.emitted_len()
    }

    /// Writes the header and returns its length; `None` if `buffer` is shorter. The checksum is
    /// left 0, for [`write_checksum`] or [`write_partial_checksum`].
    #[must_use]
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let header_len = self.header_len();
        let (fixed, after) = buffer.get_mut(..header_len)?.split_first_chunk_mut::<HEADER_LEN>()?;
        let words = u8::try_from(header_len / 4).ok()?;
        NetworkEndian::write_u16(&mut fixed[0..2], self.source_port);
        NetworkEndian::write_u16(&mut fixed[2..4], self.destination_port);
        NetworkEndian::write_u32(&mut fixed[4..8], self.sequence);
        NetworkEndian::write_u32(&mut fixed[8..12], self.acknowledgment);
        NetworkEndian::write_u16(&mut fixed[12..14], u16::from(words) << 12 | self.flags.bits());
        NetworkEndian::write_u16(&mut fixed[14..16], self.window);
        NetworkEndian::write_u32(&mut fixed[16..20], 0);
        self.options.emit(after)?;
        Some(header_len)
    }
}

/// Writes the checksum of `segment`, header and payload, whose checksum field is 0. `None` if it is
/// shorter than a header.
#[must_use]
pub fn write_checksum(segment: &mut [u8], source: IpAddr, destination: IpAddr) -> Option<()> {
    let pseudo = pseudo_header(source, destination, segment.len());
    let check = pseudo.sum().add_bytes(segment).finish();
    set_checksum(segment, check)
}

/// Writes the folded sum of the pseudo-header of a segment of `segment_len` bytes, header and
/// payload, into the checksum field of `header`, for a link that does the rest. `None` if `header`
/// is shorter than a header.
#[must_use]
pub fn write_partial_checksum(
    header: &mut [u8],
    source: IpAddr,
    destination: IpAddr,
    segment_len: usize,
) -> Option<()> {
    set_checksum(header, pseudo_header(source, destination, segment_len).sum().fold())
}

fn set_checksum(segment: &mut [u8], check: u16) -> Option<()> {
    let header: &mut [u8; HEADER_LEN] = segment.first_chunk_mut()?;
    NetworkEndian::write_u16(&mut header[16..18], check);
    Some(())
}

fn pseudo_header(source: IpAddr, destination: IpAddr, segment_len: usize) -> PseudoHeader {
    PseudoHeader::new(source, destination, IpProtocol::Tcp.into(), segment_len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::vec::Vec;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 15));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn segment(header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
        let mut bytes = std::vec![0xee; header.header_len()];
        assert_eq!(header.emit(&mut bytes), Some(header.header_len()));
        bytes.extend(payload);
        write_checksum(&mut bytes, A, B).unwrap();
        bytes
    }

    fn header() -> TcpHeader {
        TcpHeader {
            source_port: 1024,
            destination_port: 80,
            sequence: 0xdead_beef,
            acknowledgment: 0,
            flags: TcpFlags::SYN,
            window: 0xffff,
            options: TcpOptions { mss: Some(1460), ..TcpOptions::NONE },
        }
    }

    fn parse(bytes: &[u8]) -> Result<TcpSegment<'_>, WireError> {
        TcpSegment::parse(bytes, A, B, ChecksumState::Whole)
    }

    #[test]
    fn the_bytes_of_a_segment_are_where_the_rfc_puts_them() {
        let header = TcpHeader {
            source_port: 49152,
            destination_port: 443,
            sequence: 0x0102_0304,
            acknowledgment: 0x0506_0708,
            flags: TcpFlags::PSH.with(TcpFlags::ACK),
            window: 501,
            options: TcpOptions {
                timestamps: Some((0x1112_1314, 0x2122_2324)),
                ..TcpOptions::NONE
            },
        };
        let expected = [
            0xc0, 0x00, 0x01, 0xbb, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x80, 0x18,
            0x01, 0xf5, 0xd1, 0x2b, 0x00, 0x00, 0x01, 0x01, 0x08, 0x0a, 0x11, 0x12, 0x13, 0x14,
            0x21, 0x22, 0x23, 0x24, b'G', b'E', b'T',
        ];
        assert_eq!(segment(&header, b"GET"), expected);
    }

    #[test]
    fn flags_are_sets() {
        let both = TcpFlags::SYN.with(TcpFlags::ACK);
        assert!(both.contains(TcpFlags::SYN) && both.contains(both));
        assert!(!TcpFlags::SYN.contains(both));
        assert_eq!(both.without(TcpFlags::SYN), TcpFlags::ACK);
        assert_eq!(TcpFlags::from_bits(0xf012), both);
    }

    #[test]
    fn a_data_offset_outside_the_segment_is_refused() {
        let mut bytes = segment(&header(), b"");
        bytes[12] = 0x40;
        assert_eq!(parse(&bytes).unwrap_err(), WireError::BadLength);
        bytes[12] = 0x70;
        assert_eq!(parse(&bytes).unwrap_err(), WireError::BadLength);
        assert_eq!(parse(&bytes[..19]).unwrap_err(), WireError::Truncated);
    }

    #[test]
    fn a_wrong_checksum_is_refused_unless_it_is_partial() {
        let mut bytes = segment(&header(), b"abc");
        assert_eq!(parse(&bytes).unwrap().payload(), b"abc");
        bytes[25] ^= 1;
        assert_eq!(parse(&bytes).unwrap_err(), WireError::BadChecksum);
        assert!(TcpSegment::parse(&bytes, A, B, ChecksumState::Partial).is_ok());
    }

    #[test]
    fn a_partial_checksum_is_completed_by_summing_the_segment() {
        let mut bytes = segment(&header(), b"abcde");
        let whole = bytes.clone();
        let length = bytes.len();
        write_partial_checksum(&mut bytes, A, B, length).unwrap();
        let check = crate::checksum::checksum(&bytes);
        set_checksum(&mut bytes, check).unwrap();
        assert_eq!(bytes, whole);
    }

    #[test]
    fn the_checksum_covers_addresses_of_ipv6() {
        let (a, b) = (IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::from_bits(7)));
        let mut bytes = segment(&header(), b"abc");
        set_checksum(&mut bytes, 0).unwrap();
        write_checksum(&mut bytes, a, b).unwrap();
        assert!(TcpSegment::parse(&bytes, a, b, ChecksumState::Whole).is_ok());
        let other = TcpSegment::parse(&bytes, a, a, ChecksumState::Whole);
        assert_eq!(other.unwrap_err(), WireError::BadChecksum);
    }

    #[test]
    fn a_buffer_too_short_is_none() {
        assert_eq!(header().emit(&mut [0; 23]), None);
        assert_eq!(header().emit(&mut [0; 24]), Some(24));
        assert_eq!(write_checksum(&mut [0; 19], A, B), None);
    }

    proptest! {
        #[test]
        fn parse_reads_what_emit_wrote(
            ports: (u16, u16), sequence: u32, acknowledgment: u32, flags: u16, window: u16,
            mss: Option<u16>, timestamps: Option<(u32, u32)>,
            payload in prop::collection::vec(any::<u8>(), 0..99),
        ) {
            let written = TcpHeader {
                source_port: ports.0,
                destination_port: ports.1,
                sequence,
                acknowledgment,
                flags: TcpFlags::from_bits(flags),
                window,
                options: TcpOptions { mss, timestamps, ..TcpOptions::NONE },
            };
            let bytes = segment(&written, &payload);
            let parsed = parse(&bytes).unwrap();
            prop_assert_eq!(parsed.payload(), &payload[..]);
            prop_assert_eq!(parsed.urgent_pointer(), 0);
            prop_assert_eq!(written, TcpHeader {
                source_port: parsed.source_port(),
                destination_port: parsed.destination_port(),
                sequence: parsed.sequence(),
                acknowledgment: parsed.acknowledgment(),
                flags: parsed.flags(),
                window: parsed.window(),
                options: parsed.options(),
            });
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(segment) = TcpSegment::parse(&bytes, A, B, ChecksumState::Partial) {
                let _ = (segment.options(), segment.payload());
            }
        }
    }
}
