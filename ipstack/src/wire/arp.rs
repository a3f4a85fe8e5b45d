//! ARP for IPv4 over Ethernet (RFC 826).

use core::net::Ipv4Addr;

use byteorder::{ByteOrder, NetworkEndian};

use super::WireError;
use super::ethernet::MacAddr;

/// Bytes of a packet.
pub const LEN: usize = 28;

/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];

/// What a packet asks or tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ArpOperation {
    /// Who has the target address?
    Request,
    /// The sender has the sender address.
    Reply,
    /// Anything else.
    Other(u16),
}

impl From<u16> for ArpOperation {
    fn from(number: u16) -> Self {
        match number {
            1 => Self::Request,
            2 => Self::Reply,
            other => Self::Other(other),
        }
    }
}

impl From<ArpOperation> for u16 {
    fn from(operation: ArpOperation) -> Self {
        match operation {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
            ArpOperation::Other(number) => number,
        }
    }
}

/// An ARP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpPacket {
    /// What it asks or tells.
    pub operation: ArpOperation,
    /// Hardware address of the sender.
    pub sender_mac: MacAddr,
    /// IP address of the sender; unspecified in a probe (RFC 5227 1.1).
    pub sender_ip: Ipv4Addr,
    /// Hardware address of the target; without meaning in a request.
    pub target_mac: MacAddr,
    /// IP address of the target.
    pub target_ip: Ipv4Addr,
}

impl ArpPacket {
    /// Reads a packet; bytes after it are padding.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below [`LEN`] bytes, [`WireError::BadValue`] if it is not about
    /// IPv4 over Ethernet.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let packet = bytes.first_chunk::<LEN>().ok_or(WireError::Truncated)?;
        if packet[0..6] != ETHERNET_IPV4 {
            return Err(WireError::BadValue);
        }
        let [_, _, _, _, _, _, _, _, a, b, c, d, e, f, ..] = *packet;
        let sender_mac = MacAddr([a, b, c, d, e, f]);
        let [.., a, b, c, d, e, f, _, _, _, _] = *packet;
        Ok(Self {
            operation: NetworkEndian::read_u16(&packet[6..8]).into(),
            sender_mac,
            sender_ip: Ipv4Addr::from_bits(NetworkEndian::read_u32(&packet[14..18])),
            target_mac: MacAddr([a, b, c, d, e, f]),
            target_ip: Ipv4Addr::from_bits(NetworkEndian::read_u32(&packet[24..28])),
        })
    }

    /// Writes the packet.
    pub fn emit(&self, buffer: &mut [u8; LEN]) {
        buffer[0..6].copy_from_slice(&ETHERNET_IPV4);
        NetworkEndian::write_u16(&mut buffer[6..8], self.operation.into());
        buffer[8..14].copy_from_slice(&self.sender_mac.0);
        buffer[14..18].copy_from_slice(&self.sender_ip.octets());
        buffer[18..24].copy_from_slice(&self.target_mac.0);
        buffer[24..28].copy_from_slice(&self.target_ip.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REQUEST: [u8; LEN] = [
        0, 1, 8, 0, 6, 4, 0, 1, 0x52, 0x54, 0, 0x12, 0x34, 0x56, 10, 0, 2, 15, 0, 0, 0, 0, 0, 0,
        10, 0, 2, 2,
    ];

    #[test]
    fn a_request_is_read_and_padding_ignored() {
        let mut padded = [0xaa; 46];
        padded[..LEN].copy_from_slice(&REQUEST);
        let packet = ArpPacket::parse(&padded).unwrap();
        assert_eq!(packet.operation, ArpOperation::Request);
        assert_eq!(packet.sender_mac, MacAddr([0x52, 0x54, 0, 0x12, 0x34, 0x56]));
        assert_eq!(packet.sender_ip, Ipv4Addr::new(10, 0, 2, 15));
        assert_eq!(packet.target_mac, MacAddr::ZERO);
        assert_eq!(packet.target_ip, Ipv4Addr::new(10, 0, 2, 2));
    }

    #[test]
    fn other_hardware_other_protocols_and_short_packets_are_refused() {
        assert_eq!(ArpPacket::parse(&REQUEST[..27]).unwrap_err(), WireError::Truncated);
        for index in 0..6 {
            let mut packet = REQUEST;
            packet[index] ^= 0x10;
            assert_eq!(ArpPacket::parse(&packet).unwrap_err(), WireError::BadValue);
        }
    }

    proptest! {
        #[test]
        fn parse_reads_what_emit_wrote(
            operation: u16, sender_mac: [u8; 6], sender_ip: u32, target_mac: [u8; 6], target_ip: u32,
        ) {
            let packet = ArpPacket {
                operation: operation.into(),
                sender_mac: MacAddr(sender_mac),
                sender_ip: Ipv4Addr::from_bits(sender_ip),
                target_mac: MacAddr(target_mac),
                target_ip: Ipv4Addr::from_bits(target_ip),
            };
            let mut bytes = [0; LEN];
            packet.emit(&mut bytes);
            prop_assert_eq!(ArpPacket::parse(&bytes), Ok(packet));
        }
    }
}
