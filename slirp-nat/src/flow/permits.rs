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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const fn flow(number: u32) -> FlowId {
        FlowId { slot: number, generation: 1 }
    }

    const fn remote(number: u128) -> Ipv6Addr {
        Ipv6Addr::from_bits(number)
    }

    proptest! {
        /// Whoever is let in was permitted for that very flow, and the latest of all always is.
        #[test]
        fn only_the_permitted_pass(steps in prop::collection::vec((0u32..5, 0u128..9), 1..60)) {
            let mut memory = [Permit::EMPTY; 10];
            let mut permits = Permits::new((&mut memory[..]).into(), [3, 4]);
            let mut added = HashMap::new();
            for (now, (number, address)) in (1..).zip(steps) {
                permits.add(Instant::from_micros(now), flow(number), remote(address));
                added.insert((number, address), now);
                prop_assert!(permits.allows(flow(number), remote(address)));
            }
            let passing: Vec<_> = (0..6)
                .flat_map(|number| (0..10).map(move |address| (number, address)))
                .filter(|(number, address)| permits.allows(flow(*number), remote(*address)))
                .collect();
            prop_assert!(passing.iter().all(|pair| added.contains_key(pair)));
            // Two sets of four.
            prop_assert!(passing.len() <= 8);
        }
    }

    #[test]
    fn the_oldest_of_a_set_goes_and_a_renewed_one_is_young() {
        let mut memory = [Permit::EMPTY; WAYS];
        let mut permits = Permits::new((&mut memory[..]).into(), [3, 4]);
        for (now, address) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 1), (6, 5)] {
            permits.add(Instant::from_micros(now), flow(0), remote(address));
        }
        let passing: Vec<u128> =
            (0..9).filter(|address| permits.allows(flow(0), remote(*address))).collect();
        assert_eq!(passing, [1, 3, 4, 5]);
    }

    #[test]
    fn another_generation_of_a_slot_inherits_nothing() {
        let mut memory = [Permit::EMPTY; WAYS];
        let mut permits = Permits::new((&mut memory[..]).into(), [3, 4]);
        permits.add(Instant::ZERO, flow(0), remote(1));
        assert!(!permits.allows(FlowId { slot: 0, generation: 2 }, remote(1)));
    }

    #[test]
    fn without_memory_nobody_passes() {
        let mut permits = Permits::new((&mut [][..]).into(), [3, 4]);
        permits.add(Instant::ZERO, flow(0), remote(1));
        assert!(!permits.allows(flow(0), remote(1)));
    }
}
