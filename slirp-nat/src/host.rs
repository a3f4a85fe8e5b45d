//! What the NAT asks of its host: sockets, by calls that return at once.
//!
//! The embedder implements [`Host`]. No call blocks, and no call may call back into the NAT:
//! what happens later arrives as a [`HostEvent`] through [`Nat::on_host_event`].
//!
//! # Readiness
//!
//! Readiness has *edge* semantics. *Readable* means that there are bytes (or an end of stream, or
//! an error) beyond the highest offset peeked so far; after [`Host::peek`] has answered
//! [`Peek::WouldBlock`] the host owes one new event once that changes. *Writable* is owed after a
//! short [`Host::send`] and after [`Host::arm_write`]. Spurious events are harmless, and so are
//! late ones: an event names a flow by slot and generation, and a stale generation is ignored.
//! A host that has only level-triggered readiness wraps itself to give edges.
//!
//! # Errors
//!
//! Errors are latched per token: after a reset by the remote peer, bytes that had arrived before
//! it still peek, then [`HostError::Reset`] is the answer every time it is asked. An error of one
//! token never affects another.
//!
//! [`Nat::on_host_event`]: crate::Nat::on_host_event

use core::net::{IpAddr, SocketAddr};

/// Names one socket of the host. The host chooses the number; the NAT only hands it back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Token(pub u32);

/// Names one flow of the NAT: a slot and its generation, so that a late event is harmless.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FlowId {
    /// Index in the flow table.
    pub slot: u32,
    /// How often that slot has been handed out.
    pub generation: u32,
}

impl FlowId {
    /// Both halves in one number, as for the user data of an epoll event.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.slot as u64) << 32 | self.generation as u64
    }

    /// The inverse of [`FlowId::to_bits`].
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a u64")]
    pub const fn from_bits(bits: u64) -> Self {
        Self { slot: (bits >> 32) as u32, generation: bits as u32 }
    }
}

/// Names one port forward, as given by [`Nat::add_forward`](crate::Nat::add_forward).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ForwardId(pub u16);

/// Why a host call failed. One small set; one table in the core (`flow/verdict.rs`) maps it to
/// what the guest is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum HostError {
    /// The remote peer answered that nobody listens.
    Refused,
    /// No route to the network.
    NetUnreachable,
    /// No answer from the remote host, or a router said so.
    HostUnreachable,
    /// A router on the way forbids it.
    Prohibited,
    /// The remote peer stopped answering.
    TimedOut,
    /// The remote peer reset the connection.
    Reset,
    /// The datagram does not fit the path; the path's MTU if it is known, else 0.
    TooBig {
        /// Path MTU in bytes of a whole IP packet, 0 if unknown.
        mtu: u16,
    },
    /// A hop limit ran out on the way.
    HopLimit,
    /// The host has no socket, port or memory left.
    NoResources,
    /// The host's own policy forbids it.
    Denied,
    /// The address is in use.
    InUse,
    /// The host cannot do this at all.
    Unsupported,
    /// The host cannot take it now; a *writable* event will follow.
    WouldBlock,
    /// Anything else.
    Other,
}

impl core::fmt::Display for HostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused",
            Self::NetUnreachable => "network unreachable",
            Self::HostUnreachable => "host unreachable",
            Self::Prohibited => "administratively prohibited",
            Self::TimedOut => "timed out",
            Self::Reset => "connection reset",
            Self::TooBig { .. } => "datagram too big for the path",
            Self::HopLimit => "hop limit exceeded",
            Self::NoResources => "out of sockets, ports or memory",
            Self::Denied => "permission denied",
            Self::InUse => "address in use",
            Self::Unsupported => "not supported by this host",
            Self::WouldBlock => "would block",
            Self::Other => "host error",
        })
    }
}

impl core::error::Error for HostError {}

/// What [`Host::peek`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peek {
    /// This many bytes were copied, at least one.
    Data(usize),
    /// Nothing beyond the offset yet; an event will follow.
    WouldBlock,
    /// The remote peer has sent its last byte, and it lies before the offset.
    End,
}

/// An outgoing connection that has succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connected {
    /// The host's end.
    pub local: SocketAddr,
    /// The end really connected to, which a host may have substituted for the one asked for.
    pub remote: SocketAddr,
}

/// A connection taken from a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// The new socket.
    pub token: Token,
    /// Who connected.
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
}

/// What a datagram socket speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DatagramKind {
    /// UDP; data is the UDP payload.
    Udp,
    /// ICMP or ICMPv6 echo; data is the whole ICMP message, beginning with its type. The host may
    /// rewrite identifier and checksum; replies with a foreign identifier must not be delivered.
    Ping,
}

/// What goes with a datagram, either way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramMeta {
    /// The far end. For [`DatagramKind::Ping`] the port is 0.
    pub remote: SocketAddr,
    /// The host's own address the datagram came to, or is to leave from; `None` leaves the choice
    /// to the host.
    pub local: Option<IpAddr>,
    /// IP TTL or hop limit; 0 if unknown (received), or the host's default (sent).
    pub ttl: u8,
    /// The two ECN bits.
    pub ecn: u8,
    /// If not 0, the data is several datagrams of this many bytes each, the last may be shorter.
    pub segment_size: u16,
    /// The datagram was longer than the buffer (received).
    pub truncated: bool,
}

impl DatagramMeta {
    /// A single datagram to or from `remote`, everything else left to the host.
    #[must_use]
    pub const fn new(remote: SocketAddr) -> Self {
        Self { remote, local: None, ttl: 0, ecn: 0, segment_size: 0, truncated: false }
    }
}

/// An error the network reported about a datagram sent earlier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramError {
    /// What happened.
    pub error: HostError,
    /// Who reported it, if not the host itself.
    pub offender: Option<IpAddr>,
    /// Where the datagram had been sent.
    pub remote: SocketAddr,
    /// The first bytes of its data, if the host still knows them. An echo request is told from
    /// others by the sequence number there.
    pub quoted: Option<[u8; 8]>,
}

/// What a host can do beyond the minimum. It stays the same for as long as the host lives, and is
/// asked for where it matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// [`Host::open_datagram`] can make [`DatagramKind::Ping`] sockets.
    pub ping: bool,
    /// [`DatagramMeta::segment_size`] is honoured when sending.
    pub segmented_send: bool,
}

/// Which way a socket has become ready. Several may be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready {
    /// There is something beyond the highest offset peeked: bytes, the end or an error.
    pub readable: bool,
    /// A connect has ended, or there is room to send again.
    pub writable: bool,
    /// There is something for [`Host::datagram_error`], or the connection has failed.
    pub error: bool,
}

/// Something that happened on the host's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostEvent {
    /// The socket of a flow has become ready.
    Flow(FlowId, Ready),
    /// The listener, or the datagram socket, of a forward has become readable.
    Forward(ForwardId, Ready),
}

/// The host side of the NAT. See the [module documentation](self) for readiness and errors.
pub trait Host {
    /// What this host can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether `address` is one of the host's own, so that reaching it reaches the host itself.
    /// Loopback addresses need not be included.
    fn is_own_address(&mut self, address: IpAddr) -> bool;

    /// Starts a stream connection to `remote` for `flow`. The result is announced by
    /// [`Ready::writable`] and fetched by [`Host::connect_result`]. `max_segment` is the largest
    /// segment that the guest takes, as a hint for the far side, 0 for none.
    ///
    /// # Errors
    /// Any [`HostError`] if the attempt fails at once; then there is no token.
    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        max_segment: u16,
    ) -> Result<Token, HostError>;

    /// The outcome of a connect.
    ///
    /// # Errors
    /// [`HostError::WouldBlock`] while it is under way; any other error if it failed.
    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError>;

    /// Copies bytes of the receive stream that lie `offset` bytes beyond the last one consumed.
    /// `buffer` is not empty. Bytes that [`Ready::readable`] has announced stay where they are.
    ///
    /// # Errors
    /// The latched error of the connection, once all bytes before it have been peeked.
    fn peek(&mut self, token: Token, offset: usize, buffer: &mut [u8]) -> Result<Peek, HostError>;

    /// Forgets the first `count` bytes of the receive stream, which have been peeked before.
    fn consume(&mut self, token: Token, count: usize);

    /// Sends the bytes of `data` in order and returns how many were taken, which may be less than
    /// all, or 0; then [`Ready::writable`] follows. [`HostError::WouldBlock`] says the same as 0.
    ///
    /// # Errors
    /// The latched error of the connection.
    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError>;

    /// How many bytes [`Host::send`] would take now for certain.
    fn send_room(&mut self, token: Token) -> usize;

    /// Asks for [`Ready::writable`] once there is more room than now. The NAT calls it when room,
    /// and not the guest, limits the transfer: a kernel grows its send buffer only when asked.
    fn arm_write(&mut self, token: Token);

    /// Sends the end of the stream after all bytes sent so far.
    fn shutdown_write(&mut self, token: Token);

    /// Ends a socket of any kind in good order; bytes sent before still go out. The token is void.
    fn close(&mut self, token: Token);

    /// Resets a stream, so that the far side sees a reset. The token is void.
    fn reset(&mut self, token: Token);

    /// Starts to listen for streams at `address`. Connections are announced as
    /// [`HostEvent::Forward`].
    ///
    /// # Errors
    /// [`HostError::InUse`], [`HostError::Denied`] or whatever else the host reports.
    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError>;

    /// Takes the next connection from a listener, for `flow`; `None` if there is none.
    ///
    /// # Errors
    /// What the host reports. The listener stays usable.
    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError>;

    /// Opens an unconnected datagram socket for `flow` in the family of `remote`, the address it
    /// is wanted for.
    ///
    /// # Errors
    /// [`HostError::NoResources`], [`HostError::Denied`], [`HostError::Unsupported`].
    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError>;

    /// Opens a UDP socket bound to `address` for a forward; datagrams are announced as
    /// [`HostEvent::Forward`].
    ///
    /// # Errors
    /// As [`Host::listen`].
    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError>;

    /// Sends one datagram, the concatenation of `data`, or several: see
    /// [`DatagramMeta::segment_size`].
    ///
    /// # Errors
    /// Any; [`HostError::WouldBlock`] means that it was dropped for want of room.
    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError>;

    /// Receives one datagram into `buffer` and returns its length there; `None` if there is none.
    ///
    /// # Errors
    /// An error that is not tied to a datagram sent earlier; the socket stays usable.
    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError>;

    /// The next error that the network reported about datagrams sent by `token`, if any.
    fn datagram_error(&mut self, token: Token) -> Option<DatagramError>;
}
