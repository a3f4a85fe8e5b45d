//! What streams carry: bytes that tell by themselves where they are.

use std::sync::LazyLock;

/// After how many bytes the same come again: a prime, so that no window or buffer is as long.
const PERIOD: usize = 65_521;

/// The most that can be had at once.
const LONGEST: usize = 65_536;

static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let byte = |at: u32| (at % PERIOD as u32).wrapping_mul(0x9e37_79b1).to_be_bytes()[0];
    (0..).take(PERIOD + LONGEST).map(byte).collect()
});

/// `len` bytes from position `at` on, which is that in a stream and what sets it apart from others.
pub(super) fn content(at: u64, len: usize) -> &'static [u8] {
    &BYTES[(at % PERIOD as u64) as usize..][..len]
}

/// Whether `bytes` are those from position `at` on.
pub(super) fn is_content(at: u64, bytes: &[u8]) -> bool {
    let starts = (at..).step_by(LONGEST);
    starts.zip(bytes.chunks(LONGEST)).all(|(at, bytes)| bytes == content(at, bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_in_another_place_shows() {
        let bytes = [content(7, LONGEST), content(7 + LONGEST as u64, 100)].concat();
        assert!(is_content(7, &bytes));
        assert!(!is_content(8, &bytes) && !is_content(7, &bytes[1..]));
        assert!(!is_content(7, &[&bytes[..LONGEST], &bytes[LONGEST + 1..]].concat()));
    }
}
