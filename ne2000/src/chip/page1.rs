//! Page 1: station address, CURR and the multicast filter. No access has an effect that a driver
//! could see.

use super::Dp8390;
use super::regs::page1::{CURR, MAR0, PAR0};

impl Dp8390 {
    pub(super) fn read_page1(&mut self, offset: u8) -> u8 {
        if offset == CURR {
            self.note_look();
            return self.curr;
        }
        let bytes: &[u8] = if offset < CURR { &self.par } else { &self.mar };
        bytes.get(position(offset)).copied().unwrap_or(0)
    }

    pub(super) fn write_page1(&mut self, offset: u8, value: u8) {
        if offset == CURR {
            self.curr = value;
            return;
        }
        let bytes: &mut [u8] = if offset < CURR { &mut self.par } else { &mut self.mar };
        if let Some(byte) = bytes.get_mut(position(offset)) {
            *byte = value;
        }
    }
}

/// Position of the register in PAR or MAR.
fn position(offset: u8) -> usize {
    usize::from(offset.wrapping_sub(if offset < CURR { PAR0 } else { MAR0 }))
}
