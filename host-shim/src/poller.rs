//! One edge- or level-triggered epoll for everything that is waited for.

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

pub(crate) use rustix::event::epoll::EventFlags;

/// Events taken from the kernel at a time: what one turn of a loop may be kept busy with.
const EVENTS_PER_WAIT: usize = 256;

/// Set in the low half of an event's data for descriptors that are no sockets of ours. A slab of
/// sockets never grows to that index.
const EXTERNAL: u32 = 1 << 31;

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// A socket: its slot, and how often that slot has been used, so that an event which was
    /// collected before the socket was closed is told from one of its successor.
    Socket { index: u32, generation: u32 },
    /// A descriptor that the event loop watches, under a number of its choice below 2^31.
    External(u32),
}

impl Source {
    fn to_data(self) -> epoll::EventData {
        epoll::EventData::new_u64(match self {
            Self::Socket { index, generation } => u64::from(generation) << 32 | u64::from(index),
            Self::External(number) => u64::from(number | EXTERNAL),
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "the halves of a u64")]
    fn from_data(data: epoll::EventData) -> Self {
        let (low, high) = (data.u64() as u32, (data.u64() >> 32) as u32);
        if low & EXTERNAL != 0 {
            Self::External(low & !EXTERNAL)
        } else {
            Self::Socket { index: low, generation: high }
        }
    }
}

pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(EVENTS_PER_WAIT) })
    }

    pub(crate) fn add(
        &self,
        fd: impl AsFd,
        source: Source,
        flags: EventFlags,
    ) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, source.to_data(), flags)
    }

    pub(crate) fn modify(
        &self,
        fd: impl AsFd,
        source: Source,
        flags: EventFlags,
    ) -> Result<(), Errno> {
        epoll::modify(&self.epoll, fd, source.to_data(), flags)
    }

    pub(crate) fn remove(&self, fd: impl AsFd) -> Result<(), Errno> {
        epoll::delete(&self.epoll, fd)
    }

    /// Waits until something happens or `timeout` has passed, then hands every event to `each`.
    /// A signal ends the wait early.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        mut each: impl FnMut(Source, EventFlags),
    ) -> io::Result<usize> {
        // Beyond what a Timespec holds is as good as for ever.
        let mut timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        self.events.clear();
        if let Some(short) = timeout.filter(is_below_one_millisecond) {
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&short)) {
                Ok(0) | Err(Errno::INTR) => return Ok(0),
                Ok(_) => timeout = Some(Timespec::default()),
                Err(error) => return Err(error.into()),
            }
        }
        let buffer = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, buffer, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            let (data, flags) = (event.data, event.flags);
            each(Source::from_data(data), flags);
        }
        Ok(self.events.len())
    }
}

/// Whether the kernel, for which a timeout of epoll has milliseconds, would wait longer.
fn is_below_one_millisecond(timeout: &Timespec) -> bool {
    timeout.tv_sec == 0 && (1..1_000_000).contains(&timeout.tv_nsec)
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl core::fmt::Debug for Poller {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Poller").field(&self.epoll).finish()
    }
}
