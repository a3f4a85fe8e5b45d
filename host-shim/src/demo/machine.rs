//! A machine: a card at its bus, and the network behind the card.

use ipstack::Instant;
use ne2000::driver::Ports;
use ne2000::{Ne2000, Stats as CardStats, Width};
use slirp_nat::card::{Cable, RING_LEN};
use slirp_nat::{Host, HostEvent, Nat};

/// A card, the cable to its NAT, and the NAT's host. Its [`Ports`] are what the guest has of it:
/// what an access makes due is done before the next one, as where an access leaves the guest for
/// its hypervisor.
#[derive(Debug)]
pub struct Machine<H> {
    now: Instant,
    card: Ne2000,
    cable: Cable<'static>,
    nat: Nat<'static>,
    host: H,
    accesses: u64,
    interrupts: u64,
    line: bool,
}

impl<H: Host> Machine<H> {
    /// Puts `card` in front of `nat`.
    pub fn new(card: Ne2000, nat: Nat<'static>, host: H) -> Self {
        let cable = Cable::new(vec![0; RING_LEN]);
        let (accesses, interrupts, line) = (0, 0, false);
        Self { now: Instant::ZERO, card, cable, nat, host, accesses, interrupts, line }
    }

    /// Does what is due at `now`, which is the time of all that happens before the next call. For
    /// whenever the time of [`Machine::poll_at`] has come, or more often.
    pub fn turn(&mut self, now: Instant) {
        self.now = now;
        self.serve();
    }

    /// Hands an event of the host to the NAT.
    pub fn on_host_event(&mut self, event: HostEvent) {
        let Self { now, card, cable, nat, host, .. } = self;
        cable.on_host_event(*now, event, card, nat, host);
        self.sense();
    }

    /// When to call [`Machine::turn`], whatever happens until then.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.cable.poll_at(&self.card, &self.nat)
    }

    fn serve(&mut self) {
        self.cable.turn(self.now, &mut self.card, &mut self.nat, &mut self.host);
        self.sense();
    }

    /// Looks at the interrupt line.
    const fn sense(&mut self) {
        let level = self.card.irq_level();
        self.interrupts += (level && !self.line) as u64;
        self.line = level;
    }

    fn after_access(&mut self) {
        self.accesses += 1;
        self.sense();
        if self.cable.is_due(&self.card) {
            self.serve();
        }
    }

    /// Whether the card interrupts the guest.
    #[must_use]
    pub const fn irq_level(&self) -> bool {
        self.line
    }

    /// Accesses to the card's ports so far.
    #[must_use]
    pub const fn accesses(&self) -> u64 {
        self.accesses
    }

    /// How often the interrupt line has risen so far.
    #[must_use]
    pub const fn interrupts(&self) -> u64 {
        self.interrupts
    }

    /// What became of the card's frames.
    #[must_use]
    pub const fn card_stats(&self) -> &CardStats {
        self.card.stats()
    }

    /// The NAT.
    #[must_use]
    pub const fn nat(&self) -> &Nat<'static> {
        &self.nat
    }

    /// The host.
    #[must_use]
    pub const fn host(&self) -> &H {
        &self.host
    }

    /// The host, for what happens on its other side.
    pub const fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }
}

impl<H: Host> Ports for Machine<H> {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        let value = self.card.read(offset, width);
        self.after_access();
        value
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        self.card.write(offset, width, value);
        self.after_access();
    }
}
