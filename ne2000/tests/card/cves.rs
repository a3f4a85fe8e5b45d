//! Every vulnerability published of another model, or read in its source: its trigger, and what
//! this card does.

use ne2000::{Model, RxOutcome};

use crate::guest::{Guest, MAC, RDC, frame, with_fcs};

const ODD_PAGES: [u8; 8] = [0x00, 0x3F, 0x40, 0x7F, 0x80, 0xBF, 0xC0, 0xFF];

fn ring(guest: &mut Guest, [start, stop, bnry, curr]: [u8; 4]) {
    guest.bring_up(0x46, 0x80);
    guest.outs(&[(0x01, start), (0x02, stop), (0x03, bnry)]);
    guest.outs(&[(0x00, 0x62), (0x07, curr), (0x00, 0x22)]);
}

/// QEMU: CURR at or past PSTOP made the copy loop endless.
#[test]
fn cve_2015_5278_curr_past_pstop_takes_no_frame() {
    for curr in [0x80, 0x81, 0xC0, 0xFF] {
        for mut guest in [Guest::new(Model::Ne2000), Guest::strict(Model::Ne2000)] {
            ring(&mut guest, [0x46, 0x80, 0x46, curr]);
            let ram = guest.card.ram().to_vec();
            assert_eq!(guest.card.receive(&frame(MAC, 1514, 0)), RxOutcome::NoRoom);
            assert_eq!((guest.curr(), guest.card.ram()), (curr, &ram[..]));
        }
    }
}

/// QEMU: ring registers beyond the memory led to writes behind it.
#[test]
fn cve_2015_5279_ring_registers_beyond_memory_write_only_ram() {
    for start in ODD_PAGES {
        for stop in ODD_PAGES {
            for curr in ODD_PAGES {
                let mut guest = Guest::strict(Model::Ne2000);
                ring(&mut guest, [start, stop, 0x20, curr]);
                let sent = frame(MAC, 1514, 0);
                let outcome = guest.card.receive(&sent);
                let fits = curr >= start && curr < stop && stop - start >= 7;
                let expected = if fits { RxOutcome::Stored } else { RxOutcome::NoRoom };
                assert_eq!(outcome, expected, "{start:x} {stop:x} {curr:x}");
                let ram = if fits { laid(&sent, [start, stop, curr]) } else { vec![0; 16_384] };
                assert!(guest.card.ram() == ram, "{start:x} {stop:x} {curr:x}");
            }
        }
    }
}

/// The RAM of an NE2000 after `sent` was stored from `curr` on: of addresses, line 14 selects it and
/// the 14 lines below it are decoded.
fn laid(sent: &[u8], [start, stop, curr]: [u8; 3]) -> Vec<u8> {
    let ring = usize::from(stop - start) * 256;
    let pages = (sent.len() + 8).div_ceil(256);
    let next = usize::from(start) + (usize::from(curr - start) + pages) % (ring / 256);
    let mut bytes = vec![0x01, next as u8];
    bytes.extend((sent.len() as u16 + 4).to_le_bytes());
    bytes.extend(with_fcs(sent));
    let mut ram = vec![0; 16_384];
    for (i, byte) in bytes.iter().enumerate() {
        let address = usize::from(start) * 256 + (usize::from(curr - start) * 256 + i) % ring;
        if address & 0x4000 != 0 {
            ram[address & 0x3FFF] = *byte;
        }
    }
    ram
}

/// QEMU: a 32-bit access to the last bytes passed a check made for the first of them.
#[test]
fn cve_2015_8743_wide_access_at_the_end_of_memory_is_masked() {
    for address in [0x7FFE, 0x7FFF, 0xBFFE, 0xBFFF, 0xFFFE, 0xFFFF] {
        let mut guest = Guest::new(Model::Rtl8029As);
        guest.outb(0x0E, 0x49);
        guest.remote(address, 4, 0x12);
        guest.outl(0x10, 0xDEAD_BEEF);
        assert_eq!(guest.isr() & RDC, RDC);
        // Each word goes where its own address leads: to the RAM's end from 7FFEh and FFFEh, to its
        // beginning from C000h, and else nowhere.
        let mut ram = vec![0; 16_384];
        if address & 0x4000 == 0 {
            ram[..2].copy_from_slice(&[0xAD, 0xDE]);
        } else {
            ram[0x3FFE..].copy_from_slice(&[0xEF, 0xBE]);
        }
        assert!(guest.card.ram() == ram, "{address:x}");
        guest.remote(address, 4, 0x0A);
        guest.inl(0x10);
        assert_eq!(guest.card.state().chip.rbcr, 0);
    }
}

/// QEMU: PSTOP not above PSTART made the room in the ring negative.
#[test]
fn cve_2016_2841_ring_without_pages_takes_no_frame() {
    for (start, stop) in [(0x46, 0x46), (0x80, 0x46), (0xFF, 0x00), (0, 0)] {
        for mut guest in [Guest::new(Model::Ne2000), Guest::strict(Model::Ne2000)] {
            ring(&mut guest, [start, stop, 0x46, start]);
            let before = guest.card.state();
            assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::NoRoom);
            assert_eq!(guest.card.state(), before);
            let _ = guest.card.can_receive();
        }
    }
}

/// QEMU: a length past the largest `int` looked like that of a short frame.
#[test]
fn cve_2018_10839_oversize_frames_are_refused_by_their_whole_length() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    for length in [1519, 65_535, 1 << 24] {
        assert_eq!(guest.card.receive(&vec![0xFF; length]), RxOutcome::Oversize);
    }
}

/// The class that QEMU guards against: a device called again while it sends. Nothing is called
/// here; a frame that comes back at once finds the transmission as it was.
#[test]
fn reentry_frame_answered_before_completion_is_stored() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.send(0x40, 60);
    guest.collect();
    guest.receive(&frame(MAC, 60, 0));
    assert_eq!(guest.inb(0x00), 0x26);
    guest.pass(1_000);
    assert_eq!(guest.isr(), 0x03);
}

/// Named in tests of DOSBox Automation: pages of all kinds, and a loop at the end of the RAM.
#[test]
fn ghsa_8278_xcrf_28rw_page_registers_are_masked() {
    for page in ODD_PAGES {
        let mut guest = Guest::strict(Model::Ne2000);
        ring(&mut guest, [page, 0xFF, page, page]);
        let _ = guest.card.receive(&frame(MAC, 1514, 0));
        guest.outs(&[(0x0E, 0x40), (0x0D, 0x02)]);
        guest.send(page, 0xFFFF);
        guest.pass(60_000);
        assert_eq!(guest.isr() & 0x02, 0x02);
    }
}

/// Bochs: four bytes of the PROM at its thirtieth.
#[test]
fn bochs_prom_read_across_its_end_repeats_it() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x0E, 0x49);
    guest.remote(30, 4, 0x0A);
    assert_eq!(guest.inl(0x10), u32::from_le_bytes([0x57, 0x57, MAC[0], MAC[0]]));
}

/// v86: CURR of FFh ended the emulator.
#[test]
fn v86_curr_of_ff_is_harmless() {
    for stop in [0x80, 0xFF] {
        let mut guest = Guest::new(Model::Ne2000);
        ring(&mut guest, [0x46, stop, 0x46, 0xFF]);
        assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::NoRoom);
    }
}
