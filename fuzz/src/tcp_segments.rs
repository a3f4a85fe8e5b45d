//! TCP behind the whole NAT: what a guest sends, nearly right or not at all, what the host's sockets
//! do, and the clock.
//!
//! [`Watch`](slirpkit_tests::Watch) looks at every segment for the guest. After each step, besides,
//! all bytes are right at both ends, nothing is acknowledged that neither the host nor the pool has,
//! nothing is sent that the host did not give, nothing is forgotten that the guest has not got, the
//! counters agree with what was seen, and the work has a bound. If guest and host do their best from
//! then on, every stream that both know passes whole. Once they are silent, every flow ends in its
//! time and leaves nothing behind.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a stream has less than 2^32 bytes here, as has a period of its content"
)]

use arbitrary::Arbitrary;

use crate::Target;

mod bench;
mod connection;
mod content;
mod cooperation;
mod guest;
mod received;
mod segment;
mod streams;

pub use segment::{Acked, Blocks, Place, Segment, SynOptions};
pub use streams::HostEvent;

use bench::Bench;

/// Connections: those but the last are opened by the guest, and that one by a client.
const CONNECTIONS: u8 = 4;

/// The connection of a client.
const CLIENT: u8 = CONNECTIONS - 1;

/// Events of one input; those beyond are left out, so that none takes long.
const MOST_EVENTS: usize = 1000;

/// A setup and what happens then.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    /// Sizes.
    pub sizes: Sizes,
    /// In the end everybody does their best, before all fall silent.
    pub cooperates: bool,
    /// What happens, in this order.
    pub events: Vec<Event>,
}

/// Sizes of the NAT.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Sizes {
    /// The host cannot peek.
    pub ring_host: bool,
    /// The parking pool.
    pub pool: Pool,
    /// Connections that may store text beyond a gap; only some bits are used.
    pub recoveries: u8,
    /// Bytes of the MTU, with the least and the most as its bounds.
    pub mtu: u16,
    /// Frames that the link queues, 0 for any number.
    pub queue: u8,
}

/// Sizes of the parking pool.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Pool {
    /// None.
    Empty,
    /// One to eight blocks.
    Tiny(u8),
    /// More than all windows.
    Large,
}

/// One thing that happens.
#[derive(Arbitrary, Clone, Debug)]
pub enum Event {
    /// A segment of a connection, which joins the batch.
    Guest(u8, Segment),
    /// The batch is handed over.
    Batch,
    /// A connection's socket does something.
    Host(u8, HostEvent),
    /// As many of the next segments for a connection's guest get lost.
    Lose(u8, u8),
    /// The link has room for this many frames of any size, 255 for any number, and says so.
    Room(u8),
    /// Time passes, with a call at each deadline.
    Wait {
        /// This much of it.
        millis: u16,
    },
    /// Time passes until something is due.
    Deadline,
    /// Time passes without a call, as for a paused guest.
    Jump {
        /// This much of it.
        seconds: u16,
    },
}

impl Target for Input {
    fn run(self) {
        let mut bench = Bench::new(self.sizes);
        self.events.iter().take(MOST_EVENTS).for_each(|event| bench.take(event));
        bench.take(&Event::Batch);
        if self.cooperates {
            bench.cooperate();
        }
        bench.fall_silent();
    }
}

#[cfg(test)]
mod tests;
