//! A machine with one card, and what every driver does to it.

use std::collections::VecDeque;

use ne2000::{Model, Ne2000, Options, ReceiveMode, RxOutcome, TransmitTiming, Width};

pub(crate) const MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
pub(crate) const PEER: [u8; 6] = [0x02, 0, 0, 0, 0, 0x99];
pub(crate) const BROADCAST: [u8; 6] = [0xFF; 6];

/// ISR bits by their datasheet names.
pub(crate) const PRX: u8 = 0x01;
pub(crate) const PTX: u8 = 0x02;
pub(crate) const RXE: u8 = 0x04;
pub(crate) const TXE: u8 = 0x08;
pub(crate) const OVW: u8 = 0x10;
pub(crate) const CNT: u8 = 0x20;
pub(crate) const RDC: u8 = 0x40;
pub(crate) const RST: u8 = 0x80;

pub(crate) struct Guest {
    pub(crate) card: Ne2000,
    /// Microseconds.
    pub(crate) now: u64,
    /// What has left the card.
    pub(crate) sent: Vec<Vec<u8>>,
    /// Frames that the network hands over after the driver's accesses, when the card has room.
    pub(crate) waiting: VecDeque<Vec<u8>>,
    /// Accesses from one of them to the next; 0 for as many as there is room for at each access.
    pub(crate) pace: usize,
    accesses: usize,
}

impl Guest {
    pub(crate) fn new(model: Model) -> Self {
        Self::with_options(model, Options::DEFAULT)
    }

    fn with_options(model: Model, options: Options) -> Self {
        let card = Ne2000::with_options(model, MAC, options);
        Self { card, now: 0, sent: Vec::new(), waiting: VecDeque::new(), pace: 0, accesses: 0 }
    }

    pub(crate) fn strict(model: Model) -> Self {
        let options = Options { receive_mode: ReceiveMode::Strict, ..Options::DEFAULT };
        Self::with_options(model, options)
    }

    pub(crate) fn instant(model: Model) -> Self {
        let options = Options { timing: TransmitTiming::Instant, ..Options::DEFAULT };
        Self::with_options(model, options)
    }

    fn read(&mut self, port: u8, width: Width) -> u32 {
        let value = self.card.read(port, width);
        self.hand_over();
        value
    }

    fn write(&mut self, port: u8, width: Width, value: u32) {
        self.card.write(port, width, value);
        self.hand_over();
    }

    /// Offers what waits and is due after one more access.
    fn hand_over(&mut self) {
        self.accesses += 1;
        let due = match self.accesses.checked_rem(self.pace) {
            None => usize::MAX,
            Some(0) => 1,
            Some(_) => 0,
        };
        for _ in 0..due.min(self.card.receive_room()).min(self.waiting.len()) {
            if let Some(frame) = self.waiting.pop_front() {
                self.receive(&frame);
            }
        }
    }

    pub(crate) fn inb(&mut self, port: u8) -> u8 {
        self.read(port, Width::Byte) as u8
    }

    pub(crate) fn inw(&mut self, port: u8) -> u16 {
        self.read(port, Width::Word) as u16
    }

    pub(crate) fn inl(&mut self, port: u8) -> u32 {
        self.read(port, Width::Dword)
    }

    pub(crate) fn outb(&mut self, port: u8, value: u8) {
        self.write(port, Width::Byte, u32::from(value));
    }

    pub(crate) fn outw(&mut self, port: u8, value: u16) {
        self.write(port, Width::Word, u32::from(value));
    }

    pub(crate) fn outl(&mut self, port: u8, value: u32) {
        self.write(port, Width::Dword, value);
    }

    pub(crate) fn outs(&mut self, pairs: &[(u8, u8)]) {
        for (port, value) in pairs {
            self.outb(*port, *value);
        }
    }

    pub(crate) fn isr(&mut self) -> u8 {
        self.inb(0x07)
    }

    pub(crate) fn irq(&self) -> bool {
        self.card.irq_level()
    }

    /// Takes what the card sends.
    pub(crate) fn collect(&mut self) {
        if let Some(frame) = self.card.transmit() {
            let mut bytes = vec![0; frame.len()];
            assert_eq!(frame.copy_to(&mut bytes), bytes.len());
            self.sent.push(bytes);
        }
    }

    /// Lets time pass, with the network taking what is sent.
    pub(crate) fn pass(&mut self, micros: u64) {
        self.collect();
        self.card.advance(self.now);
        self.now += micros;
        self.card.advance(self.now);
    }

    /// Polls ISR until one of `bits` is set, as drivers do, for up to 20 ms.
    pub(crate) fn await_isr(&mut self, bits: u8) {
        for _ in 0..20 {
            if self.isr() & bits != 0 {
                return;
            }
            self.pass(1_000);
        }
        panic!("ISR {:02x} never got {bits:02x}", self.isr());
    }

    /// A remote DMA command: count, address, then `command` into CR.
    pub(crate) fn remote(&mut self, address: u16, count: u16, command: u8) {
        let [address_low, address_high] = address.to_le_bytes();
        let [count_low, count_high] = count.to_le_bytes();
        self.outs(&[
            (0x0A, count_low),
            (0x0B, count_high),
            (0x08, address_low),
            (0x09, address_high),
            (0x00, command),
        ]);
    }

    /// Reads `count` bytes at `address` by bytes or words, as DCR says.
    pub(crate) fn peek(&mut self, address: u16, count: u16) -> Vec<u8> {
        self.remote(address, count, 0x0A);
        let bytes = if self.word_mode() {
            let words: Vec<u16> = (0..count.div_ceil(2)).map(|_| self.inw(0x10)).collect();
            words.iter().flat_map(|word| word.to_le_bytes()).take(usize::from(count)).collect()
        } else {
            (0..count).map(|_| self.inb(0x10)).collect()
        };
        self.outb(0x07, RDC);
        bytes
    }

    /// Writes `bytes` at `address` by bytes or words, as DCR says.
    pub(crate) fn poke(&mut self, address: u16, bytes: &[u8]) {
        self.remote(address, bytes.len() as u16, 0x12);
        if self.word_mode() {
            for pair in bytes.chunks(2) {
                let high = pair.get(1).copied().unwrap_or(0);
                self.outw(0x10, u16::from_le_bytes([pair[0], high]));
            }
        } else {
            for byte in bytes {
                self.outb(0x10, *byte);
            }
        }
        self.outb(0x07, RDC);
    }

    fn word_mode(&mut self) -> bool {
        self.card.state().chip.dcr & 1 == 1
    }

    /// Brings the card up: ring from `start` to `stop`, BNRY one behind CURR, own address and
    /// broadcasts, all interrupts.
    pub(crate) fn bring_up(&mut self, start: u8, stop: u8) {
        let dcr =
            if self.card.model() == Model::Ne1000 || self.card.model() == Model::Ne2000EightBit {
                0x48
            } else {
                0x49
            };
        self.outs(&[(0x00, 0x21), (0x0E, dcr), (0x0A, 0), (0x0B, 0), (0x0C, 0x04), (0x0D, 0x02)]);
        self.outs(&[(0x01, start), (0x02, stop), (0x03, start), (0x07, 0xFF), (0x0F, 0x3F)]);
        self.outb(0x00, 0x61);
        for (port, byte) in (1..).zip(MAC) {
            self.outb(port, byte);
        }
        self.outb(0x07, start + 1);
        self.outs(&[(0x00, 0x22), (0x0D, 0x00)]);
    }

    pub(crate) fn curr(&mut self) -> u8 {
        self.outb(0x00, 0x62);
        let curr = self.inb(0x07);
        self.outb(0x00, 0x22);
        curr
    }

    /// Asks for the transmission of `length` bytes at `page`.
    pub(crate) fn send(&mut self, page: u8, length: u16) {
        let [low, high] = length.to_le_bytes();
        self.outs(&[(0x04, page), (0x05, low), (0x06, high), (0x00, 0x26)]);
    }

    /// Offers frames until one finds no room.
    pub(crate) fn fill(&mut self, length: usize, seed: u8) {
        let full =
            (0..256).any(|_| self.card.receive(&frame(MAC, length, seed)) == RxOutcome::NoRoom);
        assert!(full, "a ring that never fills");
    }

    pub(crate) fn receive(&mut self, frame: &[u8]) {
        assert_eq!(self.card.receive(frame), RxOutcome::Stored);
    }
}

/// A frame of `length` bytes to `destination`, its bytes counted up from `seed`.
pub(crate) fn frame(destination: [u8; 6], length: usize, seed: u8) -> Vec<u8> {
    let mut frame = destination.to_vec();
    frame.extend(PEER);
    frame.extend([0x08, 0x00]);
    frame.extend((0..length.saturating_sub(14)).map(|i| seed.wrapping_add(i as u8)));
    frame.truncate(length);
    frame
}

/// The frame as it lies in the ring, with its check sequence.
pub(crate) fn with_fcs(frame: &[u8]) -> Vec<u8> {
    let mut stored = frame.to_vec();
    stored.extend(ne2000::crc::fcs(frame));
    stored
}
