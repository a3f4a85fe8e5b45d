//! Real drivers in a stock QEMU, under emulation: one file for each behaviour.
//!
//! `tests/guests/prepare.py` brings QEMU and the guests, and `tests/qemu-overlay` is the library that
//! puts the card and the NAT into QEMU's process; `.ci/run guests` sees to both. Servers run in this
//! process on 127.0.0.1, which a guest reaches at its router's address.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod files;
mod filter;
mod flood;
mod headline;
mod ipxe;
mod isa;
mod machine;
mod overlay;
#[expect(dead_code, reason = "the tests of the program use more of it")]
#[path = "../../../host-shim/tests/kernel/pattern.rs"]
mod pattern;
mod pci;
#[path = "../../../host-shim/tests/cli/place.rs"]
#[expect(dead_code, reason = "the tests of the program use more of it")]
mod place;
mod program;
mod restart;
#[expect(dead_code, reason = "the tests of the program use more of it")]
#[path = "../../../host-shim/tests/kernel/server.rs"]
mod server;
mod stream;
mod traffic;
mod vfio_user;
