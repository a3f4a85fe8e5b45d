//! Accesses to the ports, and remote DMA through the data port.

use super::RUN;
use crate::card::{Ne2000, Width};
use crate::chip::regs::page0_write as w;
use crate::chip::regs::{CR, Cr, Isr};

/// Offset of the data port.
const DATA: u8 = 0x10;

/// The ports of a card.
pub trait Ports {
    /// Reads at `offset` from the card's base; the value is in the low bytes.
    fn read(&mut self, offset: u8, width: Width) -> u32;
    /// Writes the low bytes of `value` at `offset` from the card's base.
    fn write(&mut self, offset: u8, width: Width, value: u32);
}

impl Ports for Ne2000 {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        Self::read(self, offset, width)
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        Self::write(self, offset, width, value);
    }
}

/// Reads a register.
pub(super) fn get(ports: &mut impl Ports, offset: u8) -> u8 {
    let [low, ..] = ports.read(offset, Width::Byte).to_le_bytes();
    low
}

/// Writes a register.
pub(super) fn set(ports: &mut impl Ports, offset: u8, value: u8) {
    ports.write(offset, Width::Byte, u32::from(value));
}

/// How the driver moves data.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataPort {
    /// The widest access that it makes.
    pub(super) width: Width,
    /// Whether the card takes words (DCR.WTS).
    pub(super) words: bool,
}

impl DataPort {
    /// Reads the card's memory from `address` on, around the ring's end if it gets there.
    pub(super) fn input(self, ports: &mut impl Ports, address: u16, bytes: &mut [u8]) {
        let mut tail = bytes;
        command(ports, address, tail.len(), Cr::READ);
        if self.width == Width::Dword {
            let (fours, rest) = tail.as_chunks_mut::<4>();
            fours.iter_mut().for_each(|four| *four = ports.read(DATA, Width::Dword).to_le_bytes());
            tail = rest;
        }
        if self.width != Width::Byte {
            let (twos, rest) = tail.as_chunks_mut::<2>();
            for two in twos {
                let [low, high, ..] = ports.read(DATA, Width::Word).to_le_bytes();
                *two = [low, high];
            }
            tail = rest;
        }
        tail.iter_mut().for_each(|byte| *byte = get(ports, DATA));
        set(ports, w::ISR, Isr::RDC.bits());
    }

    /// Writes `bytes` to the card's memory from `address` on, rounded up to a word if the card
    /// takes words.
    pub(super) fn output(self, ports: &mut impl Ports, address: u16, bytes: &[u8]) {
        let count = if self.words { bytes.len().next_multiple_of(2) } else { bytes.len() };
        let mut tail = bytes;
        command(ports, address, count, Cr::WRITE);
        if self.width == Width::Dword {
            let (fours, rest) = tail.as_chunks::<4>();
            fours
                .iter()
                .for_each(|four| ports.write(DATA, Width::Dword, u32::from_le_bytes(*four)));
            tail = rest;
        }
        if self.width != Width::Byte {
            let (twos, rest) = tail.as_chunks::<2>();
            for two in twos {
                ports.write(DATA, Width::Word, u32::from(u16::from_le_bytes(*two)));
            }
            tail = rest;
        }
        let last = if self.words { Width::Word } else { Width::Byte };
        tail.iter().for_each(|byte| ports.write(DATA, last, u32::from(*byte)));
        set(ports, w::ISR, Isr::RDC.bits());
    }
}

/// Starts a remote DMA of `count` bytes.
pub(super) fn command(ports: &mut impl Ports, address: u16, count: usize, direction: Cr) {
    let [count_low, count_high, ..] = count.to_le_bytes();
    let [low, high] = address.to_le_bytes();
    for (offset, value) in [
        (CR, RUN.bits()),
        (w::RBCR0, count_low),
        (w::RBCR1, count_high),
        (w::RSAR0, low),
        (w::RSAR1, high),
        (CR, Cr::STA.with(direction).bits()),
    ] {
        set(ports, offset, value);
    }
}
