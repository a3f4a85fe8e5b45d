//! DNS messages and the answers to them.
#![no_main]

use slirpkit_fuzz::Target;
use slirpkit_fuzz::dns::Input;

libfuzzer_sys::fuzz_target!(|input: Input| input.run());
