//! Everything that `ipstack` offers.
#![no_std]
#![no_main]

use core::time::Duration;

use ipstack::Instant;
use ipstack::time::saturating_micros;
use slirpkit_nopanic::{any, keep, one_of};

slirpkit_nopanic::program!({
    let now = one_of(Instant::from_micros(any()), &[Instant::from_millis(any())]);
    keep(now.after(Duration::from_micros(any())));
    keep((now.since(Instant::from_micros(any())), now.micros()));
    keep(saturating_micros(Duration::from_micros(any())));
});
