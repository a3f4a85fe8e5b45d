//! `--ready-fd` and `--exit-fd`: descriptors that the caller left open for us.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Failure;

/// Takes over a descriptor named on the command line, and keeps it from commands we start.
///
/// # Errors
/// If it is not open, or is one of the standard three.
pub(crate) fn adopt(option: &str, fd: RawFd) -> Result<OwnedFd, Failure> {
    let wrong = |what: &str| Failure::Usage(format!("{option} {fd}: {what}"));
    if fd <= libc::STDERR_FILENO {
        return Err(wrong("standard input, output and error are not for this: use 3 or more"));
    }
    // SAFETY: the number is only handed to fcntl, which answers EBADF if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl(borrowed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|_| {
        wrong(&format!("not open: open it in the shell, as {fd}>FILE or {fd}<FILE"))
    })?;
    // SAFETY: it is open, and the caller named it for us alone; this runs before the program opens
    // anything of its own, so that the number cannot be one of those.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Says that the network is up, and closes the descriptor.
///
/// # Errors
/// What the write reports.
pub(crate) fn announce(fd: OwnedFd) -> Result<(), Failure> {
    File::from(fd).write_all(b"1").map_err(|cause| Failure::io("cannot write to --ready-fd", cause))
}

/// Whether a descriptor that is readable is at its end: the other side closed, or the process of a
/// pidfd gone. Bytes that came instead are thrown away.
pub(crate) fn is_at_end(fd: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    let events = match poll(&mut polled, PollTimeout::ZERO) {
        Ok(_) => polled[0].revents().unwrap_or(PollFlags::empty()),
        Err(_) => return false,
    };
    if events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
        return true;
    }
    // A socket of which only the sending half was closed reads as empty, and so does a pidfd fail
    // to be read.
    events.contains(PollFlags::POLLIN) && !matches!(nix::unistd::read(fd, &mut [0; 512]), Ok(1..))
}
