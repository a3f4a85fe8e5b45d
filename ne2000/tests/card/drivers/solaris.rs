//! Solaris 9's probe: a transmission of no bytes.

use ne2000::Model;

use crate::guest::{Guest, MAC, PTX, frame};

#[test]
fn probe_sends_nothing_and_the_card_goes_on() {
    for stopped in [false, true] {
        let mut guest = Guest::new(Model::Rtl8029As);
        guest.bring_up(0x46, 0x80);
        if stopped {
            guest.outb(0x00, 0x21);
        }
        guest.outs(&[(0x05, 0), (0x06, 0), (0x00, if stopped { 0x25 } else { 0x26 })]);
        guest.outb(0x00, 0x22);
        guest.pass(1_000);
        assert_eq!((guest.isr(), guest.inb(0x00), guest.sent.len()), (PTX, 0x22, 0));
        guest.receive(&frame(MAC, 60, 0));
    }
}
