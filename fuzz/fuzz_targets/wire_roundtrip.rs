//! Packets of every layer, written and read, by us and by etherparse.
#![no_main]

use slirpkit_fuzz::Target;
use slirpkit_fuzz::wire_roundtrip::Input;

libfuzzer_sys::fuzz_target!(|input: Input| input.run());
