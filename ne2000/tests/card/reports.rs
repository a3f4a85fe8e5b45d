//! Public reports of other models that this crate can answer: each by its number, with what
//! happened there.

use ne2000::{MacPolicy, Model, Ne2000, RxOutcome};

use crate::guest::{BROADCAST, Guest, MAC, OVW, PEER, PRX, PTX, RDC, RST, RXE, frame, with_fcs};

fn up(model: Model) -> Guest {
    let mut guest = Guest::new(model);
    if model == Model::Ne1000 {
        guest.bring_up(0x26, 0x40);
    } else {
        guest.bring_up(0x46, 0x80);
    }
    guest
}

/// Windows 2000 sets the reserved bit of IMR, and the emulator ended.
#[test]
fn dosbox_x_4116_reserved_bit_of_imr_is_ignored() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x0F, 0xFF);
    assert!(!guest.irq(), "RST is set, and must not pass");
    assert_eq!(guest.card.state().chip.imr, 0x7F);
}

/// A transmission of no bytes ended the emulator.
#[test]
fn dosbox_x_6397_transmission_of_no_bytes_completes() {
    let mut guest = up(Model::Ne2000);
    guest.send(0x40, 0);
    assert_eq!(guest.isr(), PTX);
}

/// Transmissions completed ten times too soon, together with the answer.
#[test]
fn dosbox_staging_4972_completion_is_a_tenth_of_a_microsecond_a_bit() {
    for (length, micros) in [(60, 68), (1514, 1_231)] {
        let mut guest = up(Model::Ne2000);
        guest.send(0x40, length);
        guest.collect();
        guest.card.advance(0);
        assert_eq!(guest.card.poll_at(), Some(micros));
    }
}

/// Loading a saved state crashed with the card on.
#[test]
fn dosbox_x_6102_state_is_saved_and_loaded_in_full() {
    let mut guest = up(Model::Ne2000);
    guest.receive(&frame(MAC, 200, 1));
    let mut loaded = Ne2000::new(Model::Ne2000, [0; 6]);
    loaded.restore(&guest.card.state(), guest.card.ram(), MacPolicy::Saved, 0).expect("own state");
    guest.card = loaded;
    assert!(guest.irq());
    assert_eq!(guest.peek(0x4704, 204), with_fcs(&frame(MAC, 200, 1)));
}

/// The address read as FF:FF:FF:FF:FF:FF when no network was behind the card.
#[test]
fn dosbox_x_5387_prom_is_there_without_a_network() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.card.set_link(false);
    assert_eq!(guest.peek(0, 12), MAC.map(|byte| [byte; 2]).concat());
}

/// Windows 98 found no card: 57h was at 14 and 15 of an image of 32 bytes.
#[test]
fn v86_378_signature_is_in_the_last_four_bytes() {
    let mut guest = Guest::new(Model::Rtl8029As);
    assert_eq!(guest.peek(0x1C, 4), [0x57; 4]);
}

/// NetWare's ODI driver found a hardware conflict: loopback gave no interrupt.
#[test]
fn box86_5518_loopback_interrupts_with_ptx() {
    for dcr in [0x40, 0x48] {
        let mut guest = up(Model::Ne2000);
        guest.outs(&[(0x0E, dcr), (0x0D, 0x02)]);
        guest.send(0x40, 60);
        guest.pass(1_000);
        assert!(guest.irq());
        assert_eq!(guest.isr() & PTX, PTX);
    }
}

/// NetWare sent zeros: its buffer was beyond the RAM, in the alias.
#[test]
fn box86_2389_frames_from_the_alias_have_their_bytes() {
    let mut guest = up(Model::Ne2000);
    guest.poke(0x4000, &frame(PEER, 60, 1));
    guest.send(0xC0, 60);
    guest.pass(1_000);
    assert_eq!(guest.sent, [frame(PEER, 60, 1)]);
}

/// The driver did not see the card; its network was broken.
#[test]
fn box86_603_card_is_found_without_a_network() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.card.set_link(false);
    guest.inb(0x1F);
    assert_eq!(guest.isr() & RST, RST);
    guest.outs(&[(0x0F, 0x50), (0x0A, 0), (0x0B, 0), (0x00, 0x0A)]);
    assert!(guest.irq());
}

/// A crash under load with an NE1000.
#[test]
fn box86_141_ne1000_survives_a_soak() {
    let mut guest = up(Model::Ne1000);
    let mut page = 0x27;
    for round in 0..1_000_u32 {
        let sent = frame(MAC, 60 + (round as usize * 37) % 1455, round as u8);
        guest.receive(&sent);
        let header = guest.peek(u16::from_le_bytes([0, page]), 4);
        let read = guest.peek(u16::from_le_bytes([4, page]), sent.len() as u16);
        assert_eq!(read, sent);
        page = header[1];
        guest.outb(0x03, if page == 0x26 { 0x3F } else { page - 1 });
        guest.send(0x20, sent.len() as u16);
        guest.pass(2_000);
        guest.sent.clear();
    }
}

/// An NE1000 answered where an NE2000 was expected.
#[test]
fn box86_626_cards_are_what_they_say() {
    let mut small = up(Model::Ne1000);
    let mut large = up(Model::Ne2000);
    small.poke(0x2000, &[1, 2]);
    large.poke(0x2000, &[1, 2]);
    assert_eq!(small.peek(0x2000, 2), [1, 2]);
    assert_ne!(large.peek(0x2000, 2), [1, 2]);
}

/// A level interrupt that nobody lowered rebooted Windows 98.
#[test]
fn bochs_452_line_falls_with_the_last_acknowledged_bit() {
    let mut guest = up(Model::Rtl8029As);
    guest.receive(&frame(MAC, 60, 0));
    guest.send(0x40, 60);
    guest.pass(1_000);
    guest.outb(0x07, PRX);
    assert!(guest.irq());
    guest.outb(0x07, PTX);
    assert!(!guest.irq());
}

/// CR kept any value, so no probe could tell an 8390.
#[test]
fn tlvc_44_command_register_is_no_latch() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x00, 0x00);
    assert_eq!(guest.inb(0x00), 0x21);
    guest.outb(0x00, 0x26);
    guest.pass(1_000);
    assert_eq!(guest.inb(0x00), 0x22);
}

/// A storm of receive errors, and headers that were garbage.
#[test]
fn elks_1296_no_receive_error_without_an_error() {
    let mut guest = up(Model::Ne2000);
    for seed in 0..100 {
        if guest.card.receive(&frame(MAC, 700, seed)) == RxOutcome::NoRoom {
            break;
        }
    }
    let _ = guest.card.receive(&frame(PEER, 60, 0));
    let _ = guest.card.receive(&frame(MAC, 3, 0));
    guest.outb(0x0C, 0x24);
    let _ = guest.card.receive(&frame(MAC, 60, 0));
    assert_eq!(guest.isr() & (RXE | OVW), 0);
}

/// The machine hung at start: remote DMA never completed.
#[test]
fn elks_1500_every_transfer_completes() {
    for model in [Model::Ne1000, Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As] {
        for dcr in [0x48, 0x49] {
            for address in (0..=0xFF00).step_by(0x100) {
                let mut guest = Guest::new(model);
                guest.outs(&[(0x0E, dcr), (0x00, 0x22)]);
                guest.remote(address, 16, 0x12);
                (0..16).for_each(|_| guest.outb(0x10, 0));
                assert_eq!(guest.isr() & RDC, RDC);
            }
        }
    }
}

/// Drivers by NDIS and LSL did not see the card.
#[test]
fn picomem_91_probe_by_reset_command_and_prom_passes() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x1F, 0);
    assert_eq!((guest.inb(0x00), guest.isr()), (0x21, RST));
    guest.outs(&[(0x08, 0x34), (0x09, 0x12)]);
    assert_eq!((guest.inb(0x08), guest.inb(0x09)), (0x34, 0x12));
    guest.outb(0x0E, 0x49);
    guest.remote(0, 32, 0x0A);
    let prom: Vec<u8> = (0..16).map(|_| guest.inw(0x10) as u8).collect();
    assert_eq!((&prom[..6], &prom[14..]), (&MAC[..], b"WW".as_slice()));
    assert_eq!(guest.isr() & RDC, RDC);
}

/// A driver without any recovery from an overflow.
#[test]
fn serenity_8986_driver_that_never_recovers_harms_only_itself() {
    let mut guest = Guest::strict(Model::Rtl8029As);
    guest.bring_up(0x46, 0x80);
    for seed in 0..=255 {
        let _ = guest.card.receive(&frame(MAC, 1514, seed));
    }
    assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::NoRoom);
    assert_eq!(guest.inb(0x0F), 1, "the receiver is off and counts no more");
    guest.poke(0x4000, &frame(PEER, 60, 0));
    guest.send(0x40, 60);
    guest.pass(1_000);
    assert_eq!(guest.sent.len(), 1, "it still sends");
}

/// The offer of an address got to the card but not to the guest.
#[test]
fn dosemu2_892_interrupt_is_the_level_of_isr_and_imr() {
    let mut guest = up(Model::Ne2000);
    guest.outb(0x0F, 0);
    guest.receive(&frame(BROADCAST, 342, 0));
    assert!(!guest.irq());
    for (mask, level) in [(0x02, false), (0x01, true), (0x00, false), (0x3F, true)] {
        guest.outb(0x0F, mask);
        assert_eq!(guest.irq(), level);
    }
}

/// Two network cards in one segment answered each other without end.
#[test]
fn box86_6453_frames_keep_their_order_and_none_comes_back() {
    let mut guest = up(Model::Ne2000);
    for seed in 0..4 {
        guest.poke(0x4000, &frame(PEER, 60, seed));
        guest.send(0x40, 60);
        guest.pass(1_000);
    }
    assert_eq!(guest.sent, [0, 1, 2, 3].map(|seed| frame(PEER, 60, seed)));
    assert_eq!(guest.curr(), 0x47, "the ring is empty");
}

/// Broadcasts arrived and answers to the guest did not.
#[test]
fn picomem_134_unicast_arrives_after_broadcast() {
    let mut guest = up(Model::Ne2000);
    guest.receive(&frame(BROADCAST, 60, 0));
    guest.outb(0x07, PRX);
    guest.receive(&frame(MAC, 342, 0));
    assert!(guest.irq());
}
