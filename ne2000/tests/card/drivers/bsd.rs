//! NetBSD's ne (and OpenBSD's after it) and FreeBSD's ed: a strict look at CR after the reset port,
//! RAM tests by writing, lengths recomputed from the next page, full reset upon an overflow.

use ne2000::Model;

use crate::guest::{Guest, MAC, OVW, PEER, PRX, PTX, RDC, RST, frame};

const PATTERN: &[u8; 32] = b"THIS is A memory TEST pattern..\0";

fn reset(guest: &mut Guest) {
    let port = guest.inb(0x1F);
    guest.pass(10_000);
    guest.outb(0x1F, port);
    guest.pass(5_000);
    guest.outb(0x00, 0x21);
    guest.pass(5_000);
    assert_eq!(guest.inb(0x00) & 0x27, 0x21, "RD2 and STP, neither TXP nor STA");
    assert_eq!(guest.isr() & RST, RST);
}

fn detect(guest: &mut Guest) -> Option<Model> {
    reset(guest);
    guest.outs(&[(0x00, 0x22), (0x0C, 0x20), (0x0E, 0x48), (0x01, 0x20), (0x02, 0x40)]);
    guest.poke(0x2000, PATTERN);
    if guest.peek(0x2000, 32) == PATTERN {
        return Some(Model::Ne1000);
    }
    guest.outs(&[(0x0E, 0x49), (0x01, 0x40), (0x02, 0x80)]);
    guest.poke(0x4000, PATTERN);
    if guest.peek(0x4000, 32) != PATTERN {
        return None;
    }
    let [id0, id1] = [guest.inb(0x0A), guest.inb(0x0B)];
    Some(if [id0, id1] == *b"PC" { Model::Rtl8029As } else { Model::Ne2000 })
}

fn init(guest: &mut Guest) {
    guest.outs(&[(0x00, 0x21), (0x0E, 0x49), (0x0A, 0), (0x0B, 0), (0x0C, 0x20), (0x0D, 0x02)]);
    guest.outs(&[(0x03, 0x4C), (0x01, 0x4C), (0x02, 0x80), (0x0F, 0x1F | 0x20), (0x07, 0xFF)]);
    guest.outb(0x00, 0x61);
    for (port, byte) in (1..).zip(MAC) {
        guest.outb(port, byte);
    }
    (8..16).for_each(|port| guest.outb(port, 0));
    guest.outs(&[(0x07, 0x4D), (0x00, 0x22), (0x0C, 0x04), (0x0D, 0x00)]);
}

/// Reads all frames; the length is that of the pages, with the count's low byte.
fn serve(guest: &mut Guest, next: &mut u8) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        guest.outb(0x00, 0x62);
        let curr = guest.inb(0x07);
        guest.outb(0x00, 0x22);
        if *next == curr {
            return frames;
        }
        let at = u16::from_le_bytes([0, *next]);
        let header = guest.peek(at, 4);
        let mut pages = if header[1] > *next {
            u16::from(header[1] - *next)
        } else {
            u16::from(header[1]) + 0x80 - 0x4C - u16::from(*next)
        };
        let low = u16::from(header[2]);
        if low > 252 {
            pages -= 1;
        }
        let pages = pages - 1;
        let length = pages * 256 + low;
        assert_eq!(length, u16::from_le_bytes([header[2], header[3]]), "recomputed");
        // Split at the ring's end by the driver.
        let to_end = (0x8000 - at - 4).min(length - 4);
        let mut frame = guest.peek(at + 4, to_end);
        if to_end < length - 4 {
            frame.extend(guest.peek(0x4C00, length - 4 - to_end));
        }
        frames.push(frame);
        *next = header[1];
        guest.outb(0x03, if *next == 0x4C { 0x7F } else { *next - 1 });
    }
}

#[test]
fn detection_tells_the_cards_apart() {
    for model in [Model::Ne1000, Model::Ne2000, Model::Rtl8029As] {
        assert_eq!(detect(&mut Guest::new(model)), Some(model));
    }
}

#[test]
fn reset_is_strict_even_after_the_card_has_run() {
    let mut guest = Guest::new(Model::Ne2000);
    init(&mut guest);
    guest.send(0x40, 60);
    reset(&mut guest);
}

#[test]
fn address_is_every_other_byte_of_the_prom() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x0E, 0x49);
    let prom = guest.peek(0, 16);
    let mac: Vec<u8> = (0..6).map(|i| prom[i * 2]).collect();
    assert_eq!(mac, MAC);
}

#[test]
fn lengths_recomputed_from_pages_agree() {
    let mut guest = Guest::new(Model::Ne2000);
    init(&mut guest);
    let mut next = 0x4D;
    for length in 60..=1514 {
        let sent = frame(MAC, length, length as u8);
        guest.receive(&sent);
        assert_eq!(serve(&mut guest, &mut next), [sent]);
    }
}

/// The handler: acknowledges all that is set, serves it, and looks again until nothing is.
fn interrupt(guest: &mut Guest, next: &mut u8) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let isr = guest.isr() & !RDC;
        if isr == 0 {
            return frames;
        }
        guest.outb(0x07, isr);
        if isr & PRX != 0 {
            frames.extend(serve(guest, next));
        }
    }
}

/// A network that offers frames after any access of the driver's: when the line is low again, the
/// ring is empty.
#[test]
fn frames_that_come_at_any_access_are_all_served() {
    for (length, pace) in
        [60, 1514].into_iter().flat_map(|length| (0..60).map(move |n| (length, n)))
    {
        let mut guest = Guest::new(Model::Ne2000);
        init(&mut guest);
        guest.pace = pace;
        let frames: Vec<_> = (0..50).map(|seed| frame(MAC, length, seed)).collect();
        guest.waiting.extend(frames.iter().cloned());
        let (mut next, mut received) = (0x4D, Vec::new());
        while received.len() < frames.len() {
            guest.inb(0x00);
            if guest.irq() {
                received.extend(interrupt(&mut guest, &mut next));
            }
            if !guest.irq() {
                let stored = guest.card.stats().stored;
                assert_eq!(received.len() as u64, stored, "every {pace} accesses");
            }
        }
        assert_eq!(received, frames);
    }
}

#[test]
fn odd_frames_are_written_with_an_odd_count() {
    let mut guest = Guest::new(Model::Ne2000);
    init(&mut guest);
    let sent = frame(PEER, 77, 0);
    guest.poke(0x4000, &sent);
    guest.send(0x40, 77);
    guest.pass(1_000);
    assert_eq!((guest.isr() & (PTX | RDC), guest.sent.clone()), (PTX, vec![sent]));
}

#[test]
fn counters_are_read_until_they_are_clear() {
    let mut guest = Guest::new(Model::Ne2000);
    init(&mut guest);
    guest.outb(0x0C, 0x24);
    for _ in 0..150 {
        let _ = guest.card.receive(&frame(MAC, 60, 0));
    }
    assert!(guest.irq());
    let counters = [0x0D, 0x0E, 0x0F].map(|port| guest.inb(port));
    assert_eq!(counters, [0, 0, 150]);
    assert!(!guest.irq());
}

#[test]
fn overflow_ends_in_a_full_reset() {
    let mut guest = Guest::strict(Model::Ne2000);
    init(&mut guest);
    guest.fill(1514, 0);
    assert_eq!(guest.isr() & OVW, OVW);
    reset(&mut guest);
    init(&mut guest);
    let sent = frame(MAC, 99, 0);
    guest.receive(&sent);
    assert_eq!(serve(&mut guest, &mut 0x4D), [sent]);
}

#[test]
fn media_are_read_from_page_3() {
    let mut guest = Guest::new(Model::Rtl8029As);
    guest.outb(0x00, 0xE2);
    let [config0, config2, config3] = [3, 5, 6].map(|port| guest.inb(port));
    guest.outb(0x00, 0x22);
    assert_eq!((config0 & 0x04, config2 & 0xC0, config3 & 0x40), (0, 0x40, 0x40));
}
