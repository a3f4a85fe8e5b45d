//! [`slirp_nat::Host`] over non-blocking sockets and one epoll.

mod calls;
mod datagram;
mod errors;
mod listener;
mod options;
mod own;
mod ping;
mod slab;
mod stream;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "test patterns take the low byte")]
mod tests;

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::AddressFamily;
use slirp_nat::Host;
use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, HostEvent, Peek, Ready, Token,
};

pub use self::calls::SystemCalls;
pub use self::stream::PeekMode;

use self::datagram::Datagram;
use self::errors::from_errno;
use self::listener::STARVED_RETRY;
use self::own::OwnAddresses;
use self::ping::{PingMode, RawSockets};
use self::slab::{Kind, Owner, Slab};
use self::stream::{Shared, Stream};
use crate::poller::{EventFlags, Poller, Source};

/// Choices of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostOptions {
    /// How to peek; `None` for the best that the kernel has.
    pub peek: Option<PeekMode>,
}

/// The host's sockets.
///
/// Its one epoll can itself be polled ([`AsFd`]), so that it fits into a loop which waits for
/// other things too; [`OsHost::wait`] then takes what has happened.
#[derive(Debug)]
pub struct OsHost {
    poller: Poller,
    sockets: Slab,
    shared: Shared,
    ping: Option<PingMode>,
    raw_pings: RawSockets,
    own: OwnAddresses,
    events: VecDeque<HostEvent>,
    /// Events of descriptors that the event loop watches.
    external: Vec<(u32, EventFlags)>,
    /// Forwards whose listener has a connection for which there was no descriptor.
    starved: Vec<ForwardId>,
}

impl OsHost {
    /// A host without sockets. Tries out what the kernel allows.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn new(options: &HostOptions) -> io::Result<Self> {
        let by_offset = options.peek != Some(PeekMode::Discard) && stream::kernel_peeks_by_offset();
        let mode = if by_offset { PeekMode::Offset } else { PeekMode::Discard };
        Ok(Self {
            poller: Poller::new()?,
            sockets: Slab::default(),
            shared: Shared::new(mode),
            ping: ping::probe(),
            raw_pings: RawSockets::default(),
            own: OwnAddresses::default(),
            events: VecDeque::new(),
            external: Vec::new(),
            starved: Vec::new(),
        })
    }

    /// How this host peeks.
    #[must_use]
    pub const fn peek_mode(&self) -> PeekMode {
        self.shared.mode
    }

    /// System calls made so far.
    #[must_use]
    pub const fn calls(&self) -> &SystemCalls {
        &self.shared.calls
    }

    /// How many sockets are open.
    #[must_use]
    pub fn socket_count(&self) -> usize {
        self.sockets.len()
    }

    /// Waits until something happens, but no longer than `timeout`, `None` for ever. What
    /// happened is then to be had from [`OsHost::next_event`].
    ///
    /// # Errors
    /// What `epoll_wait` reports, but for interruption by a signal, which ends the wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = if self.events.is_empty() { timeout } else { Some(Duration::ZERO) };
        let retry = (!self.starved.is_empty()).then_some(STARVED_RETRY);
        let timeout = [timeout, retry].into_iter().flatten().min();
        let Self { poller, sockets, shared, events, external, .. } = self;
        external.clear();
        shared.calls.epoll_wait += 1;
        let count = poller.wait(timeout, |source, flags| match source {
            Source::External(number) => external.push((number, flags)),
            Source::Socket { index, generation } => {
                let event = sockets.current(index, generation).and_then(|socket| {
                    let ready = match &mut socket.kind {
                        Kind::Stream(stream) => stream.on_event(flags, &mut shared.calls),
                        Kind::Datagram(_) => Datagram::on_event(flags),
                        Kind::Listener(_) => Ready { readable: true, ..Ready::default() },
                    };
                    (ready != Ready::default()).then(|| socket.owner.event(ready))
                });
                events.extend(event);
            }
        })?;
        if count == 0 {
            self.wake_starved();
        }
        Ok(())
    }

    /// The next thing that happened.
    pub fn next_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// How many events [`OsHost::next_event`] has to give.
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.events.len()
    }

    pub(crate) const fn poller(&self) -> &Poller {
        &self.poller
    }

    pub(crate) fn external_events(&self) -> &[(u32, EventFlags)] {
        &self.external
    }

    fn register(
        &mut self,
        owner: Owner,
        kind: Kind,
        interest: EventFlags,
    ) -> Result<Token, HostError> {
        self.shared.calls.epoll_ctl += 1;
        let (index, generation) = self.sockets.insert(owner, kind);
        let Some(socket) = self.sockets.get(Token(index)) else { return Err(HostError::Other) };
        let source = Source::Socket { index, generation };
        if let Err(error) = self.poller.add(socket.kind.fd(), source, interest) {
            self.sockets.remove(Token(index));
            return Err(from_errno(error));
        }
        Ok(Token(index))
    }

    fn stream(&mut self, token: Token) -> Result<(&mut Stream, &mut Shared), HostError> {
        match self.sockets.get(token).map(|socket| &mut socket.kind) {
            Some(Kind::Stream(stream)) => Ok((stream, &mut self.shared)),
            _ => Err(HostError::Other),
        }
    }

    fn datagram(&mut self, token: Token) -> Result<(&mut Datagram, &mut Shared), HostError> {
        match self.sockets.get(token).map(|socket| &mut socket.kind) {
            Some(Kind::Datagram(datagram)) => Ok((datagram, &mut self.shared)),
            _ => Err(HostError::Other),
        }
    }

    /// Closes the descriptor, which also takes it out of the epoll, and frees the slot.
    fn forget(&mut self, token: Token) {
        self.shared.calls.close += 1;
        if let Some(socket) = self.sockets.remove(token) {
            if let Owner::Forward(forward) = socket.owner {
                self.starved.retain(|id| *id != forward);
            }
            drop(socket);
            self.wake_starved();
        }
    }
}

impl AsFd for OsHost {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

impl Host for OsHost {
    fn capabilities(&self) -> Capabilities {
        Capabilities { ping: self.ping.is_some(), segmented_send: false }
    }

    fn is_own_address(&mut self, address: IpAddr) -> bool {
        self.own.contains(address)
    }

    /// `max_segment` is not passed on. The far side's segments end at the host's own socket, whose
    /// stream is cut anew for the guest: small ones would only cost both ends more of them.
    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        _max_segment: u16,
    ) -> Result<Token, HostError> {
        let stream = Stream::connect(remote, &mut self.shared)?;
        self.register(Owner::Flow(flow), Kind::Stream(stream), stream::INTEREST)
    }

    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError> {
        let (stream, shared) = self.stream(token)?;
        stream.connect_result(&mut shared.calls)
    }

    fn peek(&mut self, token: Token, offset: usize, buffer: &mut [u8]) -> Result<Peek, HostError> {
        let (stream, shared) = self.stream(token)?;
        stream.peek(offset, buffer, shared)
    }

    fn consume(&mut self, token: Token, count: usize) {
        let Ok((stream, shared)) = self.stream(token) else { return };
        if stream.consume(count, shared)
            && let Some(socket) = self.sockets.get(token)
        {
            let ready = Ready { readable: true, ..Ready::default() };
            self.events.push_back(socket.owner.event(ready));
        }
    }

    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        let (stream, shared) = self.stream(token)?;
        stream.send(data, &mut shared.calls)
    }

    fn send_room(&mut self, token: Token) -> usize {
        self.stream(token).map_or(0, |(stream, shared)| stream.send_room(&mut shared.calls))
    }

    fn arm_write(&mut self, token: Token) {
        if let Ok((stream, shared)) = self.stream(token) {
            stream.arm_write(&mut shared.calls);
        }
    }

    fn shutdown_write(&mut self, token: Token) {
        if let Ok((stream, shared)) = self.stream(token) {
            stream.shutdown_write(&mut shared.calls);
        }
    }

    fn close(&mut self, token: Token) {
        if let Ok((stream, shared)) = self.stream(token) {
            stream.drain(shared);
        }
        self.forget(token);
    }

    fn reset(&mut self, token: Token) {
        if let Ok((stream, shared)) = self.stream(token) {
            stream.make_abortive(&mut shared.calls);
        }
        self.forget(token);
    }

    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
        let listener = listener::open(address)?;
        self.shared.calls.open += 1;
        let interest = EventFlags::IN | EventFlags::ET;
        self.register(Owner::Forward(forward), Kind::Listener(listener), interest)
    }

    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError> {
        self.accept_one(listener, flow)
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError> {
        let datagram =
            Datagram::open(kind, remote, self.ping, &self.raw_pings, &mut self.shared.calls)?;
        self.register(Owner::Flow(flow), Kind::Datagram(datagram), datagram::INTEREST)
    }

    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError> {
        let datagram = Datagram::bind(address, &mut self.shared.calls)?;
        self.register(Owner::Forward(forward), Kind::Datagram(datagram), datagram::INTEREST)
    }

    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        let (datagram, shared) = self.datagram(token)?;
        datagram.send(meta, data, &mut shared.calls)
    }

    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        let (datagram, shared) = self.datagram(token)?;
        datagram.receive(buffer, &mut shared.calls)
    }

    fn datagram_error(&mut self, token: Token) -> Option<DatagramError> {
        let (datagram, shared) = self.datagram(token).ok()?;
        datagram.error(&mut shared.calls)
    }
}

const fn family_of(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}
