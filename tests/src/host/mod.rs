//! The host side: a scripted outside world, seen through a host that can peek or one that cannot.

use core::net::{IpAddr, SocketAddr};

use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, Peek, Token,
};
use slirp_nat::{Host, HostEvent, PushHost, RingHost, RingSlot};

mod checked;
mod socket;
mod world;

pub use checked::{Checked, Log};
pub use socket::{Connect, SentDatagram, State};
pub use world::World;

/// Bytes of each ring of the [`HostKind::Ring`] host.
pub const RING_LEN: usize = 256 * 1024;

/// Streams that the [`HostKind::Ring`] host has rings for.
pub const RINGS: usize = 64;

/// Which host a scripted test runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKind {
    /// A host that peeks by itself.
    Peeking,
    /// [`RingHost`] over a host that cannot peek.
    Ring,
}

/// A host for a [`Lab`](crate::Lab).
pub trait LabHost: Host {
    /// The world behind it.
    fn world(&mut self) -> &mut World;

    /// The next event owed to the NAT.
    fn next_event(&mut self) -> Option<HostEvent>;

    /// The calls so far.
    fn log(&mut self) -> &mut Log;

    /// How many bytes the NAT has consumed, of all streams together.
    fn consumed(&self) -> u64;
}

/// A checked host of this kind with an empty world.
#[must_use]
pub fn new_host(kind: HostKind, rings: usize, ring_len: usize) -> Box<dyn LabHost> {
    match kind {
        HostKind::Peeking => Box::new(Checked::new(Peeking(World::default()))),
        HostKind::Ring => {
            let slots = vec![RingSlot::EMPTY; rings];
            let memory = vec![0; rings * ring_len];
            Box::new(Checked::new(RingHost::new(World::default(), slots, memory)))
        }
    }
}

/// A host around a [`World`].
pub trait Worldly: Host {
    /// The world.
    fn world(&mut self) -> &mut World;

    /// An event of the adapter itself.
    fn own_event(&mut self) -> Option<HostEvent>;
}

impl Worldly for RingHost<'static, World> {
    fn world(&mut self) -> &mut World {
        self.inner_mut()
    }

    fn own_event(&mut self) -> Option<HostEvent> {
        RingHost::next_event(self)
    }
}

/// A [`World`] whose streams can be peeked at.
#[derive(Debug, Default)]
pub struct Peeking(World);

impl Worldly for Peeking {
    fn world(&mut self) -> &mut World {
        &mut self.0
    }

    fn own_event(&mut self) -> Option<HostEvent> {
        None
    }
}

impl Host for Peeking {
    fn peek(&mut self, token: Token, offset: usize, buffer: &mut [u8]) -> Result<Peek, HostError> {
        self.0.peek(token, offset, buffer)
    }

    fn consume(&mut self, token: Token, count: usize) {
        self.0.consume(token, count);
    }

    fn capabilities(&self) -> Capabilities {
        PushHost::capabilities(&self.0)
    }

    fn is_own_address(&mut self, address: IpAddr) -> bool {
        self.0.is_own_address(address)
    }

    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        max_segment: u16,
    ) -> Result<Token, HostError> {
        self.0.connect(flow, remote, max_segment)
    }

    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError> {
        self.0.connect_result(token)
    }

    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        self.0.send(token, data)
    }

    fn send_room(&mut self, token: Token) -> usize {
        self.0.send_room(token)
    }

    fn arm_write(&mut self, token: Token) {
        self.0.arm_write(token);
    }

    fn shutdown_write(&mut self, token: Token) {
        self.0.shutdown_write(token);
    }

    fn close(&mut self, token: Token) {
        self.0.close(token);
    }

    fn reset(&mut self, token: Token) {
        self.0.reset(token);
    }

    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
        self.0.listen(forward, address)
    }

    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError> {
        self.0.accept(listener, flow)
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError> {
        self.0.open_datagram(flow, kind, remote)
    }

    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError> {
        self.0.bind_datagram(forward, address)
    }

    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        self.0.send_datagram(token, meta, data)
    }

    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        self.0.receive_datagram(token, buffer)
    }

    fn datagram_error(&mut self, token: Token) -> Option<DatagramError> {
        self.0.datagram_error(token)
    }
}
