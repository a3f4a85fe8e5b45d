//! What QEMU's card and ours have in common.

use std::collections::VecDeque;

use ne2000::{Model, Ne2000, Options, TransmitTiming, Width};

/// A card as its driver and its network see it.
pub(crate) trait Card {
    /// A read of port `offset` from the card's base.
    fn read(&mut self, offset: u8, width: Width) -> u32;
    /// A write to it.
    fn write(&mut self, offset: u8, width: Width, value: u32);
    /// The level of the interrupt line.
    fn irq_level(&mut self) -> bool;
    /// A frame from the network.
    fn receive(&mut self, frame: &[u8]);
    /// The next frame that the card has sent.
    fn sent(&mut self) -> Option<Vec<u8>>;

    /// A byte read.
    fn get(&mut self, offset: u8) -> u32 {
        self.read(offset, Width::Byte)
    }

    /// Bytes written, one after the other.
    fn set(&mut self, writes: &[(u8, u8)]) {
        for (offset, value) in writes {
            self.write(*offset, Width::Byte, u32::from(*value));
        }
    }
}

/// Our card, with what QEMU cannot do left out: its transmissions complete at once.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) card: Ne2000,
    sent: VecDeque<Vec<u8>>,
}

impl Ours {
    pub(crate) fn new(mac: [u8; 6]) -> Self {
        let options = Options { timing: TransmitTiming::Instant, ..Options::DEFAULT };
        let card = Ne2000::with_options(Model::Ne2000, mac, options);
        Self { card, sent: VecDeque::new() }
    }
}

impl Card for Ours {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        self.card.read(offset, width)
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        self.card.write(offset, width, value);
        while let Some(frame) = self.card.transmit() {
            self.sent.push_back(frame.pieces().flatten().copied().collect());
        }
    }

    fn irq_level(&mut self) -> bool {
        self.card.irq_level()
    }

    fn receive(&mut self, frame: &[u8]) {
        // What becomes of it shows in the registers.
        let _ = self.card.receive(frame);
    }

    fn sent(&mut self) -> Option<Vec<u8>> {
        self.sent.pop_front()
    }
}
