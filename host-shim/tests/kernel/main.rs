//! The program behind the kernel's own stack and the usual tools: one file for each behaviour.
//!
//! Servers run in this process on 127.0.0.1, which the guest reaches at its router's address.
//! Clients are tools, started by `slirpkit run`, or threads of this process that have entered the
//! guest's network namespace, which takes root. `SLIRPKIT_TRANSFER_MIB` sets the size of the big
//! transfers. In `lossy` the guest sits behind a wire that loses frames.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod capture;
mod delay;
mod dhcp;
mod dns;
mod forward;
mod fragments;
mod guest;
mod half_close;
mod http;
mod lossy;
mod mtu;
mod namespace;
mod netstat;
mod noise;
#[expect(
    dead_code,
    unreachable_pub,
    clippy::cast_possible_truncation,
    reason = "made for simulations, which need more of it"
)]
#[path = "../../../tests/src/numbers.rs"]
mod numbers;
mod pattern;
mod ping;
#[expect(dead_code, reason = "the other tests of the program use more of it")]
#[path = "../cli/place.rs"]
mod place;
mod relay;
mod reset;
mod server;
mod short_reads;
mod storm;
mod trace;
#[expect(dead_code, reason = "the other tests of the program use more of it")]
#[path = "../cli/user.rs"]
mod user;
mod wired;
mod world;
