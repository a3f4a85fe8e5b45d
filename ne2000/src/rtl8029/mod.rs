//! What the RTL8029AS has and an NE2000 has not: page 3, the EEPROM and PCI.

mod eeprom;
mod page3;
mod pci;

pub use eeprom::EepromState;
pub use page3::Page3State;
pub use pci::{PciConfig, PciState, Rtl8029As};

pub(crate) use page3::Page3;
