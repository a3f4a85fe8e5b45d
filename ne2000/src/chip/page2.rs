//! Page 2: diagnostics (DP8390D datasheet, section 10.1, page 2 address assignments).

use super::regs::page2::{
    ADDRESS_HIGH, ADDRESS_LOW, DCR, IMR, LOCAL_NEXT, PSTART, PSTOP, RCR, REMOTE_NEXT, TCR, TPSR,
};
use super::{ChipKind, Dp8390, OPEN_REGISTER, with_high, with_low};

/// Bits 6 and 7 of RCR, which the RTL8029AS reads as 1 (its datasheet, RCR).
const RTL_RCR_RESERVED: u8 = 0xC0;

impl Dp8390 {
    pub(super) fn read_page2(&self, offset: u8) -> u8 {
        let [address_low, address_high] = self.address_counter.to_le_bytes();
        match offset {
            PSTART => self.pstart,
            PSTOP => self.pstop,
            REMOTE_NEXT => self.remote_next,
            TPSR => self.tpsr,
            LOCAL_NEXT => self.local_next,
            ADDRESS_HIGH => address_high,
            ADDRESS_LOW => address_low,
            RCR => match self.kind {
                ChipKind::Dp8390 => self.rcr.bits(),
                ChipKind::Rtl8029As => self.rcr.bits() | RTL_RCR_RESERVED,
            },
            TCR => self.tcr.bits(),
            DCR => self.dcr.bits(),
            IMR => self.imr.bits(),
            _ => OPEN_REGISTER,
        }
    }

    pub(super) fn write_page2(&mut self, offset: u8, value: u8) {
        match offset {
            PSTART => self.clda = with_low(self.clda, value),
            PSTOP => self.clda = with_high(self.clda, value),
            REMOTE_NEXT => self.remote_next = value,
            LOCAL_NEXT => self.local_next = value,
            ADDRESS_HIGH => self.address_counter = with_high(self.address_counter, value),
            ADDRESS_LOW => self.address_counter = with_low(self.address_counter, value),
            _ => {}
        }
    }
}
