//! The only place that reads the host's clocks.

use core::time::Duration;

use ipstack::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Monotonic time. It stands still while the host sleeps, so that no timer fires for a time in
/// which nobody could have answered.
#[must_use]
pub fn now() -> Instant {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    let micros = tv_sec.cast_unsigned().saturating_mul(1_000_000);
    Instant::from_micros(micros.saturating_add(tv_nsec.cast_unsigned() / 1000))
}

/// Time since 1970 in UTC, for the stamps of a capture.
#[must_use]
pub fn wall() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
    Duration::from_secs(tv_sec.cast_unsigned())
        .saturating_add(Duration::from_nanos(tv_nsec.cast_unsigned()))
}
