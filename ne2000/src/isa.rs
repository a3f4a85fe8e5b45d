//! A card together with its interrupt line.

use embedded_hal::digital::OutputPin;

use crate::card::{Ne2000, Reset, TxFrame, Width};
use crate::chip::RxOutcome;
use crate::irq::IrqLine;

/// A card that drives an interrupt pin after every input.
///
/// Each call does its work in any case and returns the pin's error beside the result. The next
/// call, or [`sync`](Self::sync), sets a pin again that could not be set.
#[derive(Debug)]
pub struct IsaCard<P> {
    card: Ne2000,
    line: IrqLine<P>,
}

impl<P: OutputPin> IsaCard<P> {
    /// Puts the card on the line. The pin is first set by the next call.
    pub const fn new(card: Ne2000, line: IrqLine<P>) -> Self {
        Self { card, line }
    }

    /// Puts a restored card on the line, whose pin has the level already that the card wants.
    pub const fn restored(card: Ne2000, mut line: IrqLine<P>) -> Self {
        line.adopt(card.irq_level());
        Self { card, line }
    }

    /// The card.
    pub const fn card(&self) -> &Ne2000 {
        &self.card
    }

    /// The card, for anything that has no method here; call [`sync`](Self::sync) afterwards.
    pub const fn card_mut(&mut self) -> &mut Ne2000 {
        &mut self.card
    }

    /// Takes card and line apart.
    pub fn into_parts(self) -> (Ne2000, IrqLine<P>) {
        (self.card, self.line)
    }

    /// Gives the pin the card's interrupt level, unless it has it already.
    ///
    /// # Errors
    ///
    /// The pin's own.
    pub fn sync(&mut self) -> Result<(), P::Error> {
        self.line.sync(self.card.irq_level())
    }

    /// [`Ne2000::read`].
    pub fn read(&mut self, offset: u8, width: Width) -> (u32, Result<(), P::Error>) {
        let value = self.card.read(offset, width);
        (value, self.sync())
    }

    /// [`Ne2000::write`].
    ///
    /// # Errors
    ///
    /// The pin's own.
    pub fn write(&mut self, offset: u8, width: Width, value: u32) -> Result<(), P::Error> {
        self.card.write(offset, width, value);
        self.sync()
    }

    /// [`Ne2000::receive`].
    pub fn receive(&mut self, frame: &[u8]) -> (RxOutcome, Result<(), P::Error>) {
        let outcome = self.card.receive(frame);
        (outcome, self.sync())
    }

    /// [`Ne2000::transmit`].
    pub fn transmit(&mut self) -> (Option<TxFrame<'_>>, Result<(), P::Error>) {
        let range = self.card.begin_transmit();
        let set = self.line.sync(self.card.irq_level());
        (range.map(|range| self.card.frame(range)), set)
    }

    /// [`Ne2000::advance`].
    ///
    /// # Errors
    ///
    /// The pin's own.
    pub fn advance(&mut self, now_micros: u64) -> Result<(), P::Error> {
        self.card.advance(now_micros);
        self.sync()
    }

    /// [`Ne2000::reset`].
    ///
    /// # Errors
    ///
    /// The pin's own.
    pub fn reset(&mut self, reset: Reset) -> Result<(), P::Error> {
        self.card.reset(reset);
        self.sync()
    }
}
