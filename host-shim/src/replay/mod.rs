//! Recordings of a NAT at work, for bug reports: everything that went in, and what came out.
//!
//! The NAT reads no clock and owns no socket, so the same inputs, times and host answers give the
//! same frames again. [`Recorded`] is a [`Nat`](slirp_nat::Nat) that can write them down while it
//! works; [`replay()`] feeds them to a fresh NAT and says where it does otherwise.
//!
#![doc = include_str!("../../../docs/recording.md")]

mod actors;
mod config;
mod display;
mod error;
mod format;
mod hex;
mod player;
mod recorder;
mod script;
mod tape;

pub use error::{Act, Divergence, Fault, ReplayError};
pub use player::{Traffic, replay};
pub use recorder::Recorded;
pub use script::Report;

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// What the header says this is.
const FORMAT: &str = "slirpkit-recording";
