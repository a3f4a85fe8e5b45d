//! The NAT itself: what comes in, what is owed, and when to come again.

use core::net::SocketAddr;

use ipstack::Instant;

use crate::config::{Config, ConfigError, Secret, Storage};
use crate::forward::{Forward, ForwardError};
use crate::host::{ForwardId, Host, HostEvent};
use crate::link::{Frame, Link};
use crate::stats::Stats;

/// When to call [`Nat::on_timer`], and what for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The time.
    pub at: Instant,
    /// What is due then.
    pub why: Due,
}

/// What a [`Deadline`] is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Due {
    /// There is more output than one call may make: come again at once.
    Output,
    /// A timer of some flow.
    Flow,
    /// Fragments that wait for the rest of their datagram.
    Fragments,
}

/// A NAT with its virtual router, for one link.
#[derive(Debug)]
pub struct Nat<'a> {
    config: Config,
    storage: Storage<'a>,
    stats: Stats,
    secret: Secret,
}

impl<'a> Nat<'a> {
    /// A NAT without flows.
    ///
    /// # Errors
    /// What is wrong with `config` or `storage`.
    pub fn new(config: Config, secret: Secret, storage: Storage<'a>) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self { config, storage, stats: Stats::new(), secret })
    }

    /// Takes a batch of frames from the guest: what is readable now, never waited for.
    ///
    /// All that follows from it is done before the call returns: one gathered write for each TCP
    /// flow, then one ACK, and replies as far as the link has room.
    pub fn receive<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        frames: &[Frame<'_>],
        host: &mut H,
        link: &mut L,
    ) {
    }

    /// Takes one event of the host.
    pub fn on_host_event<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        event: HostEvent,
        host: &mut H,
        link: &mut L,
    ) {
    }

    /// Says that the link has room again, after it had none.
    pub fn on_link_ready<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        host: &mut H,
        link: &mut L,
    ) {
    }

    /// Does what is due. Calls that are early or repeated are harmless.
    pub fn on_timer<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        host: &mut H,
        link: &mut L,
    ) {
    }

    /// When to call [`Nat::on_timer`] next. Any of the calls that take `now` can change it.
    #[must_use]
    pub fn poll_at(&self) -> Option<Deadline> {
        None
    }

    /// Makes a port forward.
    ///
    /// # Errors
    /// A [`ForwardError`]; nothing has changed then.
    pub fn add_forward<H: Host + ?Sized>(
        &mut self,
        rule: Forward,
        host: &mut H,
    ) -> Result<ForwardId, ForwardError> {
        Err(ForwardError::TableFull)
    }

    /// Ends a port forward; its connections go on. Returns whether there was one.
    pub fn remove_forward<H: Host + ?Sized>(&mut self, forward: ForwardId, host: &mut H) -> bool {
        false
    }

    /// Replaces the list of resolvers; those beyond [`MAX_RESOLVERS`](crate::MAX_RESOLVERS) are
    /// left out.
    pub fn set_resolvers(&mut self, resolvers: &[SocketAddr]) {
        self.config.resolvers = resolvers.iter().copied().take(crate::MAX_RESOLVERS).collect();
    }

    /// What happened so far.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The configuration in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// How many flows there are.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        0
    }
}
