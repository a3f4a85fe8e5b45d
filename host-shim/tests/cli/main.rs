//! The program `slirpkit`, run as its users run it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod attach;
mod demo;
mod nic;
mod nic_transfer;
mod place;
mod qemu;
mod replay;
mod run;
mod server;
mod traffic;
mod usage;
mod user;
mod vfio_client;
