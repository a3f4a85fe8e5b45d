//! The sockets of a [`World`](super::World).

use core::net::SocketAddr;
use std::collections::VecDeque;

use slirp_nat::HostEvent;
use slirp_nat::host::{
    Connected, DatagramError, DatagramKind, DatagramMeta, FlowId, ForwardId, HostError, Ready,
    Token,
};

/// How an outgoing connection goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connect {
    /// It succeeds, announced by an event.
    Succeeds,
    /// It succeeds, but the host has connected to another address than the one asked for.
    SucceedsAt(SocketAddr),
    /// It is under way until [`World::complete`](super::World::complete).
    Pending,
    /// It fails later, announced by an event.
    Fails(HostError),
    /// The call itself fails.
    FailsAtOnce(HostError),
}

/// Whether the NAT still holds a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Connecting, connected or listening.
    Open,
    /// Ended in good order.
    Closed,
    /// Reset.
    Reset,
}

/// A datagram that the NAT sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentDatagram {
    /// By which socket.
    pub token: Token,
    /// Where to, and with what.
    pub meta: DatagramMeta,
    /// Payload.
    pub data: Vec<u8>,
}

/// Whom the events of a socket go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    Nobody,
    Flow(FlowId),
    Forward(ForwardId),
}

impl Owner {
    pub(super) const fn event(self, ready: Ready) -> Option<HostEvent> {
        match self {
            Self::Nobody => None,
            Self::Flow(flow) => Some(HostEvent::Flow(flow, ready)),
            Self::Forward(forward) => Some(HostEvent::Forward(forward, ready)),
        }
    }
}

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) owner: Owner,
    pub(super) state: State,
    /// An event is owed once there is something to read.
    pub(super) read_armed: bool,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Stream(Stream),
    Listener(Listener),
    Datagram(Datagram),
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// `None` while the connect is under way.
    pub(super) connected: Option<Result<Connected, HostError>>,
    pub(super) max_segment: u16,
    /// Bytes from the world that the NAT has not consumed.
    pub(super) incoming: VecDeque<u8>,
    /// How the incoming stream ends.
    pub(super) end: Option<Result<(), HostError>>,
    /// Bytes that the NAT sent.
    pub(super) sent: Vec<u8>,
    /// How many bytes more the host takes; `None` for a constant 256 KiB.
    pub(super) room: Option<usize>,
    /// What the next sends take at most, whatever the room.
    pub(super) short_writes: VecDeque<usize>,
    /// The next write gets an error that says that it would block, instead of 0.
    pub(super) blocks_write: bool,
    /// How many writes more succeed, and how the one behind them fails.
    pub(super) failing_write: Option<(usize, HostError)>,
    pub(super) write_armed: bool,
    /// Room that comes just before the NAT asks to be told of it.
    pub(super) room_when_armed: Option<usize>,
    pub(super) write_shut: bool,
}

/// The room of a stream whose room was not set.
pub(super) const STEADY_ROOM: usize = 256 * 1024;

impl Stream {
    pub(super) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            connected: None,
            max_segment: 0,
            incoming: VecDeque::new(),
            end: None,
            sent: Vec::new(),
            room: None,
            short_writes: VecDeque::new(),
            blocks_write: false,
            failing_write: None,
            write_armed: false,
            room_when_armed: None,
            write_shut: false,
        }
    }

    pub(super) fn has_news(&self) -> bool {
        !self.incoming.is_empty() || self.end.is_some()
    }

    pub(super) fn error(&self) -> Option<HostError> {
        self.end.and_then(Result::err)
    }

    pub(super) fn room(&self) -> usize {
        self.room.unwrap_or(STEADY_ROOM)
    }

    /// Takes as much of `data` as there is room for.
    pub(super) fn send(&mut self, data: &[&[u8]]) -> usize {
        let limit = self.room().min(self.short_writes.pop_front().unwrap_or(usize::MAX));
        let mut taken = 0;
        for slice in data {
            let here = slice.len().min(limit - taken);
            self.sent.extend_from_slice(&slice[..here]);
            taken += here;
        }
        if let Some(room) = &mut self.room {
            *room -= taken;
        }
        self.write_armed |= taken < data.iter().map(|slice| slice.len()).sum();
        taken
    }
}

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    pub(super) backlog: VecDeque<Token>,
    pub(super) errors: VecDeque<HostError>,
}

#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) kind: DatagramKind,
    /// Whether it is a socket of IPv6.
    pub(super) ipv6: bool,
    /// Where it is bound, if for a forward.
    pub(super) address: Option<SocketAddr>,
    pub(super) inbox: VecDeque<(Vec<u8>, DatagramMeta)>,
    pub(super) receive_errors: VecDeque<HostError>,
    pub(super) reports: VecDeque<DatagramError>,
}

impl Datagram {
    pub(super) fn new(kind: DatagramKind, ipv6: bool, address: Option<SocketAddr>) -> Self {
        Self {
            kind,
            ipv6,
            address,
            inbox: VecDeque::new(),
            receive_errors: VecDeque::new(),
            reports: VecDeque::new(),
        }
    }
}
