//! Remotes that may send to a mapped UDP port: address-dependent filtering (RFC 4787 5).

use core::net::Ipv6Addr;

use ipstack::Instant;
use ipstack::hash::SipHasher;
use managed::ManagedSlice;

use crate::host::FlowId;

/// Entries that one remote may use: the oldest of them makes room.
const WAYS: usize = 4;

/// One remote address that may send to one flow.
#[derive(Clone, Copy, Debug)]
pub struct Permit {
    flow: FlowId,
    remote: Ipv6Addr,
    since: Instant,
}

impl Permit {
    /// An unused entry.
    pub const EMPTY: Self = Self {
        flow: FlowId { slot: 0, generation: 0 },
        remote: Ipv6Addr::UNSPECIFIED,
        since: Instant::ZERO,
    };
}

/// A set-associative table. Nothing is ever removed from it: an entry of a flow that is over names
/// a generation that does not come back, and grows old.
#[derive(Debug)]
pub(crate) struct Permits<'a> {
    entries: ManagedSlice<'a, Permit>,
    secret: [u64; 2],
}

impl<'a> Permits<'a> {
    pub(crate) const fn new(entries: ManagedSlice<'a, Permit>, secret: [u64; 2]) -> Self {
        Self { entries, secret }
    }

    /// Lets `remote` send to `flow` from now on.
    pub(crate) fn add(&mut self, now: Instant, flow: FlowId, remote: Ipv6Addr) {
        let Some(set) = self.set(flow, remote) else { return };
        let known = set.iter().position(|entry| entry.flow == flow && entry.remote == remote);
        let chosen = match known {
            Some(position) => set.get_mut(position),
            None => set.iter_mut().min_by_key(|entry| entry.since),
        };
        if let Some(entry) = chosen {
            *entry = Permit { flow, remote, since: now };
        }
    }

    /// Whether `remote` may send to `flow`.
    pub(crate) fn allows(&mut self, flow: FlowId, remote: Ipv6Addr) -> bool {
        self.set(flow, remote)
            .is_some_and(|set| set.iter().any(|e| e.flow == flow && e.remote == remote))
    }

    fn set(&mut self, flow: FlowId, remote: Ipv6Addr) -> Option<&mut [Permit]> {
        let sets = self.entries.len() / WAYS;
        let mut hasher = SipHasher::new(self.secret);
        hasher.write_u64(flow.to_bits());
        hasher.write_u128(remote.to_bits());
        let number = hasher.finish().checked_rem(sets as u64)?;
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of a usize")]
        let start = number as usize * WAYS;
        self.entries.get_mut(start..start + WAYS)
    }
}
