//! Page 3: the configuration registers (RTL8029AS datasheet; NetBSD rtl80x9reg.h).

use super::eeprom::{Eeprom, EepromState, Pins};

const EECR: u8 = 0x01;
const CONFIG2: u8 = 0x05;
const CONFIG3: u8 = 0x06;
const ID0: u8 = 0x0E;
const ID1: u8 = 0x0F;

/// 9346CR: the two mode bits.
const EEM: u8 = 0xC0;
/// Normal operation.
const EEM_NORMAL: u8 = 0x00;
/// Load the configuration from the EEPROM; goes back to normal by itself.
const EEM_AUTOLOAD: u8 = 0x40;
/// The EEPROM's pins are the lower bits of the register.
const EEM_PROGRAM: u8 = 0x80;
/// The configuration registers can be written.
const EEM_CONFIG: u8 = 0xC0;
const EECS: u8 = 0x08;
const EESK: u8 = 0x04;
const EEDI: u8 = 0x02;
const EEDO: u8 = 0x01;

/// CONFIG2 after power-on, as QEMU has it: the medium is twisted pair. BS and PL cannot be written.
const CONFIG2_DEFAULT: u8 = 0x40;
/// The bits of CONFIG2 that can be written: medium, flow control and pause.
const CONFIG2_WRITABLE: u8 = 0xF0;
/// CONFIG3 after power-on, as QEMU has it: full duplex.
const CONFIG3_DEFAULT: u8 = 0x40;
/// The bits of CONFIG3 that can be written: duplex, LEDs, sleep and power down.
const CONFIG3_WRITABLE: u8 = 0x76;
/// The chip's number, low byte first.
const ID: [u8; 2] = 0x8029_u16.to_le_bytes();

/// Page 3's registers and the EEPROM behind them.
#[derive(Clone, Debug)]
pub(crate) struct Page3 {
    /// The mode bits of 9346CR.
    mode: u8,
    config2: u8,
    config3: u8,
    eeprom: Eeprom,
}

/// Page 3 as it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Page3State {
    /// The mode bits of 9346CR.
    pub mode: u8,
    /// CONFIG2.
    pub config2: u8,
    /// CONFIG3.
    pub config3: u8,
    /// The EEPROM.
    pub eeprom: EepromState,
}

impl Page3 {
    pub(crate) const fn new(mac: [u8; 6]) -> Self {
        Self {
            mode: EEM_NORMAL,
            config2: CONFIG2_DEFAULT,
            config3: CONFIG3_DEFAULT,
            eeprom: Eeprom::new(mac),
        }
    }

    /// The EEPROM keeps its contents.
    pub(crate) const fn power_on(&mut self) {
        self.mode = EEM_NORMAL;
        self.load_config();
        self.eeprom.power_on();
    }

    const fn load_config(&mut self) {
        self.config2 = CONFIG2_DEFAULT;
        self.config3 = CONFIG3_DEFAULT;
    }

    pub(crate) const fn read(&self, register: u8) -> u8 {
        let [id0, id1] = ID;
        match register {
            EECR if self.mode == EEM_PROGRAM => {
                let Pins { select, clock, data } = self.eeprom.pins();
                let mut value = self.mode;
                if select {
                    value |= EECS;
                }
                if clock {
                    value |= EESK;
                }
                if data {
                    value |= EEDI;
                }
                if self.eeprom.output() {
                    value |= EEDO;
                }
                value
            }
            EECR => self.mode,
            CONFIG2 => self.config2,
            CONFIG3 => self.config3,
            ID0 => id0,
            ID1 => id1,
            // CONFIG0 among them: no BNC, nothing out of order.
            _ => 0,
        }
    }

    pub(crate) fn write(&mut self, register: u8, value: u8) {
        match register {
            EECR => self.write_eecr(value),
            CONFIG2 if self.mode == EEM_CONFIG => {
                self.config2 = merge(self.config2, value, CONFIG2_WRITABLE);
            }
            CONFIG3 if self.mode == EEM_CONFIG => {
                self.config3 = merge(self.config3, value, CONFIG3_WRITABLE);
            }
            _ => {}
        }
    }

    fn write_eecr(&mut self, value: u8) {
        self.mode = value & EEM;
        if self.mode == EEM_AUTOLOAD {
            self.load_config();
            self.mode = EEM_NORMAL;
        }
        let programming = self.mode == EEM_PROGRAM;
        self.eeprom.set_pins(Pins {
            select: programming && value & EECS != 0,
            clock: programming && value & EESK != 0,
            data: programming && value & EEDI != 0,
        });
    }

    pub(crate) const fn state(&self) -> Page3State {
        let Self { mode, config2, config3, ref eeprom } = *self;
        Page3State { mode, config2, config3, eeprom: eeprom.state() }
    }

    pub(crate) fn from_state(state: &Page3State) -> Result<Self, &'static str> {
        let Page3State { mode, config2, config3, ref eeprom } = *state;
        if mode & !EEM != 0 || mode == EEM_AUTOLOAD {
            return Err("page3.mode");
        }
        if config2 != merge(CONFIG2_DEFAULT, config2, CONFIG2_WRITABLE) {
            return Err("page3.config2");
        }
        if config3 != merge(CONFIG3_DEFAULT, config3, CONFIG3_WRITABLE) {
            return Err("page3.config3");
        }
        Ok(Self { mode, config2, config3, eeprom: Eeprom::from_state(eeprom)? })
    }

    /// Writes a station address into the EEPROM, as its maker does.
    pub(crate) const fn set_mac(&mut self, mac: [u8; 6]) {
        self.eeprom.set_mac(mac);
    }
}

const fn merge(old: u8, new: u8, writable: u8) -> u8 {
    (old & !writable) | (new & writable)
}
