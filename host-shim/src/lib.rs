//! slirp-nat over operating system sockets: the host traits, links to guests, and an event loop
//! that is itself one file descriptor.
//!
//! | module | what it holds |
//! |---|---|
//! | [`sockets`] | [`slirp_nat::Host`] over non-blocking sockets and one epoll |
//! | [`link`] | [`slirp_nat::Link`] over a tap and over QEMU's stream and datagram sockets |
//! | [`runner`] | the event loop |
//! | [`replay`] | recordings of a NAT at work, for bug reports |
//! | [`storage`], [`secret`], [`clock`] | what a [`slirp_nat::Nat`] is made from and fed with |

#![forbid(unsafe_code)]

pub mod clock;
pub mod limits;
pub mod link;
mod poller;
#[cfg(feature = "replay")]
pub mod replay;
pub mod runner;
pub mod secret;
pub mod sockets;
pub mod storage;
