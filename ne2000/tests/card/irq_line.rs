//! The interrupt line as a pin.

use embedded_hal_mock::eh1::MockError;
use embedded_hal_mock::eh1::digital::{Mock, State::High, State::Low, Transaction};
use ne2000::{IrqLine, IsaCard, Model, Ne2000, Reset, RxOutcome, Width};
use std::io::ErrorKind;

use crate::guest::{Guest, MAC, PRX, frame};

fn running() -> Ne2000 {
    let mut guest = Guest::instant(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.card
}

#[test]
fn pin_is_set_on_change_only() {
    let mut pin = Mock::new(&[
        Transaction::set(Low),
        Transaction::set(High),
        Transaction::set(Low),
        Transaction::set(High),
        Transaction::set(Low),
    ]);
    let mut card = IsaCard::new(running(), IrqLine::new(pin.clone()));
    card.sync().expect("low at first");
    card.write(0x0F, Width::Byte, 0x3F).expect("still low");
    for _ in 0..2 {
        let (outcome, set) = card.receive(&frame(MAC, 60, 0));
        assert_eq!(outcome, RxOutcome::Stored);
        set.expect("high");
    }
    card.write(0x07, Width::Byte, u32::from(PRX)).expect("low");
    card.write(0x05, Width::Byte, 60).expect("still low");
    card.write(0x00, Width::Byte, 0x26).expect("still low");
    let (sent, set) = card.transmit();
    assert_eq!(sent.map(|frame| frame.len()), Some(60));
    set.expect("high");
    card.reset(Reset::Port).expect("low");
    card.advance(5).expect("still low");
    pin.done();
}

#[test]
fn failed_set_is_tried_again() {
    let broken = MockError::Io(ErrorKind::NotConnected);
    let mut pin = Mock::new(&[
        Transaction::set(Low),
        Transaction::set(High).with_error(broken.clone()),
        Transaction::set(High).with_error(broken),
        Transaction::set(High),
    ]);
    let mut card = IsaCard::new(running(), IrqLine::new(pin.clone()));
    card.sync().expect("low at first");
    let (outcome, set) = card.receive(&frame(MAC, 60, 0));
    assert_eq!(outcome, RxOutcome::Stored, "the frame is there in any case");
    assert!(set.is_err());
    let (isr, set) = card.read(0x07, Width::Byte);
    assert_eq!(isr, u32::from(PRX));
    assert!(set.is_err());
    card.sync().expect("high at last");
    card.sync().expect("once");
    pin.done();
}

#[test]
fn pin_of_unknown_level_is_set_even_to_the_level_it_had() {
    let mut pin = Mock::new(&[
        Transaction::set(Low),
        Transaction::set(High).with_error(MockError::Io(ErrorKind::NotConnected)),
        Transaction::set(Low),
    ]);
    let mut line = IrqLine::new(pin.clone());
    line.sync(false).expect("low at first");
    line.sync(true).expect_err("broken");
    line.sync(false).expect("it may have risen all the same");
    pin.done();
}

#[test]
fn what_is_done_past_the_line_reaches_the_pin_at_the_next_sync() {
    let mut pin = Mock::new(&[Transaction::set(Low), Transaction::set(High)]);
    let mut card = IsaCard::new(running(), IrqLine::new(pin.clone()));
    card.sync().expect("low at first");
    assert_eq!(card.card_mut().receive(&frame(MAC, 60, 0)), RxOutcome::Stored);
    assert!(card.card().irq_level());
    card.sync().expect("high");
    pin.done();
}

#[test]
fn restored_line_makes_no_edge() {
    let mut card = running();
    assert_eq!(card.receive(&frame(MAC, 60, 0)), RxOutcome::Stored);
    assert!(card.irq_level());
    let mut pin = Mock::new(&[Transaction::set(Low)]);
    let mut card = IsaCard::restored(card, IrqLine::new(pin.clone()));
    card.sync().expect("nothing to do");
    card.write(0x0F, Width::Byte, 0).expect("low");
    let (card, line) = card.into_parts();
    assert!(!card.irq_level());
    drop(line.release());
    pin.done();
}
