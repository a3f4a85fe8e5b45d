//! The adapter for hosts whose sockets cannot be peeked at: a receive ring for each stream.
//!
//! [`RingHost`] turns a [`PushHost`] into a [`Host`]. Bytes that [`PushHost::receive`] hands over
//! stay in a ring in memory that the embedder lends until the guest has acknowledged them, and
//! the ring's free space is told to the host as credit. Examples of such hosts are WISP and other
//! message channels, completion-style input and output, and a network stack on bare metal.
//!
//! # Events
//!
//! The events of the inner host go to [`Nat::on_host_event`](crate::Nat::on_host_event) as they
//! are. The adapter owes events of its own: where a full ring hid bytes from [`Host::peek`], they
//! become readable once the ring is consumed from. After every call on the NAT, hand it what
//! [`RingHost::next_event`] gives until that is `None`.

use core::net::{IpAddr, SocketAddr};

use managed::ManagedSlice;

use crate::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, Host, HostError, HostEvent, Peek, Ready, Token,
};

mod push;
mod ring;
#[cfg(test)]
mod tests;

pub use push::{PushHost, Received};

use ring::Ring;

/// Set in the tokens of streams, which are slot numbers; other tokens are the inner host's.
const STREAM_BIT: u32 = 1 << 31;

/// End of a list of slots.
const NONE: u32 = u32::MAX;

/// The ring of one stream, without its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RingSlot {
    stream: Option<Stream>,
    next_free: u32,
    next_owed: u32,
    /// Is in the list of slots with an event owed, even if its stream has gone since.
    owed: bool,
}

impl RingSlot {
    /// An unused slot.
    pub const EMPTY: Self = Self { stream: None, next_free: NONE, next_owed: NONE, owed: false };
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    token: Token,
    flow: FlowId,
    ring: Ring,
    /// How the receive stream ended, once the inner host has said so.
    end: Option<Result<(), HostError>>,
    /// The error that a send met, which the receive side need not have reported.
    send_error: Option<HostError>,
    /// `peek` answered would-block because the ring was full.
    hidden: bool,
}

impl Stream {
    /// Moves bytes of the inner host into the ring until either is exhausted.
    fn refill<H: PushHost>(&mut self, host: &mut H, memory: &mut [u8]) {
        while self.end.is_none() {
            let free = self.ring.free_mut(memory);
            if free.is_empty() {
                return;
            }
            match host.receive(self.token, free) {
                Ok(Received::WouldBlock | Received::Data(0)) | Err(HostError::WouldBlock) => {
                    self.end = self.send_error.map(Err);
                    return;
                }
                Ok(Received::Data(count)) => self.ring.produced(count),
                Ok(Received::End) => self.end = Some(self.send_error.map_or(Ok(()), Err)),
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    const fn peek_beyond(&mut self) -> Result<Peek, HostError> {
        match self.end {
            Some(Ok(())) => Ok(Peek::End),
            Some(Err(error)) => Err(error),
            None => {
                self.hidden = self.ring.is_full();
                Ok(Peek::WouldBlock)
            }
        }
    }
}

/// A [`Host`] made of a [`PushHost`] and a receive ring for each stream.
///
/// | table | unit | when full |
/// |---|---|---|
/// | `rings` | stream, connecting or connected | [`Host::connect`] and [`Host::accept`] give [`HostError::NoResources`]; a connection that waited to be accepted is reset |
/// | `memory` | bytes, shared evenly by the rings | the inner host is not read |
#[derive(Debug)]
pub struct RingHost<'a, H> {
    host: H,
    rings: ManagedSlice<'a, RingSlot>,
    memory: ManagedSlice<'a, u8>,
    ring_len: usize,
    /// Slots from here on have never been used.
    untouched: u32,
    free: u32,
    owed: u32,
}

impl<'a, H: PushHost> RingHost<'a, H> {
    /// Wraps `host`. `rings` must be unused slots; `memory` is divided evenly among them. Streams
    /// cannot be had if either is empty, or if there are fewer bytes than rings.
    pub fn new(
        host: H,
        rings: impl Into<ManagedSlice<'a, RingSlot>>,
        memory: impl Into<ManagedSlice<'a, u8>>,
    ) -> Self {
        let (rings, memory) = (rings.into(), memory.into());
        let ring_len = memory.len().checked_div(rings.len()).unwrap_or(0);
        Self { host, rings, memory, ring_len, untouched: 0, free: NONE, owed: NONE }
    }

    /// The inner host.
    pub const fn inner(&self) -> &H {
        &self.host
    }

    /// The inner host, mutably.
    pub const fn inner_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Bytes that each stream can hold.
    pub const fn ring_len(&self) -> usize {
        self.ring_len
    }

    /// The next event that the adapter itself owes, for
    /// [`Nat::on_host_event`](crate::Nat::on_host_event).
    pub fn next_event(&mut self) -> Option<HostEvent> {
        loop {
            let slot = self.slot_mut(self.owed)?;
            let (flow, next) = (slot.stream.map(|stream| stream.flow), slot.next_owed);
            slot.owed = false;
            self.owed = next;
            if let Some(flow) = flow {
                return Some(HostEvent::Flow(flow, Ready { readable: true, ..Ready::default() }));
            }
        }
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut RingSlot> {
        usize::try_from(index).ok().and_then(|index| self.rings.get_mut(index))
    }

    /// The stream of `token`, its memory and the host.
    fn stream(&mut self, token: Token) -> Option<(&mut Stream, &mut [u8], &mut H)> {
        let index = usize::try_from(token.0 ^ STREAM_BIT).ok()?;
        let stream = self.rings.get_mut(index)?.stream.as_mut()?;
        let start = index.checked_mul(self.ring_len)?;
        let memory = self.memory.get_mut(start..start.checked_add(self.ring_len)?)?;
        Some((stream, memory, &mut self.host))
    }

    /// The inner host's token.
    fn inner_token(&mut self, token: Token) -> Option<Token> {
        if token.0 & STREAM_BIT == 0 {
            return Some(token);
        }
        self.stream(token).map(|(stream, ..)| stream.token)
    }

    /// A slot for a new stream: one given back, else one never used.
    fn take_slot(&mut self) -> Option<u32> {
        if self.ring_len == 0 {
            return None;
        }
        let index = self.free;
        if let Some(slot) = self.slot_mut(index) {
            self.free = slot.next_free;
            return Some(index);
        }
        let index = self.untouched;
        if index >= STREAM_BIT || usize::try_from(index).ok()? >= self.rings.len() {
            return None;
        }
        self.untouched = index.wrapping_add(1);
        Some(index)
    }

    fn give_back(&mut self, index: u32) {
        let next = self.free;
        if let Some(slot) = self.slot_mut(index) {
            slot.stream = None;
            slot.next_free = next;
            self.free = index;
        }
    }

    fn occupy(&mut self, index: u32, token: Token, flow: FlowId) -> Token {
        let ring_len = self.ring_len;
        if let Some(slot) = self.slot_mut(index) {
            slot.stream = Some(Stream {
                token,
                flow,
                ring: Ring::new(ring_len),
                end: None,
                send_error: None,
                hidden: false,
            });
            self.host.credit(token, ring_len);
        }
        Token(index | STREAM_BIT)
    }

    /// Gives up the stream `token` and returns the inner token, or hands through another kind's.
    fn release(&mut self, token: Token) -> Option<Token> {
        let inner = self.inner_token(token)?;
        if token.0 & STREAM_BIT != 0 {
            self.give_back(token.0 ^ STREAM_BIT);
        }
        Some(inner)
    }

    fn owe_event(&mut self, index: u32) {
        let next = self.owed;
        if let Some(slot) = self.slot_mut(index)
            && !core::mem::replace(&mut slot.owed, true)
        {
            slot.next_owed = next;
            self.owed = index;
        }
    }

    /// Refuses the token of a listener or datagram socket that cannot be told from a stream's.
    fn plain(&mut self, token: Token) -> Result<Token, HostError> {
        if token.0 & STREAM_BIT == 0 {
            return Ok(token);
        }
        self.host.close(token);
        Err(HostError::NoResources)
    }

    /// Resets whoever waits at `listener`, so that nobody waits there unannounced.
    fn turn_away(&mut self, listener: Token, flow: FlowId) -> HostError {
        loop {
            match self.host.accept(listener, flow) {
                Ok(Some(accepted)) => self.host.reset(accepted.token),
                Ok(None) => return HostError::NoResources,
                Err(error) => return error,
            }
        }
    }
}

impl<H: PushHost> Host for RingHost<'_, H> {
    fn capabilities(&self) -> Capabilities {
        self.host.capabilities()
    }

    fn is_own_address(&mut self, address: IpAddr) -> bool {
        self.host.is_own_address(address)
    }

    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        max_segment: u16,
    ) -> Result<Token, HostError> {
        let index = self.take_slot().ok_or(HostError::NoResources)?;
        match self.host.connect(flow, remote, max_segment) {
            Ok(token) => Ok(self.occupy(index, token, flow)),
            Err(error) => {
                self.give_back(index);
                Err(error)
            }
        }
    }

    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError> {
        let inner = self.inner_token(token).ok_or(HostError::Other)?;
        self.host.connect_result(inner)
    }

    fn peek(&mut self, token: Token, offset: usize, buffer: &mut [u8]) -> Result<Peek, HostError> {
        let (stream, memory, host) = self.stream(token).ok_or(HostError::Other)?;
        if offset.saturating_add(buffer.len()) > stream.ring.len() {
            stream.refill(host, memory);
        }
        match stream.ring.copy_out(memory, offset, buffer) {
            0 => stream.peek_beyond(),
            count => Ok(Peek::Data(count)),
        }
    }

    fn consume(&mut self, token: Token, count: usize) {
        let Some((stream, _, host)) = self.stream(token) else { return };
        stream.ring.consumed(count);
        host.credit(stream.token, stream.ring.free_len());
        if core::mem::take(&mut stream.hidden) {
            self.owe_event(token.0 ^ STREAM_BIT);
        }
    }

    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        let (stream, _, host) = self.stream(token).ok_or(HostError::Other)?;
        if let Some(error) = stream.send_error.or(stream.end.and_then(Result::err)) {
            return Err(error);
        }
        let taken = host.send(stream.token, data);
        if let Err(error) = taken
            && error != HostError::WouldBlock
        {
            stream.send_error = Some(error);
        }
        taken
    }

    fn send_room(&mut self, token: Token) -> usize {
        self.inner_token(token).map_or(0, |inner| self.host.send_room(inner))
    }

    fn arm_write(&mut self, token: Token) {
        if let Some(inner) = self.inner_token(token) {
            self.host.arm_write(inner);
        }
    }

    fn shutdown_write(&mut self, token: Token) {
        if let Some(inner) = self.inner_token(token) {
            self.host.shutdown_write(inner);
        }
    }

    fn close(&mut self, token: Token) {
        if let Some(inner) = self.release(token) {
            self.host.close(inner);
        }
    }

    fn reset(&mut self, token: Token) {
        if let Some(inner) = self.release(token) {
            self.host.reset(inner);
        }
    }

    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
        let token = self.host.listen(forward, address)?;
        self.plain(token)
    }

    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError> {
        let Some(index) = self.take_slot() else {
            return Err(self.turn_away(listener, flow));
        };
        match self.host.accept(listener, flow) {
            Ok(Some(accepted)) => {
                let token = self.occupy(index, accepted.token, flow);
                Ok(Some(Accepted { token, ..accepted }))
            }
            nothing => {
                self.give_back(index);
                nothing
            }
        }
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError> {
        let token = self.host.open_datagram(flow, kind, remote)?;
        self.plain(token)
    }

    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError> {
        let token = self.host.bind_datagram(forward, address)?;
        self.plain(token)
    }

    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        self.host.send_datagram(token, meta, data)
    }

    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        self.host.receive_datagram(token, buffer)
    }

    fn datagram_error(&mut self, token: Token) -> Option<DatagramError> {
        self.host.datagram_error(token)
    }
}
