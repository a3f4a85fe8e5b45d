//! Builders of guest frames.
//!
//! Everything is well-formed unless asked otherwise; malformed frames are made by editing bytes
//! and, where the checksum should still hold, by [`fix_checksums`].

use core::net::Ipv4Addr;

use crate::guest::{GUEST_IP, GUEST_MAC};
use crate::sum;

mod service;
mod tcp;

pub use service::{Dhcp, arp, arp_request, dns_query, gratuitous_arp};
pub use tcp::{ACK, CWR, ECE, FIN, PSH, RST, SYN, TcpBuilder, URG};

/// The broadcast hardware address.
pub const BROADCAST: [u8; 6] = [0xff; 6];

/// The hardware address that the virtual router is addressed by: 52:55 and its IPv4 address.
pub const ROUTER_MAC: [u8; 6] = [0x52, 0x55, 10, 0, 2, 2];

/// IP protocol numbers.
pub const ICMP: u8 = 1;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;

/// An Ethernet frame with the guest as its source.
#[must_use]
pub fn ethernet(dst: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(14 + payload.len());
    frame.extend(dst);
    frame.extend(GUEST_MAC);
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An IPv4 packet to be, in an Ethernet frame to the router.
#[derive(Clone, Debug)]
pub struct IpBuilder {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// IP protocol.
    pub protocol: u8,
    /// Time to live.
    pub ttl: u8,
    /// Type of service: DSCP and ECN.
    pub tos: u8,
    /// Identification.
    pub id: u16,
    /// Don't fragment.
    pub dont_fragment: bool,
    /// More fragments.
    pub more: bool,
    /// Fragment offset in bytes, a multiple of 8.
    pub offset: usize,
    /// IP options, padded to a multiple of 4 by the caller.
    pub options: Vec<u8>,
    /// Destination hardware address.
    pub mac: [u8; 6],
}

impl IpBuilder {
    /// A packet from the guest to `dst`.
    #[must_use]
    pub const fn new(dst: Ipv4Addr, protocol: u8) -> Self {
        Self {
            src: GUEST_IP,
            dst,
            protocol,
            ttl: 64,
            tos: 0,
            id: 0x1234,
            dont_fragment: false,
            more: false,
            offset: 0,
            options: Vec::new(),
            mac: ROUTER_MAC,
        }
    }

    /// The frame with this payload.
    #[must_use]
    pub fn frame(&self, payload: &[u8]) -> Vec<u8> {
        ethernet(self.mac, 0x0800, &self.packet(payload))
    }

    /// The IP packet alone. A payload beyond 65,535 bytes wraps the length field.
    #[must_use]
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let header_len = 20 + self.options.len();
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(self.more) << 13;
        let mut packet = vec![0x40 | (header_len / 4) as u8, self.tos];
        packet.extend(((header_len + payload.len()) as u16).to_be_bytes());
        packet.extend(self.id.to_be_bytes());
        packet.extend((flags | (self.offset / 8) as u16).to_be_bytes());
        packet.extend([self.ttl, self.protocol, 0, 0]);
        packet.extend(self.src.octets());
        packet.extend(self.dst.octets());
        packet.extend(&self.options);
        let header_sum = sum::checksum(&packet);
        packet[10..12].copy_from_slice(&header_sum.to_be_bytes());
        packet.extend(payload);
        packet
    }

    /// Cuts `payload` into fragments at the given byte offsets, each a multiple of 8.
    #[must_use]
    pub fn fragments(&self, payload: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
        let mut bounds = vec![0];
        bounds.extend(cuts);
        bounds.push(payload.len());
        bounds
            .windows(2)
            .map(|pair| {
                let fragment =
                    Self { offset: pair[0], more: pair[1] < payload.len(), ..self.clone() };
                fragment.frame(&payload[pair[0]..pair[1]])
            })
            .collect()
    }

    /// Cuts `payload` into fragments that fit `mtu`.
    #[must_use]
    pub fn fragments_for_mtu(&self, payload: &[u8], mtu: usize) -> Vec<Vec<u8>> {
        let step = (mtu - 20 - self.options.len()) / 8 * 8;
        let cuts: Vec<usize> = (step..payload.len()).step_by(step).collect();
        self.fragments(payload, &cuts)
    }
}

/// A UDP datagram (header and payload) with its checksum.
#[must_use]
pub fn udp_datagram(src: (Ipv4Addr, u16), dst: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(src.1.to_be_bytes());
    datagram.extend(dst.1.to_be_bytes());
    datagram.extend(((8 + payload.len()) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    let field = match sum::transport(src.0, dst.0, UDP, &datagram) {
        0 => 0xffff,
        field => field,
    };
    datagram[6..8].copy_from_slice(&field.to_be_bytes());
    datagram
}

/// A UDP datagram from the guest, in a frame.
#[must_use]
pub fn udp(src_port: u16, dst: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    IpBuilder::new(dst.0, UDP).frame(&udp_datagram((GUEST_IP, src_port), dst, payload))
}

/// An ICMP message with its checksum.
#[must_use]
pub fn icmp_message(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(rest);
    message.extend(data);
    let field = sum::checksum(&message);
    message[2..4].copy_from_slice(&field.to_be_bytes());
    message
}

/// An echo request from the guest, in a frame.
#[must_use]
pub fn ping(dst: Ipv4Addr, id: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    IpBuilder::new(dst, ICMP).frame(&echo_message(8, id, sequence, data))
}

/// An echo request (type 8) or reply (type 0).
#[must_use]
pub fn echo_message(kind: u8, id: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    let [a, b] = id.to_be_bytes();
    let [c, d] = sequence.to_be_bytes();
    icmp_message(kind, 0, [a, b, c, d], data)
}

/// Makes the checksums of a frame with an unfragmented IPv4 packet right again after an edit.
pub fn fix_checksums(frame: &mut [u8]) {
    let packet = &mut frame[14..];
    let header_len = usize::from(packet[0] & 15) * 4;
    packet[10..12].fill(0);
    let header_sum = sum::checksum(&packet[..header_len.min(packet.len())]);
    packet[10..12].copy_from_slice(&header_sum.to_be_bytes());
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]])).min(packet.len());
    let (src, dst) = (address(&packet[12..]), address(&packet[16..]));
    let protocol = packet[9];
    let segment = &mut packet[header_len..total];
    let field = match protocol {
        TCP => 16,
        UDP => 6,
        ICMP => 2,
        _ => return,
    };
    if segment.len() < field + 2 {
        return;
    }
    segment[field..field + 2].fill(0);
    let value = if protocol == ICMP {
        sum::checksum(segment)
    } else {
        sum::transport(src, dst, protocol, segment)
    };
    segment[field..field + 2].copy_from_slice(&value.to_be_bytes());
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

/// `len` bytes that differ from place to place, so that a byte out of place shows.
#[must_use]
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(31) ^ (i >> 8).wrapping_mul(7) ^ (i >> 16)) as u8).collect()
}
