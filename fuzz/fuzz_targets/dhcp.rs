//! DHCP messages, read and written.
#![no_main]

use slirpkit_fuzz::Target;
use slirpkit_fuzz::dhcp::Input;

libfuzzer_sys::fuzz_target!(|input: Input| input.run());
