//! An RTL8029AS for QEMU's `vfio-user-pci`: the card is a PCI device served over a Unix socket, and
//! the frames of its driver come from, and go to, its registers.
//!
//! The protocol is vfio-user (`docs/vfio-user.rst` of libvfio-user), whose structures are those of
//! `linux/vfio.h`. It is spoken here by a loop of this crate's own and not by the crate `vfio_user`
//! for two reasons. That crate's server keeps a thread for itself, with nothing to wait for but the
//! client, whereas here one event loop serves the client, the NAT and the host's sockets. And it
//! takes its client's word for lengths and texts, whereas here the client is as hostile as the
//! guest in it. Of the crate little would be left but a dozen numbers.
//!
//! - **Requests** are served as they come, many in one read, and their replies go out in one write.
//! - **Bounds.** A message is at most 4 KiB long. Replies wait in a bounded buffer; while it is
//!   full no request is read. At most eight descriptors are held, until the message that they came
//!   with has been served; only an eventfd is kept longer. A client that breaks the framing is cut
//!   off, and one that asks for what there is not is told so.
//! - **A client that leaves** leaves the card as it is, for the next one, as the specification has
//!   it. QEMU resets the card before it uses it.

mod device;
mod inbox;
mod interrupts;
mod regions;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "tests number what is small")]
mod tests;
mod wire;

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ipstack::Instant;
use rustix::io::Errno;
use rustix::net::SendFlags;
use slirp_nat::Link;
use slirp_nat::card::{Cable, RING_LEN};
use slirp_nat::link::{Room, TxMeta};

use self::inbox::Inbox;
use self::wire::Replies;
use super::{Batch, GuestLink, LinkCounters, LinkError, set_nonblocking};
use crate::clock;

pub use self::device::{Device, DeviceCounters};

/// How long a card that takes frames again is not given any. Its driver may be in the middle of its
/// interrupt handler, and Linux's looks twelve times whether there is more. Fetching a burst of
/// frames takes a tenth of a second over the socket, and that long nothing else in the guest runs:
/// so the driver shall find nothing when it looks again.
const SETTLE: Duration = Duration::from_micros(500);

/// A client of a [`Device`], over a connected Unix stream socket.
#[derive(Debug)]
pub struct VfioUserLink {
    socket: OwnedFd,
    inbox: Inbox,
    replies: Replies,
    device: Box<Device>,
    cable: Cable<'static>,
    /// Since when the card takes frames, unless it does not.
    open_since: Option<Instant>,
    /// The NAT was told that there is no room, since the card has not settled.
    holds: bool,
    counters: LinkCounters,
}

impl VfioUserLink {
    /// Takes over a connected socket, and the device that is served there.
    ///
    /// # Errors
    /// What `fcntl` reports.
    pub fn new(socket: OwnedFd, device: Box<Device>) -> io::Result<Self> {
        set_nonblocking(&socket)?;
        Ok(Self {
            socket,
            inbox: Inbox::new(),
            replies: Replies::default(),
            device,
            cable: Cable::new(vec![0; RING_LEN]),
            open_since: None,
            holds: false,
            counters: LinkCounters::default(),
        })
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// Ends the link, and returns the device for the next client.
    #[must_use]
    pub fn into_device(self) -> Box<Device> {
        let mut device = self.device;
        device.intx.disconnect();
        device
    }

    /// Serves what has been read, until there is no room for a reply or a frame.
    fn serve(&mut self, now: Instant, batch: &mut Batch) -> Result<(), LinkError> {
        while !self.replies.is_full() && !batch.is_full() {
            let Some(message) = self.inbox.next()? else { break };
            self.device.serve(now, message, &mut self.replies);
            if let Some(frame) = self.device.card.card_mut().transmit() {
                let length = frame.copy_to(batch.space());
                batch.push(length);
                self.counters.frames_in += 1;
                self.device.note_level();
            }
        }
        let is_open = self.device.card.card().can_receive();
        self.open_since = is_open.then(|| self.open_since.unwrap_or(now));
        Ok(())
    }

    /// When frames may be given to the card, if it takes any.
    fn settled_at(&self) -> Option<Instant> {
        Some(self.open_since?.after(SETTLE))
    }

    fn send_replies(&mut self) -> Result<(), LinkError> {
        while !self.replies.is_empty() {
            self.counters.writes += 1;
            match rustix::net::send(&self.socket, self.replies.bytes(), SendFlags::NOSIGNAL) {
                Ok(sent) => self.replies.advance(sent),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(LinkError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Link for VfioUserLink {
    fn room(&mut self) -> Room {
        if self.settled_at().is_some_and(|at| clock::now() < at) {
            self.holds = true;
            return Room { frames: 0, bytes: 0 };
        }
        self.cable.room(self.device.card.card())
    }

    /// A driver waits until its transmitter is free.
    fn guest_queue_frames(&self) -> usize {
        usize::MAX
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        self.cable.reserve(wanted)
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        let card = self.device.card.card_mut();
        let before = *card.stats();
        self.cable.commit(card, length, meta);
        self.counters.frames_out += card.stats().stored.saturating_sub(before.stored);
        self.counters.refused += card.stats().no_room.saturating_sub(before.no_room);
        self.device.note_level();
    }
}

impl GuestLink for VfioUserLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive_batch(&mut self, batch: &mut Batch) -> Result<(), LinkError> {
        batch.clear();
        if self.wants_read() && !self.inbox.has_message() {
            self.counters.reads += 1;
            self.inbox.read(&self.socket)?;
        }
        self.serve(clock::now(), batch)
    }

    fn flush(&mut self) -> Result<bool, LinkError> {
        self.send_replies()?;
        let now = clock::now();
        self.device.intx.signal_if_due(now);
        let settled = self.holds && self.settled_at().is_none_or(|at| at <= now);
        self.holds &= !settled;
        Ok(settled | self.cable.shortage_ended(self.device.card.card()))
    }

    fn wants_write(&self) -> bool {
        !self.replies.is_empty()
    }

    fn wants_read(&self) -> bool {
        !self.replies.is_full()
    }

    fn poll_at(&self) -> Option<Instant> {
        if self.wants_read() && self.inbox.has_message() {
            return Some(Instant::ZERO);
        }
        let settled_at = self.settled_at().filter(|_| self.holds);
        [self.device.intx.due_at(), settled_at].into_iter().flatten().min()
    }

    fn counters(&self) -> LinkCounters {
        self.counters
    }
}
