//! ICMP for IPv4 (RFC 792, RFC 1191, RFC 1812).

use core::net::Ipv4Addr;

use byteorder::{ByteOrder, NetworkEndian};

use super::{IpProtocol, WireError, ipv4};
use crate::checksum::checksum;

/// Bytes of the header of every message that is read or written here.
pub const HEADER_LEN: usize = 8;

/// Most bytes of the original packet that an error quotes, so that the whole error is an IP packet
/// of at most 576 bytes (RFC 1812 4.3.2.3).
pub const MAX_QUOTED_LEN: usize = 576 - ipv4::HEADER_LEN - HEADER_LEN;

/// Destination unreachable: no route to the network (RFC 792).
pub const CODE_NET_UNREACHABLE: u8 = 0;
/// Destination unreachable: the host does not answer (RFC 792).
pub const CODE_HOST_UNREACHABLE: u8 = 1;
/// Destination unreachable: the host does not speak the protocol (RFC 792).
pub const CODE_PROTOCOL_UNREACHABLE: u8 = 2;
/// Destination unreachable: nobody listens at the port (RFC 792).
pub const CODE_PORT_UNREACHABLE: u8 = 3;
/// Destination unreachable: too long, and must not be fragmented (RFC 1191 4).
pub const CODE_FRAGMENTATION_NEEDED: u8 = 4;
/// Destination unreachable: a policy forbids it (RFC 1812 5.2.7.1).
pub const CODE_PROHIBITED: u8 = 13;
/// Time exceeded: the TTL ran out on the way (RFC 792).
pub const CODE_TTL_EXCEEDED: u8 = 0;
/// Time exceeded: fragments were missing when their time was over (RFC 792).
pub const CODE_REASSEMBLY_TIME_EXCEEDED: u8 = 1;

const ECHO_REPLY: u8 = 0;
const DESTINATION_UNREACHABLE: u8 = 3;
const SOURCE_QUENCH: u8 = 4;
const REDIRECT: u8 = 5;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

/// Type, code and the four bytes that depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Icmpv4Kind {
    /// Asks for the payload to be sent back.
    EchoRequest {
        /// Which sender.
        ident: u16,
        /// Which request of that sender.
        sequence: u16,
    },
    /// Answers a request.
    EchoReply {
        /// As in the request.
        ident: u16,
        /// As in the request.
        sequence: u16,
    },
    /// The quoted packet did not reach its destination.
    DestinationUnreachable {
        /// Why: see the constants of this module.
        code: u8,
        /// With [`CODE_FRAGMENTATION_NEEDED`] the MTU of the next hop in bytes of a whole IP
        /// packet, 0 from routers that do not say (RFC 1191 4).
        next_hop_mtu: u16,
    },
    /// The quoted packet, or a fragment of it, took too long: its TTL or its time for reassembly is
    /// over.
    TimeExceeded {
        /// [`CODE_TTL_EXCEEDED`] or [`CODE_REASSEMBLY_TIME_EXCEEDED`].
        code: u8,
    },
    /// The header of the quoted packet has a fault.
    ParameterProblem {
        /// Where in that header, in bytes.
        pointer: u8,
    },
    /// Anything else.
    Other {
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
    },
}

/// A received message.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv4Message<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Icmpv4Message<'a> {
    /// Reads the payload of a whole IP packet.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below [`HEADER_LEN`] bytes, [`WireError::BadChecksum`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (header, payload) = bytes.split_first_chunk().ok_or(WireError::Truncated)?;
        if checksum(bytes) != 0 {
            return Err(WireError::BadChecksum);
        }
        Ok(Self { header, payload })
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Icmpv4Kind {
        let [kind, code, _, _, pointer, ..] = *self.header;
        let first = NetworkEndian::read_u16(&self.header[4..6]);
        let second = NetworkEndian::read_u16(&self.header[6..8]);
        match (kind, code) {
            (ECHO_REQUEST, 0) => Icmpv4Kind::EchoRequest { ident: first, sequence: second },
            (ECHO_REPLY, 0) => Icmpv4Kind::EchoReply { ident: first, sequence: second },
            (DESTINATION_UNREACHABLE, code) => {
                Icmpv4Kind::DestinationUnreachable { code, next_hop_mtu: second }
            }
            (TIME_EXCEEDED, code) => Icmpv4Kind::TimeExceeded { code },
            (PARAMETER_PROBLEM, 0) => Icmpv4Kind::ParameterProblem { pointer },
            (kind, code) => Icmpv4Kind::Other { kind, code },
        }
    }

    /// Everything after the header: what an echo carries, or the packet that an error quotes.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The packet that an error is about. `None` if the message is not an error, or does not quote
    /// at least a header of IPv4 and eight bytes more of a packet that begins a datagram.
    #[must_use]
    pub fn quoted(&self) -> Option<QuotedPacket> {
        match self.header[0] {
            DESTINATION_UNREACHABLE
            | SOURCE_QUENCH
            | REDIRECT
            | TIME_EXCEEDED
            | PARAMETER_PROBLEM => QuotedPacket::parse(self.payload),
            _ => None,
        }
    }
}

/// The beginning of a packet, as an error quotes it (RFC 792). Nothing of it can be verified, since
/// the rest is missing: whoever acts on it compares it with what was really sent (RFC 5927 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotedPacket {
    /// Its protocol.
    pub protocol: IpProtocol,
    /// Its sender.
    pub source: Ipv4Addr,
    /// Its receiver.
    pub destination: Ipv4Addr,
    /// Port of its sender; 0 if its protocol is neither TCP nor UDP.
    pub source_port: u16,
    /// Port of its receiver; 0 if its protocol is neither TCP nor UDP.
    pub destination_port: u16,
    /// Its sequence number, if it is a TCP segment.
    pub tcp_sequence: Option<u32>,
}

impl QuotedPacket {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; ipv4::HEADER_LEN] = bytes.first_chunk()?;
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let is_later_fragment = NetworkEndian::read_u16(&header[6..8]) & 0x1fff != 0;
        if header[0] >> 4 != 4 || header_len < ipv4::HEADER_LEN || is_later_fragment {
            return None;
        }
        let transport: &[u8; 8] = bytes.get(header_len..)?.first_chunk()?;
        let protocol = IpProtocol::from(header[9]);
        let (source_port, destination_port) = match protocol {
            IpProtocol::Tcp | IpProtocol::Udp => (
                NetworkEndian::read_u16(&transport[0..2]),
                NetworkEndian::read_u16(&transport[2..4]),
            ),
            IpProtocol::Icmp | IpProtocol::Other(_) => (0, 0),
        };
        Some(Self {
            protocol,
            source: Ipv4Addr::from_bits(NetworkEndian::read_u32(&header[12..16])),
            destination: Ipv4Addr::from_bits(NetworkEndian::read_u32(&header[16..20])),
            source_port,
            destination_port,
            tcp_sequence: (protocol == IpProtocol::Tcp)
                .then(|| NetworkEndian::read_u32(&transport[4..8])),
        })
    }
}

/// An error to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Icmpv4Error {
    /// The packet does not reach its destination.
    DestinationUnreachable {
        /// Why: see the constants of this module.
        code: u8,
        /// With [`CODE_FRAGMENTATION_NEEDED`] the MTU of the next hop in bytes of a whole IP
        /// packet, else 0.
        next_hop_mtu: u16,
    },
    /// The packet, or a fragment of it, took too long: its TTL or its time for reassembly is over.
    TimeExceeded {
        /// [`CODE_TTL_EXCEEDED`] or [`CODE_REASSEMBLY_TIME_EXCEEDED`].
        code: u8,
    },
    /// The header of the packet has a fault.
    ParameterProblem {
        /// Where in that header, in bytes.
        pointer: u8,
    },
}

impl Icmpv4Error {
    /// The header, still without its checksum.
    const fn header(self) -> [u8; HEADER_LEN] {
        match self {
            Self::DestinationUnreachable { code, next_hop_mtu } => {
                let [high, low] = next_hop_mtu.to_be_bytes();
                [DESTINATION_UNREACHABLE, code, 0, 0, 0, 0, high, low]
            }
            Self::TimeExceeded { code } => [TIME_EXCEEDED, code, 0, 0, 0, 0, 0, 0],
            Self::ParameterProblem { pointer } => [PARAMETER_PROBLEM, 0, 0, 0, pointer, 0, 0, 0],
        }
    }
}

/// Writes an echo request or reply and returns its length; `None` if `buffer` is shorter.
#[must_use]
pub fn emit_echo(
    buffer: &mut [u8],
    reply: bool,
    ident: u16,
    sequence: u16,
    payload: &[u8],
) -> Option<usize> {
    let mut header = [if reply { ECHO_REPLY } else { ECHO_REQUEST }, 0, 0, 0, 0, 0, 0, 0];
    NetworkEndian::write_u16(&mut header[4..6], ident);
    NetworkEndian::write_u16(&mut header[6..8], sequence);
    emit(buffer, header, payload)
}

/// Changes the identifier of an echo message from `old` to `new`, and its checksum accordingly
/// (RFC 1624). Does nothing to what is shorter than a header.
pub fn set_echo_ident(message: &mut [u8], old: u16, new: u16) {
    let Some(header) = message.first_chunk_mut::<HEADER_LEN>() else { return };
    let check = NetworkEndian::read_u16(&header[2..4]);
    NetworkEndian::write_u16(&mut header[2..4], crate::checksum::update(check, old, new));
    NetworkEndian::write_u16(&mut header[4..6], new);
}

/// Writes an error about `original`, the IP packet from its header on, and returns its length;
/// `None` if `buffer` is shorter. At most [`MAX_QUOTED_LEN`] bytes are quoted.
///
/// Whether there may be an error at all (RFC 1122 3.2.2) is for the caller to know.
#[must_use]
pub fn emit_error(buffer: &mut [u8], error: Icmpv4Error, original: &[u8]) -> Option<usize> {
    let quoted = original.get(..MAX_QUOTED_LEN).unwrap_or(original);
    emit(buffer, error.header(), quoted)
}

fn emit(buffer: &mut [u8], header: [u8; HEADER_LEN], payload: &[u8]) -> Option<usize> {
    let length = HEADER_LEN.checked_add(payload.len())?;
    let message = buffer.get_mut(..length)?;
    let (header_bytes, payload_bytes) = message.split_first_chunk_mut::<HEADER_LEN>()?;
    *header_bytes = header;
    payload_bytes.copy_from_slice(payload);
    let check = checksum(message);
    message.get_mut(2..4)?.copy_from_slice(&check.to_be_bytes());
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Ipv4Header;
    use proptest::prelude::*;
    use std::vec::Vec;

    const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
    const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    /// An IP packet whose payload counts up from 0.
    fn original(protocol: IpProtocol, payload_len: u16) -> Vec<u8> {
        let mut header = [0; 20];
        let total_len = 20 + payload_len;
        Ipv4Header { total_len, ..Ipv4Header::new(protocol, GUEST, REMOTE) }.emit(&mut header);
        header.into_iter().chain((0..payload_len).map(|i| i.to_le_bytes()[0])).collect()
    }

    fn error(original: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 600];
        let what = Icmpv4Error::TimeExceeded { code: CODE_TTL_EXCEEDED };
        let length = emit_error(&mut buffer, what, original).unwrap();
        buffer[..length].to_vec()
    }

    #[test]
    fn the_bytes_of_an_echo_are_where_the_rfc_puts_them() {
        let mut buffer = [0; 12];
        assert_eq!(emit_echo(&mut buffer, false, 0x1234, 7, b"ping"), Some(12));
        let header = [0x08, 0x00, 0x06, 0xf4, 0x12, 0x34, 0x00, 0x07];
        assert_eq!(buffer[..], [&header[..], b"ping"].concat());
    }

    #[test]
    fn the_mtu_of_the_next_hop_is_in_the_last_two_bytes() {
        let error = Icmpv4Error::DestinationUnreachable {
            code: CODE_FRAGMENTATION_NEEDED,
            next_hop_mtu: 1400,
        };
        let mut buffer = [0; 8];
        assert_eq!(emit_error(&mut buffer, error, &[]), Some(8));
        assert_eq!(buffer, [3, 4, 0xf7, 0x83, 0, 0, 0x05, 0x78]);
    }

    #[test]
    fn an_error_quotes_at_most_548_bytes() {
        let original = original(IpProtocol::Udp, 1000);
        let message = error(&original);
        assert_eq!(message.len(), 556);
        assert_eq!(Icmpv4Message::parse(&message).unwrap().payload(), &original[..548]);
    }

    #[test]
    fn a_quoted_tcp_header_cut_after_eight_bytes_names_its_connection() {
        let message = error(&original(IpProtocol::Tcp, 8));
        let quoted = Icmpv4Message::parse(&message).unwrap().quoted().unwrap();
        assert_eq!(
            quoted,
            QuotedPacket {
                protocol: IpProtocol::Tcp,
                source: GUEST,
                destination: REMOTE,
                source_port: 0x0001,
                destination_port: 0x0203,
                tcp_sequence: Some(0x0405_0607),
            }
        );
    }

    #[test]
    fn only_tcp_has_a_sequence_number_and_only_tcp_and_udp_have_ports() {
        let quoted = |protocol| {
            let message = error(&original(protocol, 8));
            Icmpv4Message::parse(&message).unwrap().quoted().unwrap()
        };
        let udp = quoted(IpProtocol::Udp);
        assert_eq!((udp.destination_port, udp.tcp_sequence), (0x0203, None));
        let icmp = quoted(IpProtocol::Icmp);
        assert_eq!((icmp.source_port, icmp.destination_port, icmp.tcp_sequence), (0, 0, None));
    }

    #[test]
    fn quotes_too_short_or_of_later_fragments_or_of_no_ipv4_are_none() {
        let quoted = |original: &[u8]| Icmpv4Message::parse(&error(original)).unwrap().quoted();
        let good = original(IpProtocol::Udp, 8);
        assert!(quoted(&good).is_some());
        assert_eq!(quoted(&good[..27]), None);
        assert_eq!(quoted(&[]), None);
        for (index, value) in [(0, 0x65), (0, 0x44), (0, 0x46), (7, 1)] {
            let mut bad = good.clone();
            bad[index] = value;
            assert_eq!(quoted(&bad), None, "byte {index} = {value:#x}");
        }
    }

    #[test]
    fn an_echo_quotes_nothing() {
        let mut buffer = [0; 60];
        let length = emit_echo(&mut buffer, false, 1, 2, &original(IpProtocol::Udp, 8)).unwrap();
        assert_eq!(Icmpv4Message::parse(&buffer[..length]).unwrap().quoted(), None);
    }

    #[test]
    fn wrong_checksums_and_short_messages_are_refused() {
        let mut message = error(&original(IpProtocol::Udp, 8));
        assert_eq!(Icmpv4Message::parse(&message[..7]).unwrap_err(), WireError::Truncated);
        message[9] ^= 0x40;
        assert_eq!(Icmpv4Message::parse(&message).unwrap_err(), WireError::BadChecksum);
    }

    #[test]
    fn a_buffer_too_short_is_left_alone() {
        assert_eq!(emit_echo(&mut [0; 11], true, 1, 1, &[0; 4]), None);
        assert_eq!(emit_echo(&mut [0; 12], true, 1, 1, &[0; 4]), Some(12));
    }

    proptest! {
        #[test]
        fn parse_reads_the_echo_that_emit_wrote(
            reply: bool, ident: u16, sequence: u16,
            payload in prop::collection::vec(any::<u8>(), 0..99),
        ) {
            let mut buffer = [0xee; 120];
            let length = emit_echo(&mut buffer, reply, ident, sequence, &payload).unwrap();
            let message = Icmpv4Message::parse(&buffer[..length]).unwrap();
            prop_assert_eq!(message.payload(), &payload[..]);
            prop_assert_eq!(message.kind(), if reply {
                Icmpv4Kind::EchoReply { ident, sequence }
            } else {
                Icmpv4Kind::EchoRequest { ident, sequence }
            });
        }

        #[test]
        fn parse_reads_the_error_that_emit_wrote(code: u8, next_hop_mtu: u16, pointer: u8) {
            let original = original(IpProtocol::Udp, 8);
            let parse = |error| {
                let mut buffer = [0xee; 64];
                let length = emit_error(&mut buffer, error, &original).unwrap();
                Icmpv4Message::parse(&buffer[..length]).unwrap().kind()
            };
            prop_assert_eq!(
                parse(Icmpv4Error::DestinationUnreachable { code, next_hop_mtu }),
                Icmpv4Kind::DestinationUnreachable { code, next_hop_mtu }
            );
            prop_assert_eq!(
                parse(Icmpv4Error::TimeExceeded { code }), Icmpv4Kind::TimeExceeded { code }
            );
            prop_assert_eq!(
                parse(Icmpv4Error::ParameterProblem { pointer }),
                Icmpv4Kind::ParameterProblem { pointer }
            );
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 8..80)) {
            bytes[2..4].fill(0);
            let check = checksum(&bytes);
            bytes[2..4].copy_from_slice(&check.to_be_bytes());
            let message = Icmpv4Message::parse(&bytes).unwrap();
            let _ = (message.kind(), message.quoted());
        }
    }
}
