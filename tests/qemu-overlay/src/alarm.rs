//! A descriptor that becomes readable at a time.

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ipstack::Instant;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer of the kernel's. It is set anew only to an earlier time: deadlines move on with each
/// frame, and one that is early costs less than a system call a frame.
pub(crate) struct Alarm {
    timer: OwnedFd,
    set_to: Option<Instant>,
}

impl Alarm {
    /// One that is not set.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Monotonic, flags)?, set_to: None })
    }

    /// Becomes readable at `at` of the monotonic clock at the latest. Returns whether it had to be
    /// set anew for that.
    pub(crate) fn set(&mut self, at: Instant) -> bool {
        if self.set_to.is_some_and(|set_to| set_to <= at) {
            return false;
        }
        // A time of zero would switch the timer off.
        let since_zero = at.since(Instant::ZERO).max(Duration::from_nanos(1));
        let Ok(it_value) = Timespec::try_from(since_zero) else { return false };
        let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Itimerspec { it_interval: interval, it_value };
        let set = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value).is_ok();
        if set {
            self.set_to = Some(at);
        }
        set
    }

    /// To be called when it is readable; it is not set then.
    pub(crate) fn take(&mut self) {
        // Nothing to read means that it was set anew in between.
        if rustix::io::read(&self.timer, &mut [0; 8]).is_ok() {
            self.set_to = None;
        }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
