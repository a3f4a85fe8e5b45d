//! Remote DMA: the data port's way into the card's memory (DP8390D datasheet, section 8).

use super::regs::{Cr, Dcr, Isr};
use super::{Dp8390, LocalBus, page_address};

/// The remote DMA command in CR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RemoteDma {
    /// None, or aborted. The datasheet does not allow the command 000, but nearly every driver
    /// writes it to mean this (Bochs and 86Box take it so as well).
    Idle,
    /// From the card to the host.
    Read,
    /// From the host to the card.
    Write,
    /// A read of the frame at BNRY, which then advances.
    SendPacket,
}

impl RemoteDma {
    pub(super) const fn from_command(cr: Cr) -> Self {
        match cr.bits() & Cr::RD.bits() {
            0x08 => Self::Read,
            0x10 => Self::Write,
            0x18 => Self::SendPacket,
            _ => Self::Idle,
        }
    }

    pub(super) const fn bits(self) -> Cr {
        match self {
            Self::Idle => Cr::NO_DMA,
            Self::Read => Cr::READ,
            Self::Write => Cr::WRITE,
            Self::SendPacket => Cr::SEND_PACKET,
        }
    }
}

/// Offset of the frame's count in its header.
const COUNT_OFFSET: u16 = 2;

impl Dp8390 {
    /// One read cycle of the data port: a byte, or a word if DCR.WTS is set.
    ///
    /// Without a read command, and when all bytes have been read, the bus still holds what it
    /// carried last. Drivers do read on: Linux and Crynwr read the PROM with twice the cycles
    /// that their count covers.
    #[inline]
    pub fn remote_read(&mut self, bus: &impl LocalBus) -> u16 {
        self.end_burst();
        let reading = matches!(self.command.remote, RemoteDma::Read | RemoteDma::SendPacket);
        if reading && self.rbcr > 0 {
            self.data_latch = if self.word_mode() {
                self.on_the_bus(bus.word(self.crda & !1))
            } else {
                u16::from(bus.byte(self.crda))
            };
            self.count_cycle(bus);
        }
        self.data_latch
    }

    /// One write cycle of the data port: a byte, or a word if DCR.WTS is set. Without a write
    /// command, and when all bytes have been written, it goes nowhere.
    #[inline]
    pub fn remote_write(&mut self, bus: &mut impl LocalBus, value: u16) {
        self.end_burst();
        self.data_latch = value;
        if self.command.remote != RemoteDma::Write || self.rbcr == 0 {
            return;
        }
        if self.word_mode() {
            bus.set_word(self.crda & !1, self.on_the_bus(value.to_le_bytes()).to_le_bytes());
        } else {
            let [low, _] = value.to_le_bytes();
            bus.set_byte(self.crda, low);
        }
        self.count_cycle(bus);
    }

    /// Swaps the bytes of a word if DCR.BOS asks for the order of a 680x0.
    fn on_the_bus(&self, [first, second]: [u8; 2]) -> u16 {
        if self.dcr.any_of(Dcr::BOS) {
            u16::from_le_bytes([second, first])
        } else {
            u16::from_le_bytes([first, second])
        }
    }

    /// Moves CRDA and RBCR on by one cycle. An odd count in word mode ends at 0 too: iPXE, NetBSD
    /// and Crynwr ask for odd ones. Where nothing answers in the card's memory the cycle counts as
    /// well, since iPXE and MINIX wait for ISR.RDC after probing such addresses.
    #[inline]
    fn count_cycle(&mut self, bus: &impl LocalBus) {
        let step: u16 = if self.word_mode() { 2 } else { 1 };
        let next = (if self.word_mode() { self.crda & !1 } else { self.crda }).wrapping_add(step);
        // Crynwr and ELKS read whole frames across the ring's end. The comparison is for equality
        // at the increment: the PROM must stay readable when PSTOP is below it.
        self.crda = if next == page_address(self.pstop) { page_address(self.pstart) } else { next };
        self.rbcr = self.rbcr.saturating_sub(step);
        if self.rbcr == 0 {
            self.complete(bus);
        }
    }

    #[cold]
    fn complete(&mut self, bus: &impl LocalBus) {
        self.raise(Isr::RDC);
        if self.command.remote != RemoteDma::SendPacket {
            return;
        }
        self.bnry = self.remote_next;
        // DCR.ARM: the channel is "prepared to read the next packet" (DP8390D datasheet, section 8).
        if self.dcr.any_of(Dcr::ARM) && self.bnry != self.curr {
            self.load_packet_header(bus);
        }
    }

    /// Send Packet (DP83902A datasheet, Send Packet Command): reads the frame at BNRY, as many
    /// bytes as its header counts, from the header on. No driver that is known uses it.
    pub(super) fn load_packet(&mut self, bus: &impl LocalBus) {
        if self.bnry == self.curr {
            // Nothing to send: as with any transfer of no bytes.
            self.rbcr = 0;
            return self.raise(Isr::RDC);
        }
        self.load_packet_header(bus);
        if self.rbcr == 0 {
            self.raise(Isr::RDC);
        }
    }

    fn load_packet_header(&mut self, bus: &impl LocalBus) {
        let header = page_address(self.bnry);
        self.crda = header;
        self.remote_next = bus.byte(header | 1);
        self.rbcr = u16::from_le_bytes([
            bus.byte(header | COUNT_OFFSET),
            bus.byte(header | COUNT_OFFSET | 1),
        ]);
    }
}
