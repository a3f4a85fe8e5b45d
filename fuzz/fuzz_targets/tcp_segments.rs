//! TCP behind the whole NAT, with what must hold after each step.
#![no_main]

use slirpkit_fuzz::Target;
use slirpkit_fuzz::tcp_segments::Input;

libfuzzer_sys::fuzz_target!(|input: Input| input.run());
