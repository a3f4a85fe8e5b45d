//! A card and everything that can happen to it.
#![no_main]

use slirpkit_fuzz::Target;
use slirpkit_fuzz::ne2000_ops::Input;

libfuzzer_sys::fuzz_target!(|input: Input| input.run());
