//! Initial sequence numbers that nobody can predict (RFC 6528).

use core::net::SocketAddr;

use super::SeqNumber;
use crate::Instant;
use crate::hash::SipHasher;

/// The initial sequence number of a connection between `local` and `remote`: a clock of 4
/// microseconds a tick plus a keyed hash of both ends (RFC 6528 section 3).
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "clock and hash are taken modulo 2^32")]
pub fn initial_sequence_number(
    now: Instant,
    key: [u64; 2],
    local: SocketAddr,
    remote: SocketAddr,
) -> SeqNumber {
    let mut hasher = SipHasher::new(key);
    for end in [local, remote] {
        match end.ip() {
            core::net::IpAddr::V4(v4) => hasher.write(&v4.octets()),
            core::net::IpAddr::V6(v6) => hasher.write(&v6.octets()),
        }
        hasher.write_u16(end.port());
    }
    let clock = (now.micros() / 4) as u32;
    SeqNumber(clock.wrapping_add(hasher.finish() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_by_tuple_and_key_and_grow_with_the_clock() {
        for ends in [["10.0.2.15:1000", "192.0.2.1:80"], ["[fd00::15]:1000", "[2001:db8::1]:80"]] {
            let [a, b] = ends.map(|end| end.parse::<SocketAddr>().unwrap());
            let isn =
                |now, key, x, y| initial_sequence_number(Instant::from_micros(now), key, x, y);
            let first = isn(0, [1, 2], a, b);
            assert_eq!(isn(4000, [1, 2], a, b), first.plus(1000));
            assert_ne!(isn(0, [1, 2], b, a), first);
            assert_ne!(isn(0, [1, 3], a, b), first);
        }
    }
}
