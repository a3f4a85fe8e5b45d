//! D3OS: sixteen bits, ring from 46h to 80h with BNRY at its start, loopback during set-up, DCR
//! with the automatic Send Packet that it never uses.

use ne2000::Model;

use crate::guest::{Guest, MAC, PEER, PTX, RST, frame};

fn up() -> Guest {
    let mut guest = Guest::new(Model::Rtl8029As);
    let port = guest.inb(0x1F);
    guest.outb(0x1F, port);
    guest.await_isr(RST);
    guest.outs(&[(0x07, 0xFF), (0x00, 0x21), (0x0E, 0x59), (0x0A, 0), (0x0B, 0), (0x0C, 0x1C)]);
    guest.outs(&[(0x0D, 0x02), (0x01, 0x46), (0x02, 0x80), (0x03, 0x46), (0x04, 0x40)]);
    guest.remote(0, 32, 0x0A);
    let prom: Vec<u8> = (0..16).map(|_| guest.inw(0x10) as u8).collect();
    assert_eq!(prom[..6], MAC);
    guest.outb(0x00, 0x61);
    for (port, byte) in (1..).zip(&prom[..6]) {
        guest.outb(port, *byte);
    }
    guest.outs(&[(0x07, 0x47), (0x00, 0x22), (0x0D, 0x00), (0x07, 0xFF), (0x0F, 0x1F)]);
    guest
}

#[test]
fn frames_pass_with_the_automatic_bit_set() {
    let mut guest = up();
    let sent = frame(MAC, 333, 1);
    guest.receive(&sent);
    assert!(guest.irq());
    assert_eq!(guest.peek(0x4704, 333), sent);
    assert_eq!(guest.inb(0x03), 0x46, "a plain read leaves BNRY alone");
    let sent = frame(PEER, 60, 2);
    guest.poke(0x4000, &sent);
    guest.send(0x40, 60);
    guest.pass(1_000);
    assert_eq!((guest.isr() & PTX, guest.sent.clone()), (PTX, vec![sent]));
}
