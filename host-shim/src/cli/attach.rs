//! `slirpkit attach`: a tap in a namespace that exists.

use core::ops::ControlFlow;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::CapabilitySet;

use super::args::{Attach, NAMESPACE_MTU};
use super::session::{Event, Session};
use super::setup::Setup;
use super::wire::Wire;
use super::{Failure, sandbox};
use crate::netns::{Target, join};

/// Serves the namespace until a signal, a hangup or the end of its process.
///
/// # Errors
/// If the tap or the NAT cannot be made.
pub(crate) fn run(args: &Attach) -> Result<ExitCode, Failure> {
    let mtu = args.common.mtu.unwrap_or(NAMESPACE_MTU);
    let mut setup = Setup::new(&args.common)?;
    setup.default_guest(args.common.cidr.guest());
    let (target, end) = match (args.pid, &args.netns) {
        (Some(pid), _) => (Target::Process(pid), End::Process(watch_process(pid)?)),
        (None, Some(path)) => (Target::Path(path.clone()), End::Path(watch_path(path)?, path)),
        // The group of the two is required.
        (None, None) => return Err(Failure::Usage("give --pid or --netns".to_owned())),
    };
    let addresses = (!args.no_configure).then(|| args.common.cidr.addresses(mtu));
    let tap = join::open_tap(&target, &args.tap, addresses.as_ref())?;
    // Without --mtu, that of an interface which somebody else configures is taken.
    let mtu = args.common.mtu.unwrap_or(tap.mtu);
    let mut session = setup.serve(Wire::Tap(tap.into_link()?), mtu)?;
    let removal = end.watch(&mut session)?;
    sandbox::drop_rights(CapabilitySet::empty());
    session.announce()?;
    log::info!("serving {} with an MTU of {mtu}", args.tap.as_str());
    session.run_until_asked_to_end(|_, event| match (event, &removal) {
        (Event::LinkLost(error), _) => Err(Failure::Failed(error.to_string())),
        (Event::Watched, Some(removal)) => Ok(removal.has_come()),
        _ => Ok(ControlFlow::Continue(())),
    })?;
    if args.common.stats {
        session.print_stats();
    }
    Ok(ExitCode::SUCCESS)
}

/// What ends the service besides signals. The namespace itself would not end before our tap.
enum End<'a> {
    /// The end of a process, by its pidfd.
    Process(OwnedFd),
    /// The removal of a file.
    Path(Inotify, &'a Path),
}

impl<'a> End<'a> {
    /// Lets the session wait for it.
    fn watch(self, session: &mut Session) -> Result<Option<Removal<'a>>, Failure> {
        let failed = |cause: io::Error| Failure::io("cannot wait for the namespace's end", cause);
        match self {
            Self::Process(process) => session.end_with(process).map(|()| None).map_err(failed),
            Self::Path(changes, path) => {
                session.watch(&changes).map(|()| Some(Removal { changes, path })).map_err(failed)
            }
        }
    }
}

/// The removal of a namespace's file, as `ip netns delete` does it.
struct Removal<'a> {
    changes: Inotify,
    path: &'a Path,
}

impl Removal<'_> {
    /// Whether it was that file, of those in its directory.
    fn has_come(&self) -> ControlFlow<()> {
        // What has changed does not matter, but it has to be read.
        let _ = self.changes.read_events();
        if self.path.symlink_metadata().is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// Reports when something goes from the directory of `path`; nothing ever does from /proc.
fn watch_path(path: &Path) -> Result<Inotify, Failure> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let gone = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
    Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)
        .and_then(|changes| {
            changes.add_watch(directory.unwrap_or(Path::new(".")), gone).map(|_| changes)
        })
        .map_err(|errno| Failure::io(format!("cannot watch {}", path.display()), errno))
}

/// Becomes readable when the process ends (pidfd_open(2)).
fn watch_process(pid: i32) -> Result<OwnedFd, Failure> {
    let failed = |cause: io::Error| Failure::io(format!("cannot watch process {pid}"), cause);
    let id = Pid::from_raw(pid).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    pidfd_open(id, PidfdFlags::empty()).map_err(|errno| failed(errno.into()))
}
