//! The slirpkit program.
fn main() {}
