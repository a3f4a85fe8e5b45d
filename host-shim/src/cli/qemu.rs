//! `slirpkit qemu`: a guest of QEMU over a unix socket.

use core::ops::ControlFlow;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;

use host_shim::link::LinkError;
use host_shim::link::absent::AbsentLink;
use host_shim::link::dgram::DgramLink;
use host_shim::link::stream::StreamLink;
use rustix::thread::CapabilitySet;

use super::args::{QEMU_MTU, Qemu};
use super::session::{Event, Session};
use super::setup::Setup;
use super::wire::Wire;
use super::{Failure, sandbox, unix};
use crate::netns::describe;

/// Serves guests, one after the other, until a signal or a hangup.
///
/// # Errors
/// If the socket or the NAT cannot be made.
pub(crate) fn run(args: &Qemu) -> Result<ExitCode, Failure> {
    let mtu = args.common.mtu.unwrap_or(QEMU_MTU);
    let setup = Setup::new(&args.common)?;
    let path = args.socket.as_path();
    let failed = |cause: io::Error| {
        let hint = if cause.kind() == io::ErrorKind::AddrInUse {
            "; somebody else uses it, or it is no socket: choose another path"
        } else {
            ""
        };
        Failure::of(
            format!("cannot make the socket {}", path.display()),
            format!("{}{hint}", describe(&cause)),
        )
    };
    // Names are bound to variables so that they live, and are removed, with the session.
    let (listener, wire, _name) = match &args.dgram {
        None => {
            let (listener, name) = unix::listen(path).map_err(failed)?;
            (Some(listener), Wire::Absent(AbsentLink::new().map_err(failed)?), name)
        }
        Some(peer) => {
            let (socket, name) = unix::datagram(path).map_err(failed)?;
            let link = DgramLink::new(socket, Some(peer.clone())).map_err(failed)?;
            (None, Wire::Dgram(link), name)
        }
    };
    let mut session = setup.serve(wire, mtu)?;
    let mut door = listener.map(Door::new).transpose().map_err(failed)?;
    door.as_ref().map_or(Ok(()), |door| session.watch(&door.listener)).map_err(failed)?;
    // The directories on the way to the socket, and to the peer's, may be another user's.
    sandbox::drop_rights(CapabilitySet::DAC_OVERRIDE);
    log::info!("give QEMU {}", options(path, args.dgram.as_deref()));
    session.announce()?;
    session.run_until_asked_to_end(|session, event| match (event, &mut door) {
        (Event::LinkLost(LinkError::Closed), _) => {
            log::info!("{}", LinkError::Closed);
            Ok(ControlFlow::Continue(()))
        }
        (Event::LinkLost(error), _) => {
            log::warn!("dropped the guest: {error}");
            Ok(ControlFlow::Continue(()))
        }
        (Event::Watched, Some(door)) => accept(session, door).map(ControlFlow::Continue),
        _ => Ok(ControlFlow::Continue(())),
    })?;
    if args.common.stats {
        session.print_stats();
    }
    Ok(ExitCode::SUCCESS)
}

/// The way in for guests.
struct Door {
    listener: UnixListener,
    /// Given up for a guest for whom there is no other descriptor: one that cannot be taken would
    /// be announced without end.
    spare: Option<UnixListener>,
}

impl Door {
    fn new(listener: UnixListener) -> io::Result<Self> {
        Ok(Self { spare: Some(listener.try_clone()?), listener })
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
}

/// Whether there was no descriptor left.
fn is_starved(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Takes a guest if there is none, else turns it away.
fn accept(session: &mut Session, door: &mut Door) -> Result<(), Failure> {
    let socket = match door.accept() {
        Ok(socket) => socket,
        Err(cause) => {
            log::debug!("nobody to accept: {cause}");
            return Ok(());
        }
    };
    if session.has_link() {
        log::warn!("turned a second guest away: the first is still connected");
        return Ok(());
    }
    log::info!("a guest has connected");
    let link = StreamLink::new(socket.into())
        .map_err(|cause| Failure::io("cannot serve the guest", cause))?;
    session.set_link(Wire::Stream(link))
}

/// What QEMU is to be given. A comma in a path is doubled, as QEMU's option parser has it.
fn options(path: &Path, peer: Option<&Path>) -> String {
    let quote = |path: &Path| path.display().to_string().replace(',', ",,");
    let netdev = match peer {
        None => format!("stream,id=n0,server=off,addr.type=unix,addr.path={}", quote(path)),
        Some(peer) => format!(
            "dgram,id=n0,local.type=unix,local.path={},remote.type=unix,remote.path={}",
            quote(peer),
            quote(path)
        ),
    };
    format!("-netdev {netdev} -device virtio-net-pci,netdev=n0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_for_qemu_name_both_ends_from_its_side() {
        assert_eq!(
            options(Path::new("/run/a,b"), None),
            "-netdev stream,id=n0,server=off,addr.type=unix,addr.path=/run/a,,b \
             -device virtio-net-pci,netdev=n0"
        );
        assert_eq!(
            options(Path::new("/run/ours"), Some(Path::new("/run/theirs"))),
            "-netdev dgram,id=n0,local.type=unix,local.path=/run/theirs,\
             remote.type=unix,remote.path=/run/ours -device virtio-net-pci,netdev=n0"
        );
    }
}
