//! NetWare: ODI's checks before it accepts the card, and frames sent from the RAM's alias.

use ne2000::Model;

use crate::guest::{Guest, MAC, PEER, PTX, frame};

#[test]
fn remote_address_follows_its_registers_at_once() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x00, 0x21);
    for address in [0x0000_u16, 0x55AA, 0xAA55, 0x4000, 0xFFFF] {
        let [low, high] = address.to_le_bytes();
        guest.outs(&[(0x08, low), (0x09, high)]);
        assert_eq!([guest.inb(0x08), guest.inb(0x09)], [low, high]);
    }
}

#[test]
fn loopback_self_test_ends_with_an_interrupt() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    let sent = frame(MAC, 60, 0);
    guest.poke(0x4000, &sent);
    guest.outs(&[(0x0E, 0x40), (0x0D, 0x02), (0x0F, 0x02)]);
    guest.send(0x40, 60);
    guest.pass(2_000);
    assert!(guest.irq());
    assert_eq!((guest.isr() & PTX, guest.inb(0x00) & 0x04), (PTX, 0));
    assert_eq!(guest.inb(0x06), 64, "the FIFO has the count");
    assert!(guest.sent.is_empty());
}

#[test]
fn frame_is_sent_from_the_alias_at_c000() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    let sent = frame(PEER, 1514, 6);
    guest.poke(0xC000, &sent);
    guest.send(0xC0, 1514);
    guest.pass(2_000);
    assert_eq!(guest.sent, [sent]);
}
