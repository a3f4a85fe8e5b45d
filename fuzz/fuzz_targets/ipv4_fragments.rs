//! The fragment queue, against a model of it.
#![no_main]

use slirpkit_fuzz::Target;
use slirpkit_fuzz::ipv4_fragments::Input;

libfuzzer_sys::fuzz_target!(|input: Input| input.run());
