//! Page 0: the registers that drivers use while the card runs.

use super::regs::{Dcr, Isr, Rcr, Rsr, Tcr, Tsr, page0_read as r, page0_write as w};
use super::tally::Tally;
use super::{ChipKind, Dp8390, OPEN_REGISTER, with_high, with_low};

/// What an RTL8029AS answers at ID0 and ID1: "PC" (NetBSD rtl80x9reg.h; QEMU).
const RTL_ID: [u8; 2] = *b"PC";

impl Dp8390 {
    pub(super) fn read_page0(&mut self, offset: u8) -> u8 {
        let [clda_low, clda_high] = self.clda.to_le_bytes();
        let [crda_low, crda_high] = self.crda.to_le_bytes();
        let [id0, id1] = match self.kind {
            ChipKind::Dp8390 => [OPEN_REGISTER; 2],
            ChipKind::Rtl8029As => RTL_ID,
        };
        match offset {
            r::CLDA0 => clda_low,
            r::CLDA1 => clda_high,
            r::BNRY => self.bnry,
            r::TSR => self.tsr().bits(),
            r::NCR => self.ncr,
            r::FIFO => self.fifo.pop(),
            r::ISR => self.isr().bits(),
            r::CRDA0 => crda_low,
            r::CRDA1 => crda_high,
            r::ID0 => id0,
            r::ID1 => id1,
            r::RSR => self.rsr.bits(),
            r::CNTR0 => self.take_tally(Tally::Alignment),
            r::CNTR1 => self.take_tally(Tally::Check),
            r::CNTR2 => self.take_tally(Tally::Missed),
            _ => OPEN_REGISTER,
        }
    }

    pub(super) fn write_page0(&mut self, offset: u8, value: u8) {
        match offset {
            w::PSTART => self.pstart = value,
            w::PSTOP => self.pstop = value,
            w::BNRY => self.bnry = value,
            w::TPSR => self.tpsr = value,
            w::TBCR0 => self.tbcr = with_low(self.tbcr, value),
            w::TBCR1 => self.tbcr = with_high(self.tbcr, value),
            w::ISR => self.acknowledge(Isr::from_bits(value)),
            w::RSAR0 => self.crda = with_low(self.crda, value),
            w::RSAR1 => self.crda = with_high(self.crda, value),
            w::RBCR0 => self.rbcr = with_low(self.rbcr, value),
            w::RBCR1 => self.rbcr = with_high(self.rbcr, value),
            w::RCR => self.write_rcr(Rcr::from_bits(value)),
            w::TCR => self.tcr = Tcr::from_bits(value),
            w::DCR => self.dcr = Dcr::from_bits(value),
            // Bit 7 is reserved, and Windows 2000 sets it (DOSBox-X #4116).
            w::IMR => self.imr = Isr::from_bits(value & Isr::INTERRUPTS.bits()),
            _ => {}
        }
    }

    /// RSR.DIS follows monitor mode at once.
    fn write_rcr(&mut self, rcr: Rcr) {
        self.rcr = rcr;
        self.rsr =
            if rcr.any_of(Rcr::MON) { self.rsr.with(Rsr::DIS) } else { self.rsr.without(Rsr::DIS) };
    }

    /// RTL80x9 chips read the reserved bit 1 as 1, and the RTL8029AS reads bit 5 as 0 (RTL8029AS
    /// datasheet, TSR).
    fn tsr(&self) -> Tsr {
        match self.kind {
            ChipKind::Dp8390 => self.tsr,
            ChipKind::Rtl8029As => self.tsr.with(Tsr::RESERVED).without(Tsr::FU),
        }
    }
}
