//! QEMU's `-netdev dgram` over Unix sockets: one datagram a frame.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix};
use slirp_nat::Link;
use slirp_nat::link::{Room, TxMeta};

use super::outbox::{LENGTH_BYTES, Outbox};
use super::{Batch, GuestLink, LinkCounters, LinkError, set_nonblocking};

/// A Unix datagram socket. The guest's end may come, go and come back.
#[derive(Debug)]
pub struct DgramLink {
    socket: OwnedFd,
    /// Where the guest's end is bound; `None` if the socket was handed over connected.
    peer: Option<PathBuf>,
    connected: bool,
    outbox: Outbox,
    counters: LinkCounters,
}

impl DgramLink {
    /// Takes over a bound socket that is to be connected to `peer` once that exists, or, without
    /// `peer`, a connected one.
    ///
    /// # Errors
    /// What `fcntl` reports.
    pub fn new(socket: OwnedFd, peer: Option<PathBuf>) -> io::Result<Self> {
        set_nonblocking(&socket)?;
        let connected = peer.is_none();
        let (outbox, counters) = (Outbox::new(), LinkCounters::default());
        Ok(Self { socket, peer, connected, outbox, counters })
    }

    /// Connects, which makes the kernel tell when a full peer has room again.
    fn connect(&mut self) -> Result<(), Errno> {
        if let Some(peer) = &self.peer
            && !self.connected
        {
            rustix::net::connect(&self.socket, &SocketAddrUnix::new(peer)?)?;
            self.connected = true;
        }
        Ok(())
    }

    fn send_first(&mut self) -> Result<(), Errno> {
        self.connect()?;
        let frame = self.outbox.first_frame().unwrap_or_default();
        self.counters.writes += 1;
        rustix::net::send(&self.socket, frame, SendFlags::NOSIGNAL).map(drop)
    }
}

impl Link for DgramLink {
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

impl GuestLink for DgramLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive_batch(&mut self, batch: &mut Batch) -> Result<(), LinkError> {
        batch.clear();
        while !batch.is_full() {
            self.counters.reads += 1;
            match rustix::net::recv(&self.socket, batch.space(), RecvFlags::empty()) {
                // A datagram without a byte is no frame.
                Ok((0, _)) => {}
                Ok((length, _)) => {
                    self.counters.frames_in += 1;
                    batch.push(length);
                }
                Err(Errno::AGAIN | Errno::INTR) => break,
                // The peer went away; it may come back.
                Err(Errno::CONNRESET | Errno::CONNREFUSED) => self.connected = self.peer.is_none(),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<bool, LinkError> {
        while !self.outbox.is_empty() {
            match self.send_first() {
                Ok(()) => {}
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                // Nobody is there (yet, or any more), or the kernel has no memory for it.
                Err(error) => {
                    let gone = [Errno::CONNREFUSED, Errno::NOTCONN, Errno::CONNRESET, Errno::PIPE];
                    if gone.contains(&error) {
                        self.connected = self.peer.is_none();
                    }
                    self.counters.refused += 1;
                }
            }
            let length = self.outbox.first_frame().map_or(0, <[u8]>::len);
            self.outbox.advance(LENGTH_BYTES + length);
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
