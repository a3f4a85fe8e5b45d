//! Loopback: a transmission that comes back through the FIFO (DP8390D datasheet, section 12;
//! National Semiconductor application note 937).

use super::filter::is_group;
use super::regs::{Dcr, Isr, Rsr, Tcr, Tsr};
use super::tx::SENT;
use super::{Dp8390, LocalBus, crc};

/// Bytes of a frame check sequence.
const FCS_LEN: u16 = 4;

/// How a transmission ends in the loops inside the controller and through the encoder: neither
/// heartbeat nor, inside the controller, carrier is there to be seen (AN937).
pub(super) const LOOPED_INSIDE: Tsr = Tsr::PTX.with(Tsr::CRS).with(Tsr::CDH);
pub(super) const LOOPED_BY_ENCODER: Tsr = Tsr::PTX.with(Tsr::CDH);

/// The FIFO as a diagnostic sees it: eight bytes, written and read in a circle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    pub(super) bytes: [u8; 8],
    /// The next byte to read, 0 to 7.
    pub(super) position: u8,
}

impl Fifo {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; 8], position: 0 }
    }

    pub(super) fn pop(&mut self) -> u8 {
        let byte = self.bytes.get(usize::from(self.position & 7)).copied().unwrap_or(0);
        self.position = self.position.wrapping_add(1) & 7;
        byte
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(usize::from(self.position & 7)) {
            *slot = byte;
        }
        self.position = self.position.wrapping_add(1) & 7;
    }

    /// Takes a whole frame, then its length: low, high, and high once more. Writing begins at
    /// location 0, and so does reading afterwards.
    fn take(&mut self, frame: impl Iterator<Item = u8>, length: u16) {
        self.position = 0;
        frame.for_each(|byte| self.push(byte));
        let [low, high] = length.to_le_bytes();
        [low, high, high].into_iter().for_each(|byte| self.push(byte));
        self.position = 0;
    }
}

impl Dp8390 {
    /// Sends the frame to this chip itself and says how the transmission ends.
    ///
    /// The receiver sees it only if DCR.LS selects loopback. Nothing goes to the ring.
    pub(super) fn loop_back(&mut self, bus: &impl LocalBus) -> Tsr {
        if !self.dcr.any_of(Dcr::LS) {
            self.receive_looped(bus);
        }
        match self.tcr.bits() & Tcr::LB.bits() {
            0x02 => LOOPED_INSIDE,
            0x04 => LOOPED_BY_ENCODER,
            _ => SENT,
        }
    }

    fn receive_looped(&mut self, bus: &impl LocalBus) {
        let (first, step) = self.lane();
        let count = if step == 1 { self.tbcr } else { self.tbcr / 2 };
        let start = super::page_address(self.tpsr).wrapping_add(first);
        let data = (0..count).map(|i| bus.byte(start.wrapping_add(i.wrapping_mul(step))));

        let mut destination = [0; 6];
        destination.iter_mut().zip(data.clone()).for_each(|(to, byte)| *to = byte);
        let appends = !self.tcr.any_of(Tcr::CRC);
        let mut state = crc::Running::new();
        data.clone().for_each(|byte| state.push(byte));

        let tail = if appends { state.fcs() } else { [0; 4] };
        let tail_len = if appends { FCS_LEN } else { 0 };
        let appended = tail.into_iter().take(usize::from(tail_len));
        self.fifo.take(data.chain(appended), count.wrapping_add(tail_len));

        let accepted = count >= 6 && self.accepts(&destination);
        // While the transmitter makes the sequence the receiver cannot check it, so it reports an
        // error; with the sequence made by software it is checked (AN937, tables of results).
        if accepted && (appends || !state.ends_in_fcs()) {
            self.rsr = self.looped_status(Rsr::CRC, &destination);
            self.raise(Isr::RXE);
        } else {
            self.rsr = self.looped_status(Rsr::PRX, &destination);
        }
    }

    fn looped_status(&self, result: Rsr, destination: &[u8; 6]) -> Rsr {
        if self.accepts(destination) && is_group(destination) {
            result.with(Rsr::PHY)
        } else {
            result
        }
    }

    /// Where the looped bytes begin, and the distance between them. The loop is a byte wide: of
    /// words it takes one byte each, the even one if DCR.BOS is set and else the odd one.
    fn lane(&self) -> (u16, u16) {
        match (self.word_mode(), self.dcr.any_of(Dcr::BOS)) {
            (false, _) => (0, 1),
            (true, true) => (0, 2),
            (true, false) => (1, 2),
        }
    }
}
