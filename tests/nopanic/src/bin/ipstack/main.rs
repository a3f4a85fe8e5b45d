//! Everything that `ipstack` offers.
#![no_std]
#![no_main]

mod frag;
mod pool;

use core::time::Duration;

use ipstack::Instant;
use ipstack::time::saturating_micros;
use slirpkit_nopanic::{any, keep};

slirpkit_nopanic::program!({
    match any::<u8>() {
        0 => time(),
        1 => frag::queue(),
        2 => frag::fragmenter(),
        _ => pool::pool(),
    }
});

fn any_time() -> Instant {
    Instant::from_micros(any())
}

fn time() {
    let later = any_time().after(Duration::from_micros(any()));
    keep((later.since(any_time()), later.micros(), Instant::from_millis(any())));
    keep(saturating_micros(Duration::from_micros(any())));
}
