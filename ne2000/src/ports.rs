//! The 32 ports of a card, and how wide an access each of them takes.

use crate::memory::Model;

/// What answers at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// A register of the chip, 0 to 15.
    Register(u8),
    /// The data port of the remote DMA.
    Data,
    /// The reset port.
    Reset,
    /// Nothing: past the card's window.
    Open,
}

impl Port {
    /// NE2000 cards decode eight data and eight reset ports, the NE1000 four and four, twice
    /// (VirtualBox).
    pub(crate) const fn at(model: Model, offset: u8) -> Self {
        match offset {
            0x00..=0x0F => Self::Register(offset),
            0x10..=0x1F => {
                let reset = match model {
                    Model::Ne1000 => offset & 4 != 0,
                    Model::Ne2000 | Model::Ne2000EightBit | Model::Rtl8029As => offset & 8 != 0,
                };
                if reset { Self::Reset } else { Self::Data }
            }
            _ => Self::Open,
        }
    }
}

impl Model {
    /// Whether the slot has sixteen data lines. Otherwise the bus makes several accesses of a byte
    /// out of a wider one.
    pub(crate) const fn wide_slot(self) -> bool {
        matches!(self, Self::Ne2000 | Self::Rtl8029As)
    }
}
