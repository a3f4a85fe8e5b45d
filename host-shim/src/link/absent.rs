//! No guest, for a NAT that waits for one, or for the next.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use slirp_nat::Link;
use slirp_nat::link::{Room, TxMeta};

use super::{Batch, GuestLink, LinkCounters, LinkError};

/// A link without another end: it never has room, and nothing ever comes.
/// [`Runner::replace_link`](crate::runner::Runner::replace_link) makes place for a guest.
#[derive(Debug)]
pub struct AbsentLink {
    /// Never readable.
    idle: OwnedFd,
}

impl AbsentLink {
    /// A link without a guest.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { idle: eventfd(0, EventfdFlags::CLOEXEC)? })
    }
}

impl Link for AbsentLink {
    fn room(&mut self) -> Room {
        Room { frames: 0, bytes: 0 }
    }

    fn guest_queue_frames(&self) -> usize {
        0
    }

    fn reserve(&mut self, _wanted: usize) -> Option<&mut [u8]> {
        None
    }

    fn commit(&mut self, _length: usize, _meta: &TxMeta) {}
}

impl GuestLink for AbsentLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.idle.as_fd()
    }

    fn receive_batch(&mut self, batch: &mut Batch) -> Result<(), LinkError> {
        batch.clear();
        Ok(())
    }

    fn flush(&mut self) -> Result<bool, LinkError> {
        Ok(false)
    }

    fn wants_write(&self) -> bool {
        false
    }

    fn counters(&self) -> LinkCounters {
        LinkCounters::default()
    }
}
