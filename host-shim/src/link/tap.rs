//! A tap: one system call a frame.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use slirp_nat::Link;
use slirp_nat::link::{Room, TxMeta, for_each_frame};

use super::{Batch, GuestLink, LinkCounters, LinkError, MAX_FRAME_LEN, set_nonblocking};

/// A tap without a virtio header (`IFF_TAP | IFF_NO_PI`).
#[derive(Debug)]
pub struct TapLink {
    fd: OwnedFd,
    guest_queue_frames: usize,
    scratch: Vec<u8>,
    counters: LinkCounters,
}

impl TapLink {
    /// Takes over an attached tap, whose transmit queue (`txqueuelen`) holds `guest_queue_frames`.
    ///
    /// # Errors
    /// What `fcntl` reports.
    pub fn new(fd: OwnedFd, guest_queue_frames: usize) -> io::Result<Self> {
        set_nonblocking(&fd)?;
        let scratch = vec![0; MAX_FRAME_LEN];
        Ok(Self { fd, guest_queue_frames, scratch, counters: LinkCounters::default() })
    }
}

impl Link for TapLink {
    /// A write to a tap runs the guest's receive path before it returns: it never has to wait.
    fn room(&mut self) -> Room {
        Room { frames: usize::MAX, bytes: usize::MAX }
    }

    fn guest_queue_frames(&self) -> usize {
        self.guest_queue_frames
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        let length = wanted.min(self.scratch.len());
        self.scratch.get_mut(..length)
    }

    /// A frame that the tap refuses is lost and counted: it is no reason to end the link
    /// (gvisor-tap-vsock #367).
    fn commit(&mut self, length: usize, meta: &TxMeta) {
        let Self { fd, scratch, counters, .. } = self;
        for_each_frame(scratch.get(..length).unwrap_or_default(), meta, |pieces| {
            counters.writes += 1;
            match rustix::io::writev(&*fd, &pieces.map(IoSlice::new)) {
                Ok(_) => counters.frames_out += 1,
                Err(_) => counters.refused += 1,
            }
        });
    }
}

impl GuestLink for TapLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive_batch(&mut self, batch: &mut Batch) -> Result<(), LinkError> {
        batch.clear();
        while !batch.is_full() {
            self.counters.reads += 1;
            match rustix::io::read(&self.fd, batch.space()) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(length) => {
                    self.counters.frames_in += 1;
                    batch.push(length);
                }
                Err(Errno::AGAIN | Errno::INTR) => break,
                // The interface is down for now, or has been deleted.
                Err(Errno::IO) => break,
                Err(Errno::BADFD | Errno::NODEV) => return Err(LinkError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<bool, LinkError> {
        Ok(false)
    }

    fn wants_write(&self) -> bool {
        false
    }

    fn counters(&self) -> LinkCounters {
        self.counters
    }
}
