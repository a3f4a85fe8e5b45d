//! QEMU's `-netdev stream`: frames behind a 4-byte big-endian length on a stream socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use slirp_nat::Link;
use slirp_nat::link::{Room, TxMeta};

use super::outbox::{LENGTH_BYTES, Outbox};
use super::{Batch, GuestLink, LinkCounters, LinkError, MAX_FRAME_LEN, set_nonblocking};

/// A connected stream socket, Unix or TCP.
#[derive(Debug)]
pub struct StreamLink {
    socket: OwnedFd,
    outbox: Outbox,
    /// The beginning of a frame whose rest has not come yet, with its length.
    partial: Vec<u8>,
    counters: LinkCounters,
}

impl StreamLink {
    /// Takes over a connected socket.
    ///
    /// # Errors
    /// What `fcntl` reports.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&socket)?;
        // Fails on Unix sockets, which need it not.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        Ok(Self {
            socket,
            outbox: Outbox::new(),
            partial: Vec::new(),
            counters: LinkCounters::default(),
        })
    }
}

impl Link for StreamLink {
    fn room(&mut self) -> Room {
        self.outbox.room()
    }

    /// QEMU waits when the socket is full.
    fn guest_queue_frames(&self) -> usize {
        usize::MAX
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        self.outbox.reserve(wanted)
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        self.outbox.commit(length, meta, &mut self.counters);
    }
}

impl GuestLink for StreamLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive_batch(&mut self, batch: &mut Batch) -> Result<(), LinkError> {
        batch.clear();
        let kept = self.partial.len();
        let space = batch.space();
        let Some((front, rest)) = space.split_at_mut_checked(kept) else {
            return Err(LinkError::Closed);
        };
        front.copy_from_slice(&self.partial);
        self.counters.reads += 1;
        let received = match rustix::net::recv(&self.socket, rest, RecvFlags::empty()) {
            Ok((0, _)) | Err(Errno::CONNRESET) => return Err(LinkError::Closed),
            Ok((received, _)) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.partial.clear();
        self.take_frames(batch, kept + received)
    }

    fn flush(&mut self) -> Result<bool, LinkError> {
        while !self.outbox.is_empty() {
            self.counters.writes += 1;
            match rustix::net::send(&self.socket, self.outbox.bytes(), SendFlags::NOSIGNAL) {
                Ok(sent) => self.outbox.advance(sent),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(LinkError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.outbox.shortage_ended())
    }

    fn wants_write(&self) -> bool {
        !self.outbox.is_empty()
    }

    fn counters(&self) -> LinkCounters {
        self.counters
    }
}

impl StreamLink {
    /// Finds the frames in the first `filled` bytes of the batch, and keeps what is no whole one.
    fn take_frames(&mut self, batch: &mut Batch, filled: usize) -> Result<(), LinkError> {
        let mut left = filled;
        loop {
            let bytes = batch.space().get(..left).unwrap_or_default();
            let Some((prefix, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { break };
            let announced = u32::from_be_bytes(*prefix);
            let length = announced as usize;
            if length > MAX_FRAME_LEN {
                return Err(LinkError::Oversized(announced));
            }
            if rest.len() < length {
                break;
            }
            left = rest.len() - length;
            batch.skip(LENGTH_BYTES);
            batch.push(length);
            self.counters.frames_in += 1;
        }
        self.partial.extend_from_slice(batch.space().get(..left).unwrap_or_default());
        Ok(())
    }
}
