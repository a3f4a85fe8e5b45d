//! What holds after any sequence of accesses.

use ne2000::{
    MacPolicy, Model, Ne2000, Options, ReceiveMode, Reset, RxOutcome, TransmitTiming, Width, crc,
};
use proptest::prelude::*;

use crate::guest::{Guest, MAC, frame, with_fcs};

#[derive(Clone, Debug)]
enum Operation {
    Read(u8, Width),
    Write(u8, Width, u32),
    Receive(usize, u8),
    Transmit,
    Advance(u64),
    Link(bool),
    Reset(Reset),
}

fn operation() -> impl Strategy<Value = Operation> {
    let width = prop_oneof![Just(Width::Byte), Just(Width::Word), Just(Width::Dword)];
    // The values at which other models broke, as often as any others.
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(vec![
            0, 1, 0x22, 0x26, 0x3F, 0x40, 0x46, 0x7F, 0x80, 0xBF, 0xC0, 0xFF
        ])
    ];
    let value = prop_oneof![any::<u32>(), byte.prop_map(u32::from)];
    prop_oneof![
        4 => (0..34_u8, width.clone()).prop_map(|(port, width)| Operation::Read(port, width)),
        12 => (0..34_u8, width, value).prop_map(|(p, w, v)| Operation::Write(p, w, v)),
        4 => (0..1600_usize, any::<u8>()).prop_map(|(len, seed)| Operation::Receive(len, seed)),
        2 => Just(Operation::Transmit),
        2 => (0..3_000_u64).prop_map(Operation::Advance),
        1 => any::<bool>().prop_map(Operation::Link),
        1 => prop_oneof![Just(Reset::Port), Just(Reset::PowerOn)].prop_map(Operation::Reset),
    ]
}

fn card() -> impl Strategy<Value = Ne2000> {
    let model = prop::sample::select(vec![
        Model::Ne1000,
        Model::Ne2000,
        Model::Ne2000EightBit,
        Model::Rtl8029As,
    ]);
    (model, any::<[bool; 3]>()).prop_map(|(model, [strict, instant, pad_received])| {
        let receive_mode = if strict { ReceiveMode::Strict } else { ReceiveMode::BackPressure };
        let timing = if instant { TransmitTiming::Instant } else { TransmitTiming::BitTime };
        Ne2000::with_options(model, MAC, Options { receive_mode, timing, pad_received })
    })
}

/// Does `operation` and returns everything that the outside can see of it.
fn apply(card: &mut Ne2000, operation: &Operation, now: &mut u64) -> Vec<u8> {
    match *operation {
        Operation::Read(port, width) => card.read(port, width).to_le_bytes().to_vec(),
        Operation::Write(port, width, value) => {
            card.write(port, width, value);
            Vec::new()
        }
        Operation::Receive(length, seed) => {
            let destination = [MAC, [0xFF; 6], [1, 0, 0x5E, 0, 0, 1]][usize::from(seed % 3)];
            vec![card.receive(&frame(destination, length, seed)) as u8]
        }
        Operation::Transmit => card
            .transmit()
            .map(|frame| {
                let bytes: Vec<u8> = frame.pieces().flatten().copied().collect();
                assert_eq!(bytes.len(), frame.len());
                bytes
            })
            .unwrap_or_default(),
        Operation::Advance(by) => {
            *now += by;
            card.advance(*now);
            Vec::new()
        }
        Operation::Link(up) => {
            card.set_link(up);
            Vec::new()
        }
        Operation::Reset(reset) => {
            card.reset(reset);
            Vec::new()
        }
    }
}

/// What must be true of every card at any time.
fn check(card: &Ne2000, prom: &[u8; 32]) {
    let chip = card.state().chip;
    assert_eq!(card.irq_level(), chip.isr & chip.imr & 0x7F != 0);
    assert_eq!(chip.isr & 0x80, 0, "RST is derived");
    assert!(chip.cntr.iter().all(|counter| *counter <= 192));
    assert_eq!(card.prom(), prom);
}

/// Status register through the ports, with the page as before.
fn isr(card: &mut Ne2000) -> u8 {
    let mut copy = card.clone();
    copy.write(0x00, Width::Byte, 0x20);
    copy.read(0x07, Width::Byte) as u8
}

proptest! {
    #[test]
    fn any_accesses_keep_the_invariants(
        mut card in card(),
        operations in prop::collection::vec(operation(), 1..200),
    ) {
        let prom = *card.prom();
        let mut now = 0;
        for operation in &operations {
            apply(&mut card, operation, &mut now);
            check(&card, &prom);
            let chip = card.state().chip;
            let sending = matches!(chip.transmitter, ne2000::TransmitState::Sending { .. });
            let stopped = chip.command.stopped && !sending;
            prop_assert_eq!(isr(&mut card) & 0x80 != 0, stopped || chip.overflowed);
        }
    }

    #[test]
    fn saved_and_restored_cards_answer_alike(
        mut card in card(),
        before in prop::collection::vec(operation(), 0..100),
        after in prop::collection::vec(operation(), 0..100),
        leap in 0..1_000_000_u64,
    ) {
        let mut now = 0;
        for operation in &before {
            apply(&mut card, operation, &mut now);
        }
        let mut other = Ne2000::new(Model::Ne2000, [0; 6]);
        let mut other_now = now + leap;
        other.restore(&card.state(), card.ram(), MacPolicy::Saved, other_now).expect("reachable");
        for operation in &after {
            prop_assert_eq!(
                apply(&mut card, operation, &mut now),
                apply(&mut other, operation, &mut other_now)
            );
        }
        prop_assert_eq!(card.state(), other.state());
        prop_assert_eq!(card.ram(), other.ram());
    }

    #[test]
    fn frame_that_was_not_stored_changes_neither_ring_nor_ram(
        mut card in card(),
        operations in prop::collection::vec(operation(), 0..100),
        length in 0..1600_usize,
    ) {
        let mut now = 0;
        for operation in &operations {
            apply(&mut card, operation, &mut now);
        }
        let (before, ram) = (card.state().chip, card.ram().to_vec());
        if card.receive(&frame(MAC, length, 0)) != RxOutcome::Stored {
            let mut after = card.state().chip;
            (after.isr, after.rsr, after.cntr) = (before.isr, before.rsr, before.cntr);
            after.overflowed = before.overflowed;
            prop_assert_eq!(after, before);
            prop_assert_eq!(card.ram(), &ram[..]);
        }
    }

    #[test]
    fn receive_room_keeps_its_word(
        mut card in card(),
        ring in prop::option::of((0..0x80_u8, 8..0x80_u8, any::<u8>(), any::<u8>())),
        operations in prop::collection::vec(operation(), 0..100),
        lengths in prop::collection::vec(0..=1518_usize, 16),
    ) {
        let mut now = 0;
        if let Some((start, pages, curr, bnry)) = ring {
            let curr = start + curr % pages;
            for (port, value) in [
                (0x00, 0x21), (0x0C, 0x14), (0x01, start), (0x02, start + pages),
                (0x03, bnry), (0x00, 0x61), (0x07, curr), (0x00, 0x22),
            ] {
                card.write(port, Width::Byte, u32::from(value));
            }
        }
        for operation in &operations {
            apply(&mut card, operation, &mut now);
        }
        let chip = card.state().chip;
        let back_pressure = chip.receive_mode == ReceiveMode::BackPressure;
        if back_pressure && chip.pstop.saturating_sub(chip.pstart) >= 8 {
            for length in &lengths[..card.receive_room()] {
                let before = card.receive_room();
                let outcome = card.receive(&frame(MAC, *length, 0));
                prop_assert!(
                    matches!(outcome, RxOutcome::Stored | RxOutcome::Filtered | RxOutcome::Runt)
                );
                prop_assert!(card.receive_room() <= before);
            }
        }
    }

    /// Whatever the ring and however the frame wraps, a driver reads it back as it was sent.
    #[test]
    fn stored_frame_is_read_back_with_its_check_sequence(
        start in 0x40..0x70_u8,
        pages in 8..16_u8,
        offset in 0..15_u8,
        length in 60..=1518_usize,
        seed: u8,
        word_mode: bool,
    ) {
        let mut card = Ne2000::new(Model::Ne2000, MAC);
        let curr = start + offset % pages;
        let mut out = |port: u8, value: u8| card.write(port, Width::Byte, u32::from(value));
        for (port, value) in [
            (0x00, 0x21), (0x0E, 0x48 | u8::from(word_mode)), (0x0C, 0x10),
            (0x01, start), (0x02, start + pages), (0x03, curr), (0x00, 0x61), (0x07, curr),
            (0x00, 0x22),
        ] {
            out(port, value);
        }
        let sent = frame([2, 0, 0, 0, 0, 5], length, seed);
        prop_assert_eq!(card.receive(&sent), RxOutcome::Stored);
        let count = (length + 8) as u16;
        let mut out = |port: u8, value: u8| card.write(port, Width::Byte, u32::from(value));
        for (port, value) in [
            (0x08, 0), (0x09, curr), (0x0A, count.to_le_bytes()[0]), (0x0B, count.to_le_bytes()[1]),
            (0x00, 0x0A),
        ] {
            out(port, value);
        }
        let mut read = Vec::new();
        for _ in 0..if word_mode { count.div_ceil(2) } else { count } {
            prop_assert_eq!(isr(&mut card) & 0x40, 0);
            if word_mode {
                read.extend((card.read(0x10, Width::Word) as u16).to_le_bytes());
            } else {
                read.push(card.read(0x10, Width::Byte) as u8);
            }
        }
        prop_assert_eq!(isr(&mut card) & 0x40, 0x40);
        let taken = (length + 8).div_ceil(256) as u8;
        let next = start + (curr - start + taken) % pages;
        let [low, high] = (length as u16 + 4).to_le_bytes();
        prop_assert_eq!(&read[..4], &[0x01, next, low, high]);
        prop_assert_eq!(&read[4..4 + length], &sent[..]);
        prop_assert_eq!(&read[4 + length..length + 8], &crc::fcs(&sent));
    }

    /// The datasheet's recovery, wherever the transmitter happens to be.
    #[test]
    fn recovery_from_overflow_loses_no_stored_frame_and_sends_once(
        lengths in prop::collection::vec(60..=1514_usize, 40..80),
        sent_at in 0..40_usize,
        waited in 0..2_000_u64,
    ) {
        let mut guest = Guest::strict(Model::Ne2000);
        guest.bring_up(0x46, 0x80);
        let question = frame([2; 6], 700, 1);
        guest.poke(0x4000, &question);
        let mut stored = Vec::new();
        for (length, i) in lengths.iter().zip(0_u8..) {
            if usize::from(i) == sent_at {
                guest.send(0x40, 700);
            }
            let offered = frame(MAC, *length, i);
            match guest.card.receive(&offered) {
                RxOutcome::Stored => stored.push(offered),
                RxOutcome::NoRoom => break,
                outcome => prop_assert!(false, "{:?}", outcome),
            }
        }
        let asked = guest.inb(0x00) & 0x04 != 0;
        guest.pass(waited);

        let sending = guest.inb(0x00) & 0x04 != 0;
        guest.outb(0x00, 0x21);
        guest.pass(1_600);
        prop_assert_eq!(guest.isr() & 0x90, 0x90, "OVW and RST");
        guest.outs(&[(0x0A, 0), (0x0B, 0)]);
        let resend = sending && guest.isr() & 0x0A == 0;
        guest.outs(&[(0x0D, 0x02), (0x00, 0x22)]);
        let mut page = 0x47;
        for offered in &stored {
            let header = guest.peek(u16::from_le_bytes([0, page]), 4);
            let whole = guest.peek(u16::from_le_bytes([0, page]), offered.len() as u16 + 8);
            prop_assert_eq!(&whole[4..], &with_fcs(offered)[..]);
            page = header[1];
            guest.outb(0x03, if page == 0x46 { 0x7F } else { page - 1 });
        }
        prop_assert_eq!(page, guest.curr());
        guest.outs(&[(0x07, 0x10), (0x0D, 0x00)]);
        if resend {
            guest.outb(0x00, 0x26);
        }
        guest.pass(2_000);
        prop_assert_eq!(guest.sent.len(), usize::from(asked));
        prop_assert!(guest.sent.iter().all(|sent| *sent == question));
        prop_assert_eq!(guest.card.receive(&frame(MAC, 1514, 0)), RxOutcome::Stored);
    }
}
