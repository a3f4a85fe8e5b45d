//! Registers, ports, PROM and resets of each card.

use ne2000::{Model, Reset};

use crate::guest::{CNT, Guest, MAC, PRX, RDC, RST, frame};

const ALL: [Model; 4] = [Model::Ne1000, Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As];

#[test]
fn power_on_reads_stopped_with_reset_status_and_no_interrupt() {
    for model in ALL {
        let mut guest = Guest::new(model);
        assert_eq!(guest.inb(0x00), 0x21);
        assert_eq!(guest.isr(), RST);
        guest.outb(0x0F, 0xFF);
        assert!(!guest.irq(), "RST never drives the line");
    }
}

#[test]
fn start_clears_rst_and_sta_stays_until_a_reset() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x00, 0x22);
    assert_eq!((guest.inb(0x00), guest.isr()), (0x22, 0));
    guest.outb(0x00, 0x21);
    assert_eq!((guest.inb(0x00), guest.isr()), (0x23, RST));
    guest.inb(0x1F);
    assert_eq!((guest.inb(0x00), guest.isr()), (0x21, RST));
}

#[test]
fn command_without_start_and_stop_only_selects() {
    let mut guest = Guest::new(Model::Ne2000);
    for command in [0x00, 0x20, 0x40, 0x60] {
        guest.outb(0x00, command);
        assert_eq!(guest.isr() & RST, if command & 0xC0 == 0 { RST } else { 0 });
        assert_eq!(guest.inb(0x00), command | 0x21);
    }
    guest.outb(0x00, 0x22);
    for command in [0x00, 0x40, 0x60, 0x20] {
        guest.outb(0x00, command);
        assert_eq!(guest.inb(0x00), command | 0x22);
    }
    assert_eq!(guest.isr(), 0);
}

#[test]
fn writing_rst_does_not_clear_it() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x07, 0xFF);
    assert_eq!(guest.isr(), RST);
}

#[test]
fn isr_is_cleared_by_ones_only() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.receive(&frame(MAC, 60, 0));
    guest.remote(0x4000, 0, 0x0A);
    assert_eq!(guest.isr(), PRX | RDC);
    guest.outb(0x07, RDC);
    assert_eq!(guest.isr(), PRX);
    guest.outb(0x07, 0);
    assert_eq!(guest.isr(), PRX);
}

#[test]
fn mask_opens_and_closes_the_line_as_a_level() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.receive(&frame(MAC, 60, 0));
    assert!(guest.irq());
    guest.outb(0x0F, 0);
    assert!(!guest.irq());
    guest.outb(0x0F, 0x3F);
    assert!(guest.irq());
    guest.outb(0x07, PRX);
    assert!(!guest.irq());
}

#[test]
fn page1_keeps_every_byte() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x00, 0x61);
    for port in 1..16 {
        guest.outb(port, 0x90 | port);
    }
    for port in 1..16 {
        assert_eq!(guest.inb(port), 0x90 | port);
    }
}

#[test]
fn page2_reads_the_configuration_back() {
    for (model, rcr) in [(Model::Ne2000, 0x1D), (Model::Rtl8029As, 0xDD)] {
        let mut guest = Guest::new(model);
        guest.outs(&[(1, 0x46), (2, 0x80), (4, 0x40), (12, 0x1D), (13, 0x02)]);
        guest.outs(&[(14, 0x49), (15, 0xBF), (0, 0xA1)]);
        let read: Vec<u8> = [1, 2, 4, 12, 13, 14, 15].map(|port| guest.inb(port)).to_vec();
        assert_eq!(read, [0x46, 0x80, 0x40, rcr, 0x02, 0x49, 0x3F]);
    }
}

#[test]
fn page2_diagnostic_pointers_can_be_written() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x00, 0xA1);
    guest.outs(&[(1, 0x34), (2, 0x12), (3, 0x51), (5, 0x52), (6, 0x53), (7, 0x54)]);
    assert_eq!([3, 5, 6, 7].map(|port| guest.inb(port)), [0x51, 0x52, 0x53, 0x54]);
    guest.outs(&[(12, 0xFF), (0, 0x21)]);
    assert_eq!([1, 2].map(|port| guest.inb(port)), [0x34, 0x12], "CLDA");
    assert_eq!(guest.card.state().chip.rcr, 0, "RCR cannot be written here");
}

#[test]
fn remote_address_reads_back_at_once() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outs(&[(8, 0xCD), (9, 0xAB)]);
    assert_eq!([8, 9].map(|port| guest.inb(port)), [0xCD, 0xAB]);
}

#[test]
fn identification_is_realteks_alone() {
    for model in ALL {
        let mut guest = Guest::new(model);
        let wanted = if model == Model::Rtl8029As { *b"PC" } else { [0xFF; 2] };
        assert_eq!([10, 11].map(|port| guest.inb(port)), wanted);
    }
}

#[test]
fn tally_counters_stop_at_192_warn_at_128_and_clear_on_read() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.outb(0x0C, 0x24);
    for count in 1..=200_u16 {
        let _ = guest.card.receive(&frame(MAC, 60, 0));
        assert_eq!(guest.isr() & CNT != 0, count >= 128);
    }
    assert!(guest.irq());
    assert_eq!(guest.inb(0x0F), 192);
    assert_eq!(guest.isr() & CNT, 0);
    assert_eq!(guest.inb(0x0F), 0);
}

#[test]
fn wide_access_to_registers_is_one_access_to_each() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outw(0x00, 0x4621);
    assert_eq!(guest.card.state().chip.pstart, 0x46);
    guest.outl(0x08, 0x0003_4567);
    let chip = guest.card.state().chip;
    assert_eq!((chip.crda, chip.rbcr), (0x4567, 3));
    assert_eq!(guest.inw(0x08), 0x4567);
}

#[test]
fn ports_past_the_window_are_open() {
    for model in ALL {
        let mut guest = Guest::new(model);
        let before = guest.card.state();
        for port in 0x20..=0xFF {
            guest.outl(port, 0);
            assert_eq!(guest.inl(port), 0xFFFF_FFFF);
        }
        assert_eq!(guest.card.state(), before);
    }
}

#[test]
fn reset_by_read_and_by_write_stops_and_keeps_ram_and_ring() {
    for (model, port) in [(Model::Ne1000, 0x14), (Model::Ne1000, 0x1F), (Model::Ne2000, 0x18)] {
        for write in [false, true] {
            let mut guest = Guest::new(model);
            guest.bring_up(0x26, 0x40);
            guest.outb(0x0D, 0x1E);
            guest.poke(if model == Model::Ne1000 { 0x2000 } else { 0x4000 }, b"kept");
            guest.outb(0x0F, 0x7F);
            if write {
                guest.outb(port, 0);
            } else {
                guest.inb(port);
            }
            assert_eq!((guest.inb(0x00), guest.isr()), (0x21, RST));
            let chip = guest.card.state().chip;
            assert_eq!((chip.imr, chip.tcr, chip.dcr & 4), (0, 0x18, 4));
            assert_eq!((chip.pstart, chip.pstop, chip.par), (0x26, 0x40, MAC));
            assert_eq!(&guest.card.ram()[..4], b"kept");
        }
    }
}

#[test]
fn power_on_reset_is_a_new_card() {
    for model in ALL {
        let mut guest = Guest::new(model);
        let new = guest.card.state();
        guest.bring_up(0x46, 0x50);
        guest.poke(0x4000, b"secret of another guest");
        guest.card.reset(Reset::PowerOn);
        assert_eq!(guest.card.state(), new);
        assert!(guest.card.ram().iter().all(|byte| *byte == 0));
    }
}

#[test]
fn station_prom_is_doubled_and_signed() {
    for (model, sign) in
        [(Model::Ne2000, 0x57), (Model::Rtl8029As, 0x57), (Model::Ne2000EightBit, 0x42)]
    {
        let mut guest = Guest::new(model);
        let prom = guest.peek(0, 32);
        for (pair, byte) in prom.chunks(2).zip(MAC) {
            assert_eq!(pair, [byte, byte]);
        }
        assert_eq!(&prom[28..], [sign; 4]);
    }
    let mut guest = Guest::new(Model::Ne1000);
    let prom = guest.peek(0, 16);
    assert_eq!((&prom[..6], &prom[14..]), (&MAC[..], &[0x57; 2][..]));
}

#[test]
fn prom_cannot_be_written() {
    for model in ALL {
        let mut guest = Guest::new(model);
        let before = guest.peek(0, 32);
        guest.poke(0, &[0xAA; 32]);
        guest.inb(0x1F);
        assert_eq!(guest.peek(0, 32), before);
    }
}

#[test]
fn each_card_decodes_its_own_address_lines() {
    // Where a byte written at the RAM's start is seen, and where not.
    for (model, base, seen, unseen) in [
        (Model::Ne1000, 0x2000, [0x6000, 0xA000], [0x0000, 0x4000]),
        (Model::Ne2000, 0x4000, [0x4000, 0xC000], [0x8000, 0x6000]),
        (Model::Rtl8029As, 0x4000, [0x4000, 0xC000], [0x8000, 0x2000]),
        (Model::Ne2000EightBit, 0x4000, [0x4000, 0xC000], [0x6000, 0x8000]),
    ] {
        let mut guest = Guest::new(model);
        guest.poke(base, &[0x5A, 0xA5]);
        for address in seen {
            assert_eq!(guest.peek(address, 2), [0x5A, 0xA5], "{model:?} {address:x}");
        }
        for address in unseen {
            assert_ne!(guest.peek(address, 2), [0x5A, 0xA5], "{model:?} {address:x}");
        }
    }
}

#[test]
fn eight_bit_slot_has_half_the_ram_and_nothing_behind_it() {
    let mut guest = Guest::new(Model::Ne2000EightBit);
    guest.poke(0x5FFF, &[0x5A, 0xA5]);
    assert_eq!(guest.peek(0x5FFF, 2), [0x5A, 0xFF]);
    assert_eq!(guest.card.ram().len(), 8192);
}

#[test]
fn acknowledged_counter_warns_no_more_until_it_is_read() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.outb(0x0C, 0x24);
    for _ in 0..130 {
        let _ = guest.card.receive(&frame(MAC, 60, 0));
    }
    guest.outb(0x07, CNT);
    let _ = guest.card.receive(&frame(MAC, 60, 0));
    assert_eq!(guest.isr() & CNT, 0);
}

#[test]
fn link_down_refuses_frames_both_ways() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.card.set_link(false);
    assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), ne2000::RxOutcome::NoLink);
    assert!(!guest.card.can_receive());
    guest.send(0x40, 60);
    guest.pass(2_000);
    assert!(guest.sent.is_empty());
    assert_eq!((guest.isr(), guest.inb(0x04)), (crate::guest::TXE, 0x0C));
    guest.card.set_link(true);
    guest.receive(&frame(MAC, 60, 0));
}
