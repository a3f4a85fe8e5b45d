//! A tap in a network namespace that exists.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};

use super::channel::{Channel, Report, Tap};
use super::{Addresses, Error, InterfaceName, tap};

/// Names a network namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// That of a process.
    Process(i32),
    /// That which a file stands for, as `ip netns` makes them.
    Path(PathBuf),
}

impl Target {
    fn path(&self) -> PathBuf {
        match self {
            Self::Process(pid) => format!("/proc/{pid}/ns/net").into(),
            Self::Path(path) => path.clone(),
        }
    }
}

/// Opens the tap `name` in the namespace `target`; see [`tap::open`] for what `addresses` does.
///
/// # Errors
/// The first step that fails.
pub(crate) fn open_tap(
    target: &Target,
    name: &InterfaceName,
    addresses: Option<&Addresses>,
) -> Result<Tap, Error> {
    let (ours, theirs) = Channel::pair()?;
    // SAFETY: this process has one thread, so that the child may use everything.
    match unsafe { fork() }.map_err(|errno| Error::new("cannot fork", errno))? {
        ForkResult::Child => {
            let tap = enter(&target.path()).and_then(|()| tap::open(name, addresses));
            let report = tap.map_or_else(|error| Report::Failed(error.to_string()), Report::Tap);
            // If the parent is gone, there is nobody to tell.
            let _ = theirs.report(&report);
            std::process::exit(0);
        }
        ForkResult::Parent { child } => {
            drop(theirs);
            let report = ours.next_report();
            let _ = waitpid(child, None);
            match report? {
                Report::Tap(tap) => Ok(tap),
                Report::Failed(line) => Err(Error::reported(line)),
                Report::UserNamespace => Err(Error::reported("the helper is confused".to_owned())),
            }
        }
    }
}

/// Enters the network namespace at `path`, by way of the user namespace that owns it if we have
/// no rights over it from here.
fn enter(path: &Path) -> Result<(), Error> {
    let namespace = File::open(path).map_err(|cause| {
        Error::new(format!("cannot open the namespace {}", path.display()), cause)
            .hint(&[Errno::ENOENT], "is the process still alive, or the path right?")
            .hint(
                &[Errno::EACCES, Errno::EPERM],
                "it belongs to another user: run as him, or as root",
            )
    })?;
    match setns(&namespace, CloneFlags::CLONE_NEWNET) {
        Err(Errno::EPERM) => {
            join_owner(&namespace).map_err(|cause| denied(path, cause))?;
            setns(&namespace, CloneFlags::CLONE_NEWNET)
        }
        result => result,
    }
    .map_err(|errno| denied(path, errno))
}

fn denied(path: &Path, cause: impl Into<io::Error>) -> Error {
    Error::new(format!("cannot enter the namespace {}", path.display()), cause)
        .hint(&[Errno::EPERM], "that takes CAP_SYS_ADMIN over it: run as its owner, or as root")
        .hint(&[Errno::EINVAL], "it is not a network namespace")
}

/// Enters the user namespace that owns `namespace` (ioctl_ns(2), NS_GET_USERNS).
fn join_owner(namespace: &File) -> io::Result<()> {
    // SAFETY: NS_GET_USERNS takes no argument.
    let result = unsafe { libc::ioctl(namespace.as_raw_fd(), libc::NS_GET_USERNS) };
    let fd = Errno::result(result)?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
    let owner = unsafe { OwnedFd::from_raw_fd(fd) };
    match setns(owner, CloneFlags::CLONE_NEWUSER) {
        // It is our own: there are no more rights to be had.
        Err(Errno::EINVAL) => Err(Errno::EPERM.into()),
        result => result.map_err(Into::into),
    }
}
