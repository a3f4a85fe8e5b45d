//! The event loop: one NAT, its host's sockets and its link, behind one epoll.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use ipstack::Instant;
use slirp_nat::host::ForwardId;
use slirp_nat::{Forward, ForwardError, Nat};

use crate::clock;
use crate::link::{Batch, GuestLink, LinkError};
use crate::poller::{EventFlags, Source};
use crate::sockets::OsHost;

/// What is run: with the feature `replay` a NAT that may be recorded.
#[cfg(feature = "replay")]
type Service = crate::replay::Recorded<'static>;
/// What is run.
#[cfg(not(feature = "replay"))]
type Service = Nat<'static>;

/// Number of the link among the external descriptors; those that are watched follow it.
const LINK: u32 = 0;

/// Rounds of one turn in which the NAT fills up the room that sending has made.
const REFILLS: usize = 4;

/// Names a descriptor given to [`Runner::watch`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WatchId(u32);

/// Why a turn failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunnerError {
    /// The link is at its end. [`Runner::replace_link`] gives the NAT another one.
    Link(LinkError),
    /// Waiting failed.
    Wait(io::Error),
}

impl core::fmt::Display for RunnerError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Link(error) => error.fmt(f),
            Self::Wait(error) => write!(f, "cannot wait for events: {error}"),
        }
    }
}

impl core::error::Error for RunnerError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Link(error) => Some(error),
            Self::Wait(error) => Some(error),
        }
    }
}

impl From<LinkError> for RunnerError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}

/// A NAT that runs.
///
/// By itself: call [`Runner::turn`] in a loop. Within another loop: wait until the descriptor
/// ([`AsFd`]) is readable or [`Runner::deadline`] has come, then call `turn` with a timeout of
/// zero.
#[derive(Debug)]
pub struct Runner<L> {
    nat: Service,
    host: OsHost,
    link: L,
    batch: Batch,
    /// What the link is waited for.
    interest: EventFlags,
    /// Work was left over by the last turn.
    unfinished: bool,
    watched: u32,
    fired: Vec<WatchId>,
}

impl<L: GuestLink> Runner<L> {
    /// Brings the three together. `nat` is a [`Nat`] or, with the feature `replay`, a
    /// `replay::Recorded`.
    ///
    /// # Errors
    /// The link's descriptor cannot be waited for.
    pub fn new(nat: impl Into<Service>, host: OsHost, link: L) -> io::Result<Self> {
        host.poller().add(link.fd(), Source::External(LINK), EventFlags::IN)?;
        Ok(Self {
            nat: nat.into(),
            host,
            link,
            batch: Batch::new(),
            interest: EventFlags::IN,
            unfinished: false,
            watched: LINK,
            fired: Vec::new(),
        })
    }

    /// Waits until something happens, but at most for `timeout` (`None` for ever) and never beyond
    /// a deadline of the NAT, and does what there is to do. The work of one turn is bounded.
    ///
    /// Returns which watched descriptors are readable. They are reported in every turn until they
    /// have been read.
    ///
    /// # Errors
    /// The link is at its end, or waiting is impossible.
    pub fn turn(&mut self, timeout: Option<Duration>) -> Result<&[WatchId], RunnerError> {
        let timeout = self.time_to_wait(timeout);
        self.host.wait(timeout).map_err(RunnerError::Wait)?;
        let now = clock::now();
        self.unfinished = false;
        self.fired.clear();
        let mut link_flags = EventFlags::empty();
        for &(number, flags) in self.host.external_events() {
            if number == LINK {
                link_flags = flags;
            } else {
                self.fired.push(WatchId(number));
            }
        }
        let readable = link_flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP);
        if readable || self.link.poll_at().is_some_and(|due| due <= now) {
            self.take_frames(now)?;
        }
        self.take_host_events(now);
        if self.nat.poll_at().is_some_and(|deadline| deadline.at <= now) {
            self.nat.on_timer(now, &mut self.host, &mut self.link);
        }
        self.send_out(now)?;
        Ok(&self.fired)
    }

    fn time_to_wait(&self, timeout: Option<Duration>) -> Option<Duration> {
        if self.unfinished || timeout == Some(Duration::ZERO) {
            return Some(Duration::ZERO);
        }
        let due = self.due_at().map(|due| due.since(clock::now()));
        [timeout, due].into_iter().flatten().min()
    }

    fn due_at(&self) -> Option<Instant> {
        let nat = self.nat.poll_at().map(|deadline| deadline.at);
        [nat, self.link.poll_at()].into_iter().flatten().min()
    }

    fn take_frames(&mut self, now: Instant) -> Result<(), RunnerError> {
        let Self { nat, host, link, batch, .. } = self;
        link.receive_batch(batch)?;
        batch.for_each_chunk(|frames| nat.receive(now, frames, host, link));
        Ok(())
    }

    /// Takes the events that are there now; those that this makes are for the next turn.
    fn take_host_events(&mut self, now: Instant) {
        for _ in 0..self.host.event_count() {
            let Some(event) = self.host.next_event() else { break };
            self.nat.on_host_event(now, event, &mut self.host, &mut self.link);
        }
    }

    /// Sends what was committed, and lets the NAT fill the room that this makes.
    fn send_out(&mut self, now: Instant) -> Result<(), RunnerError> {
        for _ in 0..REFILLS {
            if !self.link.flush()? {
                return self.await_link();
            }
            self.nat.on_link_ready(now, &mut self.host, &mut self.link);
        }
        self.unfinished = true;
        self.link.flush()?;
        self.await_link()
    }

    fn await_link(&mut self) -> Result<(), RunnerError> {
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, self.link.wants_read());
        interest.set(EventFlags::OUT, self.link.wants_write());
        if interest != self.interest {
            let source = Source::External(LINK);
            let modified = self.host.poller().modify(self.link.fd(), source, interest);
            modified.map_err(|error| RunnerError::Wait(error.into()))?;
            self.interest = interest;
        }
        Ok(())
    }

    /// When to call [`Runner::turn`] even if the descriptor has not become readable.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if self.unfinished || self.host.event_count() > 0 {
            return Some(Instant::ZERO);
        }
        self.due_at()
    }

    /// Waits for `fd` to become readable, too. It stays the caller's, who takes it back by
    /// [`Runner::unwatch`] before it is closed.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn watch(&mut self, fd: impl AsFd) -> io::Result<WatchId> {
        let number = self.watched.saturating_add(1);
        self.host.poller().add(fd, Source::External(number), EventFlags::IN)?;
        self.watched = number;
        Ok(WatchId(number))
    }

    /// Waits no more for `fd`.
    ///
    /// # Errors
    /// It was not watched.
    pub fn unwatch(&mut self, fd: impl AsFd) -> io::Result<()> {
        Ok(self.host.poller().remove(fd)?)
    }

    /// Gives the NAT another link, and returns the one it had.
    ///
    /// # Errors
    /// The new link's descriptor cannot be waited for; the old one is lost then.
    pub fn replace_link(&mut self, link: L) -> io::Result<L> {
        self.host.poller().remove(self.link.fd())?;
        let old = core::mem::replace(&mut self.link, link);
        self.interest = EventFlags::IN;
        self.host.poller().add(self.link.fd(), Source::External(LINK), EventFlags::IN)?;
        let now = clock::now();
        self.nat.on_link_ready(now, &mut self.host, &mut self.link);
        self.unfinished = true;
        Ok(old)
    }

    /// Makes a port forward.
    ///
    /// # Errors
    /// A [`ForwardError`]; nothing has changed then.
    pub fn add_forward(&mut self, rule: Forward) -> Result<ForwardId, ForwardError> {
        self.nat.add_forward(rule, &mut self.host)
    }

    /// Ends a port forward. Returns whether there was one.
    pub fn remove_forward(&mut self, forward: ForwardId) -> bool {
        self.nat.remove_forward(forward, &mut self.host)
    }

    /// Replaces the list of resolvers.
    pub fn set_resolvers(&mut self, resolvers: &[SocketAddr]) {
        self.nat.set_resolvers(resolvers);
    }

    /// The NAT.
    #[must_use]
    pub const fn nat(&self) -> &Nat<'static> {
        #[cfg(feature = "replay")]
        return self.nat.nat();
        #[cfg(not(feature = "replay"))]
        &self.nat
    }

    /// The sockets.
    #[must_use]
    pub const fn host(&self) -> &OsHost {
        &self.host
    }

    /// The link.
    #[must_use]
    pub const fn link(&self) -> &L {
        &self.link
    }
}

impl<L> AsFd for Runner<L> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.host.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use slirp_nat::Config;

    use super::*;
    use crate::link::stream::StreamLink;
    use crate::secret;
    use crate::sockets::HostOptions;
    use crate::storage::Sizes;

    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

    fn runner() -> (Runner<StreamLink>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let nat = Nat::new(Config::default(), secret::draw().unwrap(), Sizes::default().allocate());
        let host = OsHost::new(&HostOptions::default()).unwrap();
        let link = StreamLink::new(ours.into()).unwrap();
        (Runner::new(nat.unwrap(), host, link).unwrap(), theirs)
    }

    fn is_readable(runner: &Runner<StreamLink>) -> bool {
        let mut fds = [PollFd::new(runner, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
    }

    #[test]
    fn a_watched_descriptor_fires_until_it_is_read() {
        let (mut runner, _guest) = runner();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let first = runner.watch(&ours).unwrap();
        assert_eq!(runner.turn(AT_ONCE).unwrap(), []);
        theirs.write_all(b"!").unwrap();
        assert_eq!(runner.turn(None).unwrap(), [first]);
        assert_eq!(runner.turn(None).unwrap(), [first]);
        ours.read_exact(&mut [0]).unwrap();
        assert_eq!(runner.turn(AT_ONCE).unwrap(), []);
        theirs.write_all(b"!").unwrap();
        runner.unwatch(&ours).unwrap();
        assert_eq!(runner.turn(AT_ONCE).unwrap(), []);
        assert_ne!(runner.watch(&ours).unwrap(), first);
    }

    #[test]
    fn the_one_descriptor_tells_another_loop_of_frames() {
        let (mut runner, mut guest) = runner();
        while runner.deadline().is_some_and(|at| at <= clock::now()) {
            runner.turn(AT_ONCE).unwrap();
        }
        assert!(!is_readable(&runner));
        guest.write_all(&60_u32.to_be_bytes()).unwrap();
        guest.write_all(&[0xff; 60]).unwrap();
        assert!(is_readable(&runner));
        runner.turn(AT_ONCE).unwrap();
        assert!(!is_readable(&runner));
        assert_eq!(runner.link().counters().frames_in, 1);
    }

    #[test]
    fn a_guest_that_left_may_be_replaced() {
        let (mut runner, guest) = runner();
        drop(guest);
        for _ in 0..2 {
            assert!(matches!(runner.turn(None), Err(RunnerError::Link(LinkError::Closed))));
        }
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        runner.replace_link(StreamLink::new(ours.into()).unwrap()).unwrap();
        runner.turn(AT_ONCE).unwrap();
        theirs.write_all(&[0, 0, 0, 1, 7]).unwrap();
        runner.turn(None).unwrap();
        assert_eq!(runner.link().counters().frames_in, 1);
    }
}
