//! A card of which driver, network and embedder want anything, at the values that broke other
//! models.
//!
//! After each operation the card's invariants hold. A frame that was stored reads back with its
//! check sequence, as many frames as there was room for are taken, and a card restored from the
//! saved state does from then on what the first one does.

use arbitrary::Arbitrary;
use ne2000::{Options, ReceiveMode, TransmitTiming};

use crate::Target;

mod machine;
mod mangle;
mod operation;
mod stored;

pub use operation::{
    AnyError, AnyModel, AnyReset, AnyWidth, Count, Direction, Frame, Length, MemoryAddress,
    Operation, Page, Port, Register,
};

use machine::Machine;

/// A card and what happens to it.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    /// Which card.
    pub model: AnyModel,
    /// Its options at first.
    pub options: Choices,
    /// What happens, in this order.
    pub operations: Vec<Operation>,
}

/// The card's options.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Choices {
    /// Overflow instead of back-pressure.
    pub strict: bool,
    /// A transmission ends as it is taken.
    pub instant: bool,
    /// Short frames are filled up.
    pub pad_received: bool,
}

impl From<Choices> for Options {
    fn from(choices: Choices) -> Self {
        let Choices { strict, instant, pad_received } = choices;
        Self {
            receive_mode: if strict { ReceiveMode::Strict } else { ReceiveMode::BackPressure },
            timing: if instant { TransmitTiming::Instant } else { TransmitTiming::BitTime },
            pad_received,
        }
    }
}

impl Target for Input {
    fn run(self) {
        let mut machine = Machine::new(self.model.0, self.options.into());
        for operation in &self.operations {
            machine.act(operation);
            machine.check();
        }
        machine.come_to_rest();
    }
}

#[cfg(test)]
mod tests;
