//! What has happened, for tests: lines of a name and a number.

use core::fmt;

use host_shim::sockets::OsHost;
use ne2000::{ChipState, Ne2000, Stats};
use slirp_nat::Nat;
use slirp_nat::card::Cable;

/// What nobody else counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Accesses to ports.
    pub(crate) accesses: u64,
    /// Turns of the cable.
    pub(crate) turns: u64,
    /// How often the interrupt line rose.
    pub(crate) interrupts: u64,
    /// Resets of the machine.
    pub(crate) resets: u64,
}

/// Everything that is counted, and the card's registers, to be printed.
pub(crate) struct Report<'a> {
    pub(crate) card: &'a Ne2000,
    pub(crate) cable: &'a Cable<'static>,
    pub(crate) nat: &'a Nat<'static>,
    pub(crate) host: &'a OsHost,
    pub(crate) counters: &'a Counters,
    pub(crate) timeouts_off_the_cpu: u64,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Counters { accesses, turns, interrupts, resets } = self.counters;
        let own = [
            ("accesses", accesses),
            ("turns", turns),
            ("interrupts", interrupts),
            ("resets", resets),
            ("oversize", self.cable.oversize()),
            ("timeouts_off_the_cpu", self.timeouts_off_the_cpu),
        ];
        lines(f, "", own)?;
        lines(f, "card.", frames(self.card.stats()))?;
        lines(f, "register.", registers(&self.card.state().chip))?;
        lines(f, "nat.", self.nat.stats().counters.iter())?;
        lines(f, "dropped.", self.nat.stats().drops().map(|(reason, n)| (reason.name(), n)))?;
        lines(f, "calls.", self.host.calls().iter())
    }
}

fn lines(
    f: &mut fmt::Formatter<'_>,
    room: &str,
    counters: impl IntoIterator<Item = (&'static str, u64)>,
) -> fmt::Result {
    counters
        .into_iter()
        .try_for_each(|(name, count)| writeln!(f, "{room}{} {count}", name.replace(' ', "_")))
}

fn frames(stats: &Stats) -> [(&'static str, u64); 10] {
    [
        ("transmitted", stats.transmitted),
        ("stored", stats.stored),
        ("filtered", stats.filtered),
        ("no_room", stats.no_room),
        ("stopped", stats.stopped),
        ("monitored", stats.monitored),
        ("runts", stats.runts),
        ("oversize", stats.oversize),
        ("damaged", stats.damaged),
        ("no_link", stats.no_link),
    ]
}

/// The registers that say what a driver has asked for.
fn registers(chip: &ChipState) -> [(&'static str, u64); 7] {
    [
        ("isr", chip.isr.into()),
        ("imr", chip.imr.into()),
        ("dcr", chip.dcr.into()),
        ("rcr", chip.rcr.into()),
        ("pstart", chip.pstart.into()),
        ("pstop", chip.pstop.into()),
        // MAR0 first.
        ("mar", u64::from_be_bytes(chip.mar)),
    ]
}
