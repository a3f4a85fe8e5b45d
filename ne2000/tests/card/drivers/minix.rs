//! MINIX 3's dp8390: RST and CR after the reset, RAM at both ends, RDC where nothing is, commands
//! of TXP and STA with RD of 000, the ring's end split by the driver.

use ne2000::Model;

use crate::guest::{Guest, MAC, PEER, PTX, RDC, RST, frame};

fn reset(guest: &mut Guest) {
    let port = guest.inb(0x1F);
    guest.outb(0x1F, port);
    guest.await_isr(RST);
    assert_eq!(guest.inb(0x00) & 0x21, 0x21);
}

fn ram_at(guest: &mut Guest, address: u16) -> bool {
    guest.poke(address, &[0x01, 0x2A, 0xD5, 0x0C]);
    guest.peek(address, 4) == [0x01, 0x2A, 0xD5, 0x0C]
}

#[test]
fn ram_is_found_at_both_ends() {
    for (model, dcr, ends, none) in [
        (Model::Ne1000, 0x48, [0x2000, 0x3FFC], 0x0000),
        (Model::Ne2000, 0x49, [0x4000, 0x7FFC], 0x2000),
        (Model::Rtl8029As, 0x49, [0x4000, 0x7FFC], 0x2000),
    ] {
        let mut guest = Guest::new(model);
        reset(&mut guest);
        guest.outs(&[(0x00, 0x22), (0x0E, dcr)]);
        assert!(ends.iter().all(|end| ram_at(&mut guest, *end)));
        assert!(!ram_at(&mut guest, none));
    }
}

#[test]
fn transfer_where_nothing_is_completes() {
    let mut guest = Guest::new(Model::Ne2000);
    reset(&mut guest);
    guest.outs(&[(0x00, 0x22), (0x0E, 0x48)]);
    guest.remote(0x2000, 4, 0x12);
    (0..4).for_each(|byte| guest.outb(0x10, byte));
    guest.await_isr(RDC);
}

#[test]
fn loopback_at_reset_then_frames_with_rd_of_000() {
    let mut guest = Guest::new(Model::Ne2000);
    reset(&mut guest);
    guest.outs(&[(0x00, 0x21), (0x0D, 0x16), (0x0A, 0), (0x0B, 0)]);
    guest.await_isr(RST);
    guest.outs(&[(0x07, 0xFF)]);
    guest.bring_up(0x46, 0x80);
    let sent = frame(PEER, 60, 1);
    guest.poke(0x4000, &sent);
    guest.outs(&[(0x04, 0x40), (0x06, 0), (0x05, 60), (0x00, 0x06)]);
    guest.pass(1_000);
    assert_eq!((guest.sent.clone(), guest.isr()), (vec![sent], PTX));
    guest.outb(0x07, 0xFF);
    assert_eq!(guest.isr(), 0, "running: no RST to be taken for a stop");
}

#[test]
fn frame_at_the_rings_end_is_read_in_two_transfers() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.outs(&[(0x00, 0x62), (0x07, 0x7F), (0x00, 0x22), (0x03, 0x7E)]);
    let sent = frame(MAC, 1000, 1);
    guest.receive(&sent);
    let mut read = guest.peek(0x7F04, 252);
    read.extend(guest.peek(0x4600, 748));
    assert_eq!(read, sent);
}
