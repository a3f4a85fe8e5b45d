//! The whole NAT with a scripted host and clock.
#![no_main]

use slirpkit_fuzz::Target;
use slirpkit_fuzz::ethernet_frame::Input;

libfuzzer_sys::fuzz_target!(|input: Input| input.run());
