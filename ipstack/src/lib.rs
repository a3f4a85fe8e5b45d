//! Wire formats, the IP fragment queue and TCP segment handling, for code that has no operating
//! system, no allocator and no clock of its own.
//!
//! Everything here is a plain function or state machine over memory that the caller lends:
//! nothing sleeps, allocates, panics on what a peer sends, or reads a clock.
//!
//! | module | what it holds |
//! |---|---|
//! | [`wire`] | bytes to fields and back: Ethernet, ARP, IPv4, ICMPv4, UDP, TCP, DHCPv4, DNS |
//! | [`checksum`] | the Internet checksum (RFC 1071), incremental (RFC 1624) and partial |
//! | [`frag`] | the IPv4 fragment queue (RFC 791, RFC 815) and the resumable fragmenter |
//! | [`tcp`] | a TCP endpoint (RFC 9293) whose bytes live in somebody else's socket |
//! | [`pool`] | a bounded pool that parks bytes which a short write left over |
//! | [`hash`] | keyed hashing (SipHash) for tables, initial sequence numbers and identifiers |

#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    expect(clippy::std_instead_of_alloc, reason = "tests have std and no alloc crate")
)]

#[cfg(test)]
extern crate std;

mod bytes;
mod fmt;

pub mod checksum;
pub mod frag;
pub mod hash;
pub mod pool;
pub mod tcp;
pub mod time;
pub mod wire;

pub use time::Instant;
