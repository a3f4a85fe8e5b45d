//! slirp-nat over operating system sockets: the host traits, links to guests, and an event loop
//! that is itself one file descriptor.
//!
//! | module | what it holds |
//! |---|---|
//! | [`sockets`] | [`slirp_nat::Host`] over non-blocking sockets and one epoll |
//! | [`link`] | [`slirp_nat::Link`] over a tap and over QEMU's stream and datagram sockets |
//! | [`runner`] | the event loop |
//! | [`storage`], [`secret`], [`clock`] | what a [`slirp_nat::Nat`] is made from and fed with |

#![forbid(unsafe_code)]

pub mod clock;
pub mod limits;
pub mod link;
mod poller;
pub mod runner;
pub mod secret;
pub mod sockets;
pub mod storage;
