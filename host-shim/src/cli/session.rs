//! A NAT in service, and what happens besides its traffic.

use core::ops::ControlFlow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use host_shim::link::absent::AbsentLink;
use host_shim::link::capture::Capture;
use host_shim::link::{GuestLink, LinkError};
use host_shim::runner::{Runner, RunnerError, WatchId};
use host_shim::sockets::{HostOptions, OsHost};
use host_shim::storage::Sizes;
use host_shim::{limits, secret};
use nix::sys::signal::{SigSet, Signal};
use slirp_nat::host::HostError;
use slirp_nat::{Config, Forward, ForwardError, MAX_MTU, MIN_MTU, Nat};

use super::args::Common;
use super::signals::{Received, Signals};
use super::wire::Wire;
use super::{Failure, fds, forward, resolv, stats};
use crate::netns::describe;

/// Bytes kept of each frame of a capture: all.
const SNAPLEN: u32 = 256 << 10;

/// What happened besides the traffic.
#[derive(Debug)]
pub(crate) enum Event {
    /// A signal came.
    Signal(Received),
    /// The other side of `--exit-fd` is gone, or the process whose namespace was served.
    Hangup,
    /// The link is at its end; the NAT goes on without.
    LinkLost(LinkError),
    /// The descriptor given to [`Session::watch`] is readable.
    Watched,
}

/// All that can be made, or found wrong, before there is a link.
#[derive(Debug)]
pub(crate) struct Setup {
    config: Config,
    sizes: Sizes,
    forwards: Vec<Forward>,
    capture: Option<Capture>,
    host_resolv_conf: String,
    signals: Signals,
    ready: Option<OwnedFd>,
    exit: Option<OwnedFd>,
}

impl Setup {
    /// From the options. To be called before anything else is opened.
    ///
    /// # Errors
    /// What is wrong with an option, or missing.
    pub(crate) fn new(common: &Common) -> Result<Self, Failure> {
        let ready = common.ready_fd.map(|fd| fds::adopt("--ready-fd", fd)).transpose()?;
        let exit = common.exit_fd.map(|fd| fds::adopt("--exit-fd", fd)).transpose()?;
        let host_resolv_conf = std::fs::read_to_string(resolv::PATH).unwrap_or_default();
        let mut sizes = Sizes::default();
        sizes.flows = usize::try_from(common.flows).unwrap_or(usize::MAX);
        sizes.permits = sizes.flows.saturating_mul(2);
        sizes.forwards = common.forward.len();
        let create = |path: &std::path::PathBuf| {
            Capture::create(path, SNAPLEN)
                .map_err(|cause| Failure::io(format!("cannot write {}", path.display()), cause))
        };
        Ok(Self {
            config: configuration(common, &host_resolv_conf),
            sizes,
            forwards: common.forward.clone(),
            capture: common.pcap.as_ref().map(create).transpose()?,
            host_resolv_conf,
            signals: Signals::queue()?,
            ready,
            exit,
        })
    }

    /// The host's resolv.conf, empty if it has none.
    pub(crate) fn host_resolv_conf(&self) -> &str {
        &self.host_resolv_conf
    }

    /// The signals to be blocked in a command.
    pub(crate) const fn signal_mask(&self) -> SigSet {
        self.signals.mask_before()
    }

    /// Makes the fixed address of namespaces the default for forwards.
    pub(crate) const fn default_guest(&mut self, guest: core::net::Ipv4Addr) {
        self.config.default_guest = guest;
    }

    /// Serves the guest behind `wire`, whose MTU is `mtu` bytes; one that no guest can have is
    /// moved into the range.
    ///
    /// # Errors
    /// What the NAT or the host reports.
    pub(crate) fn serve(mut self, wire: Wire, mtu: u16) -> Result<Session, Failure> {
        self.config.mtu = mtu.clamp(MIN_MTU, MAX_MTU);
        let set_up = |cause: io::Error| Failure::io("cannot set up the NAT", cause);
        match limits::raise_descriptor_limit() {
            Ok(limit) => log::info!("up to {} flows and {limit} open files", self.sizes.flows),
            Err(cause) => log::warn!("cannot raise the limit of open files: {cause}"),
        }
        let secret = secret::draw().map_err(set_up)?;
        let nat = Nat::new(self.config, secret, self.sizes.allocate())
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let host = OsHost::new(&HostOptions::default()).map_err(set_up)?;
        let wire = wire.captured(&mut self.capture);
        let mut runner = Runner::new(nat, host, wire).map_err(set_up)?;
        for rule in &self.forwards {
            runner.add_forward(*rule).map_err(|error| refused(rule, error))?;
        }
        let signals_id = runner.watch(&self.signals).map_err(set_up)?;
        let mut session = Session {
            runner,
            signals: self.signals,
            signals_id,
            ready: self.ready,
            ends: Vec::new(),
            capture: self.capture,
            link_calls_before: 0,
        };
        if let Some(exit) = self.exit {
            session.end_with(exit).map_err(|cause| {
                Failure::Usage(format!(
                    "--exit-fd: {}; it must be a pipe or a socket",
                    describe(&cause)
                ))
            })?;
        }
        Ok(session)
    }
}

fn configuration(common: &Common, host_resolv_conf: &str) -> Config {
    let mut config = Config::default();
    config.network = common.cidr.network();
    config.prefix_len = common.cidr.prefix_len();
    config.gateway = common.cidr.gateway();
    config.dns = common.cidr.dns();
    config.first_lease = common.cidr.first_lease();
    config.default_guest = common.cidr.first_lease();
    config.host_loopback = common.host_loopback;
    let resolvers = if common.dns.is_empty() {
        resolv::nameservers(host_resolv_conf)
    } else {
        common.dns.clone()
    };
    if resolvers.is_empty() {
        log::warn!("{} names no server: name look-ups will fail; give --dns ADDRESS", resolv::PATH);
    }
    config.resolvers = resolvers.into_iter().take(slirp_nat::MAX_RESOLVERS).collect();
    config
}

fn refused(rule: &Forward, error: ForwardError) -> Failure {
    let hint = match error {
        ForwardError::Host(HostError::Denied) if rule.host.port() < 1024 => {
            "; ports below 1024 are root's: choose another, \
             or lower the sysctl net.ipv4.ip_unprivileged_port_start"
        }
        ForwardError::Host(HostError::InUse) => "; choose another port of the host",
        _ => "",
    };
    Failure::of(format!("cannot forward {}", forward::format(rule)), format!("{error}{hint}"))
}

/// A NAT with its link.
#[derive(Debug)]
pub(crate) struct Session {
    runner: Runner<Wire>,
    signals: Signals,
    signals_id: WatchId,
    ready: Option<OwnedFd>,
    /// Descriptors whose hangup, or readiness for a pidfd, ends the session.
    ends: Vec<(WatchId, OwnedFd)>,
    /// The capture, while there is no link.
    capture: Option<Capture>,
    /// System calls of links that are gone.
    link_calls_before: u64,
}

impl Session {
    /// Writes to `--ready-fd`, if there is one.
    ///
    /// # Errors
    /// What the write reports.
    pub(crate) fn announce(&mut self) -> Result<(), Failure> {
        self.ready.take().map_or(Ok(()), fds::announce)
    }

    /// Reports a hangup when the other side of `fd` is gone or, if it is a pidfd, the process.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub(crate) fn end_with(&mut self, fd: OwnedFd) -> io::Result<()> {
        let id = self.runner.watch(&fd)?;
        self.ends.push((id, fd));
        Ok(())
    }

    /// Reports when `fd` is readable.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub(crate) fn watch(&mut self, fd: impl AsFd) -> io::Result<()> {
        self.runner.watch(fd).map(drop)
    }

    /// Serves the guest until something else happens.
    ///
    /// # Errors
    /// If waiting fails.
    pub(crate) fn next(&mut self) -> Result<Event, Failure> {
        loop {
            // The others are reported again in the next turn.
            let fired = match self.runner.turn(None) {
                Ok(fired) => fired.first().copied(),
                Err(RunnerError::Link(error)) => {
                    self.drop_link()?;
                    return Ok(Event::LinkLost(error));
                }
                Err(error) => return Err(Failure::Failed(error.to_string())),
            };
            let Some(id) = fired else { continue };
            if id == self.signals_id {
                if let Some(received) = self.signals.next() {
                    return Ok(Event::Signal(received));
                }
            } else if let Some(index) = self.ends.iter().position(|(end, _)| *end == id) {
                if self.has_ended(index) {
                    return Ok(Event::Hangup);
                }
            } else {
                return Ok(Event::Watched);
            }
        }
    }

    /// Whether one of `ends` has really ended; if so, it is closed.
    fn has_ended(&mut self, index: usize) -> bool {
        let ended = self.ends.get(index).is_some_and(|(_, fd)| fds::is_at_end(fd));
        if ended {
            let (_, fd) = self.ends.remove(index);
            // It was watched, so that this cannot fail.
            let _ = self.runner.unwatch(&fd);
        }
        ended
    }

    /// Serves the guest until a signal or a hangup ends it, or `other`, which is given the rest of
    /// what happens.
    ///
    /// # Errors
    /// If waiting or `other` fails.
    pub(crate) fn run_until_asked_to_end(
        &mut self,
        mut other: impl FnMut(&mut Self, Event) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        loop {
            match self.next()? {
                Event::Signal(received) if received.ends() => return Ok(()),
                Event::Signal(Received { signal: Signal::SIGUSR1, .. }) => self.print_stats(),
                Event::Signal(_) => {}
                Event::Hangup => return Ok(()),
                event => {
                    if other(self, event)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether there is a guest.
    pub(crate) const fn has_link(&self) -> bool {
        !matches!(self.runner.link(), Wire::Absent(_))
    }

    /// Gives a guest to the NAT that had none.
    ///
    /// # Errors
    /// If its descriptor cannot be waited for.
    pub(crate) fn set_link(&mut self, wire: Wire) -> Result<(), Failure> {
        let wire = wire.captured(&mut self.capture);
        let counters = self.runner.link().counters();
        self.link_calls_before += counters.reads + counters.writes;
        let old = self
            .runner
            .replace_link(wire)
            .map_err(|cause| Failure::io("cannot serve the guest", cause))?;
        self.capture = self.capture.take().or_else(|| old.into_capture());
        Ok(())
    }

    fn drop_link(&mut self) -> Result<(), Failure> {
        let absent =
            AbsentLink::new().map_err(|cause| Failure::io("cannot wait for a guest", cause))?;
        self.set_link(Wire::Absent(absent))
    }

    /// Prints the table of `--stats`.
    pub(crate) fn print_stats(&self) {
        let link = self.runner.link().counters();
        let calls = stats::Calls {
            link: self.link_calls_before + link.reads + link.writes,
            host: *self.runner.host().calls(),
        };
        eprint!("{}", stats::table(self.runner.nat().stats(), &calls));
    }
}
