//! A stream of bytes of which each piece tells where it belongs.

use std::sync::LazyLock;

/// The pattern repeats after this many bytes: a prime, so that no buffer or segment size hides
/// bytes that are out of place.
const PERIOD: usize = 1_000_003;

static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = (1..=PERIOD as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[2]);
    words.collect()
});

/// The bytes from `position` on, `wanted` of them or as many as there are before the pattern
/// repeats: at least one if one is wanted.
#[must_use]
pub fn piece(position: u64, wanted: usize) -> &'static [u8] {
    // Below PERIOD, so that it fits.
    let start = usize::try_from(position % PERIOD as u64).unwrap_or(0);
    let end = PERIOD.min(start.saturating_add(wanted));
    PATTERN.get(start..end).unwrap_or_default()
}

/// Writes the bytes from `position` on over all of `buffer`.
pub fn fill(position: u64, mut buffer: &mut [u8]) {
    let mut position = position;
    while !buffer.is_empty() {
        let piece = piece(position, buffer.len());
        let (here, rest) = buffer.split_at_mut(piece.len());
        here.copy_from_slice(piece);
        position = position.wrapping_add(piece.len() as u64);
        buffer = rest;
    }
}

/// Compares `bytes` with those from `position` on.
///
/// # Errors
/// The position of the first that differs.
pub fn check(position: u64, mut bytes: &[u8]) -> Result<(), u64> {
    let mut position = position;
    while !bytes.is_empty() {
        let expected = piece(position, bytes.len());
        let (here, rest) = bytes.split_at(expected.len());
        if here != expected {
            let right = here.iter().zip(expected).take_while(|(byte, wanted)| byte == wanted);
            return Err(position.wrapping_add(right.count() as u64));
        }
        position = position.wrapping_add(here.len() as u64);
        bytes = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_what_is_checked_also_where_the_pattern_repeats() {
        let mut buffer = vec![0; 10_000];
        for position in [0, 1, PERIOD as u64 - 5000, 7 * PERIOD as u64 - 1] {
            fill(position, &mut buffer);
            assert_eq!(check(position, &buffer), Ok(()));
            assert!(check(position + 1, &buffer).is_err());
        }
    }

    #[test]
    fn the_first_wrong_byte_is_named() {
        let mut buffer = vec![0; 10_000];
        let start = PERIOD as u64 - 5000;
        fill(start, &mut buffer);
        buffer[6000] ^= 1;
        buffer[7000] ^= 1;
        assert_eq!(check(start, &buffer), Err(start + 6000));
    }
}
