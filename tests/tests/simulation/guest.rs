//! The guest: smoltcp, a stack that nobody here wrote.

use core::net::SocketAddrV4;
use std::collections::VecDeque;

use slirpkit_tests::guest::{GATEWAY, GUEST_IP, GUEST_MAC};
use slirpkit_tests::packet::Packet;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::AnySocket;
use smoltcp::socket::tcp::{RecvError, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, IpEndpoint};

use crate::faults::{Asked, DuplicateAcks, Neighbour};
use crate::network::Sent;
use crate::plan::FlowPlan;
use crate::snapshot::{Call, Record, Snapshot};

/// How often the guest asks whether a silent far end is still there, so that a reset that got lost
/// does not leave it waiting for ever.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Frames from and for the guest's stack.
struct Wire {
    mtu: usize,
    received: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

/// The guest.
pub(crate) struct Guest {
    wire: Wire,
    stack: Interface,
    sockets: SocketSet<'static>,
    asked: Asked,
    duplicate_acks: DuplicateAcks,
    neighbour: Neighbour,
    /// What was asked of it, until a snapshot is taken.
    record: Option<Record>,
}

impl Guest {
    pub(crate) fn new(mtu: u16, seed: u64) -> Self {
        let mut wire = Wire { mtu: mtu.into(), received: VecDeque::new(), sent: Vec::new() };
        let mut config = Config::new(EthernetAddress(GUEST_MAC).into());
        config.random_seed = seed;
        let mut stack = Interface::new(config, &mut wire, Instant::ZERO);
        stack.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(IpAddress::Ipv4(GUEST_IP), 24)).unwrap();
        });
        stack.routes_mut().add_default_ipv4_route(GATEWAY).unwrap();
        Self {
            wire,
            stack,
            sockets: SocketSet::new(Vec::new()),
            asked: Asked::default(),
            duplicate_acks: DuplicateAcks::new(mtu),
            neighbour: Neighbour::default(),
            record: None,
        }
    }

    /// A guest of which there will be a snapshot.
    pub(crate) fn recorded(mtu: u16, seed: u64) -> Self {
        Self { record: Some(Record { mtu, seed, calls: Vec::new() }), ..Self::new(mtu, seed) }
    }

    fn note(&mut self, call: impl FnOnce() -> Call) {
        if let Some(record) = &mut self.record {
            record.calls.push(call());
        }
    }

    /// The state in which it is.
    pub(crate) fn snapshot(&mut self) -> Option<Snapshot> {
        let record = self.record.take()?;
        Some(Snapshot::new(record, self.describe()))
    }

    /// Everything about its sockets.
    pub(crate) fn describe(&self) -> String {
        format!("{:?}", self.sockets)
    }

    /// A socket that is not used yet.
    pub(crate) fn socket(&mut self, plan: &FlowPlan) -> SocketHandle {
        self.note(|| Call::Socket(plan.clone()));
        let buffer = |length| SocketBuffer::new(vec![0; length]);
        let mut socket = Socket::new(buffer(plan.receive_buffer), buffer(plan.send_buffer));
        socket.set_nagle_enabled(plan.nagle);
        socket.set_keep_alive(Some(KEEP_ALIVE));
        if !plan.delays_acks {
            socket.set_ack_delay(None);
        }
        self.sockets.add(socket)
    }

    pub(crate) fn listen(&mut self, handle: SocketHandle, port: u16) {
        self.note(|| Call::Listen(handle, port));
        self.tcp(handle).listen(port).unwrap();
    }

    pub(crate) fn connect(&mut self, handle: SocketHandle, port: u16, remote: SocketAddrV4) {
        self.note(|| Call::Connect(handle, port, remote));
        let remote = endpoint(remote);
        let socket = self.sockets.get_mut::<Socket<'_>>(handle);
        socket.connect(self.stack.context(), remote, port).unwrap();
    }

    fn tcp(&mut self, handle: SocketHandle) -> &mut Socket<'static> {
        self.sockets.get_mut(handle)
    }

    pub(crate) fn state(&self, handle: SocketHandle) -> State {
        self.sockets.get::<Socket<'_>>(handle).state()
    }

    /// Whether the program may still send.
    pub(crate) fn may_send(&self, handle: SocketHandle) -> bool {
        self.sockets.get::<Socket<'_>>(handle).may_send()
    }

    /// Sends as much as there is room for; returns how much that was.
    pub(crate) fn send(&mut self, handle: SocketHandle, bytes: &[u8]) -> usize {
        self.note(|| Call::Send(handle, bytes.to_vec()));
        self.tcp(handle).send_slice(bytes).unwrap()
    }

    pub(crate) fn close(&mut self, handle: SocketHandle) {
        self.note(|| Call::Close(handle));
        self.tcp(handle).close();
    }

    pub(crate) fn abort(&mut self, handle: SocketHandle) {
        self.note(|| Call::Abort(handle));
        self.tcp(handle).abort();
    }

    /// How many bytes the socket takes to be sent.
    pub(crate) fn room(&mut self, handle: SocketHandle) -> usize {
        let socket = self.tcp(handle);
        socket.send_capacity() - socket.send_queue()
    }

    /// Takes up to `most` bytes that have come.
    pub(crate) fn receive(&mut self, handle: SocketHandle, most: usize) -> Received {
        self.note(|| Call::Receive(handle, most));
        let socket = self.tcp(handle);
        let mut bytes = vec![0; most.min(socket.recv_queue())];
        match socket.recv_slice(&mut bytes) {
            Ok(_) => Received::Bytes(bytes),
            Err(RecvError::Finished) => Received::End,
            Err(RecvError::InvalidState) => Received::Nothing,
        }
    }

    /// Whether the socket has been connected, and is no longer.
    pub(crate) fn is_over(&self, handle: SocketHandle) -> bool {
        matches!(self.state(handle), State::Closed | State::TimeWait | State::Listen)
    }

    /// A frame has come.
    pub(crate) fn take(&mut self, now: u64, sent: Sent) {
        self.note(|| Call::Take(now, sent.clone()));
        let segment = sent.intact.then(|| Packet::parse(sent.frame.clone()));
        if let Some(segment) = segment.as_ref().and_then(Packet::tcp) {
            let queued = self.queued(segment.dst.port(), segment.src);
            let admitted = self.duplicate_acks.admit(segment, queued);
            if !admitted || !self.asked.admit(segment) {
                return;
            }
        }
        self.wire.received.extend(self.neighbour.announcement(now));
        self.wire.received.push_back(sent.frame);
    }

    /// How much a connection has to send, and to have acknowledged.
    fn queued(&self, port: u16, remote: SocketAddrV4) -> usize {
        let ours = |socket: &&Socket<'static>| {
            socket.local_endpoint().is_some_and(|local| local.port == port)
                && socket.remote_endpoint() == Some(endpoint(remote))
        };
        let mut sockets = self.sockets.iter().filter_map(|(_, socket)| Socket::downcast(socket));
        sockets.find(ours).map_or(0, Socket::send_queue)
    }

    /// Does all that is to be done at `now`; returns the frames that the guest sends.
    pub(crate) fn poll(&mut self, now: u64) -> Vec<Vec<u8>> {
        self.note(|| Call::Poll(now));
        self.stack.poll(time(now), &mut self.wire, &mut self.sockets);
        let sent = core::mem::take(&mut self.wire.sent);
        for frame in &sent {
            Packet::parse(frame.clone()).tcp().inspect(|segment| self.asked.note(segment));
        }
        sent
    }

    /// When there is more to do.
    pub(crate) fn poll_at(&mut self, now: u64) -> Option<u64> {
        let due = self.stack.poll_at(time(now), &self.sockets)?;
        Some(due.total_micros().cast_unsigned())
    }
}

/// What was there to be received.
#[derive(Debug)]
pub(crate) enum Received {
    Bytes(Vec<u8>),
    End,
    /// The socket is not connected, and there is nothing left in it.
    Nothing,
}

const fn endpoint(address: SocketAddrV4) -> IpEndpoint {
    IpEndpoint::new(IpAddress::Ipv4(*address.ip()), address.port())
}

const fn time(micros: u64) -> Instant {
    Instant::from_micros_const(micros.cast_signed())
}

impl Device for Wire {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Incoming, Outgoing<'_>)> {
        let frame = self.received.pop_front()?;
        Some((Incoming(frame), Outgoing(&mut self.sent)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Outgoing<'_>> {
        Some(Outgoing(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + 14;
        capabilities
    }
}

struct Incoming(Vec<u8>);

impl RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

struct Outgoing<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, make: F) -> R {
        let mut frame = vec![0; length];
        let result = make(&mut frame);
        self.0.push(frame);
        result
    }
}
