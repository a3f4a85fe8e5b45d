//! The card, beside it a card that was restored from its state, and what must hold of both.

use core::fmt::Debug;

use ne2000::driver::Driver;
use ne2000::{
    ChipState, MacPolicy, Model, Ne2000, Options, ReceiveMode, RxOutcome, Width, WireError,
};

use super::mangle::mangle;
use super::operation::{Direction, Frame, Operation, Register};
use super::stored;

const MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
/// Destinations of frames: the card's address, broadcast, groups, others.
const DESTINATIONS: [[u8; 6]; 4] = [MAC, [0xFF; 6], [1, 0, 0x5E, 0, 0, 1], [2, 0, 0, 0, 0, 9]];
/// The longest frame that a card takes.
const MAX_FRAME_LEN: usize = ne2000::MAX_FRAME_LEN;
/// A ring of so many pages has room for the longest frame.
const LARGE_RING: u8 = 8;

pub(super) struct Machine {
    card: Ne2000,
    /// A card that was restored from the state of the first one, and does what it does.
    twin: Option<Ne2000>,
    driver: Option<Driver>,
    /// The card's clock, in microseconds.
    now: u64,
    /// How far the twin's clock is ahead.
    leap: u64,
    prom: [u8; ne2000::PROM_LEN],
}

impl Machine {
    pub(super) fn new(model: Model, options: Options) -> Self {
        let card = Ne2000::with_options(model, MAC, options);
        let prom = *card.prom();
        Self { card, twin: None, driver: None, now: 0, leap: 0, prom }
    }

    /// What must be true of every card at any time.
    pub(super) fn check(&self) {
        let chip = self.card.state().chip;
        assert_eq!(self.card.irq_level(), chip.isr & chip.imr & 0x7F != 0, "the line is a level");
        assert!(chip.cntr.iter().all(|counter| *counter <= 192), "counters stop");
        assert_eq!(*self.card.prom(), self.prom, "nothing writes the PROM");
        let room = self.card.receive_room();
        match chip.receive_mode {
            ReceiveMode::Strict => assert_eq!(room, usize::MAX, "a cable waits for nobody"),
            ReceiveMode::BackPressure => {
                assert!(room <= 8, "no more than a burst");
                assert!(room == 0 || is_receiving(&chip), "room behind a receiver that is off");
            }
        }
        if let Some(twin) = &self.twin {
            assert_eq!(self.card.state(), twin.state(), "the restored card goes another way");
        }
    }

    /// Does the same to both cards, with the same result.
    fn on_both<T: PartialEq + Debug>(&mut self, act: impl Fn(&mut Ne2000) -> T) -> T {
        let result = act(&mut self.card);
        if let Some(twin) = &mut self.twin {
            assert_eq!(result, act(twin), "the restored card answers otherwise");
        }
        result
    }

    #[cfg(test)]
    pub(super) fn change_behind_the_twins_back(&mut self, change: impl FnOnce(&mut Ne2000)) {
        change(&mut self.card);
    }

    fn write(&mut self, offset: u8, value: u8) {
        self.on_both(|card| card.write(offset, Width::Byte, value.into()));
    }

    fn write_all(&mut self, writes: &[(u8, u8)]) {
        writes.iter().for_each(|(offset, value)| self.write(*offset, *value));
    }

    pub(super) fn act(&mut self, operation: &Operation) {
        match *operation {
            Operation::Read(port, width) => {
                self.on_both(|card| card.read(port.0, width.0));
            }
            Operation::Write(port, width, value) => {
                self.on_both(|card| card.write(port.0, width.0, value));
            }
            Operation::Register(Register { page, offset, value }) => {
                self.write_all(&[(0x00, page << 6 | 0x20), (offset & 0x0F, value.0)]);
            }
            Operation::Command(value) => self.write(0x00, value),
            Operation::Ring { start, stop, boundary, current } => self.write_all(&[
                (0x00, 0x20),
                (0x01, start.0),
                (0x02, stop.0),
                (0x03, boundary.0),
                (0x00, 0x60),
                (0x07, current.0),
                (0x00, 0x20),
            ]),
            Operation::Send { page, count } => {
                let [low, high] = count.0.to_le_bytes();
                self.write_all(&[(0x00, 0x20), (0x04, page.0), (0x05, low), (0x06, high)]);
                self.write(0x00, 0x26);
            }
            Operation::Remote(direction, address, count) => {
                self.remote(direction, address.0, count.0);
            }
            Operation::Data { write, width, accesses } => {
                self.data(write, width.0, accesses);
            }
            Operation::DriverStart(_) | Operation::DriverReceive | Operation::DriverSend(_) => {
                self.drive(operation)
            }
            Operation::Receive(frame) => self.receive(frame, None),
            Operation::ReceiveDamaged(frame, error) => self.receive(frame, Some(error.0)),
            Operation::Burst(frame) => self.burst(frame),
            Operation::Transmit => self.transmit(),
            Operation::Advance { micros } => self.advance(micros.into()),
            Operation::Link(up) => self.on_both(|card| card.set_link(up)),
            Operation::Options(choices) => self.on_both(|card| card.set_options(choices.into())),
            Operation::Reset(reset) => self.on_both(|card| card.reset(reset.0)),
            Operation::SaveAndRestore { leap } => self.save_and_restore(leap.into()),
            Operation::RestoreMangled { field, value } => self.restore_mangled(field, value),
        }
    }

    fn remote(&mut self, direction: Direction, address: u16, count: u16) {
        let [low, high] = address.to_le_bytes();
        let [count_low, count_high] = count.to_le_bytes();
        let command = match direction {
            Direction::Read => 0x0A,
            Direction::Write => 0x12,
            Direction::SendPacket => 0x1A,
        };
        self.write_all(&[(0x00, 0x20), (0x08, low), (0x09, high)]);
        self.write_all(&[(0x0A, count_low), (0x0B, count_high), (0x00, command)]);
    }

    fn data(&mut self, write: bool, width: Width, accesses: u8) {
        for access in 0..accesses {
            if write {
                let value = u32::from(access).wrapping_mul(0x0101_0101);
                self.on_both(|card| card.write(0x10, width, value));
            } else {
                self.on_both(|card| card.read(0x10, width));
            }
        }
    }

    /// What the driver of the crate does, to a card that may be in any state.
    fn drive(&mut self, operation: &Operation) {
        let driver = self.driver.clone();
        let drive = |card: &mut Ne2000| {
            let mut driver = driver.clone();
            let result = match (operation, &mut driver) {
                (Operation::DriverStart(width), _) => {
                    driver = Driver::start(card, width.0).ok();
                    Some(usize::from(driver.is_some()))
                }
                (Operation::DriverSend(length), Some(driver)) => {
                    let bytes = vec![0x5A; usize::from(*length)];
                    Some(usize::from(driver.send(card, &bytes)))
                }
                (_, Some(driver)) => driver.receive(card, &mut [0; MAX_FRAME_LEN]),
                (_, None) => None,
            };
            (result, driver)
        };
        let (result, next) = drive(&mut self.card);
        if let Some(twin) = &mut self.twin {
            let (twin_result, twin_next) = drive(twin);
            assert_eq!(result, twin_result, "the driver finds another card");
            let stats = [&next, &twin_next].map(|driver| driver.as_ref().map(Driver::stats));
            assert_eq!(stats[0], stats[1], "the driver finds another card");
        }
        self.driver = next;
    }

    fn receive(&mut self, frame: Frame, error: Option<WireError>) {
        let bytes = content(frame.destination, frame.length.0.into(), frame.seed);
        let _ = self.offer(&bytes, error);
    }

    fn offer(&mut self, bytes: &[u8], error: Option<WireError>) -> RxOutcome {
        let before = self.card.state();
        let outcome = self.on_both(|card| match error {
            None => card.receive(bytes),
            Some(error) => card.receive_damaged(bytes, error),
        });
        if outcome == RxOutcome::Stored {
            stored::check(&before, &self.card, bytes, error);
        } else {
            let after = self.card.state().chip;
            assert_eq!((after.curr, after.bnry), (before.chip.curr, before.chip.bnry));
        }
        outcome
    }

    /// Every frame is taken for which there was room, unless the ring is too small for the longest.
    fn burst(&mut self, frame: Frame) {
        let chip = self.card.state().chip;
        let large = chip.pstop.saturating_sub(chip.pstart) >= LARGE_RING;
        if chip.receive_mode == ReceiveMode::Strict || !large {
            return;
        }
        let length = usize::from(frame.length.0) % (MAX_FRAME_LEN + 1);
        let bytes = content(frame.destination, length, frame.seed);
        for _ in 0..self.card.receive_room() {
            let outcome = self.offer(&bytes, None);
            assert!(
                matches!(outcome, RxOutcome::Stored | RxOutcome::Filtered | RxOutcome::Runt),
                "a frame that there was room for: {outcome:?}"
            );
        }
    }

    fn transmit(&mut self) {
        let pending = self.on_both(|card| card.transmit_pending());
        let sent = self.on_both(|card| {
            card.transmit().map(|frame| {
                let bytes: Vec<u8> = frame.pieces().flatten().copied().collect();
                assert_eq!(bytes.len(), frame.len());
                assert!(frame.as_slice().is_none_or(|slice| slice == bytes));
                bytes
            })
        });
        assert_eq!(sent.is_some(), pending);
        assert!(sent.is_none_or(|frame| !frame.is_empty()));
        assert!(!self.card.transmit_pending(), "a frame is handed out once");
    }

    fn advance(&mut self, micros: u64) {
        self.now += micros;
        self.card.advance(self.now);
        if let Some(twin) = &mut self.twin {
            twin.advance(self.now + self.leap);
        }
    }

    fn save_and_restore(&mut self, leap: u64) {
        let mut twin = Ne2000::new(Model::Ne2000, [0; 6]);
        self.leap = leap;
        let state = self.card.state();
        let restored = twin.restore(&state, self.card.ram(), MacPolicy::Saved, self.now + leap);
        assert_eq!(restored, Ok(()), "a card's own state");
        assert_eq!((twin.ram(), twin.prom()), (self.card.ram(), self.card.prom()));
        self.twin = Some(twin);
    }

    /// A state that is refused changes nothing; one that is taken is a state like any other.
    fn restore_mangled(&mut self, field: u8, value: u64) {
        let before = self.card.state();
        let mut state = before;
        let mut ram = self.card.ram().to_vec();
        mangle(&mut state, &mut ram, field, value);
        let now = self.now;
        if self.card.restore(&state, &ram, MacPolicy::Saved, now).is_ok() {
            assert_eq!((self.card.state(), self.card.ram()), (state, &ram[..]));
            self.prom = *self.card.prom();
            self.twin = None;
        } else {
            assert_eq!(self.card.state(), before, "a refused state changes the card");
        }
    }

    /// A transmission under way ends once the network and the time have done their part.
    pub(super) fn come_to_rest(&mut self) {
        self.transmit();
        for _ in 0..2 {
            let Some(at) = self.card.poll_at() else { break };
            self.advance(at.saturating_sub(self.now));
        }
        self.check();
        assert_eq!(self.card.poll_at(), None, "the card waits for a time that has come");
        if let Some(twin) = &self.twin {
            assert_eq!(self.card.ram(), twin.ram(), "the restored card holds something else");
        }
    }
}

fn is_receiving(chip: &ChipState) -> bool {
    let running = chip.command.started && !chip.command.stopped;
    chip.link_up && running && chip.tcr & 0x06 == 0 && chip.rcr & 0x20 == 0
}

fn content(destination: u8, length: usize, seed: u8) -> Vec<u8> {
    let head = DESTINATIONS[usize::from(destination) % DESTINATIONS.len()];
    let tail = (0..).map(|i: usize| seed.wrapping_add(i.wrapping_mul(151).to_le_bytes()[0]));
    head.into_iter().chain(tail).take(length).collect()
}
