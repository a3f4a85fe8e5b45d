//! Recordings of a NAT at work, for bug reports: everything that went in, and what came out.
//!
//! The NAT reads no clock and owns no socket, so the same inputs, times and host answers give the
//! same frames again. [`Recorded`] is a [`Nat`](slirp_nat::Nat) that can write them down while it
//! works; [`replay()`] feeds them to a fresh NAT and says where it does otherwise.
//!
//! # The format
//!
//! Text, one JSON object a line. The first line is the header; the others stand in the order in
//! which things happened:
//!
//! | line | what it is |
//! |---|---|
//! | `{"header":{"format":"slirpkit-recording","version":1,"secret":…,"config":…,"memory":…}}` | what the NAT was made from |
//! | `{"input":{"at":MICROS,"call":…}}` | a call on the NAT: frames, event, room, timer, forwards, resolvers |
//! | `{"host":{"call":…,"answer":…}}` | a call of the NAT on its host |
//! | `{"link":{"call":…,"answer":…}}` | the same on its link |
//! | `{"sent":{"len":…,"segment":…,"digest":…,"head":…}}` | a frame or super-segment for the guest: its first bytes, and a digest of all |
//! | `{"due":{"at":MICROS}}` | the end of the call, and when the NAT wants to be called next |
//!
//! Bytes are written as hexadecimal digits. A recording holds the guest's traffic in the clear
//! and the secret of the NAT that made it: it is for those whom both may be shown.

mod config;
mod format;
mod player;
mod recorder;
mod tape;

pub use player::{ReplayError, Report, replay};
pub use recorder::Recorded;

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// What the header says this is.
const FORMAT: &str = "slirpkit-recording";
