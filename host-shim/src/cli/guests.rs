//! Guests that come to a unix socket, one after the other.

use core::ops::ControlFlow;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use host_shim::link::LinkError;
use rustix::thread::CapabilitySet;

use super::session::{Event, Session};
use super::wire::Wire;
use super::{Failure, sandbox, unix};
use crate::netns::describe;

/// The way in for guests.
pub(crate) struct Door {
    listener: UnixListener,
    /// Given up for a guest for whom there is no other descriptor: one that cannot be taken would
    /// be announced without end.
    spare: Option<UnixListener>,
}

impl Door {
    /// Listens at `path`, as long as the name lives.
    ///
    /// # Errors
    /// What the kernel reports.
    pub(crate) fn open(path: &Path) -> Result<(Self, unix::SocketName), Failure> {
        let open = || {
            let (listener, name) = unix::listen(path)?;
            Ok((Self { spare: Some(listener.try_clone()?), listener }, name))
        };
        open().map_err(|cause| socket_failed(path, &cause))
    }

    fn accept(&mut self) -> io::Result<UnixStream> {
        if self.spare.is_none() {
            self.spare = self.listener.try_clone().ok();
        }
        let mut accepted = self.listener.accept();
        if accepted.as_ref().is_err_and(is_starved) && self.spare.take().is_some() {
            accepted = self.listener.accept();
        }
        accepted.map(|(socket, _)| socket)
    }

    /// Takes a guest if there is none, else turns it away.
    fn admit(&mut self, session: &Session) -> Option<UnixStream> {
        let socket = match self.accept() {
            Ok(socket) => socket,
            Err(cause) => {
                log::debug!("nobody to accept: {cause}");
                return None;
            }
        };
        if session.has_link() {
            log::warn!("turned a second guest away: the first is still connected");
            return None;
        }
        log::info!("a guest has connected");
        Some(socket)
    }
}

/// What is to be said if the socket at `path` cannot be made.
pub(crate) fn socket_failed(path: &Path, cause: &io::Error) -> Failure {
    let hint = if cause.kind() == io::ErrorKind::AddrInUse {
        "; somebody else uses it, or it is no socket: choose another path"
    } else {
        ""
    };
    Failure::of(
        format!("cannot make the socket {}", path.display()),
        format!("{}{hint}", describe(cause)),
    )
}

/// Whether there was no descriptor left.
fn is_starved(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Serves guests until a signal or a hangup: those that come through `door`, each by what `link`
/// makes of its socket. `options` are what QEMU is to be given.
///
/// # Errors
/// If waiting fails, or a guest cannot be served.
pub(crate) fn serve(
    session: &mut Session,
    mut door: Option<Door>,
    options: &str,
    mut link: impl FnMut(&mut Session, UnixStream) -> io::Result<Wire>,
) -> Result<(), Failure> {
    if let Some(door) = &door {
        let watched = session.watch(&door.listener);
        watched.map_err(|cause| Failure::io("cannot wait for guests", cause))?;
    }
    // The directories on the way to the socket, and to a peer's, may be another user's.
    sandbox::drop_rights(CapabilitySet::DAC_OVERRIDE);
    log::info!("give QEMU {options}");
    session.announce()?;
    session.run_until_asked_to_end(|session, event| {
        match (event, &mut door) {
            (Event::LinkLost(LinkError::Closed), _) => log::info!("{}", LinkError::Closed),
            (Event::LinkLost(error), _) => log::warn!("dropped the guest: {error}"),
            (Event::Watched, Some(door)) => {
                if let Some(socket) = door.admit(session) {
                    let wire = link(session, socket)
                        .map_err(|cause| Failure::io("cannot serve the guest", cause))?;
                    session.set_link(wire)?;
                }
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    })
}
