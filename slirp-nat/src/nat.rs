//! The NAT itself: what comes in, what is owed, and when to come again.

use core::net::SocketAddr;

use ipstack::Instant;
use ipstack::frag::FragmentQueue;
use ipstack::pool::Pool;
use managed::ManagedSlice;

use crate::config::{Config, ConfigError, Secret, Storage};
use crate::egress::Egress;
use crate::flow::share::UploadShare;
use crate::flow::{Body, FlowKey, FlowKind, FlowTable, Permits, Recoveries};
use crate::forward::{Forward, ForwardError, ForwardSlot};
use crate::host::{FlowId, ForwardId, Host, HostEvent};
use crate::link::{Frame, Link};
use crate::replies::ReplyQueue;
use crate::service::dhcp::Lease;
use crate::service::dns::Resolvers;
use crate::stats::Stats;
use crate::train::Train;

/// Bytes sent to the guest in one call, at most, before input gets its turn again.
const OUTPUT_BUDGET: usize = 256 * 1024;

/// What a visit to a flow takes of that budget whatever it sends, so that a call ends however many
/// flows are ready.
const VISIT_COST: usize = 64;

/// Timers handled in one call, at most.
const TIMER_BUDGET: usize = 256;

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
///
/// It is used by one thread. Inputs are [`Nat::receive`], [`Nat::on_host_event`],
/// [`Nat::on_link_ready`] and [`Nat::on_timer`]; all output that follows from one of them is made
/// before it returns, as far as the link has room.
#[derive(Debug)]
pub struct Nat<'a> {
    pub(crate) fragments: FragmentQueue<'a>,
    pub(crate) core: Core<'a>,
}

/// All but the fragment queue, from which a reassembled datagram is borrowed while it is handled.
#[derive(Debug)]
pub(crate) struct Core<'a> {
    pub(crate) config: Config,
    pub(crate) secret: [u64; 2],
    pub(crate) stats: Stats,
    pub(crate) table: FlowTable<'a>,
    pub(crate) permits: Permits<'a>,
    pub(crate) pool: Pool<'a>,
    pub(crate) recoveries: Recoveries<'a>,
    pub(crate) egress: Egress<'a>,
    pub(crate) leases: ManagedSlice<'a, Lease>,
    pub(crate) forwards: ManagedSlice<'a, ForwardSlot>,
    pub(crate) resolvers: Resolvers,
    pub(crate) share: UploadShare,
    /// The latest time ever given: a clock that goes backwards stands still instead.
    now: Instant,
    /// The link had no room when something was to be sent.
    pub(crate) blocked: bool,
}

/// The two sides of the NAT during one call, and its time.
pub(crate) struct Io<'io, H: ?Sized, L: ?Sized> {
    pub(crate) now: Instant,
    pub(crate) host: &'io mut H,
    pub(crate) link: &'io mut L,
}

/// How a visit to a flow ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    /// It has nothing more to send.
    Done,
    /// It has more, and others get their turn first.
    More,
    /// The link has no room.
    NoRoom,
}

impl<'a> Nat<'a> {
    /// A NAT without flows.
    ///
    /// # Errors
    /// What is wrong with `config` or `storage`.
    pub fn new(config: Config, secret: Secret, storage: Storage<'a>) -> Result<Self, ConfigError> {
        config.validate()?;
        if storage.flows.is_empty() || storage.buckets.is_empty() {
            return Err(ConfigError::Storage);
        }
        let Secret(secret) = secret;
        let train = Train::new(storage.datagram);
        let replies = ReplyQueue::new(storage.replies);
        Ok(Self {
            fragments: FragmentQueue::new(storage.fragments, storage.fragment_memory),
            core: Core {
                config,
                secret,
                stats: Stats::new(),
                table: FlowTable::new(storage.flows, storage.buckets, secret),
                permits: Permits::new(storage.permits, secret),
                pool: Pool::new(storage.pool),
                recoveries: Recoveries::new(storage.recoveries),
                egress: Egress::new(train, replies, secret),
                leases: storage.leases,
                forwards: storage.forwards,
                resolvers: Resolvers::new(),
                share: UploadShare::default(),
                now: Instant::ZERO,
                blocked: false,
            },
        })
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
        let mut io = self.core.begin(now, host, link);
        self.input(&mut io, frames);
        self.core.pump(&mut io);
    }

    /// Takes one event of the host.
    pub fn on_host_event<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        event: HostEvent,
        host: &mut H,
        link: &mut L,
    ) {
        let mut io = self.core.begin(now, host, link);
        match event {
            HostEvent::Flow(id, ready) => self.core.on_flow_event(&mut io, id, ready),
            HostEvent::Forward(forward, ready) => {
                self.core.on_forward_event(&mut io, forward, ready);
            }
        }
        self.core.pump(&mut io);
    }

    /// Says that the link has room again, after it had none.
    pub fn on_link_ready<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        host: &mut H,
        link: &mut L,
    ) {
        let mut io = self.core.begin(now, host, link);
        self.core.pump(&mut io);
    }

    /// Does what is due. Calls that are early or repeated are harmless.
    pub fn on_timer<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        host: &mut H,
        link: &mut L,
    ) {
        let mut io = self.core.begin(now, host, link);
        self.expire_fragments(&mut io);
        self.core.run_timers(&mut io);
        self.core.pump(&mut io);
    }

    /// When to call [`Nat::on_timer`] next. Any of the calls that take `now` can change it.
    #[must_use]
    pub fn poll_at(&self) -> Option<Deadline> {
        if self.core.has_output() {
            return Some(Deadline { at: self.core.now, why: Due::Output });
        }
        let flow = self.core.table.next_deadline().map(|at| Deadline { at, why: Due::Flow });
        let fragments = self.fragments.poll_at().map(|at| Deadline { at, why: Due::Fragments });
        [flow, fragments].into_iter().flatten().min_by_key(|deadline| deadline.at)
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
        self.core.add_forward(rule, host)
    }

    /// Ends a port forward; its TCP connections go on. Returns whether there was one.
    pub fn remove_forward<H: Host + ?Sized>(&mut self, forward: ForwardId, host: &mut H) -> bool {
        self.core.remove_forward(forward, host)
    }

    /// Replaces the list of resolvers; those beyond [`MAX_RESOLVERS`](crate::MAX_RESOLVERS) are
    /// left out.
    pub fn set_resolvers(&mut self, resolvers: &[SocketAddr]) {
        self.core.config.resolvers = resolvers.iter().copied().take(crate::MAX_RESOLVERS).collect();
        self.core.resolvers = Resolvers::new();
    }

    /// What happened so far.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.core.stats
    }

    /// The configuration in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.core.config
    }

    /// How many flows there are.
    #[must_use]
    pub const fn flow_count(&self) -> usize {
        self.core.table.len()
    }

    /// How many blocks of the pool hold bytes of the guest that the host has not got yet; each is
    /// [`BLOCK_LEN`](ipstack::pool::BLOCK_LEN) bytes of [`Storage::pool`].
    #[must_use]
    pub const fn pool_blocks_in_use(&self) -> usize {
        self.core.pool.in_use()
    }
}

impl Core<'_> {
    fn begin<'io, H: ?Sized, L: ?Sized>(
        &mut self,
        now: Instant,
        host: &'io mut H,
        link: &'io mut L,
    ) -> Io<'io, H, L> {
        self.now = self.now.max(now);
        Io { now: self.now, host, link }
    }

    /// Whether something could be sent at once.
    fn has_output(&self) -> bool {
        !self.blocked && (self.table.has_ready() || self.has_forward_input())
    }

    /// Sends what is owed: what waits for room, then each ready flow in its turn.
    fn pump<H: Host + ?Sized, L: Link + ?Sized>(&mut self, io: &mut Io<'_, H, L>) {
        let mut budget = OUTPUT_BUDGET;
        self.blocked = !self.egress.flush(&self.config, &mut self.stats, io.link);
        if !self.blocked {
            self.visit_forwards(io);
        }
        while !self.blocked
            && budget > 0
            && let Some(id) = self.table.pop_ready()
        {
            self.stats.counters.flow_visits += 1;
            match self.visit(io, id, &mut budget) {
                Visit::Done => {}
                Visit::More => self.table.make_ready(id),
                Visit::NoRoom => {
                    self.table.make_ready(id);
                    self.blocked = true;
                }
            }
        }
    }

    fn visit<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        budget: &mut usize,
    ) -> Visit {
        *budget = budget.saturating_sub(VISIT_COST);
        let Some(FlowKey { guest, kind, .. }) = self.table.get(id).map(|flow| flow.key) else {
            return Visit::Done;
        };
        let Self { egress, config, stats, .. } = self;
        if !egress.finds_guest(io.now, config, stats, io.link, guest.ipv4()) {
            self.table.await_neighbour(id);
            if let Some(tcp) = self.tcp(id) {
                tcp.connection.await_address(io.now);
                self.table.reschedule(id);
            }
            return Visit::Done;
        }
        match kind {
            FlowKind::Tcp => self.visit_tcp(io, id, budget),
            FlowKind::Udp | FlowKind::Ping => self.visit_datagram(io, id, budget),
        }
    }

    fn run_timers<H: Host + ?Sized, L: Link + ?Sized>(&mut self, io: &mut Io<'_, H, L>) {
        for _ in 0..TIMER_BUDGET {
            let Some(id) = self.table.pop_due(io.now) else { break };
            self.stats.counters.flow_visits += 1;
            match self.table.get(id).map(|flow| &flow.body) {
                Some(Body::Tcp(_)) => self.on_tcp_timer(io, id),
                Some(Body::Datagram(_)) => self.on_datagram_timer(io, id),
                Some(Body::Free) | None => {}
            }
            self.table.reschedule(id);
        }
    }

    /// Makes sure that the table has a free entry, by eviction if need be.
    pub(crate) fn make_room<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
    ) -> bool {
        if self.table.has_room() {
            return true;
        }
        let Some(victim) = self.table.victim() else { return false };
        self.stats.counters.flows_evicted += 1;
        match self.table.get(victim).map(|flow| &flow.body) {
            Some(Body::Tcp(_)) => self.abort_tcp(io, victim),
            _ => self.end_datagram(io.host, victim),
        }
        self.table.has_room()
    }

    fn on_flow_event<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        ready: crate::host::Ready,
    ) {
        match self.table.get(id).map(|flow| &flow.body) {
            Some(Body::Tcp(_)) => self.on_tcp_event(io, id, ready),
            Some(Body::Datagram(_)) => self.on_datagram_event(id, ready),
            Some(Body::Free) | None => {}
        }
    }
}
