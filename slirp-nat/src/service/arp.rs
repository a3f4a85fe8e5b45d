//! ARP: answers for the virtual router's addresses, and the hardware addresses of the guests.

use core::net::Ipv4Addr;
use core::time::Duration;

use heapless::Vec;
use ipstack::Instant;
use ipstack::wire::{ArpOperation, ArpPacket, MacAddr};

use crate::config::Config;
use crate::service::{is_guest, is_station};

#[cfg(test)]
mod tests;

/// Guests whose hardware address is known, as many as libslirp keeps.
const MAX_NEIGHBOURS: usize = 16;

/// The hardware address that goes with an address of the router: libslirp's scheme, so that guests
/// see the same router after a change between the two.
pub(crate) const fn router_mac(address: Ipv4Addr) -> MacAddr {
    let [a, b, c, d] = address.octets();
    MacAddr([0x52, 0x55, a, b, c, d])
}

/// The reply to a request for one of the router's addresses, a probe among them (RFC 5227 2.1.1):
/// whoever wants such an address has to learn that it is taken. All other addresses are the
/// guests' own.
pub(crate) fn respond(config: &Config, packet: &ArpPacket) -> Option<ArpPacket> {
    let ours = packet.operation == ArpOperation::Request && config.is_router(packet.target_ip);
    (ours && is_station(packet.sender_mac)).then_some(ArpPacket {
        operation: ArpOperation::Reply,
        sender_mac: router_mac(packet.target_ip),
        sender_ip: packet.target_ip,
        target_mac: packet.sender_mac,
        target_ip: packet.sender_ip,
    })
}

/// The question who has `address`, from the gateway.
pub(crate) fn request(config: &Config, address: Ipv4Addr) -> ArpPacket {
    ArpPacket {
        operation: ArpOperation::Request,
        sender_mac: router_mac(config.gateway),
        sender_ip: config.gateway,
        target_mac: MacAddr::ZERO,
        target_ip: address,
    }
}

/// Least time between two questions for the same address (RFC 1122 2.3.2.1).
const QUESTION_INTERVAL: Duration = Duration::from_secs(1);

/// Hardware addresses of the guests, learned from what they send. When it is full the entry made
/// first goes; its guest is back with its next packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    entries: Vec<(Ipv4Addr, MacAddr), MAX_NEIGHBOURS>,
    /// Where the next entry goes once all are taken.
    oldest: usize,
    /// Questions of the last second, or of longer ago. One that was answered keeps its place, for
    /// no address.
    asked: Vec<(Ipv4Addr, Instant), MAX_NEIGHBOURS>,
    /// Somebody may wait for an address that none of them is about.
    overlooked: bool,
    /// When who waits last looked again for that.
    looked_again: Instant,
}

impl Neighbours {
    /// No neighbours.
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            oldest: 0,
            asked: Vec::new(),
            overlooked: false,
            looked_again: Instant::ZERO,
        }
    }

    /// Takes the sender of a valid ARP packet, or the source of an IP packet and of the frame that
    /// brought it. Addresses that no guest may have are passed over. Returns whether who waits for
    /// a guest is to look again: after an answer, and once a second as long as not all are asked
    /// for, but not for each address that a guest goes through.
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        config: &Config,
        address: Ipv4Addr,
        mac: MacAddr,
    ) -> bool {
        if !is_guest(config, address) || !is_station(mac) {
            return false;
        }
        self.keep(address, mac);
        self.is_answered(address) || self.looks_again(now)
    }

    fn keep(&mut self, address: Ipv4Addr, mac: MacAddr) {
        if let Some(known) = self.entries.iter_mut().find(|(known, _)| *known == address) {
            known.1 = mac;
            return;
        }
        if self.entries.push((address, mac)).is_err() {
            if let Some(entry) = self.entries.get_mut(self.oldest) {
                *entry = (address, mac);
            }
            let next = self.oldest.wrapping_add(1);
            self.oldest = if next < MAX_NEIGHBOURS { next } else { 0 };
        }
    }

    /// Whether there was a question about `address`.
    fn is_answered(&mut self, address: Ipv4Addr) -> bool {
        let question = self.asked.iter_mut().find(|(asked, _)| *asked == address);
        question.map(|(asked, _)| *asked = Ipv4Addr::UNSPECIFIED).is_some()
    }

    fn looks_again(&mut self, now: Instant) -> bool {
        let due = self.overlooked && now.since(self.looked_again) >= QUESTION_INTERVAL;
        if due {
            self.overlooked = false;
            self.looked_again = now;
        }
        due
    }

    /// Whether the guests may be asked at `now` who has `address`; takes note that they are. No more
    /// addresses are asked for at a time than could be kept, or flows to many guests that are gone
    /// would ask for all of them whenever one of the others is visited.
    pub(crate) fn may_ask(&mut self, now: Instant, address: Ipv4Addr) -> bool {
        let overlooked = &mut self.overlooked;
        self.asked.retain(|(asked, at)| {
            let recent = now.since(*at) < QUESTION_INTERVAL;
            *overlooked |= !recent && !asked.is_unspecified();
            recent
        });
        if self.asked.iter().any(|(asked, _)| *asked == address) {
            return false;
        }
        let asks = self.asked.push((address, now)).is_ok();
        self.overlooked |= !asks;
        asks
    }

    /// The hardware address of a guest.
    pub(crate) fn find(&self, address: Ipv4Addr) -> Option<MacAddr> {
        self.entries.iter().find(|(known, _)| *known == address).map(|(_, mac)| *mac)
    }
}
