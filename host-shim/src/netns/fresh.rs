//! Fresh namespaces for a command.

use core::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, Uid, fork, getppid};

use super::channel::{Channel, Report, Tap};
use super::interface::Control;
use super::{Addresses, Error, IdMap, InterfaceName, etc, idmap, sysctl, tap};

/// Exit status for a command that exists but cannot be executed (POSIX `env`).
const NOT_EXECUTABLE: i32 = 126;
/// Exit status for a command that cannot be found (POSIX `env`).
const NOT_FOUND: i32 = 127;
/// Exit status of the helper; nobody sees it.
const FAILED: i32 = 1;

const RESTRICTED: &str = "user namespaces are restricted here: run as root, or allow them \
    (Debian: sysctl kernel.unprivileged_userns_clone=1, \
    Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0)";
const EXHAUSTED: &str = "a limit on namespaces is reached: raise the sysctls user.max_*_namespaces";

/// What to make.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Who the command is within.
    pub(crate) id_map: IdMap,
    /// What `tap0` is given.
    pub(crate) addresses: Addresses,
    /// Content of the command's /etc/resolv.conf.
    pub(crate) resolv_conf: String,
    /// Program and arguments.
    pub(crate) command: Vec<OsString>,
    /// Signals that are blocked when it starts.
    pub(crate) signal_mask: SigSet,
}

/// Namespaces that are ready.
#[derive(Debug)]
pub(crate) struct Fresh {
    tap: Tap,
    waiting: Waiting,
}

/// A process that waits in its namespaces to become the command, and dies with its parent.
#[derive(Debug)]
pub(crate) struct Waiting {
    child: Pid,
    channel: Channel,
}

impl Waiting {
    /// Lets the process become the command.
    ///
    /// # Errors
    /// If it is gone.
    pub(crate) fn start(self) -> Result<Pid, Error> {
        self.channel
            .proceed()
            .map(|()| self.child)
            .map_err(|cause| Error::new("cannot start the command", cause))
    }
}

impl Fresh {
    /// Makes new user, network and mount namespaces with a child process in them.
    ///
    /// Root goes without a user namespace where the kernel has none to give.
    ///
    /// # Errors
    /// The first step that fails; the child is gone then.
    pub(crate) fn make(plan: &Plan) -> Result<Self, Error> {
        let (ours, theirs) = Channel::pair()?;
        let parent = Pid::this();
        // SAFETY: this process has one thread, so that the child may use everything.
        match unsafe { fork() }.map_err(|errno| Error::new("cannot fork", errno))? {
            ForkResult::Child => {
                drop(ours);
                become_command(plan, parent, &theirs)
            }
            ForkResult::Parent { child } => {
                drop(theirs);
                match await_tap(child, plan.id_map, &ours) {
                    Ok(tap) => Ok(Self { tap, waiting: Waiting { child, channel: ours } }),
                    Err(error) => {
                        // This ends the child, if it waits for an answer.
                        drop(ours);
                        let _ = waitpid(child, None);
                        Err(error)
                    }
                }
            }
        }
    }

    /// The namespaces' tap, and the process.
    pub(crate) fn into_parts(self) -> (Tap, Waiting) {
        (self.tap, self.waiting)
    }
}

/// The parent's side of the set-up.
fn await_tap(child: Pid, id_map: IdMap, channel: &Channel) -> Result<Tap, Error> {
    loop {
        match channel.next_report()? {
            Report::UserNamespace => {
                idmap::write(child, id_map)?;
                channel
                    .proceed()
                    .map_err(|cause| Error::new("the helper process is gone", cause))?;
            }
            Report::Tap(tap) => return Ok(tap),
            Report::Failed(line) => return Err(Error::reported(line)),
        }
    }
}

/// The child's side of the set-up, and its end: the command, or an exit.
fn become_command(plan: &Plan, parent: Pid, channel: &Channel) -> ! {
    let ready = enter(plan, parent, channel).and_then(|tap| {
        let report = Report::Tap(tap);
        channel.report(&report).map_err(|cause| Error::new("cannot pass the tap", cause))
    });
    if let Err(error) = ready {
        // If the parent is gone, there is nobody to tell.
        let _ = channel.report(&Report::Failed(error.to_string()));
        std::process::exit(FAILED);
    }
    // The parent closes its end without a word if it fails.
    if channel.wait().is_err() {
        std::process::exit(FAILED);
    }
    let Err(cause) = execute(plan);
    let program = plan.command.first().cloned().unwrap_or_default();
    let description = Errno::from_raw(cause.raw_os_error().unwrap_or(0)).desc();
    let line = format!("slirpkit: cannot execute {}: {description}\n", program.display());
    // The exit status has to come, whether or not somebody hears the rest.
    let _ = io::stderr().write_all(line.as_bytes());
    let missing = cause.kind() == io::ErrorKind::NotFound;
    std::process::exit(if missing { NOT_FOUND } else { NOT_EXECUTABLE });
}

fn execute(plan: &Plan) -> Result<Infallible, io::Error> {
    let (program, arguments) = plan.command.split_first().ok_or(io::ErrorKind::NotFound)?;
    plan.signal_mask.thread_set_mask()?;
    // This restores the action of SIGPIPE, which Rust ignores.
    Err(Command::new(program).args(arguments).exec())
}

fn enter(plan: &Plan, parent: Pid, channel: &Channel) -> Result<Tap, Error> {
    let refusal = enter_user_namespace(channel)?;
    // Only now: the kernel forgets this at some changes of credentials.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|errno| Error::new("cannot tie the command's life to ours", errno))?;
    if getppid() != parent {
        std::process::exit(FAILED);
    }
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(|errno| {
        Error::new("cannot make network and mount namespaces", errno)
            .hint(&[Errno::EPERM, Errno::EACCES], RESTRICTED)
            .hint(&[Errno::ENOSPC], EXHAUSTED)
    })?;
    if let Some(errno) = refusal {
        log::warn!("no user namespace ({}): the command keeps the rights of root", errno.desc());
    }
    Control::new()?.set_up(&InterfaceName::LOOPBACK)?;
    let tap = tap::open(&InterfaceName::TAP0, Some(&plan.addresses))?;
    sysctl::relax();
    etc::replace_resolv_conf(&plan.resolv_conf)?;
    Ok(tap)
}

/// Makes a user namespace and waits until its maps are filled. Root, who can do without, is told
/// why there is none.
fn enter_user_namespace(channel: &Channel) -> Result<Option<Errno>, Error> {
    match unshare(CloneFlags::CLONE_NEWUSER) {
        Ok(()) => {}
        Err(errno) if Uid::effective().is_root() => return Ok(Some(errno)),
        Err(errno) => {
            return Err(Error::new("cannot make a user namespace", errno)
                .hint(&[Errno::EPERM, Errno::EACCES], RESTRICTED)
                .hint(&[Errno::ENOSPC], EXHAUSTED));
        }
    }
    channel
        .report(&Report::UserNamespace)
        .and_then(|()| channel.wait())
        .map(|()| None)
        .map_err(|cause| Error::new("the user namespace got no maps", cause))
}
