//! UDP (RFC 768).

use core::net::IpAddr;

use byteorder::{ByteOrder, NetworkEndian};

use super::{IpProtocol, WireError};
use crate::checksum::{ChecksumState, PseudoHeader};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct UdpDatagram<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> UdpDatagram<'a> {
    /// Reads the payload of a whole IP packet. Bytes beyond the UDP length are cut off.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below [`HEADER_LEN`] bytes, [`WireError::BadLength`] if the UDP
    /// length is less than that or more than there is, [`WireError::BadChecksum`]. A checksum of 0
    /// means that there is none, but over IPv6 there must be one (RFC 8200 8.1).
    pub fn parse(
        payload: &'a [u8],
        source: IpAddr,
        destination: IpAddr,
        verify: ChecksumState,
    ) -> Result<Self, WireError> {
        let header: &[u8; HEADER_LEN] = payload.first_chunk().ok_or(WireError::Truncated)?;
        let length = usize::from(NetworkEndian::read_u16(&header[4..6]));
        let (datagram, _) = payload.split_at_checked(length).ok_or(WireError::BadLength)?;
        let (_, payload) =
            datagram.split_first_chunk::<HEADER_LEN>().ok_or(WireError::BadLength)?;
        let has_checksum = header[6..8] != [0, 0] || source.is_ipv6();
        if verify == ChecksumState::Whole && has_checksum {
            let pseudo = PseudoHeader::new(source, destination, IpProtocol::Udp.into(), length);
            if pseudo.sum().add_bytes(datagram).finish() != 0 || header[6..8] == [0, 0] {
                return Err(WireError::BadChecksum);
            }
        }
        Ok(Self { header, payload })
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

    /// The data.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The header of a datagram to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct UdpHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Bytes of data: at most 65,507 over IPv4, and always at most 65,527.
    pub payload_len: u16,
}

impl UdpHeader {
    /// Writes the header with the checksum of a datagram that carries `payload`, whose length is
    /// [`UdpHeader::payload_len`].
    pub fn emit(
        &self,
        buffer: &mut [u8; HEADER_LEN],
        source: IpAddr,
        destination: IpAddr,
        payload: &[u8],
    ) {
        let length = self.payload_len.saturating_add(8);
        NetworkEndian::write_u16(&mut buffer[0..2], self.source_port);
        NetworkEndian::write_u16(&mut buffer[2..4], self.destination_port);
        NetworkEndian::write_u16(&mut buffer[4..6], length);
        NetworkEndian::write_u16(&mut buffer[6..8], 0);
        let udp = IpProtocol::Udp.into();
        let pseudo = PseudoHeader::new(source, destination, udp, usize::from(length));
        let check = match pseudo.sum().add_bytes(buffer).add_bytes(payload).finish() {
            // 0 means that there is no checksum; both are zero in one's complement.
            0 => 0xffff,
            check => check,
        };
        NetworkEndian::write_u16(&mut buffer[6..8], check);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::vec::Vec;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 15));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const A6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 15));
    const B6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn datagram(source: IpAddr, destination: IpAddr, payload: &[u8]) -> Vec<u8> {
        let payload_len = u16::try_from(payload.len()).unwrap();
        let mut header = [0; HEADER_LEN];
        let fields = UdpHeader { source_port: 1024, destination_port: 53, payload_len };
        fields.emit(&mut header, source, destination, payload);
        [&header, payload].concat()
    }

    #[test]
    fn the_bytes_of_a_datagram_are_where_the_rfc_puts_them() {
        let expected = [0x04, 0x00, 0x00, 0x35, 0x00, 0x0d, 0xdd, 0xa6];
        assert_eq!(datagram(A, B, b"query"), [&expected[..], b"query"].concat());
    }

    #[test]
    fn bytes_beyond_the_udp_length_are_cut_off() {
        let mut bytes = datagram(A, B, b"abc");
        bytes.extend(b"more");
        let parsed = UdpDatagram::parse(&bytes, A, B, ChecksumState::Whole).unwrap();
        assert_eq!(parsed.payload(), b"abc");
    }

    #[test]
    fn a_udp_length_below_eight_or_beyond_the_packet_is_refused() {
        for length in [0, 7, 12, 0xffff] {
            let mut bytes = datagram(A, B, b"abc");
            bytes[4..6].copy_from_slice(&u16::to_be_bytes(length));
            let result = UdpDatagram::parse(&bytes, A, B, ChecksumState::Partial);
            assert_eq!(result.unwrap_err(), WireError::BadLength, "length {length}");
        }
        let result = UdpDatagram::parse(&[0; 7], A, B, ChecksumState::Partial);
        assert_eq!(result.unwrap_err(), WireError::Truncated);
    }

    #[test]
    fn a_wrong_checksum_is_refused_unless_it_is_partial() {
        let mut bytes = datagram(A, B, b"abc");
        bytes[8] ^= 1;
        let whole = UdpDatagram::parse(&bytes, A, B, ChecksumState::Whole);
        assert_eq!(whole.unwrap_err(), WireError::BadChecksum);
        assert!(UdpDatagram::parse(&bytes, A, B, ChecksumState::Partial).is_ok());
    }

    #[test]
    fn a_checksum_of_zero_is_none_over_ipv4_and_an_error_over_ipv6() {
        let mut bytes = datagram(A, B, b"abc");
        bytes[6..8].fill(0);
        assert!(UdpDatagram::parse(&bytes, A, B, ChecksumState::Whole).is_ok());
        let v6 = UdpDatagram::parse(&bytes, A6, B6, ChecksumState::Whole);
        assert_eq!(v6.unwrap_err(), WireError::BadChecksum);
    }

    #[test]
    fn a_computed_checksum_of_zero_is_sent_as_ones() {
        let without = datagram(A, B, &[0, 0]);
        let check = u16::from_be_bytes([without[6], without[7]]);
        // Putting the checksum itself into the data makes the sum all ones.
        let bytes = datagram(A, B, &check.to_be_bytes());
        assert_eq!(bytes[6..8], [0xff, 0xff]);
        assert!(UdpDatagram::parse(&bytes, A, B, ChecksumState::Whole).is_ok());
    }

    #[test]
    fn the_largest_datagram_of_ipv4_passes() {
        let payload = std::vec![0xa5; 65_507];
        let bytes = datagram(A, B, &payload);
        let parsed = UdpDatagram::parse(&bytes, A, B, ChecksumState::Whole).unwrap();
        assert_eq!(parsed.payload().len(), 65_507);
    }

    proptest! {
        #[test]
        fn parse_reads_what_emit_wrote(
            source_port: u16, destination_port: u16, v6: bool,
            payload in prop::collection::vec(any::<u8>(), 0..99),
        ) {
            let (a, b) = if v6 { (A6, B6) } else { (A, B) };
            let payload_len = u16::try_from(payload.len()).unwrap();
            let fields = UdpHeader { source_port, destination_port, payload_len };
            let mut header = [0; HEADER_LEN];
            fields.emit(&mut header, a, b, &payload);
            let bytes = [&header, &payload[..]].concat();
            let parsed = UdpDatagram::parse(&bytes, a, b, ChecksumState::Whole).unwrap();
            prop_assert_eq!(parsed.source_port(), source_port);
            prop_assert_eq!(parsed.destination_port(), destination_port);
            prop_assert_eq!(parsed.payload(), &payload[..]);
        }
    }
}
