//! A host that hands out each received byte once.

use core::net::{IpAddr, SocketAddr};

#[cfg(doc)]
use crate::host::Host;
use crate::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, Token,
};

/// What [`PushHost::receive`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// This many bytes were copied, at least one.
    Data(usize),
    /// Nothing now; an event will follow.
    WouldBlock,
    /// The remote peer has sent its last byte, and it was received before.
    End,
}

/// A host whose stream sockets give each byte once.
///
/// The methods that [`Host`] has too mean the same here. Readiness has edge semantics with
/// [`PushHost::receive`] in the place of `peek`: after [`Received::WouldBlock`] the host owes one
/// event once there is something to receive. Tokens of listeners and datagram sockets must be
/// less than 2³¹; those of streams are free. The errors of a stream need to be reported once
/// only, by either of `receive` and `send`: the adapter latches them.
pub trait PushHost {
    /// See [`Host::capabilities`].
    fn capabilities(&self) -> Capabilities;

    /// See [`Host::is_own_address`].
    fn is_own_address(&mut self, address: IpAddr) -> bool;

    /// See [`Host::connect`].
    ///
    /// # Errors
    /// As there.
    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        max_segment: u16,
    ) -> Result<Token, HostError>;

    /// See [`Host::connect_result`].
    ///
    /// # Errors
    /// As there.
    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError>;

    /// Moves the next bytes of the receive stream into `buffer`, which is not empty.
    ///
    /// # Errors
    /// The error of the connection, once all bytes before it have been received.
    fn receive(&mut self, token: Token, buffer: &mut [u8]) -> Result<Received, HostError>;

    /// Told when the ring of `token` is made and whenever space in it is freed: the far side may
    /// have `free_bytes` bytes outstanding. Of use where the transport has credit.
    fn credit(&mut self, token: Token, free_bytes: usize) {
        let _ = (token, free_bytes);
    }

    /// See [`Host::send`].
    ///
    /// # Errors
    /// As there.
    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError>;

    /// See [`Host::send_room`].
    fn send_room(&mut self, token: Token) -> usize;

    /// See [`Host::arm_write`].
    fn arm_write(&mut self, token: Token);

    /// See [`Host::shutdown_write`].
    fn shutdown_write(&mut self, token: Token);

    /// See [`Host::close`].
    fn close(&mut self, token: Token);

    /// See [`Host::reset`].
    fn reset(&mut self, token: Token);

    /// See [`Host::listen`].
    ///
    /// # Errors
    /// As there.
    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError>;

    /// See [`Host::accept`].
    ///
    /// # Errors
    /// As there.
    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError>;

    /// See [`Host::open_datagram`].
    ///
    /// # Errors
    /// As there.
    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError>;

    /// See [`Host::bind_datagram`].
    ///
    /// # Errors
    /// As there.
    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError>;

    /// See [`Host::send_datagram`].
    ///
    /// # Errors
    /// As there.
    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError>;

    /// See [`Host::receive_datagram`].
    ///
    /// # Errors
    /// As there.
    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError>;

    /// See [`Host::datagram_error`].
    fn datagram_error(&mut self, token: Token) -> Option<DatagramError>;
}
