//! The scripted outside world: what tests make happen, and what the NAT did there.

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, HashMap, VecDeque};

use slirp_nat::HostEvent;
use slirp_nat::host::{
    Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, ForwardId, HostError,
    Ready, Token,
};

use super::socket::{
    Connect, Datagram, Kind, Listener, Owner, SentDatagram, Socket, State, Stream,
};

mod calls;

const READABLE: Ready = Ready { readable: true, writable: false, error: false };
const WRITABLE: Ready = Ready { readable: false, writable: true, error: false };
const ERROR: Ready = Ready { readable: true, writable: false, error: true };

/// Sockets and their far ends. Tokens are never used twice, so that a late use is noticed.
#[derive(Debug)]
pub struct World {
    sockets: BTreeMap<u32, Socket>,
    next_token: u32,
    events: VecDeque<HostEvent>,
    connects: HashMap<SocketAddr, Connect>,
    bind_errors: HashMap<SocketAddr, HostError>,
    open_errors: VecDeque<HostError>,
    send_errors: VecDeque<HostError>,
    sent_datagrams: Vec<SentDatagram>,
    /// How many bytes a new stream takes; `None` for a constant 256 KiB.
    pub room: Option<usize>,
    /// The host's own addresses.
    pub own_addresses: Vec<IpAddr>,
    /// What it says it can do.
    pub capabilities: Capabilities,
    /// The address that outgoing connections have.
    pub local: SocketAddr,
}

impl Default for World {
    fn default() -> Self {
        Self {
            sockets: BTreeMap::new(),
            next_token: 1,
            events: VecDeque::new(),
            connects: HashMap::new(),
            bind_errors: HashMap::new(),
            open_errors: VecDeque::new(),
            send_errors: VecDeque::new(),
            sent_datagrams: Vec::new(),
            room: None,
            own_addresses: vec!["198.51.100.7".parse().expect("an address")],
            capabilities: Capabilities { ping: true, segmented_send: false },
            local: "198.51.100.7:40000".parse().expect("an address"),
        }
    }
}

/// What tests make happen.
impl World {
    /// How connections to `remote` go from now on; without it they succeed.
    pub fn on_connect(&mut self, remote: impl Into<SocketAddr>, outcome: Connect) {
        self.connects.insert(remote.into(), outcome);
    }

    /// Ends a connect under way.
    pub fn complete(&mut self, token: Token, outcome: Result<(), HostError>) {
        let stream = self.stream(token);
        assert_eq!(stream.connected, None, "the connect has ended already");
        let connected = Connected { local: stream.local, remote: stream.remote };
        stream.connected = Some(outcome.map(|()| connected));
        if let Err(error) = outcome {
            stream.end = Some(Err(error));
        }
        let failed = outcome.is_err();
        self.owe(token, Ready { readable: failed, writable: true, error: failed });
    }

    /// The far end sends bytes.
    pub fn sends(&mut self, token: Token, bytes: &[u8]) {
        let stream = self.stream(token);
        assert_eq!(stream.end, None, "the far end has ended its stream");
        stream.incoming.extend(bytes);
        self.announce(token, READABLE);
    }

    /// The far end ends its stream.
    pub fn ends(&mut self, token: Token) {
        self.stream(token).end = Some(Ok(()));
        self.announce(token, READABLE);
    }

    /// The connection fails, behind the bytes that have arrived.
    pub fn fails(&mut self, token: Token, error: HostError) {
        self.stream(token).end = Some(Err(error));
        self.announce(token, ERROR);
    }

    /// Lets the host take `room` bytes more, and no more than that until it is set again.
    pub fn set_room(&mut self, token: Token, room: usize) {
        let stream = self.stream(token);
        let more = room > stream.room();
        stream.room = Some(room);
        if more && core::mem::take(&mut stream.write_armed) {
            self.owe(token, WRITABLE);
        }
    }

    /// Gives room just before the NAT next asks to be told of it, so that no event does.
    pub fn race_for_room(&mut self, token: Token, room: usize) {
        self.stream(token).room_when_armed = Some(room);
    }

    /// The next sends take no more than these, whatever room the host has promised.
    pub fn take_short(&mut self, token: Token, limits: &[usize]) {
        self.stream(token).short_writes.extend(limits);
    }

    /// The next send takes nothing, and says so by an error.
    pub fn block_write(&mut self, token: Token) {
        self.stream(token).blocks_write = true;
    }

    /// The connection fails when it is written to for the time after `writes` more.
    pub fn fails_behind_writes(&mut self, token: Token, writes: usize, error: HostError) {
        self.stream(token).failing_write = Some((writes, error));
    }

    /// Tells the NAT that a socket is writable if it is waiting for that.
    pub fn drain(&mut self, token: Token) {
        if core::mem::take(&mut self.stream(token).write_armed) {
            self.owe(token, WRITABLE);
        }
    }

    /// A client connects to the listener at `address`. Its token is of use once accepted.
    pub fn dial(&mut self, address: impl Into<SocketAddr>, peer: impl Into<SocketAddr>) -> Token {
        let address = address.into();
        let listener = self.bound(address);
        let mut stream = Stream::new(address, peer.into());
        stream.connected = Some(Ok(Connected { local: address, remote: stream.remote }));
        let token = self.add(Owner::Nobody, Kind::Stream(stream));
        self.listener(listener).backlog.push_back(token);
        self.announce(listener, READABLE);
        token
    }

    /// The next accept at `address` fails.
    pub fn fail_accept(&mut self, address: impl Into<SocketAddr>, error: HostError) {
        let listener = self.bound(address.into());
        self.listener(listener).errors.push_back(error);
        self.announce(listener, READABLE);
    }

    /// Listening or binding at `address` fails from now on.
    pub fn fail_bind(&mut self, address: impl Into<SocketAddr>, error: HostError) {
        self.bind_errors.insert(address.into(), error);
    }

    /// The next opening of a datagram socket fails.
    pub fn fail_open(&mut self, error: HostError) {
        self.open_errors.push_back(error);
    }

    /// The next send of a datagram fails.
    pub fn fail_send_datagram(&mut self, error: HostError) {
        self.send_errors.push_back(error);
    }

    /// A datagram arrives.
    pub fn deliver(&mut self, token: Token, data: &[u8], meta: DatagramMeta) {
        self.datagram(token).inbox.push_back((data.to_vec(), meta));
        self.announce(token, READABLE);
    }

    /// A datagram arrives from `remote`.
    pub fn deliver_from(&mut self, token: Token, remote: impl Into<SocketAddr>, data: &[u8]) {
        self.deliver(token, data, DatagramMeta::new(remote.into()));
    }

    /// Receiving fails once, and the socket stays usable.
    pub fn fail_receive(&mut self, token: Token, error: HostError) {
        self.datagram(token).receive_errors.push_back(error);
        self.announce(token, READABLE);
    }

    /// The network reports an error about a datagram sent earlier.
    pub fn report(&mut self, token: Token, report: DatagramError) {
        self.datagram(token).reports.push_back(report);
        self.owe(token, ERROR);
    }

    /// Queues an event that nobody owes, as hosts may.
    pub fn spurious(&mut self, token: Token, ready: Ready) {
        self.owe(token, ready);
    }

    /// The next event owed.
    pub fn next_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }
}

/// What tests look at.
impl World {
    /// The stream last made to `remote`.
    #[must_use]
    pub fn stream_to(&self, remote: impl Into<SocketAddr>) -> Token {
        let remote = remote.into();
        self.find_stream_to(remote).unwrap_or_else(|| panic!("no stream to {remote}"))
    }

    /// The stream last made to `remote`, if there was one.
    #[must_use]
    pub fn find_stream_to(&self, remote: impl Into<SocketAddr>) -> Option<Token> {
        let remote = remote.into();
        self.find(|socket| matches!(&socket.kind, Kind::Stream(s) if s.remote == remote))
    }

    /// The streams to `remote` that the NAT has made or accepted, in the order of creation.
    #[must_use]
    pub fn streams_to(&self, remote: impl Into<SocketAddr>) -> Vec<Token> {
        let remote = remote.into();
        let wanted = |socket: &Socket| {
            matches!(&socket.kind, Kind::Stream(stream) if stream.remote == remote)
                && socket.owner != Owner::Nobody
        };
        let wanted = self.sockets.iter().filter(|(_, socket)| wanted(socket));
        wanted.map(|(number, _)| Token(*number)).collect()
    }

    /// The listener or datagram socket bound to `address`.
    #[must_use]
    pub fn bound(&self, address: impl Into<SocketAddr>) -> Token {
        let address = address.into();
        self.find(|socket| match &socket.kind {
            Kind::Listener(listener) => listener.address == address,
            Kind::Datagram(datagram) => datagram.address == Some(address),
            Kind::Stream(_) => false,
        })
        .unwrap_or_else(|| panic!("nothing bound to {address}"))
    }

    fn find(&self, wanted: impl Fn(&Socket) -> bool) -> Option<Token> {
        self.sockets
            .iter()
            .rev()
            .find(|(_, socket)| wanted(socket))
            .map(|(number, _)| Token(*number))
    }

    /// The bytes that the guest has sent on this stream.
    #[must_use]
    pub fn sent(&self, token: Token) -> &[u8] {
        match &self.socket(token).kind {
            Kind::Stream(stream) => &stream.sent,
            _ => panic!("{token:?} is no stream"),
        }
    }

    /// Takes the bytes that the guest has sent on this stream and that were not taken before.
    pub fn take_sent(&mut self, token: Token) -> Vec<u8> {
        core::mem::take(&mut self.stream(token).sent)
    }

    /// The bytes that the NAT has not consumed yet.
    pub fn unconsumed(&mut self, token: Token) -> usize {
        self.stream(token).incoming.len()
    }

    /// The hint given with the connect.
    pub fn max_segment(&mut self, token: Token) -> u16 {
        self.stream(token).max_segment
    }

    /// Whether the NAT has ended its direction.
    pub fn is_write_shut(&mut self, token: Token) -> bool {
        self.stream(token).write_shut
    }

    /// Whether the NAT waits for room.
    pub fn is_write_armed(&mut self, token: Token) -> bool {
        self.stream(token).write_armed
    }

    /// Whether the NAT still holds it.
    #[must_use]
    pub fn state(&self, token: Token) -> State {
        self.socket(token).state
    }

    /// Whether the NAT has accepted it.
    #[must_use]
    pub fn is_accepted(&self, token: Token) -> bool {
        self.socket(token).owner != Owner::Nobody
    }

    /// How many sockets of all kinds the NAT holds.
    #[must_use]
    pub fn open_sockets(&self) -> usize {
        let held = |s: &&Socket| s.state == State::Open && s.owner != Owner::Nobody;
        self.sockets.values().filter(held).count()
    }

    /// The streams that the NAT holds, connecting or connected, in the order of creation.
    #[must_use]
    pub fn open_streams(&self) -> Vec<Token> {
        self.open(|kind| matches!(kind, Kind::Stream(_)))
    }

    /// The datagram sockets that the NAT holds, in the order of creation.
    #[must_use]
    pub fn open_datagrams(&self) -> Vec<Token> {
        self.open(|kind| matches!(kind, Kind::Datagram(_)))
    }

    fn open(&self, wanted: impl Fn(&Kind) -> bool) -> Vec<Token> {
        let held = |s: &Socket| s.state == State::Open && s.owner != Owner::Nobody;
        let wanted = self.sockets.iter().filter(|(_, s)| held(s) && wanted(&s.kind));
        wanted.map(|(number, _)| Token(*number)).collect()
    }

    /// Whether a connect is still under way.
    pub fn is_connecting(&mut self, token: Token) -> bool {
        self.stream(token).connected.is_none()
    }

    /// Whether the far end has ended its stream, or the connection has failed.
    pub fn has_ended(&mut self, token: Token) -> bool {
        self.stream(token).end.is_some()
    }

    /// How many outgoing connections the NAT ever asked for that the host did not refuse at once.
    #[must_use]
    pub fn connects(&self) -> usize {
        self.sockets.values().filter(|s| matches!(&s.kind, Kind::Stream(_))).count()
    }

    /// The datagrams sent so far.
    #[must_use]
    pub fn sent_datagrams(&self) -> &[SentDatagram] {
        &self.sent_datagrams
    }

    /// Takes the datagrams sent so far.
    pub fn take_sent_datagrams(&mut self) -> Vec<SentDatagram> {
        core::mem::take(&mut self.sent_datagrams)
    }

    /// The kind of a datagram socket.
    pub fn datagram_kind(&mut self, token: Token) -> DatagramKind {
        self.datagram(token).kind
    }
}

impl World {
    fn add(&mut self, owner: Owner, kind: Kind) -> Token {
        let number = self.next_token;
        self.next_token += 1;
        let socket = Socket { owner, state: State::Open, read_armed: true, kind };
        self.sockets.insert(number, socket);
        Token(number)
    }

    fn socket(&self, token: Token) -> &Socket {
        self.sockets.get(&token.0).unwrap_or_else(|| panic!("no socket {token:?}"))
    }

    fn socket_mut(&mut self, token: Token) -> &mut Socket {
        self.sockets.get_mut(&token.0).unwrap_or_else(|| panic!("no socket {token:?}"))
    }

    fn stream(&mut self, token: Token) -> &mut Stream {
        match &mut self.socket_mut(token).kind {
            Kind::Stream(stream) => stream,
            _ => panic!("{token:?} is no stream"),
        }
    }

    fn listener(&mut self, token: Token) -> &mut Listener {
        match &mut self.socket_mut(token).kind {
            Kind::Listener(listener) => listener,
            _ => panic!("{token:?} is no listener"),
        }
    }

    fn datagram(&mut self, token: Token) -> &mut Datagram {
        match &mut self.socket_mut(token).kind {
            Kind::Datagram(datagram) => datagram,
            _ => panic!("{token:?} is no datagram socket"),
        }
    }

    fn owe(&mut self, token: Token, ready: Ready) {
        let socket = self.socket(token);
        if socket.state == State::Open
            && let Some(event) = socket.owner.event(ready)
        {
            self.events.push_back(event);
        }
    }

    /// Something can be read: an event, if one is owed.
    fn announce(&mut self, token: Token, ready: Ready) {
        let socket = self.socket_mut(token);
        let connecting = matches!(&socket.kind, Kind::Stream(s) if s.connected.is_none());
        if !connecting && socket.owner != Owner::Nobody && core::mem::take(&mut socket.read_armed) {
            self.owe(token, ready);
        }
    }

    fn end(&mut self, token: Token, state: State) {
        let socket = self.socket_mut(token);
        assert_eq!(socket.state, State::Open, "{token:?} has been ended already");
        socket.state = state;
    }

    fn bind(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
        kind: Kind,
    ) -> Result<Token, HostError> {
        match self.bind_errors.get(&address) {
            Some(error) => Err(*error),
            None => Ok(self.add(Owner::Forward(forward), kind)),
        }
    }
}
