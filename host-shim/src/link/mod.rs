//! Links to a guest that are file descriptors.

pub mod absent;
mod batch;
pub mod capture;
pub mod dgram;
mod outbox;
pub mod stream;
pub mod tap;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "test patterns take the low byte")]
mod tests;
#[cfg(feature = "vfio-user")]
pub mod vfio_user;

use std::io;
use std::os::fd::BorrowedFd;

use ipstack::Instant;
use slirp_nat::Link;

pub use self::batch::{Batch, FRAMES_PER_BATCH};

/// Longest Ethernet frame that is taken: a header with a VLAN tag and the longest IP packet.
pub const MAX_FRAME_LEN: usize = 18 + 65_535;

/// A [`Link`] over a file descriptor, for an event loop.
pub trait GuestLink: Link {
    /// The descriptor to wait for.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Replaces what `batch` holds by what is readable now: 256 KiB or, where frames are read one
    /// by one, 64 frames at most. What is left makes the descriptor readable again.
    ///
    /// # Errors
    /// The link is at its end.
    fn receive_batch(&mut self, batch: &mut Batch) -> Result<(), LinkError>;

    /// Sends what has been committed, as far as the descriptor takes it. Returns whether there is
    /// room again after a shortage, which the NAT is to be told.
    ///
    /// # Errors
    /// The link is at its end.
    fn flush(&mut self) -> Result<bool, LinkError>;

    /// Whether [`GuestLink::flush`] has left something, so that the descriptor is to be waited
    /// for until it is writable.
    fn wants_write(&self) -> bool;

    /// Whether to wait for the descriptor until it is readable. A link that cannot take more from
    /// the guest until [`GuestLink::flush`] has made place says no.
    fn wants_read(&self) -> bool {
        true
    }

    /// When to call [`GuestLink::receive_batch`] and [`GuestLink::flush`] even if the descriptor is
    /// not ready until then. Each call can change it.
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// What the link did so far.
    fn counters(&self) -> LinkCounters;
}

/// What a link did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LinkCounters {
    /// Read system calls.
    pub reads: u64,
    /// Write system calls.
    pub writes: u64,
    /// Frames from the guest.
    pub frames_in: u64,
    /// Frames for the guest, after cutting.
    pub frames_out: u64,
    /// Frames for the guest that the descriptor refused.
    pub refused: u64,
    /// Frames for the guest that were committed without room.
    pub overrun: u64,
}

impl LinkCounters {
    /// Every counter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        [
            ("reads", self.reads),
            ("writes", self.writes),
            ("frames_in", self.frames_in),
            ("frames_out", self.frames_out),
            ("refused", self.refused),
            ("overrun", self.overrun),
        ]
        .into_iter()
    }
}

/// Why a link is at its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum LinkError {
    /// The other end has gone.
    Closed,
    /// The other end announced a frame longer than [`MAX_FRAME_LEN`], so what follows cannot be
    /// told apart: it does not speak this protocol.
    Oversized(u32),
    /// The other end sent what its protocol has not, so what follows cannot be told apart.
    Protocol(&'static str),
    /// The descriptor failed.
    Io(io::Error),
}

impl core::fmt::Display for LinkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Closed => f.write_str("the guest's end of the link was closed"),
            Self::Oversized(length) => write!(
                f,
                "the guest's end announced a frame of {length} bytes: not a QEMU stream socket?"
            ),
            Self::Protocol(what) => write!(f, "the guest's end sent {what}"),
            Self::Io(error) => write!(f, "the link failed: {error}"),
        }
    }
}

impl core::error::Error for LinkError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Closed | Self::Oversized(_) | Self::Protocol(_) => None,
        }
    }
}

impl From<rustix::io::Errno> for LinkError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Makes reads and writes of `fd` return at once.
fn set_nonblocking(fd: impl std::os::fd::AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK)?)
}
