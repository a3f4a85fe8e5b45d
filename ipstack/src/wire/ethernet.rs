//! Ethernet II frames without their check sequence (IEEE 802.3 3.2, RFC 894).

use byteorder::{ByteOrder, NetworkEndian};

use super::WireError;

/// Bytes of the header.
pub const HEADER_LEN: usize = 14;

/// Least bytes of a frame without its check sequence; shorter ones are padded.
pub const MIN_FRAME_LEN: usize = 60;

/// A hardware address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// Every station.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// No station.
    pub const ZERO: Self = Self([0; 6]);

    /// Whether this is a group address, of which [`MacAddr::BROADCAST`] is one.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether this is [`MacAddr::BROADCAST`].
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }
}

impl core::fmt::Display for MacAddr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EtherType {
    /// 0x0800.
    Ipv4,
    /// 0x0806.
    Arp,
    /// 0x86dd.
    Ipv6,
    /// Anything else; below 0x0600 it is an IEEE 802.3 length.
    Other(u16),
}

impl From<u16> for EtherType {
    fn from(number: u16) -> Self {
        match number {
            0x0800 => Self::Ipv4,
            0x0806 => Self::Arp,
            0x86dd => Self::Ipv6,
            other => Self::Other(other),
        }
    }
}

impl From<EtherType> for u16 {
    fn from(ether_type: EtherType) -> Self {
        match ether_type {
            EtherType::Ipv4 => 0x0800,
            EtherType::Arp => 0x0806,
            EtherType::Ipv6 => 0x86dd,
            EtherType::Other(number) => number,
        }
    }
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct EthernetFrame<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    /// Reads a frame without check sequence. It may be shorter than [`MIN_FRAME_LEN`].
    ///
    /// # Errors
    /// [`WireError::Truncated`] below [`HEADER_LEN`] bytes.
    pub fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        let (header, payload) = frame.split_first_chunk().ok_or(WireError::Truncated)?;
        Ok(Self { header, payload })
    }

    /// The station or group it is for.
    #[must_use]
    pub const fn destination(&self) -> MacAddr {
        let [a, b, c, d, e, f, ..] = *self.header;
        MacAddr([a, b, c, d, e, f])
    }

    /// The station that sent it.
    #[must_use]
    pub const fn source(&self) -> MacAddr {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.header;
        MacAddr([a, b, c, d, e, f])
    }

    /// What it carries.
    #[must_use]
    pub fn ether_type(&self) -> EtherType {
        EtherType::from(NetworkEndian::read_u16(&self.header[12..14]))
    }

    /// Everything after the header, padding included.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The header of a frame to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct EthernetHeader {
    /// The station or group it is for.
    pub destination: MacAddr,
    /// The station that sends it.
    pub source: MacAddr,
    /// What it carries.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// Writes the header.
    pub fn emit(&self, buffer: &mut [u8; HEADER_LEN]) {
        buffer[0..6].copy_from_slice(&self.destination.0);
        buffer[6..12].copy_from_slice(&self.source.0);
        NetworkEndian::write_u16(&mut buffer[12..14], self.ether_type.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn a_frame_shorter_than_its_header_is_truncated() {
        assert_eq!(EthernetFrame::parse(&[0; 13]).unwrap_err(), WireError::Truncated);
        assert!(EthernetFrame::parse(&[0; 14]).unwrap().payload().is_empty());
    }

    #[test]
    fn group_addresses_are_told_by_the_lowest_bit_of_the_first_byte() {
        assert!(MacAddr::BROADCAST.is_multicast() && MacAddr::BROADCAST.is_broadcast());
        let group = MacAddr([0x01, 0, 0x5e, 0, 0, 1]);
        assert!(group.is_multicast() && !group.is_broadcast());
        assert!(!MacAddr([0x52, 0x54, 0, 0x12, 0x34, 0x56]).is_multicast());
    }

    #[test]
    fn addresses_print_in_the_usual_way() {
        assert_eq!(MacAddr([0x52, 0x54, 0, 0x12, 0x34, 0x56]).to_string(), "52:54:00:12:34:56");
    }

    proptest! {
        #[test]
        fn parse_reads_what_emit_wrote(destination: [u8; 6], source: [u8; 6], number: u16) {
            let header = EthernetHeader {
                destination: MacAddr(destination),
                source: MacAddr(source),
                ether_type: EtherType::from(number),
            };
            let mut bytes = [0; HEADER_LEN];
            header.emit(&mut bytes);
            let frame = EthernetFrame::parse(&bytes).unwrap();
            prop_assert_eq!(frame.destination(), header.destination);
            prop_assert_eq!(frame.source(), header.source);
            prop_assert_eq!(u16::from(frame.ether_type()), number);
        }
    }
}
