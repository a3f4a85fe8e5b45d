//! ELKS and TLVC: spins for RDC and RST without end, commands with RD of 000, whole frames across
//! the ring's end, and no patience with an odd header.

use ne2000::Model;

use crate::guest::{Guest, MAC, OVW, RDC, RST, frame};

fn ring(model: Model) -> (u8, u8) {
    if model == Model::Ne2000EightBit { (0x46, 0x60) } else { (0x46, 0x80) }
}

fn up(mut guest: Guest) -> Guest {
    let model = guest.card.model();
    let (start, stop) = ring(model);
    let port = guest.inb(0x18);
    guest.outb(0x18, port);
    guest.await_isr(RST);
    guest.outb(0x00, 0x21);
    let cr = guest.inb(0x00);
    assert!(matches!(cr, 0x21 | 0x23), "{cr:x}");
    let dcr = if model == Model::Ne2000EightBit { 0x48 } else { 0x49 };
    guest.outs(&[(0x0E, dcr), (0x0A, 0), (0x0B, 0), (0x0C, 0x20), (0x0D, 0x02)]);
    guest.outs(&[(0x01, start), (0x02, stop), (0x03, start), (0x07, 0x7F), (0x0F, 0x00)]);
    // Page 1 with STA and STP as they are, RD 000.
    guest.outb(0x00, 0x42);
    for (port, byte) in (1..).zip(MAC) {
        guest.outb(port, byte);
    }
    guest.outs(&[(0x07, start + 1), (0x00, 0x02), (0x0D, 0x00), (0x0C, 0x04), (0x0F, 0x1B)]);
    guest
}

/// Reads one frame, header and all, in one go.
fn serve(guest: &mut Guest) -> Vec<u8> {
    let (start, stop) = ring(guest.card.model());
    guest.outb(0x00, 0x42);
    let curr = guest.inb(0x07);
    guest.outb(0x00, 0x02);
    let page = guest.inb(0x03) + 1;
    let page = if page == stop { start } else { page };
    assert_ne!(page, curr);
    let at = u16::from_le_bytes([0, page]);
    let header = guest.peek(at, 4);
    let first = u16::from_le_bytes([header[0], header[1]]);
    assert_eq!(first & !0x7F21, 0, "a header that is no damaged packet's");
    let count = u16::from_le_bytes([header[2], header[3]]);
    let whole = guest.peek(at, count);
    guest.outb(0x03, if header[1] == start { stop - 1 } else { header[1] - 1 });
    whole[4..].to_vec()
}

#[test]
fn frames_of_all_lengths_on_both_slots() {
    for model in [Model::Ne2000, Model::Ne2000EightBit] {
        let mut guest = up(Guest::new(model));
        for seed in 0..100 {
            let sent = frame(MAC, 60 + usize::from(seed) * 14, seed);
            guest.receive(&sent);
            guest.outb(0x07, 0x01);
            assert_eq!(serve(&mut guest), sent);
        }
    }
}

#[test]
fn prom_tells_the_slot() {
    for (model, sign) in [(Model::Ne2000, b'W'), (Model::Ne2000EightBit, b'B')] {
        let mut guest = up(Guest::new(model));
        guest.outb(0x0E, 0x48);
        assert_eq!(guest.peek(0x1C, 2), [sign; 2]);
    }
}

#[test]
fn no_wait_for_completion_is_endless() {
    let mut guest = up(Guest::new(Model::Ne2000EightBit));
    for address in [0x0000, 0x2000, 0x4000, 0x6000, 0x8000] {
        for count in [1, 2, 4] {
            guest.outb(0x07, RDC);
            guest.remote(address, count, 0x0A);
            for _ in 0..count {
                guest.inb(0x10);
            }
            assert_eq!(guest.isr() & RDC, RDC);
        }
    }
}

#[test]
fn overflow_waits_for_rst_and_goes_on() {
    let mut guest = up(Guest::strict(Model::Ne2000));
    guest.fill(1514, 5);
    assert!(guest.irq(), "OVW is in the mask, RXE is not");
    guest.outb(0x00, 0x21);
    guest.outs(&[(0x0A, 0), (0x0B, 0)]);
    guest.await_isr(RST);
    guest.outs(&[(0x0D, 0x02), (0x00, 0x22)]);
    assert_eq!(serve(&mut guest), frame(MAC, 1514, 5));
    guest.outs(&[(0x07, OVW), (0x0D, 0x00)]);
    guest.receive(&frame(MAC, 60, 0));
}

#[test]
fn strict_probe_of_an_8390_passes() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x00, 0x22);
    assert_eq!(guest.inb(0x00), 0x22);
    guest.outb(0x00, 0x21);
    assert_eq!(guest.inb(0x00) & !0x02, 0x21);
    assert_eq!(guest.isr() & RST, RST);
}
