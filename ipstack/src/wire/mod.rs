//! Bytes to fields and back.
//!
//! A `parse` function is the only way to a view of received bytes, and checks all lengths, and
//! checksums where there are any. Views borrow the bytes and are cheap to copy. Going the other
//! way, a header is a plain struct, and `emit` writes it.
//!
//! ```
//! use core::net::Ipv4Addr;
//! use ipstack::checksum::ChecksumState;
//! use ipstack::wire::{
//!     EtherType, EthernetFrame, EthernetHeader, IpProtocol, Ipv4Header, Ipv4Packet, MacAddr,
//!     UdpDatagram, UdpHeader,
//! };
//!
//! let source = Ipv4Addr::new(10, 0, 2, 15);
//! let destination = Ipv4Addr::new(192, 0, 2, 1);
//! let mut frame = [0; 14 + 20 + 8 + 5];
//! let (ethernet, rest) = frame.split_first_chunk_mut().unwrap();
//! let (ip, rest) = rest.split_first_chunk_mut().unwrap();
//! let (udp, payload) = rest.split_first_chunk_mut().unwrap();
//! payload.copy_from_slice(b"hello");
//! EthernetHeader {
//!     destination: MacAddr::BROADCAST,
//!     source: MacAddr([2, 0, 0, 0, 0, 1]),
//!     ether_type: EtherType::Ipv4,
//! }
//! .emit(ethernet);
//! Ipv4Header {
//!     total_len: 20 + 8 + 5,
//!     ttl: 64,
//!     ..Ipv4Header::new(IpProtocol::Udp, source, destination)
//! }
//! .emit(ip);
//! UdpHeader { source_port: 1024, destination_port: 7, payload_len: 5 }.emit(
//!     udp,
//!     source.into(),
//!     destination.into(),
//!     payload,
//! );
//!
//! let ethernet = EthernetFrame::parse(&frame)?;
//! assert_eq!(ethernet.ether_type(), EtherType::Ipv4);
//! let ip = Ipv4Packet::parse(ethernet.payload())?;
//! assert_eq!(ip.protocol(), IpProtocol::Udp);
//! let udp = UdpDatagram::parse(
//!     ip.payload(),
//!     ip.source().into(),
//!     ip.destination().into(),
//!     ChecksumState::Whole,
//! )?;
//! assert_eq!((udp.destination_port(), udp.payload()), (7, &b"hello"[..]));
//! # Ok::<(), ipstack::wire::WireError>(())
//! ```

pub mod arp;
pub mod dhcpv4;
pub mod dns;
pub mod ethernet;
pub mod icmpv4;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6_extension;
pub mod tcp;
pub mod tcp_options;
pub mod udp;

pub use arp::{ArpOperation, ArpPacket};
pub use dhcpv4::{DhcpMessage, DhcpOption, DhcpReply};
pub use dns::DnsMessage;
pub use ethernet::{EtherType, EthernetFrame, EthernetHeader, MacAddr};
pub use icmpv4::{Icmpv4Error, Icmpv4Kind, Icmpv4Message, QuotedPacket};
pub use ipv4::{IpProtocol, Ipv4Header, Ipv4Packet};
pub use ipv6::{Ipv6Header, Ipv6Packet};
pub use ipv6_extension::{ExtensionError, ExtensionFault, Ipv6Fragment, Ipv6Payload};
pub use tcp::{TcpFlags, TcpHeader, TcpSegment};
pub use tcp_options::TcpOptions;
pub use udp::{UdpDatagram, UdpHeader};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum WireError {
    /// Fewer bytes than the fixed header, or than the length fields promise.
    Truncated,
    /// A length field that contradicts another one, or the least that there must be.
    BadLength,
    /// Another version of the protocol.
    BadVersion,
    /// A wrong checksum.
    BadChecksum,
    /// A field with a value that the protocol does not allow or that is not supported.
    BadValue,
}

impl core::fmt::Display for WireError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Truncated => "truncated",
            Self::BadLength => "bad length",
            Self::BadVersion => "bad version",
            Self::BadChecksum => "bad checksum",
            Self::BadValue => "bad value",
        })
    }
}

impl core::error::Error for WireError {}

#[cfg(test)]
mod tests {
    use super::WireError::{BadChecksum, BadLength, BadValue, BadVersion, Truncated};

    #[test]
    fn an_error_names_what_is_wrong() {
        for (error, named) in [
            (Truncated, "truncated"),
            (BadLength, "length"),
            (BadVersion, "version"),
            (BadChecksum, "checksum"),
            (BadValue, "value"),
        ] {
            assert!(std::format!("{error}").contains(named), "{error:?}: {error}");
        }
    }
}
