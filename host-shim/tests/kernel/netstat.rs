//! What a namespace's own stack counts.

use core::fmt;
use std::collections::BTreeMap;

/// Prints what [`Netstat::parse`] reads, for the namespace in which it runs.
pub(crate) const SCRIPT: &str = "cat /proc/net/netstat /proc/net/snmp";

/// Keeps TCP's timers from sending what did not get lost because this machine was busy for a while.
pub(crate) const WITHOUT_TIMERS: &str = "echo 0 >/proc/sys/net/ipv4/tcp_early_retrans
    ip route change default via 10.0.2.2 rto_min 5s";

/// Counters by the names that `nstat` gives them.
pub(crate) struct Netstat(BTreeMap<String, u64>);

impl Netstat {
    /// From pairs of lines: names, and their values.
    pub(crate) fn parse(text: &str) -> Self {
        let lines: Vec<_> = text.lines().filter_map(|line| line.split_once(": ")).collect();
        let pairs = lines.chunks_exact(2).flat_map(|pair| {
            let (prefix, names) = pair[0];
            let values = pair[1].1.split(' ').map(str::parse);
            names
                .split(' ')
                .zip(values)
                .map(move |(name, value)| (format!("{prefix}{name}"), value))
        });
        // Of all values only a limit that there is not can be negative.
        Self(pairs.filter_map(|(name, value)| Some((name, value.ok()?))).collect())
    }

    /// One counter.
    pub(crate) fn get(&self, name: &str) -> u64 {
        *self.0.get(name).unwrap_or_else(|| panic!("no counter {name}"))
    }
}

impl fmt::Debug for Netstat {
    /// What TCP did.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.0.iter().filter(|(name, count)| name.starts_with("Tcp") && **count > 0))
            .finish()
    }
}
