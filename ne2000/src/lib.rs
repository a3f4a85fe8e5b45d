//! The DP8390 network controller and the cards around it, as a plain state machine.
//!
//! The device model itself is not written yet: this version holds only what other crates can
//! already rely on, the shape of the card's memory. Nothing here answers a register access.

#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

/// Bytes of packet RAM on an NE2000 (16 KiB at card address 4000h).
pub const PACKET_RAM_LEN: usize = 16 * 1024;

/// Bytes of one page of packet RAM, the unit of the receive ring (DP8390D datasheet, section 7).
pub const PAGE_LEN: usize = 256;
