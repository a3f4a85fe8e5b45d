//! QEMU's `ne2k_isa` as an oracle for the NE2000: both cards get the same accesses and frames, and
//! answer alike but for the differences on purpose that ne2000/README.md lists.
//!
//! [`differences`] shows each of those with both cards' answers, so that one which is gone is
//! noticed. [`driver`] has both cards work for a driver, and [`random`] lets anything happen that
//! leads into no difference; both ask for the same answers throughout.

#![expect(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::panic,
    clippy::std_instead_of_alloc,
    reason = "a test's mistake is to stop the test"
)]

mod card;
mod differences;
mod driver;
mod ground;
mod pair;
mod program;
mod qemu;
mod random;
mod script;

/// The station address in the PROM.
const MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
/// Another station's.
const PEER: [u8; 6] = [0x02, 0, 0, 0, 0, 0x99];
const BROADCAST: [u8; 6] = [0xFF; 6];
/// What no filter admits unless it admits all groups.
const GROUP: [u8; 6] = [0x01, 0x00, 0x5E, 0x00, 0x00, 0x01];

/// The data port.
const DATA: u8 = 0x10;
/// The reset port.
const RESET: u8 = 0x1F;

/// A frame to `destination` of `length` bytes, no two alike.
fn frame(destination: [u8; 6], length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|i| (i * 7 + length) as u8).collect();
    frame[..6].copy_from_slice(&destination);
    frame
}
