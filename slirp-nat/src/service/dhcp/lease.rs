//! The table of leases: who has which address until when.

use core::net::Ipv4Addr;
use core::time::Duration;

use ipstack::Instant;
use ipstack::hash::SipHasher;
use ipstack::wire::MacAddr;

use crate::config::Config;
use crate::service::is_guest;

/// How long an offered address is kept for the client to request it.
const OFFER_LIFE: Duration = Duration::from_secs(60);

/// How long an address that a client found in use is left alone.
const DECLINE_LIFE: Duration = Duration::from_secs(600);

/// One lease, or room for one. Its address is [`Config::first_lease`] plus its index in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    state: State,
    /// Who has it or had it last, to get the same address again.
    client: Option<Client>,
    /// When the client was given it.
    since: Instant,
    /// When it is free again; in the past if it is.
    expires: Instant,
}

impl Lease {
    /// An unused entry.
    pub const EMPTY: Self =
        Self { state: State::Free, client: None, since: Instant::ZERO, expires: Instant::ZERO };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Offered,
    Bound,
    Declined,
}

/// What tells clients apart (RFC 2131 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Client {
    /// No client identifier, or one that is the hardware address with its type in front: boot
    /// loader and system of a machine differ in which of the two they send.
    Hardware(MacAddr),
    /// Hash of the client identifier. It need not be keyed: whoever looks for a collision could
    /// as well send the other's identifier.
    Identifier(u64),
}

impl Client {
    pub(super) fn new(mac: MacAddr, identifier: Option<&[u8]>) -> Self {
        match identifier {
            // RFC 2132 9.14: at least two bytes
            None | Some([] | [_]) => Self::Hardware(mac),
            Some([1, address @ ..]) if *address == mac.0 => Self::Hardware(mac),
            Some(identifier) => {
                let mut hasher = SipHasher::new([0; 2]);
                hasher.write(identifier);
                Self::Identifier(hasher.finish())
            }
        }
    }
}

/// The table at one moment.
pub(super) struct Table<'a> {
    pub(super) now: Instant,
    pub(super) config: &'a Config,
    pub(super) leases: &'a mut [Lease],
}

impl Table<'_> {
    /// The lease of that address, if it is one that can be leased.
    pub(super) fn index_of(&self, address: Ipv4Addr) -> Option<usize> {
        let offset = address.to_bits().checked_sub(self.config.first_lease.to_bits())?;
        let index = usize::try_from(offset).ok()?;
        (index < self.leases.len() && is_guest(self.config, address)).then_some(index)
    }

    /// The address of a lease, if it can be leased.
    pub(super) fn address(&self, index: usize) -> Option<Ipv4Addr> {
        address(self.config, index)
    }

    /// The lease that `client` has or had last.
    pub(super) fn held_by(&self, client: Client) -> Option<usize> {
        self.leases.iter().position(|lease| lease.client == Some(client))
    }

    pub(super) fn is_free(&self, index: usize) -> bool {
        self.leases
            .get(index)
            .is_some_and(|lease| lease.state == State::Free || lease.expires <= self.now)
    }

    /// The lease for `client` in the order of RFC 2131 4.3.1: its own, the one it wants, one that
    /// nobody has had yet, and the one that has been free for longest.
    pub(super) fn choose(&self, client: Client, wanted: Option<Ipv4Addr>) -> Option<usize> {
        self.held_by(client)
            .or_else(|| {
                wanted.and_then(|address| self.index_of(address)).filter(|i| self.is_free(*i))
            })
            .or_else(|| {
                let free =
                    self.leases.iter().enumerate().filter(|(index, _)| {
                        self.is_free(*index) && self.address(*index).is_some()
                    });
                free.min_by_key(|(_, lease)| (lease.client.is_some(), lease.expires))
                    .map(|(index, _)| index)
            })
    }

    /// Keeps the address for `client` for a while. What it has already stays as it is.
    pub(super) fn offer(&mut self, index: usize, client: Client) {
        let bound = self.is_bound(index);
        if let Some(lease) = self.leases.get_mut(index).filter(|_| !bound) {
            *lease = Lease {
                state: State::Offered,
                client: Some(client),
                since: self.now,
                expires: self.now.after(OFFER_LIFE),
            };
        }
    }

    /// Gives the address to `client` for `life`.
    pub(super) fn bind(&mut self, index: usize, client: Client, life: Duration) {
        let renewed = self.is_bound(index);
        if let Some(lease) = self.leases.get_mut(index) {
            let since = if renewed { lease.since } else { self.now };
            let expires = self.now.after(life);
            *lease = Lease { state: State::Bound, client: Some(client), since, expires };
        }
    }

    /// Takes an offer back that the client has not taken.
    pub(super) fn withdraw(&mut self, client: Client) {
        let offer = self.held_by(client).and_then(|index| self.leases.get_mut(index));
        if let Some(lease) = offer.filter(|lease| lease.state == State::Offered) {
            lease.state = State::Free;
        }
    }

    /// Frees `address` if it is the client's, who gets it again if it comes back in time.
    pub(super) fn release(&mut self, client: Client, address: Ipv4Addr) {
        let now = self.now;
        if let Some(lease) = self.lease_of(client, address) {
            *lease = Lease { state: State::Free, expires: now, ..*lease };
        }
    }

    /// Sets `address` aside if it is the client's, who found it in use.
    pub(super) fn decline(&mut self, client: Client, address: Ipv4Addr) {
        let (since, expires) = (self.now, self.now.after(DECLINE_LIFE));
        if let Some(lease) = self.lease_of(client, address) {
            *lease = Lease { state: State::Declined, client: None, since, expires };
        }
    }

    fn lease_of(&mut self, client: Client, address: Ipv4Addr) -> Option<&mut Lease> {
        let index = self.index_of(address)?;
        self.leases.get_mut(index).filter(|lease| lease.client == Some(client))
    }

    fn is_bound(&self, index: usize) -> bool {
        let bound = self.leases.get(index).is_some_and(|lease| lease.state == State::Bound);
        bound && !self.is_free(index)
    }
}

/// The address that was bound last, for forwards that name no guest. A lease that ran out still
/// counts: its guest may be paused.
pub(crate) fn leased_guest(config: &Config, leases: &[Lease]) -> Option<Ipv4Addr> {
    let bound = leases.iter().enumerate().filter(|(_, lease)| lease.state == State::Bound);
    let (index, _) = bound.max_by_key(|(_, lease)| lease.since)?;
    address(config, index)
}

fn address(config: &Config, index: usize) -> Option<Ipv4Addr> {
    let offset = u32::try_from(index).ok()?;
    let address = Ipv4Addr::from_bits(config.first_lease.to_bits().checked_add(offset)?);
    is_guest(config, address).then_some(address)
}
