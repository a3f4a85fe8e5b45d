//! The parking pool.

use ipstack::pool::{Parked, Pool};
use slirpkit_nopanic::{any, any_bytes, hidden, keep};

pub(crate) fn pool() {
    let mut memory = [0; 8192];
    let mut pool = Pool::new(hidden(&mut memory[..]));
    let mut parked = Parked::EMPTY;
    while any() {
        let mut parts = [any_bytes(), any_bytes()];
        keep(pool.park(&mut parked, hidden(&mut parts[..]), any()));
        for slice in &pool.slices(&parked) {
            keep(*slice);
        }
        pool.advance(&mut parked, any());
        keep((pool.room(), pool.in_use(), pool.blocks()));
        keep((parked.len(), parked.is_empty(), parked.blocks()));
        if any() {
            let mut rest = if any() { parked } else { Parked::EMPTY };
            pool.park(&mut rest, &[any_bytes()], 0);
            pool.join(&mut parked, &mut rest);
        }
        if any() {
            pool.release(&mut parked);
        }
        hidden(&mut pool);
        hidden(&mut parked);
    }
}
