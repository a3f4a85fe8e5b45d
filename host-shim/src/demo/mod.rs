//! A whole network in one process and one thread: a guest whose stack drives an NE2000 by its
//! registers, the NAT behind that card, and the sockets of this host.
//!
//! [`run`] is the demonstration: a lease, a ping, and a transfer each way. [`Guest`] and
//! [`Machine`] are its parts, for worlds and tests of your own: the machine runs on any
//! [`slirp_nat::Host`], and time is an argument.
//!
//! ```no_run
//! use host_shim::demo::{self, Options};
//!
//! let report = demo::run(Options::default(), &mut |_| {})?;
//! print!("{report}");
//! # Ok::<(), demo::Error>(())
//! ```

mod error;
mod guest;
mod machine;
mod nic;
pub mod pattern;
mod report;
mod resent;
mod server;
mod session;

use core::fmt;

use ne2000::Model;

pub use self::error::Error;
pub use self::guest::{Guest, Lease, Stream};
pub use self::machine::Machine;
pub use self::nic::Tap;
pub use self::report::{Counts, Report, Transfer};
pub use self::session::run;
use crate::link::capture::Capture;

/// What to show.
#[derive(Debug)]
pub struct Options {
    /// The card between guest and NAT.
    pub model: Model,
    /// Bytes of each transfer.
    pub size: u64,
    /// Takes every frame, as the guest sees it.
    pub capture: Option<Capture>,
}

impl Default for Options {
    fn default() -> Self {
        Self { model: Model::Rtl8029As, size: 64 << 20, capture: None }
    }
}

/// Which way a transfer goes, as the guest sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From a server to the guest.
    Download,
    /// From the guest to a server.
    Upload,
}

/// What the demonstration does at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The guest asks for a lease.
    Lease,
    /// The guest pings its gateway.
    Ping,
    /// Of a transfer, these bytes have arrived.
    Transfer(Direction, u64),
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Download => "download",
            Self::Upload => "upload",
        })
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease => f.write_str("lease"),
            Self::Ping => f.write_str("ping"),
            Self::Transfer(direction, bytes) => write!(f, "{direction}, after {bytes} bytes"),
        }
    }
}
