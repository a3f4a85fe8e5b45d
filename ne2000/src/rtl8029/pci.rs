//! The RTL8029AS as a PCI function: its configuration space (PCI Local Bus Specification 2.1,
//! section 6; RTL8029AS datasheet, PCI configuration).

use crate::card::{Ne2000, Options, Reset, Width};
use crate::memory::Model;

const VENDOR: [u8; 2] = 0x10EC_u16.to_le_bytes();
const DEVICE: [u8; 2] = 0x8029_u16.to_le_bytes();
/// The only bit of the command register that can be set: answer to I/O. The card masters no bus,
/// has no memory besides its ROM, and its interrupt cannot be disabled here.
const COMMAND_IO: u8 = 0x01;
/// The command bit that lets the ROM answer.
const COMMAND_MEMORY: u8 = 0x02;
/// Status: the card answers an address at medium speed.
const STATUS_DEVSEL_MEDIUM: [u8; 2] = 0x0200_u16.to_le_bytes();
/// Ethernet controller.
const CLASS: [u8; 3] = [0x00, 0x00, 0x02];
/// Ports of the card.
const IO_LEN: u32 = 32;
/// Bytes of the expansion ROM's window.
const ROM_LEN: u32 = 32 * 1024;
/// The address register's mark of an I/O window.
const BAR_IO: u32 = 1;
/// The ROM register's enable bit.
const ROM_ENABLE: u32 = 1;
/// The interrupt is on pin A.
const PIN_A: u8 = 1;

const COMMAND: u8 = 0x04;
const BAR0: u8 = 0x10;
const ROM_BAR: u8 = 0x30;
const INTERRUPT_LINE: u8 = 0x3C;

/// The configuration space.
#[derive(Clone, Debug)]
pub struct PciConfig {
    state: PciState,
}

/// What the configuration space remembers. Bits that cannot be written are ignored on restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PciState {
    /// The command register's low byte.
    pub command: u8,
    /// The base of the I/O window.
    pub bar0: u32,
    /// The expansion ROM's address register.
    pub rom_bar: u32,
    /// The interrupt line, which only software reads.
    pub interrupt_line: u8,
}

impl PciConfig {
    /// The configuration space after power-on.
    pub const fn new() -> Self {
        Self { state: PciState { command: 0, bar0: 0, rom_bar: 0, interrupt_line: 0 } }
    }

    /// Reads `width` at `offset`. What is not there reads as 0.
    pub fn read(&self, offset: u8, width: Width) -> u32 {
        (0..width.bytes()).fold(0, |value, i| {
            let byte = offset.checked_add(i).map_or(0, |offset| self.byte(offset));
            value | u32::from(byte).wrapping_shl(u32::from(i).wrapping_mul(8))
        })
    }

    /// Writes `width` at `offset`, where it can be written.
    pub fn write(&mut self, offset: u8, width: Width, value: u32) {
        let bytes = value.to_le_bytes();
        for (offset, byte) in (offset..=u8::MAX).zip(bytes).take(usize::from(width.bytes())) {
            self.set_byte(offset, byte);
        }
    }

    /// Where the 32 ports are, if the card answers to I/O.
    pub const fn io_base(&self) -> Option<u32> {
        if self.state.command & COMMAND_IO != 0 { Some(self.state.bar0) } else { None }
    }

    /// Where the 32 KiB of the expansion ROM are, if it answers. What is in it is the embedder's.
    pub const fn rom_base(&self) -> Option<u32> {
        let enabled =
            self.state.command & COMMAND_MEMORY != 0 && self.state.rom_bar & ROM_ENABLE != 0;
        if enabled { Some(self.state.rom_bar & !ROM_ENABLE) } else { None }
    }

    /// The state now.
    pub const fn state(&self) -> PciState {
        self.state
    }

    /// The configuration space that `state` describes.
    pub const fn from_state(state: &PciState) -> Self {
        let PciState { command, bar0, rom_bar, interrupt_line } = *state;
        let mut config = Self::new();
        config.state = PciState {
            command: command & (COMMAND_IO | COMMAND_MEMORY),
            bar0: bar0 & !(IO_LEN - 1),
            rom_bar: rom_bar & (!(ROM_LEN - 1) | ROM_ENABLE),
            interrupt_line,
        };
        config
    }

    fn byte(&self, offset: u8) -> u8 {
        let dword = match offset & !3 {
            0x00 => pair(VENDOR, DEVICE),
            COMMAND => pair([self.state.command, 0], STATUS_DEVSEL_MEDIUM),
            0x08 => {
                let [interface, subclass, class] = CLASS;
                [0, interface, subclass, class]
            }
            BAR0 => (self.state.bar0 | BAR_IO).to_le_bytes(),
            0x2C => pair(VENDOR, DEVICE),
            ROM_BAR => self.state.rom_bar.to_le_bytes(),
            INTERRUPT_LINE => [self.state.interrupt_line, PIN_A, 0, 0],
            _ => [0; 4],
        };
        dword.get(usize::from(offset & 3)).copied().unwrap_or(0)
    }

    fn set_byte(&mut self, offset: u8, value: u8) {
        let mut state = self.state;
        match offset & !3 {
            BAR0 => state.bar0 = replace(state.bar0, offset, value),
            ROM_BAR => state.rom_bar = replace(state.rom_bar, offset, value),
            COMMAND if offset == COMMAND => state.command = value,
            INTERRUPT_LINE if offset == INTERRUPT_LINE => state.interrupt_line = value,
            _ => {}
        }
        *self = Self::from_state(&state);
    }
}

impl Default for PciConfig {
    fn default() -> Self {
        Self::new()
    }
}

const fn pair([a, b]: [u8; 2], [c, d]: [u8; 2]) -> [u8; 4] {
    [a, b, c, d]
}

/// `dword` with the byte that `offset` names replaced.
fn replace(dword: u32, offset: u8, value: u8) -> u32 {
    let mut bytes = dword.to_le_bytes();
    if let Some(byte) = bytes.get_mut(usize::from(offset & 3)) {
        *byte = value;
    }
    u32::from_le_bytes(bytes)
}

/// A card in a PCI slot. An embedder with a PCI bus of its own needs only the card.
#[derive(Clone, Debug)]
pub struct Rtl8029As {
    card: Ne2000,
    config: PciConfig,
}

impl Rtl8029As {
    /// A card after power-on.
    pub const fn new(mac: [u8; 6], options: Options) -> Self {
        Self {
            card: Ne2000::with_options(Model::Rtl8029As, mac, options),
            config: PciConfig::new(),
        }
    }

    /// The card, for frames, time, interrupt level and accesses relative to its base.
    pub const fn card(&self) -> &Ne2000 {
        &self.card
    }

    /// The card.
    pub const fn card_mut(&mut self) -> &mut Ne2000 {
        &mut self.card
    }

    /// The configuration space.
    pub const fn config(&self) -> &PciConfig {
        &self.config
    }

    /// The configuration space.
    pub const fn config_mut(&mut self) -> &mut PciConfig {
        &mut self.config
    }

    /// Reads an I/O address of the machine; `None` if it is not this card's.
    pub fn io_read(&mut self, address: u32, width: Width) -> Option<u32> {
        let offset = self.offset(address)?;
        Some(self.card.read(offset, width))
    }

    /// Writes an I/O address of the machine; false if it is not this card's.
    pub fn io_write(&mut self, address: u32, width: Width, value: u32) -> bool {
        let Some(offset) = self.offset(address) else {
            return false;
        };
        self.card.write(offset, width, value);
        true
    }

    fn offset(&self, address: u32) -> Option<u8> {
        let base = self.config.io_base()?;
        u8::try_from(address.checked_sub(base)?).ok().filter(|offset| u32::from(*offset) < IO_LEN)
    }

    /// The machine was reset: card and configuration space are as after power-on.
    pub fn reset(&mut self) {
        self.card.reset(Reset::PowerOn);
        self.config = PciConfig::new();
    }
}
