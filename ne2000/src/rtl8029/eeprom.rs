//! The 93C46: 64 words behind four wires (Microchip 93C46B datasheet, section 2).

/// Address bits.
const ADDRESS_BITS: u8 = 6;
/// Opcode and address bits after the start bit.
const COMMAND_BITS: u8 = 2 + ADDRESS_BITS;

/// The wires that the card drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Pins {
    pub(super) select: bool,
    pub(super) clock: bool,
    pub(super) data: bool,
}

/// Where in an instruction the EEPROM is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Phase {
    /// Waits for the start bit.
    Standby,
    /// Takes opcode and address: the bits so far, and how many are missing.
    Command { bits: u8, missing: u8 },
    /// Gives a word, top bit first, and then the next word.
    Reading { address: u8, word: u16, left: u8 },
    /// Takes a word for one address, or for all.
    Writing { address: Option<u8>, word: u16, missing: u8 },
    /// The instruction is over; nothing more happens until the chip is deselected.
    Done,
}

/// 64 words, in rows that serde knows how to write.
type Words = [[u16; 16]; 4];

/// The EEPROM as it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EepromState {
    /// The 64 words, in four rows.
    pub words: Words,
    /// Whether it may be written.
    pub write_enabled: bool,
    /// The level of its output.
    pub output: bool,
    pins: Pins,
    phase: Phase,
}

#[derive(Clone, Debug)]
pub(super) struct Eeprom {
    words: Words,
    write_enabled: bool,
    output: bool,
    pins: Pins,
    phase: Phase,
}

impl Eeprom {
    /// Address in words 1 to 3, and the PCI identification in the last five words, as 86Box has it.
    pub(super) const fn new(mac: [u8; 6]) -> Self {
        const REALTEK: u16 = 0x10EC;
        const DEVICE: u16 = 0x8029;
        let mut words = [[0xFFFF; 16]; 4];
        if let Some(last) = words.as_flattened_mut().last_chunk_mut() {
            *last = [DEVICE, REALTEK, DEVICE, REALTEK, DEVICE];
        }
        let mut eeprom = Self {
            words,
            write_enabled: false,
            output: true,
            pins: Pins { select: false, clock: false, data: false },
            phase: Phase::Standby,
        };
        eeprom.set_mac(mac);
        eeprom
    }

    pub(super) const fn set_mac(&mut self, [a, b, c, d, e, f]: [u8; 6]) {
        if let Some([_, first, second, third]) = self.words.as_flattened_mut().first_chunk_mut() {
            *first = u16::from_le_bytes([a, b]);
            *second = u16::from_le_bytes([c, d]);
            *third = u16::from_le_bytes([e, f]);
        }
    }

    pub(super) const fn power_on(&mut self) {
        self.write_enabled = false;
        self.output = true;
        self.pins = Pins { select: false, clock: false, data: false };
        self.phase = Phase::Standby;
    }

    pub(super) const fn pins(&self) -> Pins {
        self.pins
    }

    pub(super) const fn output(&self) -> bool {
        self.output
    }

    pub(super) fn set_pins(&mut self, pins: Pins) {
        let rising = pins.clock && !self.pins.clock;
        self.pins = pins;
        if !pins.select {
            // A write takes no time here, so the chip is always ready: its output is high.
            self.phase = Phase::Standby;
            self.output = true;
        } else if rising {
            self.clock(pins.data);
        }
    }

    fn clock(&mut self, data: bool) {
        let bit = u8::from(data);
        self.phase = match self.phase {
            Phase::Standby if data => Phase::Command { bits: 0, missing: COMMAND_BITS },
            Phase::Standby => Phase::Standby,
            Phase::Command { bits, missing } => {
                let bits = bits.wrapping_shl(1) | bit;
                match missing.saturating_sub(1) {
                    0 => self.begin(bits),
                    missing => Phase::Command { bits, missing },
                }
            }
            Phase::Reading { address, word, left } => self.shift_out(address, word, left),
            Phase::Writing { address, word, missing } => {
                let word = word.wrapping_shl(1) | u16::from(data);
                match missing.saturating_sub(1) {
                    0 => self.store(address, word),
                    missing => Phase::Writing { address, word, missing },
                }
            }
            Phase::Done => Phase::Done,
        };
    }

    fn begin(&mut self, command: u8) -> Phase {
        let address = command & 0x3F;
        match (command >> ADDRESS_BITS, address >> 4) {
            (0b10, _) => {
                // A zero comes before the first bit.
                self.output = false;
                Phase::Reading { address, word: self.word(address), left: 16 }
            }
            (0b01, _) => Phase::Writing { address: Some(address), word: 0, missing: 16 },
            (0b11, _) => self.store(Some(address), 0xFFFF),
            (_, 0b00) => self.enable(false),
            (_, 0b01) => Phase::Writing { address: None, word: 0, missing: 16 },
            (_, 0b10) => self.store(None, 0xFFFF),
            (_, _) => self.enable(true),
        }
    }

    const fn enable(&mut self, enabled: bool) -> Phase {
        self.write_enabled = enabled;
        Phase::Done
    }

    fn word(&self, address: u8) -> u16 {
        self.words.as_flattened().get(usize::from(address)).copied().unwrap_or(0xFFFF)
    }

    fn shift_out(&mut self, address: u8, word: u16, left: u8) -> Phase {
        self.output = word & 0x8000 != 0;
        match left.saturating_sub(1) {
            0 => {
                let address = address.wrapping_add(1) & 0x3F;
                Phase::Reading { address, word: self.word(address), left: 16 }
            }
            left => Phase::Reading { address, word: word.wrapping_shl(1), left },
        }
    }

    fn store(&mut self, address: Option<u8>, word: u16) -> Phase {
        if self.write_enabled {
            match address {
                None => self.words = [[word; 16]; 4],
                Some(address) => {
                    let words = self.words.as_flattened_mut();
                    if let Some(slot) = words.get_mut(usize::from(address)) {
                        *slot = word;
                    }
                }
            }
        }
        Phase::Done
    }

    pub(super) const fn state(&self) -> EepromState {
        let Self { words, write_enabled, output, pins, phase } = self;
        EepromState {
            words: *words,
            write_enabled: *write_enabled,
            output: *output,
            pins: *pins,
            phase: *phase,
        }
    }

    pub(super) fn from_state(state: &EepromState) -> Result<Self, &'static str> {
        let EepromState { words, write_enabled, output, pins, phase } = *state;
        let possible = match phase {
            Phase::Standby | Phase::Done => true,
            Phase::Command { missing, .. } => (1..=COMMAND_BITS).contains(&missing),
            Phase::Reading { address, left, .. } => address < 64 && (1..=16).contains(&left),
            Phase::Writing { address, missing, .. } => {
                address.is_none_or(|address| address < 64) && (1..=16).contains(&missing)
            }
        };
        if !possible {
            return Err("page3.eeprom");
        }
        Ok(Self { words, write_enabled, output, pins, phase })
    }
}
