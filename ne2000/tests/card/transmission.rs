//! Transmission and its timing.

use ne2000::{Model, Options, TransmitTiming};

use crate::guest::{Guest, MAC, PEER, PTX, RST, frame};

fn up() -> Guest {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest
}

#[test]
fn frame_leaves_with_exactly_its_bytes() {
    for length in [1_u16, 14, 42, 59, 60, 1514, 1515, 2000] {
        let mut guest = up();
        let sent = frame(PEER, usize::from(length), 3);
        guest.poke(0x4000, &sent);
        guest.send(0x40, length);
        guest.pass(5_000);
        assert_eq!(guest.sent, [sent]);
        assert_eq!((guest.inb(0x04), guest.isr(), guest.inb(0x00)), (0x01, PTX, 0x22));
    }
}

#[test]
fn completion_takes_the_time_of_the_bits() {
    let mut guest = up();
    guest.send(0x40, 60);
    guest.collect();
    assert_eq!(guest.card.poll_at(), Some(0), "the clock is asked for");
    guest.card.advance(100);
    // 64 + 96 + 32 + 480 bits at 10 a microsecond, rounded up.
    assert_eq!(guest.card.poll_at(), Some(168));
    guest.card.advance(167);
    assert_eq!((guest.isr(), guest.inb(0x00)), (0, 0x26));
    guest.card.advance(168);
    assert_eq!((guest.isr(), guest.inb(0x00)), (PTX, 0x22));
    assert_eq!(guest.card.poll_at(), None);
}

#[test]
fn completion_waits_for_the_network_to_take_the_frame() {
    let mut guest = up();
    guest.send(0x40, 60);
    guest.card.advance(0);
    guest.card.advance(1_000_000);
    assert_eq!((guest.isr(), guest.card.poll_at()), (0, None));
    guest.collect();
    assert_eq!((guest.isr(), guest.sent.len()), (PTX, 1));
}

#[test]
fn instant_mode_completes_as_the_frame_is_taken() {
    let mut guest = Guest::instant(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.send(0x40, 60);
    assert_eq!((guest.isr(), guest.card.poll_at()), (0, None));
    guest.collect();
    assert_eq!((guest.isr(), guest.card.poll_at()), (PTX, None));
}

#[test]
fn clock_that_steps_back_or_leaps_ahead_ends_a_frame_once() {
    let mut guest = up();
    guest.card.advance(1_000);
    guest.send(0x40, 60);
    guest.collect();
    guest.card.advance(500);
    assert_eq!(guest.card.poll_at(), Some(1_068));
    guest.card.advance(u64::MAX);
    assert_eq!(guest.isr(), PTX);
    guest.outb(0x07, PTX);
    guest.card.advance(u64::MAX);
    assert_eq!(guest.isr(), 0);
}

#[test]
fn frame_is_handed_out_once() {
    let mut guest = up();
    guest.send(0x40, 60);
    guest.collect();
    guest.collect();
    assert_eq!(guest.sent.len(), 1);
}

#[test]
fn second_request_while_busy_does_not_lose_the_first() {
    let mut guest = up();
    guest.poke(0x4000, &frame(PEER, 60, 1));
    guest.send(0x40, 60);
    guest.outb(0x00, 0x26);
    guest.pass(1_000);
    assert_eq!(guest.sent, [frame(PEER, 60, 1)]);
    guest.pass(1_000);
    assert_eq!(guest.sent.len(), 1);
}

#[test]
fn registers_written_anew_do_not_change_the_frame_under_way() {
    let mut guest = up();
    guest.poke(0x4000, &frame(PEER, 60, 1));
    guest.send(0x40, 60);
    guest.outs(&[(0x04, 0x43), (0x05, 0), (0x06, 0)]);
    guest.pass(1_000);
    assert_eq!(guest.sent, [frame(PEER, 60, 1)]);
}

#[test]
fn writing_txp_as_zero_does_not_cancel() {
    let mut guest = up();
    guest.send(0x40, 60);
    guest.outb(0x00, 0x22);
    assert_eq!(guest.inb(0x00), 0x26);
    guest.pass(1_000);
    assert_eq!(guest.sent.len(), 1);
}

#[test]
fn request_of_a_stopped_chip_waits_for_the_start() {
    let mut guest = up();
    guest.outs(&[(0x00, 0x21), (0x04, 0x40), (0x05, 60), (0x06, 0), (0x00, 0x25)]);
    guest.pass(1_000);
    assert_eq!((guest.sent.len(), guest.inb(0x00) & 0x05), (0, 0x05));
    guest.outb(0x00, 0x22);
    guest.pass(1_000);
    assert_eq!(guest.sent.len(), 1);
}

#[test]
fn reset_forgets_a_held_request() {
    let mut guest = up();
    guest.outs(&[(0x00, 0x21), (0x05, 60), (0x00, 0x25), (0x1F, 0), (0x00, 0x22)]);
    guest.pass(1_000);
    assert!(guest.sent.is_empty());
}

#[test]
fn stop_lets_the_frame_finish_first() {
    let mut guest = up();
    guest.send(0x40, 1514);
    guest.collect();
    guest.card.advance(0);
    guest.outb(0x00, 0x21);
    assert_eq!(guest.isr() & RST, 0);
    guest.card.advance(1_300);
    assert_eq!(guest.isr(), RST | PTX);
}

#[test]
fn frame_at_the_alias_is_one_piece() {
    let mut guest = up();
    let sent = frame(PEER, 1514, 1);
    guest.poke(0x4000, &sent);
    guest.send(0xC0, 1514);
    let taken = guest.card.transmit().expect("a frame");
    assert_eq!(taken.as_slice(), Some(&sent[..]));
    assert_eq!(taken.pieces().count(), 1);
}

#[test]
fn frame_that_leaves_the_ram_is_read_as_the_address_lines_say() {
    let mut guest = up();
    guest.poke(0x7F00, &[0xAB; 256]);
    guest.send(0x7F, 300);
    let taken = guest.card.transmit().expect("a frame");
    assert_eq!(taken.as_slice(), None);
    let bytes: Vec<u8> = taken.pieces().flatten().copied().collect();
    assert_eq!(bytes[..256], [0xAB; 256]);
    assert_eq!(bytes[256..268], MAC.map(|byte| [byte; 2]).concat());
    assert_eq!(bytes.len(), 300);
}

#[test]
fn the_longest_count_is_sent_whole() {
    for model in [Model::Ne1000, Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As] {
        let mut guest = Guest::new(model);
        guest.bring_up(0x46, 0x80);
        guest.send(0xFF, 0xFFFF);
        let taken = guest.card.transmit().expect("a frame");
        assert_eq!(taken.pieces().map(<[u8]>::len).sum::<usize>(), 65_535);
        assert!(taken.pieces().all(|piece| !piece.is_empty()));
    }
}

#[test]
fn options_can_change_while_a_frame_is_under_way() {
    let mut guest = up();
    guest.send(0x40, 60);
    guest.collect();
    guest.card.advance(7);
    guest.card.set_options(Options { timing: TransmitTiming::Instant, ..Options::DEFAULT });
    assert_eq!(guest.card.poll_at(), Some(7));
    guest.card.advance(7);
    assert_eq!(guest.isr(), PTX);
}
