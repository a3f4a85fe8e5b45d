//! The card, the cable, the NAT and its sockets, and when it is whose turn.

use core::time::Duration;
use std::os::fd::{AsFd as _, BorrowedFd};

use host_shim::sockets::{HostOptions, OsHost};
use host_shim::storage::Sizes;
use host_shim::{clock, secret};
use ne2000::{Model, Ne2000, Options, Reset, TransmitTiming, Width};
use slirp_nat::card::{Cable, RING_LEN};
use slirp_nat::{Config, Nat};

use crate::alarm::Alarm;
use crate::control::{Control, Request};
use crate::qemu::Device;
use crate::report::{Counters, Report};
use crate::stalls::Stalls;

/// What QEMU gives its first card.
const MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];

/// Indexes of [`Device::descriptors`].
const SOCKETS: usize = 0;
const ALARM: usize = 1;

/// A card, and the network behind it.
pub(crate) struct Service {
    card: Ne2000,
    cable: Cable<'static>,
    nat: Nat<'static>,
    host: OsHost,
    alarm: Alarm,
    control: Option<Control>,
    /// The interrupt line, as the machine was told.
    line: bool,
    /// It was low between an access and what followed from it, which the edge-triggered interrupt
    /// controller of an ISA bus must see.
    fell: bool,
    counters: Counters,
    stalls: Stalls,
}

impl Service {
    /// A card with a cable into a NAT, whose guest may reach the host's loopback, where the tests
    /// have their servers.
    ///
    /// # Errors
    /// What the system refuses, in words.
    pub(crate) fn new(model: Model) -> Result<Self, String> {
        let words = |error: std::io::Error| error.to_string();
        let mut config = Config::default();
        config.host_loopback = true;
        if let Some(boot_file) = std::env::var_os("SLIRPKIT_BOOTFILE") {
            let boot_file = boot_file.to_str().and_then(|name| name.try_into().ok());
            config.boot_file = boot_file.ok_or("SLIRPKIT_BOOTFILE is no name of a boot file")?;
        }
        let secret = secret::draw().map_err(words)?;
        let nat = Nat::new(config, secret, Sizes::default().allocate());
        let options = Options { timing: TransmitTiming::Instant, ..Options::DEFAULT };
        Ok(Self {
            card: Ne2000::with_options(model, MAC, options),
            cable: Cable::new(vec![0; RING_LEN]),
            nat: nat.map_err(|error| error.to_string())?,
            host: OsHost::new(&HostOptions::default()).map_err(words)?,
            alarm: Alarm::new().map_err(words)?,
            control: Control::from_environment()?,
            line: false,
            fell: false,
            counters: Counters::default(),
            stalls: Stalls::default(),
        })
    }

    fn after_access(&mut self) {
        self.counters.accesses += 1;
        self.fell |= self.line && !self.card.irq_level();
        self.stalls.in_processor();
        if self.cable.is_due(&self.card) {
            self.turn();
        }
    }

    /// Does what is due, and what follows from it.
    fn turn(&mut self) {
        self.counters.turns += 1;
        self.cable.turn(clock::now(), &mut self.card, &mut self.nat, &mut self.host);
        self.take_host_events();
    }

    /// Takes the events of the host that are there now, and sets the alarm.
    fn take_host_events(&mut self) {
        let Self { card, cable, nat, host, .. } = self;
        while let Some(event) = host.next_event() {
            cable.on_host_event(clock::now(), event, card, nat, host);
        }
        let due = cable.poll_at(card, nat);
        if due.is_some_and(|at| self.alarm.set(at)) {
            self.look_at_the_clock();
        }
    }

    fn look_at_the_clock(&mut self) {
        self.stalls.sample(clock::now(), self.nat.stats().counters.tcp_timeouts);
    }

    fn report(&self) -> Report<'_> {
        Report {
            card: &self.card,
            nat: &self.nat,
            host: &self.host,
            cable: &self.cable,
            counters: &self.counters,
            timeouts_off_the_cpu: self.stalls.timeouts_off_the_cpu,
        }
    }

    fn answer_control(&mut self) {
        let Some(control) = &self.control else { return };
        let Some(mut client) = control.accept() else { return };
        let answer = match client.request() {
            Some(Request::Report) => self.report().to_string(),
            Some(Request::Frame(frame)) => format!("{:?}\n", self.card.receive(&frame)),
            None => "what?\n".to_owned(),
        };
        client.answer(&answer);
    }
}

impl Device for Service {
    fn read(&mut self, port: u8, width: Width) -> u32 {
        let value = self.card.read(port, width);
        self.after_access();
        value
    }

    fn write(&mut self, port: u8, width: Width, value: u32) {
        self.card.write(port, width, value);
        self.after_access();
    }

    fn reset(&mut self) {
        self.counters.resets += 1;
        self.card.reset(Reset::PowerOn);
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut descriptors = vec![self.host.as_fd(), self.alarm.as_fd()];
        descriptors.extend(self.control.as_ref().map(Control::as_fd));
        descriptors
    }

    fn on_readable(&mut self, index: usize) {
        self.stalls.in_main_loop();
        match index {
            SOCKETS => {
                // It was readable, so this cannot fail but for a signal, which costs one more turn.
                let _ = self.host.wait(Some(Duration::ZERO));
                self.take_host_events();
            }
            ALARM => {
                self.alarm.take();
                self.turn();
                self.look_at_the_clock();
            }
            _ => self.answer_control(),
        }
    }

    fn changed_line(&mut self) -> Option<bool> {
        let fell = core::mem::take(&mut self.fell);
        let level = self.card.irq_level() && !fell;
        let changed = level != self.line;
        self.line = level;
        self.counters.interrupts += u64::from(changed && level);
        changed.then_some(level)
    }
}
