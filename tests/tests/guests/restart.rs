//! A reset of the machine.

use crate::pci::boot;
use crate::traffic;

#[test]
fn a_reboot_finds_a_card_that_was_just_switched_on() {
    let Some(mut machine) = boot("restart") else { return };
    traffic::lease_and_ping(&mut machine);
    let before = machine.overlay().report();
    assert_ne!((before["register.imr"], before["register.pstart"]), (0, 0));
    machine.type_line("reboot -f");
    machine.wait_for_shell();
    let after = machine.overlay().report();
    assert!(after["resets"] > before["resets"], "{after:?}");
    assert_eq!((after["register.imr"], after["register.pstart"]), (0, 0));
    machine.run("modprobe ne2k-pci");
    traffic::lease_and_ping(&mut machine);
    traffic::transfer(&mut machine, 1 << 20);
}
