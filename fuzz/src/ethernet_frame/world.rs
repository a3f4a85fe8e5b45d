//! What the host's sockets do.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::collections::HashMap;

use arbitrary::Arbitrary;
use slirp_nat::host::{DatagramError, DatagramMeta, HostError, Ready, Token};
use slirpkit_tests::{Connect, Lab};

use super::frame::ends;
use super::guest::Guest;
use super::{FORWARDS, stream_bytes};

/// Something outside happens; sockets are chosen among those that there are.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum WorldEvent {
    /// From now on connections to that remote go like this.
    OnConnect(u8, ConnectOutcome),
    /// A connect under way ends, well or not.
    Complete(u8, bool),
    /// The far end sends.
    Send {
        /// Which socket.
        socket: u8,
        /// How many bytes.
        len: u16,
    },
    /// The far end ends its stream.
    End(u8),
    /// The connection fails.
    Fail(u8),
    /// The host takes no more than this.
    Room(u8, u16),
    /// The next send takes no more than this.
    TakeShort(u8, u16),
    /// The host says that it is writable, if that is waited for.
    Drain(u8),
    /// A client connects to the forwarded port.
    Dial,
    /// The next accept fails.
    FailAccept,
    /// A datagram arrives, from somebody written to or not.
    Datagram {
        /// Which socket.
        socket: u8,
        /// Which connection's remote it is from.
        from: u8,
        /// How many bytes.
        len: u16,
    },
    /// The network reports an error about a datagram.
    Report {
        /// Which socket.
        socket: u8,
        /// Which connection's remote it was to.
        to: u8,
        /// MTU of the path, for an error that says so.
        mtu: Option<u16>,
    },
    /// No more datagram sockets, once.
    FailOpen,
    /// An event that nobody owes.
    Spurious(u8, bool, bool, bool),
}

/// How a connect goes.
#[derive(Arbitrary, Clone, Copy, Debug)]
#[expect(missing_docs, reason = "as slirpkit_tests::Connect has them")]
pub enum ConnectOutcome {
    Succeeds,
    SucceedsAtLoopback,
    Pending,
    Refused,
    FailsAtOnce,
}

/// The client of the forwarded port.
pub(super) const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 77), 7777);

const HOST: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// How far each stream of the world has got.
#[derive(Debug, Default)]
pub(super) struct Outside {
    positions: HashMap<Token, u64>,
    forwards: usize,
}

impl Outside {
    /// Makes the forwards.
    pub(super) fn new(lab: &mut Lab) -> Self {
        for (protocol, host_port, guest_port) in FORWARDS {
            let host = SocketAddr::from((HOST, host_port));
            lab.forward(protocol, host, guest_port).expect("a forward");
        }
        Self { forwards: FORWARDS.len(), ..Self::default() }
    }

    pub(super) const fn forwards(&self) -> usize {
        self.forwards
    }

    pub(super) fn act(&mut self, lab: &mut Lab, event: &WorldEvent) {
        match *event {
            WorldEvent::OnConnect(remote, outcome) => {
                lab.world().on_connect(ends(remote).1, outcome.script());
            }
            WorldEvent::Dial => {
                lab.world().dial((HOST, FORWARDS[0].1), CLIENT);
            }
            WorldEvent::FailAccept => {
                lab.world().fail_accept((HOST, FORWARDS[0].1), HostError::NoResources);
            }
            WorldEvent::FailOpen => lab.world().fail_open(HostError::NoResources),
            WorldEvent::Datagram { socket, from, len } => {
                let meta = DatagramMeta::new(ends(from).1.into());
                if let Some(token) = pick(&lab.world().open_datagrams(), socket) {
                    lab.world().deliver(token, &stream_bytes(0, len.into()), meta);
                }
            }
            WorldEvent::Report { socket, to, mtu } => {
                if let Some(token) = pick(&lab.world().open_datagrams(), socket) {
                    lab.world().report(token, report(to, mtu));
                }
            }
            _ => self.act_on_stream(lab, event),
        }
    }

    fn act_on_stream(&mut self, lab: &mut Lab, event: &WorldEvent) {
        let world = lab.world();
        let streams = world.open_streams();
        match *event {
            WorldEvent::Complete(stream, well) => {
                if let Some(token) = pick(&streams, stream)
                    && world.is_connecting(token)
                {
                    world.complete(token, if well { Ok(()) } else { Err(HostError::Refused) });
                }
            }
            WorldEvent::Send { socket, len } => {
                if let Some(token) = pick(&streams, socket)
                    && !world.has_ended(token)
                    && !world.is_connecting(token)
                {
                    let position = self.positions.entry(token).or_default();
                    world.sends(token, &stream_bytes(*position, len.into()));
                    *position += u64::from(len);
                }
            }
            WorldEvent::End(stream) | WorldEvent::Fail(stream) => {
                if let Some(token) = pick(&streams, stream)
                    && !world.has_ended(token)
                    && !world.is_connecting(token)
                {
                    match event {
                        WorldEvent::End(_) => world.ends(token),
                        _ => world.fails(token, HostError::Reset),
                    }
                }
            }
            WorldEvent::Room(stream, room) => {
                if let Some(token) = pick(&streams, stream) {
                    world.set_room(token, room.into());
                }
            }
            WorldEvent::TakeShort(stream, limit) => {
                if let Some(token) = pick(&streams, stream) {
                    world.take_short(token, &[limit.into()]);
                }
            }
            WorldEvent::Drain(stream) => {
                if let Some(token) = pick(&streams, stream) {
                    world.drain(token);
                }
            }
            WorldEvent::Spurious(stream, readable, writable, error) => {
                if let Some(token) = pick(&streams, stream) {
                    world.spurious(token, Ready { readable, writable, error });
                }
            }
            _ => {}
        }
    }

    /// The world has received what the guest has sent, and nothing else.
    pub(super) fn check(lab: &mut Lab, guest: &Guest) {
        let world = lab.world();
        for token in world.open_streams() {
            let sent = world.sent(token);
            assert!(guest.may_have_sent(sent), "{token:?} received what was not sent: {sent:?}");
        }
    }
}

fn pick(tokens: &[Token], number: u8) -> Option<Token> {
    tokens.get(usize::from(number).checked_rem(tokens.len())?).copied()
}

fn report(to: u8, mtu: Option<u16>) -> DatagramError {
    let error = mtu.map_or(HostError::Refused, |mtu| HostError::TooBig { mtu });
    let offender = Some(Ipv4Addr::new(192, 0, 2, 1).into());
    DatagramError { error, offender, remote: ends(to).1.into(), quoted: None }
}

impl ConnectOutcome {
    pub(crate) fn script(self) -> Connect {
        match self {
            Self::Succeeds => Connect::Succeeds,
            Self::SucceedsAtLoopback => Connect::SucceedsAt((Ipv4Addr::LOCALHOST, 80).into()),
            Self::Pending => Connect::Pending,
            Self::Refused => Connect::Fails(HostError::Refused),
            Self::FailsAtOnce => Connect::FailsAtOnce(HostError::NoResources),
        }
    }
}
