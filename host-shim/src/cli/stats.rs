//! `--stats`: what happened, as a table.

use core::fmt::Write as _;

use host_shim::link::vfio_user::DeviceCounters;
use host_shim::sockets::SystemCalls;
use slirp_nat::Stats;

const MEBIBYTE: u64 = 1 << 20;

/// System calls of the whole program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    /// Reads and writes of frames.
    pub(crate) link: u64,
    /// Those of the host's sockets.
    pub(crate) host: SystemCalls,
}

impl Calls {
    fn total(&self) -> u64 {
        self.host.iter().fold(self.link, |sum, (_, count)| sum.saturating_add(count))
    }
}

/// Counters that are not zero, then drops by name, then those of a card that is served, then system
/// calls, in all and by MiB.
pub(crate) fn table(stats: &Stats, device: Option<&DeviceCounters>, calls: &Calls) -> String {
    let mut text = String::new();
    let mut row = |name: &str, count: u64| {
        if count > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<40}{count:>16}");
        }
    };
    stats.counters.iter().for_each(|(name, count)| row(name, count));
    stats
        .segment_fates()
        .for_each(|(fate, count)| row(&format!("segments: {}", fate.name()), count));
    stats.drops().for_each(|(reason, count)| row(&format!("dropped: {}", reason.name()), count));
    let device = device.into_iter().flat_map(DeviceCounters::iter);
    device.for_each(|(name, count)| row(&format!("card: {name}"), count));
    row("calls: link", calls.link);
    calls.host.iter().for_each(|(name, count)| row(&format!("calls: {name}"), count));
    row("calls", calls.total());
    let bytes = stats.counters.bytes_in.saturating_add(stats.counters.bytes_out);
    row("calls per MiB", per_mebibyte(calls.total(), bytes));
    text
}

/// Calls for each MiB of `bytes`; 0 below one MiB, where it means nothing.
const fn per_mebibyte(calls: u64, bytes: u64) -> u64 {
    if bytes < MEBIBYTE { 0 } else { calls.saturating_mul(MEBIBYTE) / bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_set_against_the_bytes_they_carried() {
        assert_eq!(per_mebibyte(100, MEBIBYTE - 1), 0);
        assert_eq!(per_mebibyte(100, MEBIBYTE), 100);
        assert_eq!(per_mebibyte(100, 5 * MEBIBYTE / 2), 40);
    }
}
