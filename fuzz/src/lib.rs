//! Typed inputs for fuzzing, and what must hold for every one of them.
//!
//! Each target is a module with an `Input` that can be made from any bytes, and a `run` that
//! panics if a property is broken. The programs in `fuzz_targets/` hand them to libFuzzer, as
//! `.ci/run fuzz` builds them; the tests of this crate replay the files in `seeds/`.

#![expect(clippy::expect_used, reason = "a property that is broken is to stop the run")]

use arbitrary::{Arbitrary, Unstructured};

pub mod dhcp;
pub mod dns;
pub mod ethernet_frame;
pub mod ipv4_fragments;
pub mod ne2000_ops;
pub mod tcp_segments;
pub mod wire_roundtrip;

/// Runs one target on bytes that are any input.
pub type Run = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: &[(&str, Run)] = &[
    ("dhcp", run::<dhcp::Input>),
    ("dns", run::<dns::Input>),
    ("ethernet_frame", run::<ethernet_frame::Input>),
    ("ipv4_fragments", run::<ipv4_fragments::Input>),
    ("ne2000_ops", run::<ne2000_ops::Input>),
    ("tcp_segments", run::<tcp_segments::Input>),
    ("wire_roundtrip", run::<wire_roundtrip::Input>),
];

/// An input of one target.
pub trait Target: for<'a> Arbitrary<'a> {
    /// Does what the input says.
    ///
    /// # Panics
    /// If a property of the code under test is broken.
    fn run(self);
}

/// Runs `T` on the input that libFuzzer would make of `data`; bytes that are too few for an input
/// are skipped, as there.
fn run<T: Target>(data: &[u8]) {
    if let Ok(input) = T::arbitrary_take_rest(Unstructured::new(data)) {
        input.run();
    }
}
