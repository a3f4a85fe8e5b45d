//! A NAT in service, and what happens besides its traffic.

use core::ops::ControlFlow;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};

use host_shim::link::absent::AbsentLink;
use host_shim::link::capture::Capture;
use host_shim::link::vfio_user::Device;
use host_shim::link::{GuestLink, LinkError};
use host_shim::runner::{Runner, RunnerError, WatchId};
use nix::sys::signal::Signal;

use super::signals::{Received, Signals};
use super::wire::{Remains, Wire};
use super::{Failure, fds, stats};

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
    /// The card that was served, while there is no link.
    device: Option<Box<Device>>,
    /// What takes the place of a link that is lost, made in time: there may be no descriptor left
    /// then. `None` while it is in that place.
    absent: Option<AbsentLink>,
    /// System calls of links that are gone.
    link_calls_before: u64,
}

impl Session {
    /// Puts `runner` in service. `ready` is told once everything is set up; `capture` is kept for
    /// the first guest, if there is none yet.
    ///
    /// # Errors
    /// If signals cannot be waited for, or there is no descriptor left.
    pub(crate) fn new(
        mut runner: Runner<Wire>,
        signals: Signals,
        ready: Option<OwnedFd>,
        capture: Option<Capture>,
    ) -> io::Result<Self> {
        let signals_id = runner.watch(&signals)?;
        let absent = Some(AbsentLink::new()?);
        Ok(Self {
            runner,
            signals,
            signals_id,
            ready,
            ends: Vec::new(),
            capture,
            device: None,
            absent,
            link_calls_before: 0,
        })
    }

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
        match old {
            Wire::Absent(absent) => self.absent = Some(absent),
            lost => {
                let Remains { capture, device } = lost.into_remains();
                self.capture = self.capture.take().or(capture);
                self.device = device;
            }
        }
        Ok(())
    }

    /// The card that the guest before had, if there was one.
    pub(crate) const fn take_device(&mut self) -> Option<Box<Device>> {
        self.device.take()
    }

    fn drop_link(&mut self) -> Result<(), Failure> {
        let absent = self.absent.take().map_or_else(AbsentLink::new, Ok);
        let absent = absent.map_err(|cause| Failure::io("cannot wait for a guest", cause))?;
        self.set_link(Wire::Absent(absent))
    }

    /// Prints the table of `--stats`.
    pub(crate) fn print_stats(&self) {
        let link = self.runner.link().counters();
        let calls = stats::Calls {
            link: self.link_calls_before + link.reads + link.writes,
            host: *self.runner.host().calls(),
        };
        let device = self.runner.link().device().or(self.device.as_deref());
        let device = device.map(Device::counters);
        let table = stats::table(self.runner.nat().stats(), device.as_ref(), &calls);
        // A reader that has gone, or a disk that is full, must not end the network.
        let _ = io::stderr().write_all(table.as_bytes());
    }
}
