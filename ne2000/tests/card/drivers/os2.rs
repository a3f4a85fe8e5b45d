//! OS/2 1.x: NE1000.SYS of 1988 starts a second remote DMA without a new address.

use ne2000::Model;

use crate::guest::{Guest, MAC, RDC, frame};

#[test]
fn second_transfer_goes_on_where_the_first_ended() {
    let mut guest = Guest::new(Model::Ne1000);
    guest.bring_up(0x26, 0x40);
    let sent = frame(MAC, 120, 2);
    guest.receive(&sent);
    let header = guest.peek(0x2700, 4);
    assert_eq!(header, [0x01, 0x28, 124, 0]);
    guest.outs(&[(0x07, RDC), (0x0A, 120), (0x0B, 0), (0x00, 0x0A)]);
    let read: Vec<u8> = (0..120).map(|_| guest.inb(0x10)).collect();
    assert_eq!(read, sent);
}
