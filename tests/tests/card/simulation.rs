//! A guest whose driver comes to its card every so often, frames that may get lost between the two,
//! and a scripted world behind the NAT.

use core::ops::RangeInclusive;
use core::time::Duration;

use host_shim::demo::{Guest, Machine, Stream, Tap, pattern};
use ipstack::Instant;
use ne2000::{Model, Ne2000, Options, Width};
use slirp_nat::host::Token;
use slirp_nat::{Counters, Nat};
use slirpkit_tests::guest::SERVER;
use slirpkit_tests::host::{LabHost, State};
use slirpkit_tests::lab::{SECRET, Setup};
use slirpkit_tests::numbers::Numbers;
use slirpkit_tests::{GUEST_MAC, World};

/// What the server has in its stream for the NAT, at most.
const SERVED: usize = 128 << 10;

/// When everything begins, in microseconds.
const BEGIN: Instant = Instant::from_micros(1_000_000);

/// How a guest comes to its card.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Microseconds between two times.
    pub(crate) micros: RangeInclusive<usize>,
    /// Frames that it takes each time, at most.
    pub(crate) frames: RangeInclusive<usize>,
}

/// Loses frames between card and guest, both ways.
pub(crate) struct Loss {
    numbers: Numbers,
    /// One of so many is lost; none if it is 0.
    one_in: usize,
    /// How many were, from the guest and for it.
    pub(crate) lost: [u64; 2],
}

impl Loss {
    fn passes(&mut self, direction: usize) -> bool {
        let lost = self.one_in > 0 && self.numbers.below(self.one_in) == 0;
        self.lost[direction] += u64::from(lost);
        !lost
    }
}

impl Tap for Loss {
    fn sends(&mut self, _frame: &[u8]) -> bool {
        self.passes(0)
    }

    fn receives(&mut self, _frame: &[u8]) -> bool {
        self.passes(1)
    }
}

/// What a simulation is made of.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The card's.
    pub(crate) options: Options,
    /// The guest's.
    pub(crate) pace: Pace,
    /// One of so many frames is lost, each way; none if it is 0.
    pub(crate) loses_one_in: usize,
    /// How long all of it may take.
    pub(crate) limit: Duration,
}

/// All of it.
pub(crate) struct Simulation<H> {
    pub(crate) machine: Machine<H>,
    pub(crate) guest: Guest,
    pub(crate) loss: Loss,
    plan: Plan,
    now: Instant,
    /// When the guest next comes to its card.
    look_at: Instant,
    numbers: Numbers,
}

impl<H: LabHost> Simulation<H> {
    /// A guest that has its lease.
    pub(crate) fn new(host: H, plan: Plan) -> Self {
        let setup = Setup::default();
        let nat = Nat::new(setup.config.clone(), SECRET, setup.storage()).unwrap();
        let card = Ne2000::with_options(Model::Rtl8029As, GUEST_MAC, plan.options);
        let mut machine = Machine::new(card, nat, host);
        machine.turn(BEGIN);
        let guest = Guest::boot(BEGIN, &mut machine, Width::Dword, 1).unwrap();
        let loss = Loss { numbers: Numbers(2), one_in: plan.loses_one_in, lost: [0; 2] };
        let (now, look_at, numbers) = (BEGIN, BEGIN, Numbers(3));
        let mut simulation = Self { machine, guest, loss, plan, now, look_at, numbers };
        while simulation.guest.lease().is_none() {
            simulation.step();
        }
        simulation
    }

    /// The world behind the NAT.
    fn world(&mut self) -> &mut World {
        self.machine.host_mut().world()
    }

    /// Counters of the NAT.
    pub(crate) fn counters(&self) -> Counters {
        self.machine.nat().stats().counters
    }

    /// Goes on to whatever happens next: a deadline of the network's, or the guest.
    fn step(&mut self) {
        while let Some(event) = self.machine.host_mut().next_event() {
            self.machine.on_host_event(event);
        }
        let due = self.machine.poll_at().map_or(self.look_at, |at| at.min(self.look_at));
        self.now = self.now.max(due);
        let elapsed = self.now.since(BEGIN);
        assert!(elapsed < self.plan.limit, "too slow: {:?}", self.counters());
        self.machine.turn(self.now);
        if self.now >= self.look_at {
            let frames = self.numbers.within(&self.plan.pace.frames);
            self.guest.poll_frames(frames, self.now, &mut self.machine, &mut self.loss);
            let micros = self.numbers.within(&self.plan.pace.micros);
            self.look_at = self.now.after(Duration::from_micros(micros as u64));
        }
        self.machine.host_mut().log().take();
    }

    /// A connection to the server, and the server's end.
    fn connect(&mut self) -> Token {
        let before = self.world().connects();
        assert!(self.guest.connect(SERVER), "the connection before goes on");
        while self.world().connects() == before {
            self.step();
        }
        self.world().stream_to(SERVER)
    }

    /// Waits until both ends have closed.
    fn finish(&mut self, server: Token) {
        while !self.guest.is_closed() || self.world().state(server) == State::Open {
            self.step();
        }
        assert_eq!(self.world().state(server), State::Closed);
    }

    /// `length` bytes from the server, each of them compared.
    pub(crate) fn download(&mut self, length: u64) {
        let server = self.connect();
        let (mut given, mut taken) = (0, 0);
        loop {
            while given < length && self.world().unconsumed(server) < SERVED {
                let left = usize::try_from(length - given).unwrap_or(SERVED);
                let piece = pattern::piece(given, left.min(SERVED));
                given += piece.len() as u64;
                self.world().sends(server, piece);
                if given == length {
                    self.world().ends(server);
                }
            }
            self.step();
            let stream = self.guest.receive(|bytes| {
                assert_eq!(pattern::check(taken, bytes), Ok(()));
                taken += bytes.len() as u64;
                bytes.len()
            });
            match stream {
                Stream::Open => {}
                Stream::Ended => break,
                Stream::Broken => panic!("broken after {taken} bytes"),
            }
        }
        assert_eq!(taken, length);
        self.guest.close();
        self.finish(server);
    }

    /// `length` bytes to the server, each of them compared.
    pub(crate) fn upload(&mut self, length: u64) {
        let server = self.connect();
        let (mut made, mut arrived) = (0, 0);
        while arrived < length {
            let stream = self.guest.send(|room| {
                let left = usize::try_from(length - made).unwrap_or(room.len());
                let count = room.len().min(left);
                pattern::fill(made, &mut room[..count]);
                made += count as u64;
                count
            });
            assert!(stream == Stream::Open || made == length, "broken after {arrived} bytes");
            if made == length {
                self.guest.close();
            }
            self.step();
            let bytes = self.world().take_sent(server);
            assert_eq!(pattern::check(arrived, &bytes), Ok(()));
            arrived += bytes.len() as u64;
        }
        while !self.world().is_write_shut(server) {
            self.step();
        }
        assert!(self.world().take_sent(server).is_empty(), "more than was sent");
        self.world().ends(server);
        self.finish(server);
    }
}
