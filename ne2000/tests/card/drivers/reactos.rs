//! ReactOS: sizes the RAM by writing everywhere, and reads two bytes before each write.

use ne2000::{Model, RxOutcome};

use crate::guest::{Guest, MAC, PEER, RDC, frame};

const TEST: [u8; 2] = [0x55, 0xAA];

/// A word every kilobyte from 0400h to the end, written, read back and put back.
fn size(guest: &mut Guest) -> (u16, u16) {
    let kept: Vec<u16> = (1..64_u16)
        .map(|kilobyte| kilobyte * 0x400)
        .filter(|address| {
            let before = guest.peek(*address, 2);
            guest.poke(*address, &TEST);
            let kept = guest.peek(*address, 2) == TEST;
            guest.poke(*address, &before);
            kept
        })
        .collect();
    let first = kept[0];
    let gap = kept.iter().zip(0..).find(|(address, i)| **address != first + i * 0x400);
    (first, gap.map_or(0, |(_, i)| first + i * 0x400))
}

#[test]
fn ram_is_sixteen_kilobytes_without_an_alias_behind_it() {
    for model in [Model::Ne2000, Model::Rtl8029As] {
        let mut guest = Guest::new(model);
        guest.outs(&[(0x00, 0x22), (0x0E, 0x49)]);
        assert_eq!(size(&mut guest), (0x4000, 0x8000));
        assert_eq!(guest.peek(0, 12), MAC.map(|byte| [byte; 2]).concat(), "PROM as before");
    }
}

#[test]
fn read_before_each_write_disturbs_no_write() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x4C, 0x80);
    let sent = frame(PEER, 90, 4);
    guest.remote(0x4000, 2, 0x0A);
    guest.inw(0x10);
    assert_eq!(guest.isr() & RDC, RDC);
    guest.outb(0x07, RDC);
    guest.poke(0x4000, &sent);
    guest.send(0x40, 90);
    guest.pass(1_000);
    assert_eq!(guest.sent, [sent]);
}

#[test]
fn boundary_of_zero_at_first_lets_frames_in() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x4C, 0x80);
    guest.outs(&[(0x03, 0x00), (0x0C, 0x1C)]);
    assert!(guest.card.can_receive());
    guest.receive(&frame(MAC, 1514, 0));
    guest.receive(&frame(PEER, 64, 0));
    assert_eq!(guest.card.receive(&frame([1; 6], 64, 0)), RxOutcome::Filtered, "MAR is empty");
}

#[test]
fn start_and_stop_read_back_either_way() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x00, 0x22);
    guest.outb(0x00, 0x21);
    assert!(matches!(guest.inb(0x00), 0x21 | 0x23));
}
