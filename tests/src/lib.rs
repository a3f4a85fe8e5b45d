//! Simulated guests and hosts for the integration tests.
//!
//! A [`Lab`] ties a NAT to a scripted outside [`World`], a [`ScriptedLink`] and a clock that only
//! the test moves. Tests put frames in, let the world act, and look at the frames that come out,
//! each of which has been verified.
//!
//! Frames are built and taken apart here by code of our own ([`build`], [`packet`], [`verify`])
//! rather than by `ipstack`, so that a mistake there cannot cancel itself out.

#![expect(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::panic,
    clippy::std_instead_of_alloc,
    reason = "a test's mistake is to stop the test"
)]

pub mod build;
pub mod guest;
pub mod host;
pub mod lab;
pub mod link;
pub mod numbers;
pub mod packet;
pub mod sum;
pub mod verify;
pub mod watch;

pub use guest::{GUEST_IP, GUEST_MAC, TcpGuest};
pub use host::{Connect, HostKind, World};
pub use lab::{Lab, Setup};
pub use link::ScriptedLink;
pub use packet::{Packet, Tcp};
pub use watch::Watch;

/// Makes two tests of each function: one on a host that can peek, and one on `RingHost`.
///
/// The function's parameter is the [`HostKind`].
#[macro_export]
macro_rules! on_both_hosts {
    ($($(#[$meta:meta])* fn $name:ident($kind:ident) $body:block)*) => { $(
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports, reason = "a test may need nothing from around it")]
            use super::*;

            fn script($kind: $crate::HostKind) $body

            #[test]
            fn on_a_peeking_host() {
                script($crate::HostKind::Peeking);
            }

            #[test]
            fn on_a_ring_host() {
                script($crate::HostKind::Ring);
            }
        }
    )* };
}
