//! What the image and the Wasm modules share: a [`Machine`] made of card, NAT and `RingHost` in
//! static memory; a [`Guest`] that knows nothing but the card's ports; and a [`Server`], the
//! scripted host, for where there is no other.
//!
//! Time is a count that whoever drives them advances, so every run has the same frames.

#![no_std]
#![forbid(unsafe_code)]

mod device;
mod guest;
mod machine;
mod memory;
pub mod pattern;
mod server;
mod sockets;

pub use guest::{Failure, Guest, Progress};
pub use machine::{Events, Machine, card};
pub use memory::{Buffers, Extent, Tables};
pub use server::Server;
pub use sockets::GuestMemory;
