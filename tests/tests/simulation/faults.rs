//! Faults of smoltcp 0.14.0 that stop a stream for good, whatever is at its other end, and how the
//! simulation keeps out of their way: by what may happen on any link, and at just those moments.
//!
//! | in `smoltcp/src` | fault | here |
//! |---|---|---|
//! | `socket/tcp.rs`, `dispatch`, `pending_fast_retransmit` | a fast retransmission sends up to a segment of all that is queued, beyond the window and beyond what was sent before; should the window close meanwhile, the timer for that takes the place of the one for what is under way, and nothing sends that again | [`DuplicateAcks`] |
//! | `iface/interface/ipv4.rs`, `reset_expiry_if_existing` | packets from beyond the router do not keep the router's entry alive, and an ACK in answer to a segment is dropped when it has just expired (RFC 1122 2.3.2.2 has it kept): of segments sent again once a minute, the life of an entry, no ACK ever comes | [`Neighbour`] |
//! | `socket/tcp.rs`, `reset` | when TIME-WAIT ends, what was not read yet and the end behind it are gone | `Flow` reads all while it lasts |
//! | `socket/tcp.rs`, `last_scaled_window` | a SYN-ACK that comes before the SYN has gone out, as to a guest that went back, is taken, and a subtraction underflows | [`Asked`] |

use core::net::SocketAddrV4;
use std::collections::{HashMap, HashSet};

use slirpkit_tests::build::{ACK, ROUTER_MAC, SYN, arp};
use slirpkit_tests::guest::{GATEWAY, GUEST_IP, GUEST_MAC};
use slirpkit_tests::packet::Tcp;

/// How old the router's entry gets, in microseconds: half of what smoltcp allows.
const ENTRY_AGE: u64 = 30_000_000;

/// Loses duplicate ACKs at which the guest would send beyond its window. Its timer does then what
/// they would have done.
#[derive(Debug)]
pub(crate) struct DuplicateAcks {
    mss: usize,
    connections: HashMap<(SocketAddrV4, SocketAddrV4), Seen>,
}

/// What the guest saw last of a connection.
#[derive(Debug, Default)]
struct Seen {
    shift: u8,
    ack_and_window: Option<(u32, u16)>,
}

impl DuplicateAcks {
    pub(crate) fn new(mtu: u16) -> Self {
        Self { mss: usize::from(mtu) - 40, connections: HashMap::new() }
    }

    /// Whether the guest, with this much `queued` to be sent and to be acknowledged, may see a
    /// segment.
    pub(crate) fn admit(&mut self, segment: &Tcp, queued: usize) -> bool {
        let seen = self.connections.entry((segment.src, segment.dst)).or_default();
        if segment.has(SYN) {
            seen.shift = segment.window_scale().unwrap_or(0);
        }
        let present = Some((segment.ack, segment.window));
        let again = core::mem::replace(&mut seen.ack_and_window, present) == present;
        let window = usize::from(segment.window) << seen.shift;
        !(again && segment.flags == ACK && segment.data.is_empty() && window < queued.min(self.mss))
    }
}

/// Tells the guest of its router before it forgets it.
#[derive(Debug, Default)]
pub(crate) struct Neighbour {
    told_at: u64,
}

impl Neighbour {
    /// A frame that the guest is to take before anything else, if it is time for that.
    pub(crate) fn announcement(&mut self, now: u64) -> Option<Vec<u8>> {
        let due = now - self.told_at >= ENTRY_AGE;
        due.then(|| {
            self.told_at = now;
            arp(2, (ROUTER_MAC, GATEWAY), (GUEST_MAC, GUEST_IP))
        })
    }
}

/// Loses SYN-ACKs to a SYN that the guest, as it is, has not sent.
#[derive(Debug, Default)]
pub(crate) struct Asked(HashSet<(SocketAddrV4, SocketAddrV4)>);

impl Asked {
    /// The guest sends a segment.
    pub(crate) fn note(&mut self, segment: &Tcp) {
        if segment.has(SYN) {
            self.0.insert((segment.dst, segment.src));
        }
    }

    /// Whether the guest may see a segment.
    pub(crate) fn admit(&self, segment: &Tcp) -> bool {
        !segment.is_syn_ack() || self.0.contains(&(segment.src, segment.dst))
    }
}
