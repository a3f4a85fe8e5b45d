//! The way to the guest: frames built in the link's own buffers, or kept until it has room.

mod tcp;

use core::net::Ipv4Addr;

use ipstack::Instant;
use ipstack::frag::Fragmenter;
use ipstack::hash::SipHasher;
use ipstack::wire::arp::{self, ArpPacket};
use ipstack::wire::ethernet::{self, EtherType, EthernetHeader, MIN_FRAME_LEN, MacAddr};
use ipstack::wire::ipv4::{self, Ipv4Header};
use ipstack::wire::udp;

use crate::config::Config;
use crate::link::{Link, Room, TxMeta};
use crate::replies::ReplyQueue;
use crate::router::DHCP_REPLY_LEN;
use crate::service::arp::{Neighbours, request, router_mac};
use crate::stats::{DropReason, Stats};
use crate::train::{Consist, Train};

pub(crate) use tcp::{TCP_PAYLOAD, TcpFrame, segmentation};

/// Bytes of Ethernet and IPv4 header.
pub(crate) const IP_PAYLOAD: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN;

/// Longest IPv4 payload that is cut without being a train: a DHCP reply in its UDP datagram.
const LONGEST_REPLY: usize = DHCP_REPLY_LEN + udp::HEADER_LEN;

/// Everything between the NAT and the link.
#[derive(Debug)]
pub(crate) struct Egress<'a> {
    pub(crate) neighbours: Neighbours,
    pub(crate) train: Train<'a>,
    replies: ReplyQueue<'a>,
    secret: [u64; 2],
    packets: u64,
}

impl<'a> Egress<'a> {
    pub(crate) const fn new(train: Train<'a>, replies: ReplyQueue<'a>, secret: [u64; 2]) -> Self {
        Self { neighbours: Neighbours::new(), train, replies, secret, packets: 0 }
    }

    /// An identification that nobody can predict and that does not come back soon (RFC 6864 4.3).
    pub(crate) fn identification(&mut self, source: Ipv4Addr, destination: Ipv4Addr) -> u16 {
        self.identifications(source, destination, 0)
    }

    /// The first of identifications that follow each other: one, and `more` behind it.
    #[expect(clippy::cast_possible_truncation, reason = "16 bits of a hash and of a counter")]
    pub(crate) fn identifications(
        &mut self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        more: usize,
    ) -> u16 {
        let first = self.packets.wrapping_add(1);
        self.packets = first.wrapping_add(more as u64);
        let mut hasher = SipHasher::new(self.secret);
        hasher.write_u32(source.to_bits());
        hasher.write_u32(destination.to_bits());
        (hasher.finish() as u16).wrapping_add(first as u16)
    }

    /// Sends what waits, as far as there is room. Returns whether nothing waits any more.
    pub(crate) fn flush<L: Link + ?Sized>(
        &mut self,
        config: &Config,
        stats: &mut Stats,
        link: &mut L,
    ) -> bool {
        while let Some(frame) = self.replies.first() {
            if !has_room(link, frame.len()) {
                return false;
            }
            let Some(buffer) = link.reserve(frame.len()).filter(|b| b.len() >= frame.len()) else {
                return false;
            };
            buffer.iter_mut().zip(frame).for_each(|(to, from)| *to = *from);
            let length = frame.len();
            commit(stats, link, length, &TxMeta::default());
            self.replies.pop();
        }
        self.advance_train(config, stats, link)
    }

    /// Sends a frame that belongs to no flow, or keeps it until there is room.
    pub(crate) fn reply<L: Link + ?Sized>(
        &mut self,
        stats: &mut Stats,
        link: &mut L,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let length = length.max(MIN_FRAME_LEN);
        if self.replies.is_empty()
            && !self.train.is_moving()
            && has_room(link, length)
            && let Some(buffer) = link.reserve(length).filter(|buffer| buffer.len() >= length)
        {
            buffer.fill(0);
            fill(buffer);
            commit(stats, link, length, &TxMeta::default());
            return true;
        }
        match self.replies.push(length) {
            Some(buffer) => fill(buffer),
            None => {
                stats.drop(DropReason::ReplyQueueFull);
                return false;
            }
        }
        true
    }

    /// Sends an IPv4 packet that belongs to no flow. `fill` writes its payload.
    pub(crate) fn reply_ip<L: Link + ?Sized>(
        &mut self,
        config: &Config,
        stats: &mut Stats,
        link: &mut L,
        (header, mac): (Ipv4Header, Option<MacAddr>),
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let Some(mac) = mac.or_else(|| self.neighbours.find(header.destination)) else {
            stats.drop(DropReason::NoNeighbour);
            return false;
        };
        let length = IP_PAYLOAD.saturating_add(payload_len);
        let Ok(total_len) = u16::try_from(length.saturating_sub(ethernet::HEADER_LEN)) else {
            stats.drop(DropReason::TooLong);
            return false;
        };
        let identification = self.identification(header.source, header.destination);
        let header = Ipv4Header { total_len, identification, ..header };
        if total_len > config.mtu {
            return self.reply_fragments(config, stats, link, (header, mac), payload_len, fill);
        }
        let source = router_mac(config.gateway);
        self.reply(stats, link, length, |frame| {
            if let Some(payload) = write_ip_headers(frame, mac, source, &header) {
                fill(payload.get_mut(..payload_len).unwrap_or_default());
            }
        })
    }

    /// Sends an IPv4 packet that is longer than the MTU, as are the shortest DHCP replies on links
    /// below 328 bytes.
    fn reply_fragments<L: Link + ?Sized>(
        &mut self,
        config: &Config,
        stats: &mut Stats,
        link: &mut L,
        (header, mac): (Ipv4Header, MacAddr),
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let mut whole = [0; LONGEST_REPLY];
        let pieces = Fragmenter::new(payload_len, ipv4::HEADER_LEN, usize::from(config.mtu));
        let Some((payload, pieces)) = whole.get_mut(..payload_len).zip(pieces) else {
            stats.drop(DropReason::TooLong);
            return false;
        };
        fill(payload);
        let source = router_mac(config.gateway);
        for piece in pieces {
            let bytes = payload.get(piece.range).unwrap_or_default();
            let length = IP_PAYLOAD.saturating_add(bytes.len());
            let header = Ipv4Header {
                total_len: u16::try_from(bytes.len()).unwrap_or(0).saturating_add(20),
                more_fragments: piece.more,
                fragment_offset: piece.offset,
                ..header
            };
            let sent = self.reply(stats, link, length, |frame| {
                if let Some(payload) = write_ip_headers(frame, mac, source, &header) {
                    copy_padded(payload, bytes);
                }
            });
            if !sent {
                return false;
            }
            stats.counters.fragments_out += 1;
        }
        true
    }

    /// Sends an ARP packet.
    pub(crate) fn reply_arp<L: Link + ?Sized>(
        &mut self,
        stats: &mut Stats,
        link: &mut L,
        destination: MacAddr,
        packet: &ArpPacket,
    ) -> bool {
        let length = ethernet::HEADER_LEN + arp::LEN;
        self.reply(stats, link, length, |frame| {
            let Some((header, payload)) = frame.split_first_chunk_mut() else { return };
            EthernetHeader { destination, source: packet.sender_mac, ether_type: EtherType::Arp }
                .emit(header);
            if let Some(payload) = payload.first_chunk_mut() {
                packet.emit(payload);
            }
        })
    }

    /// Whether the hardware address of a guest is known; if not, it is asked for.
    pub(crate) fn finds_guest<L: Link + ?Sized>(
        &mut self,
        now: Instant,
        config: &Config,
        stats: &mut Stats,
        link: &mut L,
        guest: Ipv4Addr,
    ) -> bool {
        let known = self.neighbours.find(guest).is_some();
        if !known && self.neighbours.may_ask(now, guest) {
            let question = request(config, guest);
            self.reply_arp(stats, link, MacAddr::BROADCAST, &question);
        }
        known
    }

    /// Sets a train of `length` bytes of its buffer in motion and sends what there is room for.
    pub(crate) fn depart<L: Link + ?Sized>(
        &mut self,
        config: &Config,
        stats: &mut Stats,
        link: &mut L,
        consist: Consist,
        length: usize,
    ) -> bool {
        if !self.train.start(consist, length, config.mtu) {
            stats.drop(DropReason::TooLong);
            return false;
        }
        self.advance_train(config, stats, link);
        true
    }

    /// Sends as many packets of the train as there is room for; returns whether it is through.
    fn advance_train<L: Link + ?Sized>(
        &mut self,
        config: &Config,
        stats: &mut Stats,
        link: &mut L,
    ) -> bool {
        while let Some(packet) = self.train.peek() {
            let Some(mac) = self.neighbours.find(packet.header.destination) else {
                stats.drop(DropReason::NoNeighbour);
                self.train.advance(config.mtu);
                continue;
            };
            let length = IP_PAYLOAD.saturating_add(packet.payload.len()).max(MIN_FRAME_LEN);
            if !has_room(link, length) {
                return false;
            }
            let Some(frame) = link.reserve(length).filter(|frame| frame.len() >= length) else {
                return false;
            };
            let source = router_mac(config.gateway);
            if let Some(payload) = write_ip_headers(frame, mac, source, &packet.header) {
                copy_padded(payload, packet.payload);
            }
            if packet.header.more_fragments || packet.header.fragment_offset > 0 {
                stats.counters.fragments_out += 1;
            }
            commit(stats, link, length, &TxMeta::default());
            self.train.advance(config.mtu);
        }
        true
    }
}

/// Whether a frame of `length` bytes can be sent now.
fn has_room<L: Link + ?Sized>(link: &mut L, length: usize) -> bool {
    let Room { frames, bytes } = link.room();
    frames > 0 && bytes >= length
}

/// Sends what was put into the buffer reserved last.
pub(crate) fn commit<L: Link + ?Sized>(
    stats: &mut Stats,
    link: &mut L,
    length: usize,
    meta: &TxMeta,
) {
    stats.counters.frames_out += 1;
    stats.counters.bytes_out += length as u64;
    link.commit(length, meta);
}

/// Writes Ethernet and IPv4 header and returns the rest of the frame.
fn write_ip_headers<'f>(
    frame: &'f mut [u8],
    destination: MacAddr,
    source: MacAddr,
    header: &Ipv4Header,
) -> Option<&'f mut [u8]> {
    let (ethernet, rest) = frame.split_first_chunk_mut()?;
    EthernetHeader { destination, source, ether_type: EtherType::Ipv4 }.emit(ethernet);
    let (ip, rest) = rest.split_first_chunk_mut()?;
    header.emit(ip);
    Some(rest)
}

/// Copies `from` to the front of `to` and fills what is left with zeros.
pub(crate) fn copy_padded(to: &mut [u8], from: &[u8]) {
    let Some((front, rest)) = to.split_at_mut_checked(from.len()) else { return };
    if front.len() == from.len() {
        front.copy_from_slice(from);
    }
    rest.fill(0);
}
