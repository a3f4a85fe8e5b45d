//! A NAT that writes down what happens to it.

use core::cell::RefCell;
use core::net::SocketAddr;
use std::io::{self, BufWriter, Write};

use ipstack::Instant;
use slirp_nat::host::ForwardId;
use slirp_nat::link::Frame;
use slirp_nat::{
    Config, ConfigError, Deadline, Forward, ForwardError, Host, HostEvent, Link, Nat, Secret,
    Storage,
};

use super::config::Header;
use super::format::{Call, InFrame, Input, Line};
use super::tape::{TapedHost, TapedLink};

/// Bytes that are held back at most; a call of the NAT ends with none.
const BUFFER_LEN: usize = 64 << 10;

/// Where lines go. After the first error nothing more is written.
pub(super) struct Tape {
    writer: BufWriter<Box<dyn Write + Send>>,
    failure: Option<io::Error>,
}

impl core::fmt::Debug for Tape {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tape").field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl Tape {
    fn new(writer: Box<dyn Write + Send>) -> Self {
        Self { writer: BufWriter::with_capacity(BUFFER_LEN, writer), failure: None }
    }

    pub(super) fn write(&mut self, line: &Line) {
        self.attempt(|writer| {
            serde_json::to_writer(&mut *writer, line)?;
            writer.write_all(b"\n")
        });
    }

    /// Hands on what was written, so that a crash loses nothing before it.
    fn flush(&mut self) {
        self.attempt(|writer| writer.flush());
    }

    fn attempt(
        &mut self,
        act: impl FnOnce(&mut BufWriter<Box<dyn Write + Send>>) -> io::Result<()>,
    ) {
        if self.failure.is_none()
            && let Err(error) = act(&mut self.writer)
        {
            log::warn!("the recording has ended: {error}");
            self.failure = Some(error);
        }
    }
}

/// The last line says that the recording is whole.
impl Drop for Tape {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.write(&Line::End {});
            self.flush();
        }
    }
}

/// A [`Nat`] that may be recorded. It has the calls of the NAT, and does the same.
#[derive(Debug)]
pub struct Recorded<'a> {
    nat: Nat<'a>,
    tape: Option<RefCell<Tape>>,
    scratch: Vec<u8>,
}

impl<'a> From<Nat<'a>> for Recorded<'a> {
    /// A NAT that is not recorded.
    fn from(nat: Nat<'a>) -> Self {
        Self { nat, tape: None, scratch: Vec::new() }
    }
}

impl<'a> Recorded<'a> {
    /// Makes a NAT, and a recording of it from the beginning.
    ///
    /// # Errors
    /// What is wrong with `config` or `storage`. An error in writing ends the recording only: see
    /// [`Recorded::failure`].
    pub fn new(
        config: Config,
        secret: Secret,
        storage: Storage<'a>,
        writer: impl Write + Send + 'static,
    ) -> Result<Self, ConfigError> {
        let mut tape = Tape::new(Box::new(writer));
        match Header::new(&config, secret, &storage) {
            Some(header) => tape.write(&Line::Header(Box::new(header))),
            None => tape.attempt(|_| Err(io::Error::other("its configuration has no form"))),
        }
        tape.flush();
        let nat = Nat::new(config, secret, storage)?;
        Ok(Self { nat, tape: Some(RefCell::new(tape)), scratch: Vec::new() })
    }

    /// The NAT.
    #[must_use]
    pub const fn nat(&self) -> &Nat<'a> {
        &self.nat
    }

    /// Why the recording has ended, if it has.
    pub fn failure(&mut self) -> Option<&io::Error> {
        self.tape.as_mut().and_then(|tape| tape.get_mut().failure.as_ref())
    }

    /// See [`Nat::receive`].
    pub fn receive<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        frames: &[Frame<'_>],
        host: &mut H,
        link: &mut L,
    ) {
        let Self { nat, tape, scratch } = self;
        let Some(tape) = running(tape) else { return nat.receive(now, frames, host, link) };
        let call = Call::Receive(frames.iter().map(InFrame::new).collect());
        let (mut host, mut link) = begin(tape, now, call, host, link, scratch);
        nat.receive(now, frames, &mut host, &mut link);
        end(tape, nat);
    }

    /// See [`Nat::on_host_event`].
    pub fn on_host_event<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        event: HostEvent,
        host: &mut H,
        link: &mut L,
    ) {
        let Self { nat, tape, scratch } = self;
        let Some(tape) = running(tape) else { return nat.on_host_event(now, event, host, link) };
        let (mut host, mut link) = begin(tape, now, Call::event(event), host, link, scratch);
        nat.on_host_event(now, event, &mut host, &mut link);
        end(tape, nat);
    }

    /// See [`Nat::on_link_ready`].
    pub fn on_link_ready<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        host: &mut H,
        link: &mut L,
    ) {
        let Self { nat, tape, scratch } = self;
        let Some(tape) = running(tape) else { return nat.on_link_ready(now, host, link) };
        let (mut host, mut link) = begin(tape, now, Call::LinkReady, host, link, scratch);
        nat.on_link_ready(now, &mut host, &mut link);
        end(tape, nat);
    }

    /// See [`Nat::on_timer`].
    pub fn on_timer<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        now: Instant,
        host: &mut H,
        link: &mut L,
    ) {
        let Self { nat, tape, scratch } = self;
        let Some(tape) = running(tape) else { return nat.on_timer(now, host, link) };
        let (mut host, mut link) = begin(tape, now, Call::Timer, host, link, scratch);
        nat.on_timer(now, &mut host, &mut link);
        end(tape, nat);
    }

    /// See [`Nat::poll_at`].
    #[must_use]
    pub fn poll_at(&self) -> Option<Deadline> {
        self.nat.poll_at()
    }

    /// See [`Nat::add_forward`].
    ///
    /// # Errors
    /// As there.
    pub fn add_forward<H: Host + ?Sized>(
        &mut self,
        rule: Forward,
        host: &mut H,
    ) -> Result<ForwardId, ForwardError> {
        let Self { nat, tape, .. } = self;
        let Some(tape) = running(tape) else { return nat.add_forward(rule, host) };
        announce(tape, Instant::ZERO, Call::add_forward(rule));
        let result = nat.add_forward(rule, &mut TapedHost::new(host, tape));
        end(tape, nat);
        result
    }

    /// See [`Nat::remove_forward`].
    pub fn remove_forward<H: Host + ?Sized>(&mut self, forward: ForwardId, host: &mut H) -> bool {
        let Self { nat, tape, .. } = self;
        let Some(tape) = running(tape) else { return nat.remove_forward(forward, host) };
        announce(tape, Instant::ZERO, Call::RemoveForward { forward: forward.0 });
        let removed = nat.remove_forward(forward, &mut TapedHost::new(host, tape));
        end(tape, nat);
        removed
    }

    /// See [`Nat::set_resolvers`].
    pub fn set_resolvers(&mut self, resolvers: &[SocketAddr]) {
        let Self { nat, tape, .. } = self;
        let Some(tape) = running(tape) else { return nat.set_resolvers(resolvers) };
        announce(tape, Instant::ZERO, Call::SetResolvers(resolvers.to_vec()));
        nat.set_resolvers(resolvers);
        end(tape, nat);
    }
}

/// The recording, unless it has ended: then nothing is spent on it any more.
fn running(tape: &mut Option<RefCell<Tape>>) -> Option<&RefCell<Tape>> {
    let tape = tape.as_mut()?;
    let has_ended = tape.get_mut().failure.is_some();
    (!has_ended).then_some(&*tape)
}

/// Writes down a call before it is made, so that one from which the NAT does not come back is the
/// last in the file.
fn announce(tape: &RefCell<Tape>, now: Instant, call: Call) {
    let mut tape = tape.borrow_mut();
    tape.write(&Line::Input(Input { at: now.micros(), call }));
    tape.flush();
}

fn begin<'t, H: ?Sized, L: ?Sized>(
    tape: &'t RefCell<Tape>,
    now: Instant,
    call: Call,
    host: &'t mut H,
    link: &'t mut L,
    scratch: &'t mut Vec<u8>,
) -> (TapedHost<'t, H>, TapedLink<'t, L>) {
    announce(tape, now, call);
    (TapedHost::new(host, tape), TapedLink::new(link, tape, scratch))
}

fn end(tape: &RefCell<Tape>, nat: &Nat<'_>) {
    let mut tape = tape.borrow_mut();
    tape.write(&Line::Due { at: nat.poll_at().map(|deadline| deadline.at.micros()) });
    tape.flush();
}
