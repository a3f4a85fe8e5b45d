//! ARP, DHCP and DNS.

use core::net::Ipv4Addr;

use super::{BROADCAST, IpBuilder, UDP, ethernet, udp_datagram};
use crate::guest::{GUEST_IP, GUEST_MAC};

/// An ARP packet for Ethernet and IPv4, in a frame (RFC 826).
#[must_use]
pub fn arp(operation: u16, sender: ([u8; 6], Ipv4Addr), target: ([u8; 6], Ipv4Addr)) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4];
    packet.extend(operation.to_be_bytes());
    packet.extend(sender.0);
    packet.extend(sender.1.octets());
    packet.extend(target.0);
    packet.extend(target.1.octets());
    let mut frame = ethernet(BROADCAST, 0x0806, &packet);
    frame[6..12].copy_from_slice(&sender.0);
    frame
}

/// Who has `address`?
#[must_use]
pub fn arp_request(address: Ipv4Addr) -> Vec<u8> {
    arp(1, (GUEST_MAC, GUEST_IP), ([0; 6], address))
}

/// The guest announces its own address (RFC 5227 2.3).
#[must_use]
pub fn gratuitous_arp() -> Vec<u8> {
    arp(1, (GUEST_MAC, GUEST_IP), ([0; 6], GUEST_IP))
}

/// A DHCP or BOOTP request to be (RFC 2131 2).
#[derive(Clone, Debug)]
pub struct Dhcp {
    /// Client's hardware address.
    pub mac: [u8; 6],
    /// Transaction id.
    pub xid: u32,
    /// The client wants replies by broadcast.
    pub broadcast: bool,
    /// Client address.
    pub ciaddr: Ipv4Addr,
    /// Options in front of the end option.
    pub options: Vec<u8>,
    /// Whether the options end with the end option and zeros up to 300 bytes.
    pub ended: bool,
    /// Source address of the IP packet.
    pub src: Ipv4Addr,
    /// Destination address of the IP packet.
    pub dst: Ipv4Addr,
}

impl Dhcp {
    /// A message without a type, as BOOTP has it.
    #[must_use]
    pub const fn bootp() -> Self {
        Self {
            mac: GUEST_MAC,
            xid: 0x1122_3344,
            broadcast: false,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            options: Vec::new(),
            ended: true,
            src: Ipv4Addr::UNSPECIFIED,
            dst: Ipv4Addr::BROADCAST,
        }
    }

    /// A message of this type (option 53).
    #[must_use]
    pub fn new(kind: u8) -> Self {
        Self::bootp().option(53, &[kind])
    }

    /// DHCPDISCOVER.
    #[must_use]
    pub fn discover() -> Self {
        Self::new(1)
    }

    /// DHCPREQUEST for `address` in SELECTING state, of the server `server`.
    #[must_use]
    pub fn request(address: Ipv4Addr, server: Ipv4Addr) -> Self {
        Self::new(3).option(50, &address.octets()).option(54, &server.octets())
    }

    /// Adds an option.
    #[must_use]
    pub fn option(mut self, code: u8, value: &[u8]) -> Self {
        self.options.extend([code, value.len() as u8]);
        self.options.extend(value);
        self
    }

    /// From another client.
    #[must_use]
    pub fn mac(mut self, mac: [u8; 6]) -> Self {
        self.mac = mac;
        self
    }

    /// The UDP payload.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let mut message = vec![1, 1, 6, 0];
        message.extend(self.xid.to_be_bytes());
        message.extend([0, 0, u8::from(self.broadcast) << 7, 0]);
        message.extend(self.ciaddr.octets());
        message.extend([0; 12]);
        message.extend(self.mac);
        message.extend([0; 10 + 64 + 128]);
        message.extend([99, 130, 83, 99]);
        message.extend(&self.options);
        if self.ended {
            message.push(255);
            message.resize(message.len().max(300), 0);
        }
        message
    }

    /// The frame.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut ip = IpBuilder::new(self.dst, UDP);
        ip.src = self.src;
        if self.dst.is_broadcast() {
            ip.mac = BROADCAST;
        }
        let datagram = udp_datagram((self.src, 68), (self.dst, 67), &self.message());
        let mut frame = ip.frame(&datagram);
        frame[6..12].copy_from_slice(&self.mac);
        frame
    }
}

/// A DNS query for the A record of `name` (RFC 1035 4.1).
#[must_use]
pub fn dns_query(id: u16, name: &str) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend(label.bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    message
}
