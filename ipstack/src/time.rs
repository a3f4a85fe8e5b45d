//! Monotonic time as a plain number that the caller supplies.

use core::time::Duration;

/// A point in monotonic time, in microseconds since an origin that the caller chooses.
///
/// All arithmetic saturates: a clock that jumps can make a timer early or late, never a panic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The point `micros` microseconds after the origin.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The point `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Microseconds since the origin.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// This point moved later by `delay`.
    #[must_use]
    pub const fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(saturating_micros(delay)))
    }

    /// Time passed since `earlier`; zero if `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// The microseconds of `duration`, at most `u64::MAX`.
#[must_use]
pub const fn saturating_micros(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000).saturating_add(duration.subsec_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let late = Instant::from_micros(u64::MAX);
        assert_eq!(late.after(Duration::from_secs(1)), late);
        assert_eq!(Instant::ZERO.since(late), Duration::ZERO);
        assert_eq!(Instant::from_millis(3).since(Instant::from_micros(500)).as_micros(), 2500);
    }
}
