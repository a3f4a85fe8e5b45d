//! Everything that `ne2000` offers.
#![no_std]
#![no_main]

use slirpkit_nopanic::keep;

slirpkit_nopanic::program!({
    keep(ne2000::PACKET_RAM_LEN);
});
