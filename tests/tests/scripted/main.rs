//! Frames in, scripted host calls out: one file per behaviour, one test per public bug report.
//!
//! `tests/README.md` says which test answers which report.

#![expect(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's mistake is to stop the test"
)]

mod arp;
mod bounds;
mod dhcp;
mod dns;
mod ends;
mod forward;
mod fragments;
mod hostile;
mod icmp;
mod link;
mod loopback;
mod pool;
mod short_writes;
mod tables;
mod tcp_ack;
mod tcp_close;
mod tcp_fates;
mod tcp_loss;
mod tcp_open;
mod tcp_order;
mod tcp_reset;
mod tcp_ring;
mod tcp_window;
mod udp;

/// What nearly every test needs.
mod prelude {
    pub(crate) use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
    pub(crate) use core::time::Duration;

    pub(crate) use slirp_nat::host::{DatagramError, DatagramMeta, HostError};
    pub(crate) use slirp_nat::{DropReason, HostEvent};
    pub(crate) use slirpkit_tests::build::{self, ACK, FIN, PSH, RST, SYN, URG, pattern};
    pub(crate) use slirpkit_tests::guest::{DNS, GATEWAY, OTHER, SERVER};
    pub(crate) use slirpkit_tests::host::State;
    pub(crate) use slirpkit_tests::lab::one;
    pub(crate) use slirpkit_tests::{
        Connect, GUEST_IP, GUEST_MAC, HostKind, Lab, Tcp, TcpGuest, on_both_hosts,
    };

    pub(crate) const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    pub(crate) const fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// The payload bytes of some segments, in the order sent.
    pub(crate) fn bytes_of(segments: &[Tcp]) -> Vec<u8> {
        segments.iter().flat_map(|segment| segment.data.clone()).collect()
    }
}
