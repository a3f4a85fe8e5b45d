//! Linux's `ne` on an NE2000 at port 300h with interrupt 10.

use crate::machine::{Guest, Machine, Plan, Slot};
use crate::{filter, flood, pci, traffic};

fn boot(test: &'static str, module: &str) -> Option<Machine> {
    let mut machine = Plan::new(test).booting(Guest::I386).with_card(Slot::Isa).start(test)?;
    machine.wait_for_shell();
    machine.run(module);
    Some(machine)
}

#[test]
fn lease_ping_and_sixteen_mebibytes_each_way() {
    let Some(mut machine) = boot("isa-transfer", "modprobe ne io=0x300 irq=10") else { return };
    traffic::lease_and_ping(&mut machine);
    traffic::transfer(&mut machine, 16 << 20);
    traffic::assert_nothing_lost(&mut machine);
}

/// Without being told, the driver makes the card interrupt, and sees which line that is. Linux lets
/// a driver do so only for lines that none has used before.
#[test]
fn an_interface_that_goes_down_a_flood_and_filters_are_as_on_the_pci_bus() {
    let Some(mut machine) = boot("isa-rest", "modprobe ne io=0x300 irq=10") else { return };
    pci::down_and_up(&mut machine);
    flood::standing_still(&mut machine);
    // Last, since the kernel counts frames of a protocol that it does not know as dropped.
    filter::promiscuous(&mut machine);
    filter::group(&mut machine);
}

#[test]
fn a_driver_finds_the_interrupt_is_unloaded_and_loaded_again() {
    let Some(mut machine) = boot("isa-reload", "modprobe ne io=0x300") else { return };
    for _ in 0..3 {
        traffic::lease_and_ping(&mut machine);
        let interrupts = machine.run("grep NE2000 /proc/interrupts");
        assert!(interrupts.trim_start().starts_with("10:"), "{interrupts}");
        machine.run("rmmod ne");
        assert_ne!(machine.try_run("ip link show eth0").0, 0);
        machine.run("modprobe ne io=0x300 irq=10");
    }
    traffic::lease_and_ping(&mut machine);
    traffic::transfer(&mut machine, 1 << 20);
}
