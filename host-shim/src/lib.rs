#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod clock;
#[cfg(feature = "demo")]
pub mod demo;
pub mod limits;
pub mod link;
mod poller;
#[cfg(feature = "replay")]
pub mod replay;
pub mod runner;
pub mod secret;
pub mod sockets;
pub mod storage;
