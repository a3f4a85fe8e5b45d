//! Card, cable, NAT and `RingHost`, wired as an emulator would wire them.

use ipstack::Instant;
use ne2000::driver::Ports;
use ne2000::{Model, Ne2000, Options, TransmitTiming, Width};
use slirp_nat::card::Cable;
use slirp_nat::ring_host::{PushHost, RingHost};
use slirp_nat::{Config, ConfigError, HostEvent, Nat, Secret};

use crate::guest::Failure;
use crate::memory::{Buffers, Rest, Tables, storage};

const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

/// A scripted machine has nothing to hide. Any other draws this at random.
const SECRET: Secret = Secret([0x736c_6972_706b_6974, 0x656d_6265_6464_6564]);

/// A card after power-on.
#[must_use]
pub const fn card(model: Model) -> Ne2000 {
    let options = Options { timing: TransmitTiming::Instant, ..Options::DEFAULT };
    Ne2000::with_options(model, MAC, options)
}

/// The least time that passes between two calls of a guest.
const STEP_MICROS: u64 = 50;

/// More turns than it takes until all flows have ended.
const SETTLE_TURNS: usize = 100;

/// Where a host says what has happened.
pub trait Events {
    /// The next thing that has happened, if any.
    fn next_event(&mut self) -> Option<HostEvent>;
}

/// The network side of a machine: everything behind the ports of its card.
#[derive(Debug)]
pub struct Machine<'a, H> {
    card: &'a mut Ne2000,
    cable: Cable<'a>,
    nat: Nat<'a>,
    host: RingHost<'a, H>,
    now: Instant,
}

impl<'a, H: PushHost + Events> Machine<'a, H> {
    /// A machine with this [`card`].
    ///
    /// # Errors
    /// What [`Nat::new`] says of the tables.
    pub fn new(
        host: H,
        card: &'a mut Ne2000,
        tables: &'a mut Tables,
        buffers: &'a mut Buffers,
    ) -> Result<Self, ConfigError> {
        let (storage, Rest { cable, rings, ring_memory }) = storage(tables, buffers);
        Ok(Self {
            card,
            cable: Cable::new(cable),
            nat: Nat::new(Config::default(), SECRET, storage)?,
            host: RingHost::new(host, rings, ring_memory),
            now: Instant::ZERO,
        })
    }

    /// Does what is due at `now`: call it when [`Machine::poll_at`] has come, and when the host has
    /// something to say.
    pub fn turn(&mut self, now: Instant) {
        self.now = now;
        self.cable.turn(now, self.card, &mut self.nat, &mut self.host);
        while let Some(event) = self.next_event() {
            self.cable.on_host_event(now, event, self.card, &mut self.nat, &mut self.host);
        }
    }

    /// What `RingHost` owes, then what the host inside it has to say.
    fn next_event(&mut self) -> Option<HostEvent> {
        self.host.next_event().or_else(|| self.host.inner_mut().next_event())
    }

    /// When to call [`Machine::turn`] at the latest.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.cable.poll_at(self.card, &self.nat)
    }

    /// The time, in microseconds, at which a guest and this machine go on: the next step if the
    /// card interrupts, else when one of them wants to be called.
    #[must_use]
    pub fn next_time(&self, now: u64, guest_at: u64) -> u64 {
        let own = self.poll_at().map_or(u64::MAX, Instant::micros);
        let wanted = if self.irq_level() { now } else { guest_at.min(own) };
        wanted.max(now.saturating_add(STEP_MICROS))
    }

    /// The level of the card's interrupt line.
    #[must_use]
    pub const fn irq_level(&self) -> bool {
        self.card.irq_level()
    }

    /// Goes on until nothing waits for the time any more. Call it when the guest is through; the
    /// lifetimes of its flows end then.
    pub fn settle(&mut self) {
        for _ in 0..SETTLE_TURNS {
            let Some(at) = self.poll_at() else { break };
            self.turn(self.now.max(at));
        }
    }

    /// What happened, by name.
    #[must_use]
    pub fn counters(&self) -> [(&'static str, u64); 12] {
        let card = self.card.stats();
        let nat = &self.nat.stats().counters;
        [
            ("card: frames from the guest", card.transmitted),
            ("card: frames stored for the guest", card.stored),
            ("card: frames refused", card.no_room),
            ("nat: segments in", nat.tcp_segments_in),
            ("nat: super-segments out", nat.tcp_segments_out),
            ("nat: acknowledgments out", nat.tcp_acks_out),
            ("nat: bytes in", nat.tcp_bytes_in),
            ("nat: bytes out", nat.tcp_bytes_out),
            ("nat: bytes sent again", nat.tcp_bytes_retransmitted),
            ("nat: short writes", nat.short_writes),
            ("nat: datagrams each way", nat.datagrams_in.min(nat.datagrams_out)),
            ("nat: visits to flows", nat.flow_visits),
        ]
    }

    /// Checks what must hold once the guest has passed and all has settled.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), Failure> {
        let card = self.card.stats();
        let nat = &self.nat.stats().counters;
        if let Some((reason, _)) = self.nat.stats().drops().find(|(_, count)| *count > 0) {
            return Err(Failure(reason.name()));
        }
        let facts = [
            (card.no_room == 0, "the card refused a frame"),
            (card.transmitted == nat.frames_in, "a frame of the guest did not reach the NAT"),
            (nat.tcp_bytes_retransmitted == 0, "the NAT sent something again"),
            (nat.tcp_closed == 1 && nat.tcp_aborted == 0, "the stream did not end in good order"),
            (self.nat.flow_count() == 0, "a flow is left"),
        ];
        facts.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(Failure(what)))
    }
}

/// The accesses of the guest's driver, which cause all that the guest causes.
impl<H: PushHost + Events> Ports for Machine<'_, H> {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        let value = self.card.read(offset, width);
        if self.cable.is_due(self.card) {
            self.turn(self.now);
        }
        value
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        self.card.write(offset, width, value);
        if self.cable.is_due(self.card) {
            self.turn(self.now);
        }
    }
}
