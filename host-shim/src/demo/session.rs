//! One demonstration, from power-on to the table.

use core::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use ipstack::Instant;
use ne2000::{Model, Ne2000, Options as CardOptions, TransmitTiming, Width};
use slirp_nat::{Config, Nat};

use super::server::Server;
use super::{
    Counts, Direction, Error, Guest, Lease, Machine, Options, Progress, Report, Stream, Tap,
    Transfer, pattern,
};
use crate::link::capture::{Capture, note};
use crate::sockets::{HostOptions, OsHost};
use crate::storage::Sizes;
use crate::{clock, secret};

/// The guest's hardware address: a local one.
const MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];

/// What the guest sends to its gateway and wants back.
const PING: &[u8] = b"slirpkit";

/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs the demonstration, and tells `observe` again and again what it does.
///
/// # Errors
/// What went wrong first: it has succeeded only if every byte was right.
pub fn run(options: Options, observe: &mut dyn FnMut(Progress)) -> Result<Report, Error> {
    let mut session = Session::new(options, observe)?;
    let lease = session.lease()?;
    let ping = session.ping(lease)?;
    let transfers = [
        session.transfer(Direction::Download, lease)?,
        session.transfer(Direction::Upload, lease)?,
    ];
    session.recorder.write_out();
    Ok(Report {
        lease,
        ping,
        transfers,
        total: session.counts(),
        ring_used: session.guest.driver_stats().ring_high_water,
        ring_pages: session.guest.ring_pages(),
        stats: session.machine.nat().stats().clone(),
        calls: *session.machine.host().calls(),
    })
}

/// How far a step has come.
enum Step<T> {
    /// It is done, with this.
    Done(T),
    /// Something has happened, and more can follow at once.
    Moved,
    /// The guest has to wait for the network.
    Waiting,
}

struct Session<'a> {
    machine: Machine<OsHost>,
    guest: Guest,
    server: Option<Server>,
    recorder: Recorder,
    size: u64,
    progress: Progress,
    observe: &'a mut dyn FnMut(Progress),
}

impl<'a> Session<'a> {
    fn new(options: Options, observe: &'a mut dyn FnMut(Progress)) -> Result<Self, Error> {
        let Options { model, size, capture } = options;
        let mut config = Config::default();
        config.host_loopback = true;
        let secret = secret::draw()?;
        let seed = secret::draw()?.0[0];
        let nat = Nat::new(config, secret, sizes().allocate()).map_err(Error::Config)?;
        let host = OsHost::new(&HostOptions::default())?;
        let timing = CardOptions { timing: TransmitTiming::Instant, ..CardOptions::DEFAULT };
        let mut machine = Machine::new(Ne2000::with_options(model, MAC, timing), nat, host);
        let now = clock::now();
        machine.turn(now);
        let guest =
            Guest::boot(now, &mut machine, data_port(model), seed).map_err(Error::Driver)?;
        let (server, recorder, progress) = (None, Recorder(capture), Progress::Lease);
        Ok(Self { machine, guest, server, recorder, size, progress, observe })
    }

    fn lease(&mut self) -> Result<Lease, Error> {
        self.until_done(Progress::Lease, |session| {
            Ok(session.guest.lease().map_or(Step::Waiting, Step::Done))
        })
    }

    fn ping(&mut self, lease: Lease) -> Result<Duration, Error> {
        let gateway = gateway(lease);
        let begin = clock::now();
        let mut sent = false;
        self.until_done(Progress::Ping, |session| {
            if !sent {
                sent = session.guest.ping(gateway, PING);
                return Ok(Step::Moved);
            }
            match session.guest.pong(PING) {
                None => Ok(Step::Waiting),
                Some((from, true)) if from == IpAddr::V4(gateway) => Ok(Step::Done(())),
                Some(_) => Err(Error::Pong),
            }
        })?;
        Ok(clock::now().since(begin))
    }

    fn transfer(&mut self, direction: Direction, lease: Lease) -> Result<Transfer, Error> {
        let server = Server::new(direction, self.size, self.machine.host().poller())?;
        let port = server.port()?;
        self.server = Some(server);
        let (before, begin) = (self.counts(), clock::now());
        if !self.guest.connect(SocketAddrV4::new(gateway(lease), port)) {
            return Err(Error::Broken(direction, 0));
        }
        match direction {
            Direction::Download => self.download()?,
            Direction::Upload => self.upload()?,
        }
        let (duration, counts) = (clock::now().since(begin), self.counts().since(&before));
        Ok(Transfer { direction, bytes: self.size, duration, counts })
    }

    /// Takes the stream to its end, compares it, and ends the guest's direction.
    fn download(&mut self) -> Result<(), Error> {
        let direction = Direction::Download;
        let (mut position, mut closing) = (0, false);
        self.until_done(Progress::Transfer(direction, 0), |session| {
            session.tell(Progress::Transfer(direction, position));
            if closing {
                return session.closed();
            }
            let before = position;
            let mut wrong = Ok(());
            let stream = session.guest.receive(|bytes| {
                wrong = pattern::check(position, bytes);
                position += bytes.len() as u64;
                bytes.len()
            });
            wrong.map_err(|at| Error::Wrong(direction, at))?;
            match stream {
                Stream::Broken => Err(Error::Broken(direction, position)),
                Stream::Ended if position != session.size => Err(Error::Short(direction, position)),
                Stream::Ended => {
                    closing = true;
                    session.guest.close();
                    Ok(Step::Moved)
                }
                Stream::Open if position > before => Ok(Step::Moved),
                Stream::Open => Ok(Step::Waiting),
            }
        })
    }

    /// Sends the stream, ends it, and waits until the server has compared all of it.
    fn upload(&mut self) -> Result<(), Error> {
        let direction = Direction::Upload;
        let mut position = 0;
        self.until_done(Progress::Transfer(direction, 0), |session| {
            let arrived = session.served();
            session.tell(Progress::Transfer(direction, arrived));
            if position == session.size {
                return match session.closed()? {
                    Step::Done(()) if arrived != position => Err(Error::Short(direction, arrived)),
                    step => Ok(step),
                };
            }
            let before = position;
            let left = session.size - position;
            let stream = session.guest.send(|room| {
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(room.len());
                let room = room.get_mut(..length).unwrap_or_default();
                pattern::fill(position, room);
                position += room.len() as u64;
                room.len()
            });
            if position == session.size {
                session.guest.close();
            }
            match stream {
                Stream::Broken | Stream::Ended => Err(Error::Broken(direction, arrived)),
                Stream::Open if position > before => Ok(Step::Moved),
                Stream::Open => Ok(Step::Waiting),
            }
        })
    }

    /// Whether both ends know that the connection is over.
    fn closed(&self) -> Result<Step<()>, Error> {
        let server_knows = self.server.as_ref().is_none_or(Server::has_ended);
        Ok(if server_knows && self.guest.is_closed() { Step::Done(()) } else { Step::Waiting })
    }

    fn tell(&mut self, progress: Progress) {
        self.progress = progress;
        (self.observe)(progress);
    }

    /// Goes round until `step` is done, or nothing has happened for too long.
    fn until_done<T>(
        &mut self,
        progress: Progress,
        mut step: impl FnMut(&mut Self) -> Result<Step<T>, Error>,
    ) -> Result<T, Error> {
        self.tell(progress);
        let mut moved_at = clock::now();
        loop {
            let served = self.served();
            let waiting = match step(self)? {
                Step::Done(result) => return Ok(result),
                Step::Moved => false,
                Step::Waiting => true,
            };
            let now = self.go_round(waiting)?;
            if !waiting || self.served() != served {
                moved_at = now;
            } else if now.since(moved_at) > PATIENCE {
                return Err(Error::Stalled(self.progress));
            }
        }
    }

    /// Everybody's turn, once: the server's, the guest's and the NAT's. Waits for one of them if all
    /// of them are `idle`.
    fn go_round(&mut self, idle: bool) -> Result<Instant, Error> {
        let timeout = if idle { self.time_to_wait() } else { Duration::ZERO };
        self.machine.host_mut().wait(Some(timeout))?;
        let now = clock::now();
        if !self.machine.host().external_events().is_empty()
            && let Some(server) = &mut self.server
        {
            let served = server.serve(self.machine.host().poller());
            served.map_err(|error| Error::of_server(server.direction(), error))?;
        }
        // The NAT's clock stands still meanwhile. When this process was off the processor, the guest
        // was too, so what lies in its ring gets its answer before the NAT's patience ends.
        while self.machine.irq_level() || self.guest.poll_at(now).is_some_and(|due| due <= now) {
            self.guest.poll(now, &mut self.machine, &mut self.recorder);
        }
        self.machine.turn(now);
        for _ in 0..self.machine.host().event_count() {
            let Some(event) = self.machine.host_mut().next_event() else { break };
            self.machine.on_host_event(event);
        }
        self.recorder.write_out();
        Ok(now)
    }

    /// Until somebody has something to do, but not so long that nobody sees that nothing happens.
    fn time_to_wait(&mut self) -> Duration {
        if self.machine.irq_level() {
            return Duration::ZERO;
        }
        let now = clock::now();
        let due = [self.guest.poll_at(now), self.machine.poll_at()].into_iter().flatten().min();
        due.map_or(PATIENCE, |due| due.since(now)).min(PATIENCE)
    }

    /// How far the server has come.
    fn served(&self) -> u64 {
        self.server.as_ref().map_or(0, Server::position)
    }

    fn counts(&self) -> Counts {
        let (machine, nat) = (&self.machine, self.machine.nat().stats().counters);
        let card = machine.card_stats();
        let not_taken = [card.no_room, card.stopped, card.monitored, card.runts, card.oversize];
        Counts {
            frames_for_guest: card.stored,
            frames_from_guest: card.transmitted,
            refused: not_taken.iter().sum(),
            nat_retransmissions: nat.tcp_timeouts + nat.tcp_fast_retransmits,
            guest_retransmissions: self.guest.retransmissions(),
            accesses: machine.accesses(),
            interrupts: machine.interrupts(),
            calls: machine.host().calls().iter().map(|(_, count)| count).sum(),
        }
    }
}

/// The gateway, behind which the NAT shows the host's loopback.
fn gateway(lease: Lease) -> Ipv4Addr {
    lease.router.unwrap_or(Config::default().gateway)
}

/// The widest access that the data port of a card takes.
const fn data_port(model: Model) -> Width {
    match model {
        Model::Ne1000 | Model::Ne2000EightBit => Width::Byte,
        Model::Ne2000 => Width::Word,
        Model::Rtl8029As => Width::Dword,
    }
}

/// Memory for one guest with a few connections.
fn sizes() -> Sizes {
    Sizes { flows: 16, permits: 16, forwards: 0, ..Sizes::default() }
}

/// The capture, if there is one.
struct Recorder(Option<Capture>);

impl Recorder {
    fn write_out(&mut self) {
        note(&mut self.0, Capture::write_out);
    }
}

impl Tap for Recorder {
    fn sends(&mut self, frame: &[u8]) -> bool {
        note(&mut self.0, |capture| capture.record(clock::wall(), frame));
        true
    }

    fn receives(&mut self, frame: &[u8]) -> bool {
        note(&mut self.0, |capture| capture.record(clock::wall(), frame));
        true
    }
}
