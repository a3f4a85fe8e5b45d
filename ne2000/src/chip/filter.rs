//! Which frames the chip takes (DP8390D datasheet, section 10.3, RCR, and section 11).

use super::Dp8390;
use super::crc::multicast_bit;
use super::regs::Rcr;

impl Dp8390 {
    /// Whether a frame to `destination` passes the address filter.
    ///
    /// The station address is PAR, not the PROM: a driver that changes its address must hear it.
    /// PRO admits physical addresses only (RTL8029AS datasheet, RCR); drivers that want everything
    /// set AM and fill MAR as well, as Linux does.
    pub(super) fn accepts(&self, destination: &[u8; 6]) -> bool {
        if *destination == [0xFF; 6] {
            return self.rcr.any_of(Rcr::AB);
        }
        if is_group(destination) {
            return self.rcr.any_of(Rcr::AM) && self.group_admitted(destination);
        }
        self.rcr.any_of(Rcr::PRO) || *destination == self.par
    }

    fn group_admitted(&self, destination: &[u8; 6]) -> bool {
        let bit = multicast_bit(destination);
        let byte = self.mar.get(usize::from(bit >> 3)).copied().unwrap_or(0);
        byte >> (bit & 7) & 1 == 1
    }
}

/// Whether `address` is a multicast or the broadcast address.
pub(super) fn is_group(address: &[u8; 6]) -> bool {
    let [first, ..] = address;
    first & 1 == 1
}
