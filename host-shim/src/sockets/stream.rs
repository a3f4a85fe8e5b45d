//! One TCP connection: peek, consume, send, and what of its state is known without asking.

use core::net::SocketAddr;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown,
    SocketFlags, SocketType, ipproto, sockopt,
};
use slirp_nat::host::{Connected, HostError, Peek, Ready};

use super::calls::SystemCalls;
use super::errors::from_errno;
use super::options::{self, PeekOffset};
use crate::poller::EventFlags;

/// What a stream is registered for. EPOLLOUT costs nothing while there is room: the kernel wakes
/// for it only after the socket was found full. EPOLLPRI tells of urgent data.
pub(super) const INTEREST: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP)
    .union(EventFlags::PRI)
    .union(EventFlags::ET);

/// Slices handed to the kernel in one call.
const SLICES: usize = 64;

/// Bytes thrown away in one call. The kernel does not touch the buffer.
const DISCARD_BYTES: usize = 1 << 20;

/// Calls that empty a receive queue before a close, at most: a peer that sends faster than that is
/// reset like one that sends after the close.
const DRAIN_CALLS: usize = 16;

/// How bytes beyond others are peeked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeekMode {
    /// By the kernel's own offset, `SO_PEEK_OFF`: TCP has it since Linux 6.9.
    Offset,
    /// By copying what lies before into a buffer that nobody reads.
    Discard,
}

/// What all streams of a host share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) calls: SystemCalls,
    pub(super) mode: PeekMode,
    discard: Vec<u8>,
}

impl Shared {
    pub(super) fn new(mode: PeekMode) -> Self {
        Self { calls: SystemCalls::default(), mode, discard: vec![0; DISCARD_BYTES] }
    }
}

/// A connection, also while it is being made.
#[derive(Debug)]
pub(super) struct Stream {
    fd: OwnedFd,
    mode: PeekMode,
    /// Where the kernel's next peek starts, beyond what has been taken from it.
    kernel_offset: usize,
    /// Consumed by the NAT, but not yet taken from the kernel.
    owed: usize,
    /// If known: how many bytes beyond the last consumed one there are. Learnt from a short peek,
    /// forgotten at the next event.
    available: Option<usize>,
    /// The peer has sent its last byte, and all of its bytes are here.
    ended: bool,
    /// There has been urgent data, at which peeks and reads stop short.
    urgent: bool,
    error: Option<HostError>,
    /// A *writable* event is owed.
    wants_write: bool,
    /// The kernel is known to wake for writability.
    armed: bool,
}

impl Stream {
    /// Starts to connect. A connect to loopback often ends at once, one way or the other.
    pub(super) fn connect(remote: SocketAddr, shared: &mut Shared) -> Result<Self, HostError> {
        shared.calls.open += 2;
        let fd = rustix::net::socket_with(
            super::family_of(remote),
            SocketType::STREAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            Some(ipproto::TCP),
        )
        .map_err(from_errno)?;
        let mut stream = Self::new(fd, shared)?;
        stream.wants_write = true;
        match rustix::net::connect(&stream.fd, &remote) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(stream),
            Err(error) => Err(from_errno(error)),
        }
    }

    /// Makes a connected or unconnected socket fit for the rest of this module.
    pub(super) fn new(fd: OwnedFd, shared: &mut Shared) -> Result<Self, HostError> {
        shared.calls.option += 3;
        sockopt::set_tcp_nodelay(&fd, true).map_err(from_errno)?;
        // Else the kernel skips an urgent byte when it reads, and a peek by offset, which does
        // not know of that, returns the byte after it twice.
        sockopt::set_socket_oobinline(&fd, true).map_err(from_errno)?;
        sockopt::set_socket_keepalive(&fd, true).map_err(from_errno)?;
        let mut mode = shared.mode;
        if mode == PeekMode::Offset {
            shared.calls.option += 1;
            // TCP over IPv6 got the option later than over IPv4.
            if options::set(&fd, PeekOffset, &0).is_err() {
                mode = PeekMode::Discard;
            }
        }
        Ok(Self {
            fd,
            mode,
            kernel_offset: 0,
            owed: 0,
            available: None,
            ended: false,
            urgent: false,
            error: None,
            wants_write: false,
            armed: false,
        })
    }

    pub(super) const fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Takes an event of the kernel and gives what of it is news to the NAT.
    pub(super) fn on_event(&mut self, flags: EventFlags, calls: &mut SystemCalls) -> Ready {
        if flags.contains(EventFlags::PRI) {
            self.urgent = true;
        }
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP) {
            self.ended = true;
        }
        if flags.contains(EventFlags::ERR) {
            calls.option += 1;
            if let Ok(Err(error)) = sockopt::socket_error(&self.fd) {
                self.latch(error);
            }
        }
        let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP) || self.error.is_some();
        let readable = failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        if readable {
            self.available = None;
        }
        let writable = failed || (flags.contains(EventFlags::OUT) && self.wants_write);
        if writable {
            self.wants_write = false;
            self.armed = false;
        }
        Ready { readable, writable, error: self.error.is_some() }
    }

    /// Keeps the first error for good: the kernel reports each only once.
    fn latch(&mut self, errno: Errno) -> HostError {
        *self.error.get_or_insert(from_errno(errno))
    }

    pub(super) fn connect_result(
        &mut self,
        calls: &mut SystemCalls,
    ) -> Result<Connected, HostError> {
        calls.option += 3;
        if let Ok(Err(error)) = sockopt::socket_error(&self.fd) {
            self.latch(error);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let remote = match rustix::net::getpeername(&self.fd) {
            Ok(Some(remote)) => remote,
            Ok(None) | Err(Errno::NOTCONN) => {
                self.wants_write = true;
                return Err(HostError::WouldBlock);
            }
            Err(error) => return Err(self.latch(error)),
        };
        let local = rustix::net::getsockname(&self.fd).map_err(from_errno)?;
        match (SocketAddr::try_from(local), SocketAddr::try_from(remote)) {
            (Ok(local), Ok(remote)) => Ok(Connected { local, remote }),
            _ => Err(HostError::Other),
        }
    }

    pub(super) fn peek(
        &mut self,
        offset: usize,
        buffer: &mut [u8],
        shared: &mut Shared,
    ) -> Result<Peek, HostError> {
        if self.available.is_some_and(|available| offset >= available) {
            return self.beyond_the_last_byte(offset);
        }
        let (result, wanted) = (self.peek_at(offset, buffer, shared), buffer.len());
        let copied = match result {
            Ok(0) if self.mode == PeekMode::Offset => {
                self.ended = true;
                0
            }
            Ok(copied) => copied,
            Err(Errno::AGAIN) => 0,
            Err(error) => {
                self.latch(error);
                0
            }
        };
        // A peek stops short at an urgent byte, too, so after one only an empty peek tells.
        if copied == 0 || (copied < wanted && !self.urgent) {
            self.available = Some(offset.saturating_add(copied));
        }
        if copied > 0 { Ok(Peek::Data(copied)) } else { self.beyond_the_last_byte(offset) }
    }

    /// What there is to say at `offset`, where no byte could be peeked.
    fn beyond_the_last_byte(&self, offset: usize) -> Result<Peek, HostError> {
        let perhaps_behind_an_urgent_byte =
            self.stops_at_urgent_bytes() && offset.saturating_add(self.owed) > 0;
        match self.error {
            _ if perhaps_behind_an_urgent_byte => Ok(Peek::WouldBlock),
            Some(error) => Err(error),
            None if self.ended => Ok(Peek::End),
            None => Ok(Peek::WouldBlock),
        }
    }

    /// Whether a peek that starts before an urgent byte never reaches it.
    fn stops_at_urgent_bytes(&self) -> bool {
        self.urgent && self.mode == PeekMode::Discard
    }

    fn peek_at(
        &mut self,
        offset: usize,
        buffer: &mut [u8],
        shared: &mut Shared,
    ) -> Result<usize, Errno> {
        shared.calls.peek += 1;
        let offset = offset.saturating_add(self.owed);
        match self.mode {
            PeekMode::Offset => {
                if offset != self.kernel_offset {
                    shared.calls.option += 1;
                    let value = i32::try_from(offset).map_err(|_| Errno::INVAL)?;
                    options::set(&self.fd, PeekOffset, &value)?;
                    self.kernel_offset = offset;
                }
                let (copied, _) = rustix::net::recv(&self.fd, buffer, RecvFlags::PEEK)?;
                self.kernel_offset = self.kernel_offset.saturating_add(copied);
                Ok(copied)
            }
            PeekMode::Discard => self.peek_past(offset, buffer, shared),
        }
    }

    /// Peeks at everything from the first byte and drops `offset` bytes. Zero bytes copied may
    /// mean the end or that nothing is there yet: only an event tells them apart.
    fn peek_past(
        &mut self,
        offset: usize,
        buffer: &mut [u8],
        shared: &mut Shared,
    ) -> Result<usize, Errno> {
        if shared.discard.len() < offset {
            shared.discard.resize(offset, 0);
        }
        let skipped = shared.discard.get_mut(..offset).unwrap_or_default();
        let message = if offset == 0 {
            rustix::net::recv(&self.fd, buffer, RecvFlags::PEEK)?.0
        } else {
            let mut slices = [IoSliceMut::new(skipped), IoSliceMut::new(buffer)];
            let mut control = RecvAncillaryBuffer::default();
            rustix::net::recvmsg(&self.fd, &mut slices, &mut control, RecvFlags::PEEK)?.bytes
        };
        if message == 0 {
            self.ended = true;
        }
        Ok(message.saturating_sub(offset))
    }

    /// Forgets `count` bytes. Returns whether the stream has become readable by it.
    pub(super) fn consume(&mut self, count: usize, shared: &mut Shared) -> bool {
        self.owed = self.owed.saturating_add(count);
        self.available = self.available.map(|available| available.saturating_sub(count));
        // At once, even if they are few: what is left in the kernel keeps its window small, and
        // the peer may wait for just that.
        self.take_owed(shared);
        // Taking what lies before an urgent byte brings it within reach.
        self.stops_at_urgent_bytes() && self.available.take().is_some()
    }

    fn take_owed(&mut self, shared: &mut Shared) {
        // The kernel stops short at an urgent byte.
        while self.owed > 0 {
            match self.throw_away(self.owed, shared) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(taken) => {
                    self.owed = self.owed.saturating_sub(taken);
                    self.kernel_offset = self.kernel_offset.saturating_sub(taken);
                }
                Err(error) => {
                    self.latch(error);
                    break;
                }
            }
        }
    }

    fn throw_away(&self, count: usize, shared: &mut Shared) -> Result<usize, Errno> {
        shared.calls.consume += 1;
        let length = count.min(shared.discard.len());
        let nowhere = shared.discard.get_mut(..length).unwrap_or_default();
        rustix::net::recv(&self.fd, nowhere, RecvFlags::TRUNC).map(|(_, taken)| taken)
    }

    pub(super) fn send(
        &mut self,
        data: &[&[u8]],
        calls: &mut SystemCalls,
    ) -> Result<usize, HostError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut sent = 0_usize;
        for slices in data.chunks(SLICES) {
            let mut gathered = [IoSlice::new(&[]); SLICES];
            let mut wanted = 0_usize;
            for (place, slice) in gathered.iter_mut().zip(slices) {
                *place = IoSlice::new(slice);
                wanted = wanted.saturating_add(slice.len());
            }
            let gathered = gathered.get(..slices.len()).unwrap_or_default();
            calls.send += 1;
            let mut control = SendAncillaryBuffer::default();
            let taken =
                match rustix::net::sendmsg(&self.fd, gathered, &mut control, SendFlags::NOSIGNAL) {
                    Ok(taken) => taken,
                    Err(Errno::AGAIN) => 0,
                    // What was taken before is the NAT's to know; the error is asked for again.
                    Err(error) => {
                        let error = self.latch(error);
                        return if sent > 0 { Ok(sent) } else { Err(error) };
                    }
                };
            sent = sent.saturating_add(taken);
            if taken < wanted {
                // The kernel has noted that somebody waits for room.
                (self.wants_write, self.armed) = (true, true);
                break;
            }
        }
        Ok(sent)
    }

    /// Room that one send is sure to find. The kernel accounts 832 bytes for each buffer besides
    /// the bytes in it, which at one buffer for each full-size segment is three eighths of it all.
    /// Mostly a buffer holds many segments, so that some room is left unsaid.
    pub(super) fn send_room(&self, calls: &mut SystemCalls) -> usize {
        calls.option += 1;
        let Ok(memory) = options::send_memory(&self.fd) else { return 0 };
        let free = memory.limit.saturating_sub(memory.queued);
        free / 8 * 5
    }

    /// Makes the kernel note that somebody waits for room. It grows the buffer of a connection
    /// only then, and polling a full socket is one of two ways to tell it.
    ///
    /// While at least a third of the buffer is free the kernel does not take note. Nothing is owed
    /// then: as long as there is room the NAT will send, and ask again with less of it.
    pub(super) fn arm_write(&mut self, calls: &mut SystemCalls) {
        self.wants_write = true;
        if self.armed {
            return;
        }
        calls.epoll_wait += 1;
        let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
        self.armed = matches!(poll(&mut fds, Some(&Timespec::default())), Ok(0));
    }

    pub(super) fn shutdown_write(&mut self, calls: &mut SystemCalls) {
        calls.close += 1;
        if let Err(error) = rustix::net::shutdown(&self.fd, Shutdown::Write) {
            self.latch(error);
        }
    }

    /// Gets ready for an orderly close: a socket closed with unread bytes resets the connection
    /// and loses what it had still to send.
    pub(super) fn drain(&mut self, shared: &mut Shared) {
        if self.error.is_some() || (self.ended && self.owed == 0 && self.available == Some(0)) {
            return;
        }
        for _ in 0..DRAIN_CALLS {
            if !matches!(self.throw_away(usize::MAX, shared), Ok(1..)) {
                break;
            }
        }
    }

    /// Makes the coming close a reset.
    pub(super) fn make_abortive(&self, calls: &mut SystemCalls) {
        calls.option += 1;
        // Fails only if the connection is gone already.
        let _ = sockopt::set_socket_linger(&self.fd, Some(core::time::Duration::ZERO));
    }
}

/// Whether the kernel peeks at TCP by offset. Those that do not know it for TCP refuse the option.
pub(super) fn kernel_peeks_by_offset() -> bool {
    rustix::net::socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))
        .is_ok_and(|fd| options::set(&fd, PeekOffset, &0).is_ok())
}
