//! The fragment queue (RFC 791, RFC 815, RFC 8200 4.5) and the resumable fragmenter.
//!
//! # Reassembly
//! A [`FragmentQueue`] puts fragments together in memory that the caller lends. Which 8-byte units
//! have come is one bit each, so any number of fragments fits in any order; offsets are unsigned,
//! and only bytes that came are ever handed out.
//!
//! What it decides where the standards leave room:
//!
//! * **Overlap.** A fragment that repeats bytes already there is harmless (RFC 8200 4.5 allows
//!   exact duplicates, and networks make them). If one of the bytes differs, the datagram is
//!   dropped whole, with those of its fragments that are still to come (RFC 5722 4). Over IPv4 a
//!   fragment may repeat some bytes and bring others, as when a datagram is sent twice under one
//!   identification and cut differently (RFC 791 3.2); over IPv6 that drops the datagram, too.
//! * **Length.** The same happens when two fragments disagree about where the datagram ends: a last
//!   fragment at another end than an earlier one, or data at or past that end marked as not last.
//! * **Limits.** The header of the first fragment and all payload are at most 65,535 bytes
//!   (RFC 791 3.1; over IPv6 the payload without the header, RFC 8200 3), and all payload at most
//!   the memory of one slot; a fragment beyond that takes its datagram with it. One that is
//!   malformed (empty, or not last and not a multiple of 8 bytes) is dropped alone.
//! * **ECN.** RFC 3168 5.3: congestion seen by any fragment is kept, and the datagram dropped if
//!   another fragment was not ECN-capable. Mixtures without congestion, which the RFC leaves open,
//!   give the codepoint that claims least: Not-ECT before ECT(0) before ECT(1).
//! * **Life.** [`LIFETIME`], or [`LIFETIME_IPV6`], from the first fragment received, whichever that
//!   is; later ones do not prolong it (RFC 1122 3.3.2, RFC 8200 4.5).
//! * **Room.** One source holds at most half of the slots, and always one; the oldest of that
//!   source goes first. Else, when all slots are taken, the oldest of all goes.
//!   Datagrams already dropped for one of the reasons above go before any other.
//!
//! # Fragmentation
//! A [`Fragmenter`] says which bytes go into which fragment, one at a time, so that it can stop
//! where the link has no room and go on later.
//!
//! # Example
//! ```
//! use core::net::Ipv4Addr;
//! use ipstack::Instant;
//! use ipstack::frag::{Fragment, FragmentKey, FragmentQueue, FragmentSlot, Fragmenter, Insert};
//!
//! let (mut slots, mut memory) = ([FragmentSlot::EMPTY; 2], [0; 2 * 4096]);
//! let mut queue = FragmentQueue::new(&mut slots[..], &mut memory[..]);
//! let key = FragmentKey {
//!     source: Ipv4Addr::new(10, 0, 2, 15).into(),
//!     destination: Ipv4Addr::new(192, 0, 2, 1).into(),
//!     identification: 7,
//!     protocol: 17,
//! };
//! let (header, payload) = ([0x45; 20], [9; 3000]);
//!
//! let mut pieces = Fragmenter::new(payload.len(), header.len(), 1500).unwrap();
//! while let Some(piece) = pieces.peek() {
//!     let fragment = Fragment {
//!         key,
//!         header: &header,
//!         ecn: 0,
//!         offset: piece.offset,
//!         more: piece.more,
//!         payload: &payload[piece.range],
//!     };
//!     match queue.insert(Instant::ZERO, &fragment) {
//!         Insert::Complete(datagram) => assert_eq!(datagram.payload, payload),
//!         Insert::Held => assert!(piece.more),
//!         Insert::Dropped(why) => panic!("{why}"),
//!     }
//!     pieces.advance();
//! }
//! assert_eq!(queue.counters().completed, 1);
//! ```

mod ecn;
mod fragment;
mod fragmenter;
mod queue;
mod slot;
mod units;

#[cfg(test)]
mod tests;

pub use fragment::{
    Datagram, Expired, FirstFragment, Fragment, FragmentCounters, FragmentDrop, FragmentKey,
    Insert, MAX_HEADER_LEN, MAX_TOTAL_LEN,
};
pub use fragmenter::{Fragmenter, Piece};
pub use queue::{FragmentQueue, LIFETIME, LIFETIME_IPV6};
pub use slot::FragmentSlot;
