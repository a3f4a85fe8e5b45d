//! The card's state out and in.

use core::fmt;

use crate::card::{Ne2000, chip_kind};
use crate::chip::{ChipState, Dp8390};
use crate::memory::Model;
use crate::rtl8029::{Page3, Page3State};

/// The version of [`State`]. A state of another version is refused.
pub const STATE_VERSION: u16 = 2;

/// Everything that a card remembers but its RAM, which [`Ne2000::ram`] gives, and the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct State {
    /// [`STATE_VERSION`].
    pub version: u16,
    /// Which card.
    pub model: Model,
    /// The station address in the PROM.
    pub mac: [u8; 6],
    /// [`Options::pad_received`](crate::Options::pad_received).
    pub pad_received: bool,
    /// The chip.
    pub chip: ChipState,
    /// Page 3 of an RTL8029AS.
    pub page3: Page3State,
}

/// Which station address a restored card has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacPolicy {
    /// The saved one.
    Saved,
    /// This one: in the PROM, in the EEPROM, and in PAR if the driver had put the saved one there.
    /// The driver itself goes on sending from the address that it has read before.
    Replace([u8; 6]),
}

/// Why a state was refused. The card is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreError {
    /// It has another version: this one.
    Version(u16),
    /// The RAM has not the length of the model's.
    RamLength {
        /// Bytes given.
        given: usize,
        /// Bytes that the model has.
        wanted: usize,
    },
    /// This field has a value that no card can get to by itself.
    Impossible(&'static str),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "state of version {version}, not {STATE_VERSION}"),
            Self::RamLength { given, wanted } => write!(f, "{given} bytes of RAM, not {wanted}"),
            Self::Impossible(field) => write!(f, "impossible value of {field}"),
        }
    }
}

impl core::error::Error for RestoreError {}

impl Ne2000 {
    /// The state now. A transmission's end is saved as the time left.
    #[must_use]
    pub const fn state(&self) -> State {
        let Self { model, mac, pad_received, chip, memory: _, page3, stats: _ } = self;
        State {
            version: STATE_VERSION,
            model: *model,
            mac: *mac,
            pad_received: *pad_received,
            chip: chip.state(),
            page3: page3.state(),
        }
    }

    /// Becomes the card that `state` and `ram` describe, at `now_micros`. Neither is trusted: a
    /// value that no driver could have brought about is refused. The statistics go on.
    ///
    /// # Errors
    ///
    /// The reason why the state was refused.
    pub fn restore(
        &mut self,
        state: &State,
        ram: &[u8],
        policy: MacPolicy,
        now_micros: u64,
    ) -> Result<(), RestoreError> {
        let State { version, model, mac: saved_mac, pad_received, chip, page3 } = state;
        if *version != STATE_VERSION {
            return Err(RestoreError::Version(*version));
        }
        let wanted = model.ram_len();
        if ram.len() != wanted {
            return Err(RestoreError::RamLength { given: ram.len(), wanted });
        }
        let mut chip = Dp8390::from_state(chip_kind(*model), chip, now_micros)
            .map_err(RestoreError::Impossible)?;
        let mut page3 = Page3::from_state(page3).map_err(RestoreError::Impossible)?;
        let mac = match policy {
            MacPolicy::Saved => *saved_mac,
            MacPolicy::Replace(mac) => {
                chip.replace_station_address(*saved_mac, mac);
                page3.set_mac(mac);
                mac
            }
        };
        self.memory.load(*model, mac, ram);
        self.model = *model;
        self.mac = mac;
        self.pad_received = *pad_received;
        self.chip = chip;
        self.page3 = page3;
        Ok(())
    }
}
