//! The host's sockets: what they do, and what must hold between them and the guest.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::HashMap;

use arbitrary::Arbitrary;
use ipstack::pool::BLOCK_DATA_LEN;
use slirp_nat::Protocol;
use slirp_nat::host::{HostError, Token};
use slirpkit_tests::build::{ACK, RST, SYN};
use slirpkit_tests::host::{State, World};
use slirpkit_tests::packet::Tcp;
use slirpkit_tests::{Lab, Watch};

use super::CLIENT;
use super::connection::{Connection, Socket, given_position};
use super::content::content;
use super::guest::{Guest, connection_of, ends};
use crate::ethernet_frame::ConnectOutcome;

/// What a connection's socket does.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum HostEvent {
    /// From now on connects go like this.
    Connects(ConnectOutcome),
    /// A connect under way ends, well or not.
    Complete(bool),
    /// The client connects.
    Dial,
    /// The far end sends.
    Send {
        /// How many bytes.
        len: u16,
    },
    /// The far end ends its stream.
    End,
    /// The connection fails.
    Fail,
    /// The host takes no more than this.
    Room(u16),
    /// The next send takes no more than this.
    Short(u16),
    /// The host says that it is writable, if that is waited for.
    Drain,
}

/// Where the client connects to.
const FORWARDED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7)), 8080);

/// What is known of all streams.
#[derive(Debug)]
pub(super) struct Streams {
    sockets: HashMap<Token, Socket>,
    /// The connections that the NAT has sent a SYN for, while they have a socket.
    live: Vec<Connection>,
    /// What the NAT has sent.
    pub(super) out: Output,
}

/// Segments for the guest, as the NAT is to count them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Output {
    pub(super) bytes: u64,
    pub(super) bytes_again: u64,
    /// Without text, and no resets.
    pub(super) bare: u64,
    pub(super) resets: u64,
}

impl Streams {
    pub(super) fn new(lab: &mut Lab) -> Self {
        let port = ends(CLIENT).0.port();
        lab.forward(Protocol::Tcp, FORWARDED, port).expect("a forward");
        Self { sockets: HashMap::new(), live: Vec::new(), out: Output::default() }
    }

    pub(super) fn act(&mut self, lab: &mut Lab, connection: u8, event: HostEvent) {
        let (_, remote) = ends(connection);
        let world = lab.world();
        let last = world.find_stream_to(remote).filter(|token| world.state(*token) == State::Open);
        let held = last.filter(|token| world.is_accepted(*token));
        match (event, held) {
            (HostEvent::Connects(outcome), _) => world.on_connect(remote, outcome.script()),
            (HostEvent::Dial, _) if connection == CLIENT && !self.has_client(world) => {
                let token = world.dial(FORWARDED, remote);
                self.sockets.entry(token).or_default().is_client = true;
            }
            (HostEvent::Complete(well), Some(token)) if world.is_connecting(token) => {
                world.complete(token, if well { Ok(()) } else { Err(HostError::Refused) });
            }
            (event, Some(token)) if !world.is_connecting(token) => {
                self.act_on_stream(lab, token, event);
            }
            _ => {}
        }
    }

    /// Whether there is a client that the NAT has not closed: between the same two addresses there
    /// is no second one.
    fn has_client(&self, world: &World) -> bool {
        let is_open = |token: &Token| world.state(*token) == State::Open;
        self.sockets.iter().any(|(token, socket)| socket.is_client && is_open(token))
    }

    fn act_on_stream(&mut self, lab: &mut Lab, token: Token, event: HostEvent) {
        let world = lab.world();
        let ended = world.has_ended(token);
        let socket = self.sockets.entry(token).or_default();
        match event {
            HostEvent::Send { len } if !ended => {
                world.sends(token, content(given_position(token, socket.given), len.into()));
                socket.given += u64::from(len);
            }
            HostEvent::End if !ended => world.ends(token),
            HostEvent::Fail if !ended => {
                socket.failed = true;
                world.fails(token, HostError::Reset);
            }
            HostEvent::Room(room) => world.set_room(token, room.into()),
            HostEvent::Short(limit) => world.take_short(token, &[limit.into()]),
            HostEvent::Drain => world.drain(token),
            _ => {}
        }
    }

    /// Takes note of a segment for the guest; its text must be what the far end has sent.
    pub(super) fn note(&mut self, lab: &mut Lab, segment: &Tcp) {
        let length = segment.data.len();
        self.out.resets += u64::from(segment.has(RST));
        self.out.bare += u64::from(!segment.has(RST) && length == 0);
        if segment.has(RST) {
            return;
        }
        if segment.has(SYN) {
            self.meet(lab, segment);
        }
        let connection = self.live.iter_mut().find(|connection| connection.is_of(segment));
        if let Some(connection) = connection.filter(|_| length > 0) {
            self.out.bytes += length as u64;
            self.out.bytes_again += connection.note_text(segment);
        }
    }

    /// Finds the socket of a connection that the NAT has sent a SYN for: one without a connection,
    /// which is a client's if the guest has not asked; of several the open one, or the newest.
    fn meet(&mut self, lab: &mut Lab, segment: &Tcp) {
        let Some(number) = connection_of(segment) else { return };
        let world = lab.world();
        let is_open = |token: Token| world.state(token) == State::Open;
        let known = self.live.iter().find(|connection| connection.is_of(segment));
        let known = known.filter(|known| known.isn == segment.seq);
        if known.is_some_and(|known| is_open(known.token)) {
            return;
        }
        let sockets = &self.sockets;
        let socket = |token: &Token| sockets.get(token).copied().unwrap_or_default();
        // Only a client may be shown with another port than its own.
        let clients = world.streams_to(ends(number).1).into_iter();
        let clients = clients.filter(|token| socket(token).is_client);
        let others = world.streams_to(segment.src).into_iter();
        let tokens = clients.chain(others.filter(|token| !socket(token).is_client));
        let token = tokens.filter(|token| !socket(token).is_known).max_by_key(|token| {
            (is_open(*token), socket(token).is_client != segment.has(ACK), token.0)
        });
        let Some(token) = token else {
            assert!(known.is_some(), "no socket behind {segment:?}");
            return;
        };
        self.live.retain(|connection| !connection.is_of(segment));
        self.sockets.entry(token).or_default().is_known = true;
        self.live.push(Connection::new(number, token, segment));
    }

    /// Looks at what the hosts have got.
    pub(super) fn take(&mut self, lab: &mut Lab, watch: &Watch) {
        for connection in &self.live {
            connection.take(lab, watch, self.sockets.entry(connection.token).or_default());
        }
    }

    /// What must hold whenever the NAT is at rest.
    pub(super) fn check(&mut self, lab: &mut Lab, watch: &Watch, guest: &Guest) {
        self.take(lab, watch);
        let parked_at_most = lab.nat.pool_blocks_in_use() * BLOCK_DATA_LEN;
        let mut parked = 0;
        for connection in &self.live {
            let socket = self.sockets.entry(connection.token).or_default();
            let guest_has_reset = guest.has_reset(connection.number);
            connection.check_download(lab, watch, socket, guest_has_reset);
            parked += connection.check_upload(lab, watch, socket);
        }
        assert!(parked <= parked_at_most, "{parked} bytes are acknowledged, and nobody has them");
        self.live.retain(|connection| lab.world().state(connection.token) == State::Open);
    }

    /// A connection of which neither side has failed, and its socket.
    pub(super) fn live(&self, number: u8) -> impl Iterator<Item = (&Connection, &Socket)> {
        let numbered = self.live.iter().filter(move |connection| connection.number == number);
        let whole = numbered.map(|connection| (connection, &self.sockets[&connection.token]));
        whole.filter(|(_, socket)| !socket.failed)
    }

    /// Hosts take everything.
    pub(super) fn make_room(&self, lab: &mut Lab) {
        for token in lab.world().open_streams() {
            lab.world().set_room(token, 1 << 30);
            lab.world().drain(token);
        }
    }

    /// How many bytes all hosts have got.
    pub(super) fn taken(&self) -> u64 {
        self.sockets.values().map(|socket| socket.taken as u64).sum()
    }

    pub(super) fn have_failed(&self) -> bool {
        self.sockets.values().any(|socket| socket.failed)
    }
}
