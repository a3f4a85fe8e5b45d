//! Windows: what its detection does to ports, and the drivers of 95 and of Windows for Workgroups.

use ne2000::{Model, RxOutcome};

use crate::guest::{Guest, MAC, PEER, PRX, PTX, frame};

#[test]
fn word_accesses_of_hardware_detection_are_harmless() {
    for model in [Model::Ne1000, Model::Ne2000, Model::Rtl8029As] {
        let mut guest = Guest::new(model);
        for port in 0..0x20 {
            guest.inw(port);
            guest.outw(port, 0xFFFF);
            guest.inl(port);
            guest.outl(port, 0xFFFF_FFFF);
        }
        guest.inb(0x1F);
        guest.bring_up(0x26, 0x40);
        assert_eq!(guest.inb(0x00), 0x22);
    }
}

/// The MPU-401 probe of Windows 2000 falls into the register window and leaves CURR anywhere.
#[test]
fn mpu401_probe_leaves_a_card_that_takes_nothing_and_breaks_nothing() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    for value in [0xFF, 0x3F, 0x80] {
        guest.outs(&[(0x00, 0x62), (0x07, value), (0x00, 0x22)]);
        assert_eq!(guest.card.receive(&frame(MAC, 1514, 0)), RxOutcome::NoRoom);
    }
}

#[test]
fn rtl8029_driver_of_95_finds_the_signature_in_the_last_words() {
    let mut guest = Guest::new(Model::Rtl8029As);
    guest.outb(0x0E, 0x48);
    let prom = guest.peek(0, 32);
    assert_eq!((prom[28], prom[30]), (0x57, 0x57));
}

/// NE2000.DOS of Windows for Workgroups 3.11.
#[test]
fn empty_transmission_completes() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.send(0x40, 0);
    assert_eq!((guest.isr(), guest.inb(0x00)), (PTX, 0x22));
    assert!(guest.irq());
    guest.collect();
    assert!(guest.sent.is_empty());
}

/// The same driver loses a received frame whose interrupt comes together with PTX: an answer that
/// is there at once must be seen before.
#[test]
fn answer_interrupts_before_the_end_of_the_question() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.poke(0x4000, &frame(PEER, 60, 0));
    guest.send(0x40, 60);
    guest.collect();
    guest.card.advance(0);
    guest.receive(&frame(MAC, 60, 0));
    assert_eq!(guest.isr(), PRX);
    guest.outb(0x07, PRX);
    assert!(!guest.irq());
    guest.card.advance(68);
    assert_eq!(guest.isr(), PTX);
}
