//! Signals as something to be read.

use core::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::Failure;

/// Those that end the program, or are for the command that it runs.
const HANDLED: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// A signal that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    /// Which.
    pub(crate) signal: Signal,
    /// Whether the kernel made it, as a terminal does for its whole foreground group, rather than
    /// a process that meant us.
    pub(crate) from_kernel: bool,
}

impl Received {
    /// Whether it asks the program to end.
    pub(crate) const fn ends(self) -> bool {
        matches!(self.signal, Signal::SIGHUP | Signal::SIGINT | Signal::SIGQUIT | Signal::SIGTERM)
    }
}

/// All signals that the program handles, blocked and queued.
#[derive(Debug)]
pub(crate) struct Signals {
    queue: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Begins to queue. What the caller chose to ignore, as `nohup` does, stays ignored.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub(crate) fn queue() -> Result<Self, Failure> {
        let failed = |errno: nix::errno::Errno| Failure::io("cannot handle signals", errno);
        // An ignored SIGCHLD, which is inherited, would lose the command's exit status.
        // SAFETY: the default action is no code of ours.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }.map_err(failed)?;
        let mut set = SigSet::empty();
        set.add(Signal::SIGCHLD);
        HANDLED
            .into_iter()
            .filter(|signal| !is_ignored(*signal))
            .for_each(|signal| set.add(signal));
        let mut blocked = set;
        // A capture or recording at the limit of file sizes is to fail, not to kill the program.
        blocked.add(Signal::SIGXFSZ);
        let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let queue = SignalFd::with_flags(&set, flags).map_err(failed)?;
        Ok(Self { queue, before })
    }

    /// What was blocked before, and is to be blocked in commands that are started.
    pub(crate) const fn mask_before(&self) -> SigSet {
        self.before
    }

    /// The next signal in the queue.
    pub(crate) fn next(&self) -> Option<Received> {
        loop {
            let info = self.queue.read_signal().ok().flatten()?;
            let signal = i32::try_from(info.ssi_signo).ok().and_then(|n| Signal::try_from(n).ok());
            if let Some(signal) = signal {
                return Some(Received { signal, from_kernel: info.ssi_code > 0 });
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only fills in the present one; if it fails, the zeroed
    // value, which is a valid one, means the default action.
    let action = unsafe {
        libc::sigaction(signal as libc::c_int, core::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}
