//! The interrupt line as a pin.

use embedded_hal::digital::{OutputPin, PinState};

/// Drives a pin, active high, only when its level changes.
#[derive(Debug)]
pub struct IrqLine<P> {
    pin: P,
    /// The level that the pin is known to have; unknown before the first success and after a
    /// failure.
    level: Option<bool>,
}

impl<P: OutputPin> IrqLine<P> {
    /// A line whose pin has an unknown level.
    pub const fn new(pin: P) -> Self {
        Self { pin, level: None }
    }

    /// Gives the pin this level, unless it has it already. After a failure the next call tries
    /// again.
    ///
    /// # Errors
    ///
    /// The pin's own.
    pub fn sync(&mut self, level: bool) -> Result<(), P::Error> {
        if self.level == Some(level) {
            return Ok(());
        }
        self.level = None;
        self.pin.set_state(PinState::from(level))?;
        self.level = Some(level);
        Ok(())
    }

    /// Takes note that the pin has this level, without touching it: after a restore, when the
    /// other side of the line was restored too and an edge would be one too many.
    pub const fn adopt(&mut self, level: bool) {
        self.level = Some(level);
    }

    /// The pin.
    pub fn release(self) -> P {
        self.pin
    }
}
