//! What a demonstration came to.

use core::fmt;
use core::time::Duration;

use slirp_nat::Stats;

use super::{Direction, Lease};
use crate::sockets::SystemCalls;

macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident => $name:literal,)+) => {
        /// What was counted until some moment, or between two of them.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct Counts { $($(#[$doc])* pub $field: u64,)+ }

        impl Counts {
            /// Every count with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$(($name, self.$field),)+].into_iter()
            }

            /// What was counted after `before`.
            #[must_use]
            pub const fn since(&self, before: &Self) -> Self {
                Self { $($field: self.$field.saturating_sub(before.$field),)+ }
            }
        }
    };
}

counts! {
    /// Frames that the card has stored.
    frames_for_guest => "frames for the guest",
    /// Frames that the card has sent.
    frames_from_guest => "frames from the guest",
    /// Frames that the card was offered and did not take, whatever the reason.
    refused => "frames refused by the card",
    /// Retransmissions of the NAT, by timeout or fast.
    nat_retransmissions => "retransmissions by the NAT",
    /// TCP segments that the guest has sent again.
    guest_retransmissions => "retransmissions by the guest",
    /// Reads and writes of the card's registers.
    accesses => "register accesses",
    /// How often the card's interrupt line has risen.
    interrupts => "interrupts",
    /// System calls of the NAT's host, without those of the servers.
    calls => "system calls of the NAT",
}

/// One transfer, whose every byte was right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// Bytes of payload.
    pub bytes: u64,
    /// From the beginning of the connection to its end.
    pub duration: Duration,
    /// What happened meanwhile.
    pub counts: Counts,
}

impl Transfer {
    /// Millions of payload bits a second.
    #[must_use]
    pub fn megabits_per_second(&self) -> u64 {
        let nanos = self.duration.as_nanos().max(1);
        let rate = u128::from(self.bytes).saturating_mul(8 * 1000) / nanos;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// The lease.
    pub lease: Lease,
    /// How long the gateway took to answer.
    pub ping: Duration,
    /// Both transfers.
    pub transfers: [Transfer; 2],
    /// Everything, from the first register on.
    pub total: Counts,
    /// Pages that the card's receive ring held at most.
    pub ring_used: u8,
    /// Pages that it can hold.
    pub ring_pages: u8,
    /// Counters of the NAT.
    pub stats: Stats,
    /// System calls of the NAT's host.
    pub calls: SystemCalls,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lease { address, prefix_len, router, resolver } = self.lease;
        write!(f, "{:<10}{address}/{prefix_len}", "lease")?;
        router.map_or(Ok(()), |router| write!(f, ", router {router}"))?;
        resolver.map_or(Ok(()), |resolver| write!(f, ", name server {resolver}"))?;
        writeln!(f, "\n{:<10}the router answers after {} us", "ping", self.ping.as_micros())?;
        for transfer in &self.transfers {
            let (direction, seconds) = (transfer.direction, transfer.duration.as_secs_f64());
            let (bytes, rate) = (transfer.bytes, transfer.megabits_per_second());
            writeln!(
                f,
                "{direction:<10}{bytes} bytes, all of them right, in {seconds:.2} s: {rate} Mbit/s"
            )?;
        }
        self.table(f)
    }
}

impl Report {
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.transfers;
        let (left, right) = (first.direction, second.direction);
        writeln!(f, "\n{:<32}{left:>12}{right:>12}{:>12}", "", "in all")?;
        let columns = first.counts.iter().zip(second.counts.iter()).zip(self.total.iter());
        for (((name, first), (_, second)), (_, total)) in columns {
            writeln!(f, "{name:<32}{first:>12}{second:>12}{total:>12}")?;
        }
        let (used, pages) = (self.ring_used, self.ring_pages);
        writeln!(f, "{:<32}{:>36}", "receive ring, at most", format!("{used} of {pages} pages"))
    }
}
