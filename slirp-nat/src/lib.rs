#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

#[cfg(test)]
extern crate std;

#[cfg(feature = "ne2000")]
pub mod card;
mod config;
mod egress;
mod flow;
mod fmt;
mod forward;
pub mod host;
mod input;
pub mod link;
mod nat;
mod policy;
mod replies;
pub mod ring_host;
mod router;
mod service;
mod stats;
mod train;

pub use config::{
    Config, ConfigError, MAX_BOOT_FILE_LEN, MAX_MTU, MAX_NAME_LEN, MAX_RESOLVERS, MIN_MTU, Secret,
    Storage, UdpFiltering, UdpMapping,
};
pub use flow::{Flow, Permit, Recovery};
pub use forward::{Forward, ForwardError, ForwardSlot, Protocol};
pub use host::{Host, HostEvent};
pub use link::{Frame, Link};
pub use nat::{Deadline, Due, Nat};
pub use ring_host::{PushHost, Received, RingHost, RingSlot};
pub use service::dhcp::Lease;
pub use stats::{Counters, DropReason, SegmentFate, Stats};
