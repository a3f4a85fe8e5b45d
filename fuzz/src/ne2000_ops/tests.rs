use ne2000::{Model, Reset, Width, WireError};

use super::*;

fn input(model: Model, strict: bool, operations: Vec<Operation>) -> Input {
    let options = Choices { strict, instant: strict, pad_received: true };
    Input { model: AnyModel(model), options, operations }
}

fn frame(length: u16) -> Frame {
    Frame { destination: 0, length: Length(length), seed: 7 }
}

/// A machine's day, with every operation in it.
fn day() -> Vec<Operation> {
    vec![
        Operation::SaveAndRestore { leap: 1 << 20 },
        Operation::DriverStart(AnyWidth(Width::Dword)),
        Operation::Receive(frame(1514)),
        Operation::DriverReceive,
        Operation::DriverReceive,
        Operation::Burst(frame(700)),
        Operation::DriverStart(AnyWidth(Width::Word)),
        Operation::Ring {
            start: Page(0x46),
            stop: Page(0x70),
            boundary: Page(0x6E),
            current: Page(0x6F),
        },
        Operation::Burst(frame(1518)),
        Operation::DriverStart(AnyWidth(Width::Byte)),
        Operation::DriverSend(700),
        Operation::Advance { micros: 0 },
        Operation::Transmit,
        Operation::SaveAndRestore { leap: 77 },
        Operation::Advance { micros: 5_000 },
        Operation::ReceiveDamaged(frame(60), AnyError(WireError::Check)),
        Operation::Register(Register { page: 0, offset: 0x0C, value: Page(0x05) }),
        Operation::ReceiveDamaged(frame(1000), AnyError(WireError::Alignment)),
        Operation::DriverReceive,
        Operation::Remote(Direction::Read, MemoryAddress(0x3FFF), Count(60)),
        Operation::Data { write: false, width: AnyWidth(Width::Dword), accesses: 20 },
        Operation::Remote(Direction::Write, MemoryAddress(0xBFFF), Count(60)),
        Operation::Data { write: true, width: AnyWidth(Width::Word), accesses: 40 },
        Operation::Remote(Direction::SendPacket, MemoryAddress(0), Count(0)),
        Operation::RestoreMangled { field: 3, value: 9 },
        Operation::RestoreMangled { field: 23, value: 0xFF },
        Operation::Receive(frame(65_535)),
        Operation::Ring {
            start: Page(0xFF),
            stop: Page(0),
            boundary: Page(0x40),
            current: Page(0xC0),
        },
        Operation::Burst(frame(60)),
        Operation::Send { page: Page(0xFF), count: Count(0xFFFF) },
        Operation::Transmit,
        Operation::Command(0x01),
        Operation::Write(Port(0x16), AnyWidth(Width::Dword), u32::MAX),
        Operation::Read(Port(0xFF), AnyWidth(Width::Dword)),
        Operation::Options(Choices { strict: false, instant: true, pad_received: false }),
        Operation::Link(false),
        Operation::Reset(AnyReset(Reset::PowerOn)),
    ]
}

#[test]
fn every_card_lives_through_a_day() {
    for model in [Model::Ne1000, Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As] {
        for strict in [false, true] {
            input(model, strict, day()).run();
        }
    }
}

#[test]
#[should_panic(expected = "the restored card goes another way")]
fn card_that_is_not_its_twin_is_noticed() {
    let mut machine = Machine::new(Model::Ne2000, Options::DEFAULT);
    machine.act(&Operation::SaveAndRestore { leap: 0 });
    machine.change_behind_the_twins_back(|card| card.write(0x00, Width::Byte, 0x22));
    machine.check();
}

#[test]
#[should_panic(expected = "the ring holds something else")]
fn frame_that_lies_otherwise_in_the_ring_is_noticed() {
    let mut machine = Machine::new(Model::Ne2000, Options::DEFAULT);
    machine.act(&Operation::DriverStart(AnyWidth(Width::Word)));
    machine.change_behind_the_twins_back(|card| {
        let before = card.state();
        let _ = card.receive(&[0xFF; 60]);
        stored::check(&before, card, &[0xFE; 60], None);
    });
}
