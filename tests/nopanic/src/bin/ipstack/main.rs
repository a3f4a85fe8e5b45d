//! Everything that `ipstack` offers.
#![no_std]
#![no_main]

mod frag;
mod messages;
mod pool;
mod sums;
mod tcp;
mod wire;

use core::time::Duration;

use ipstack::Instant;
use ipstack::time::saturating_micros;
use slirpkit_nopanic::{any, keep};

slirpkit_nopanic::program!({
    match any::<u8>() {
        0 => time(),
        1 => frag::queue(),
        2 => frag::fragmenter(),
        3 => pool::pool(),
        4 => sums::sums(),
        5 => sums::hash(),
        6 => wire::parse(),
        7 => wire::emit(),
        8 => messages::parse_dhcp(),
        9 => messages::emit_dhcp(),
        10 => messages::dns(),
        11 => tcp::runs(),
        _ => tcp::connection(),
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
