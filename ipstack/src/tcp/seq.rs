//! Sequence numbers (RFC 9293 3.4).

use core::fmt;

/// A TCP sequence number: arithmetic and comparison are modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// The number `count` further on.
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// The number `count` before.
    #[must_use]
    pub const fn minus(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count))
    }

    /// How far this number lies beyond `start`, which must not be later.
    #[must_use]
    pub const fn since(self, start: Self) -> u32 {
        self.0.wrapping_sub(start.0)
    }

    /// Whether this number is later than `other`.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        (other.0.wrapping_sub(self.0) as i32) < 0
    }

    /// Whether this number is earlier than `other`.
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        other.is_after(self)
    }

    /// The later of the two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if other.is_after(self) { other } else { self }
    }
}

/// How many sequence numbers a piece of text takes.
#[expect(clippy::cast_possible_truncation, reason = "a segment has at most 65,535 bytes")]
pub(super) const fn numbers_of(text: &[u8]) -> u32 {
    text.len() as u32
}

impl fmt::Debug for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_printed_as_one() {
        assert_eq!(std::format!("{:?}", SeqNumber(u32::MAX)), "4294967295");
    }

    #[test]
    fn comparison_survives_the_wrap() {
        let before = SeqNumber(u32::MAX - 1);
        let after = before.plus(4);
        assert_eq!(after, SeqNumber(2));
        assert!(after.is_after(before) && before.is_before(after));
        assert_eq!(after.since(before), 4);
        assert_eq!(after.minus(4), before);
        assert_eq!(before.max(after), after);
        assert!(!before.is_after(before));
    }
}
