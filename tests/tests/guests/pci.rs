//! Linux's `ne2k-pci` on an RTL8029AS.

use crate::machine::{Guest, Machine, Plan, Slot};
use crate::traffic;

const TRANSFER: u64 = 16 << 20;

/// A guest that has booted, with its driver loaded.
pub(crate) fn boot(test: &'static str) -> Option<Machine> {
    let mut machine = Plan::new(test).booting(Guest::Amd64).with_card(Slot::Pci).start(test)?;
    machine.wait_for_shell();
    machine.run("modprobe ne2k-pci");
    Some(machine)
}

#[test]
fn lease_ping_and_sixteen_mebibytes_each_way() {
    let Some(mut machine) = boot("pci-transfer") else { return };
    traffic::lease_and_ping(&mut machine);
    traffic::transfer(&mut machine, TRANSFER);
    traffic::assert_nothing_lost(&mut machine);
}

/// An interface goes down and comes up again, some times over, and works after that.
pub(crate) fn down_and_up(machine: &mut Machine) {
    traffic::lease_and_ping(machine);
    for _ in 0..3 {
        machine.run("ip link set eth0 down");
        assert_eq!(machine.overlay().report()["register.imr"], 0);
        let (status, text) = machine.try_run("ping -c 1 -W 1 10.0.2.2");
        assert_ne!(status, 0, "{text}");
        machine.run("ip link set eth0 up");
        traffic::lease_and_ping(machine);
    }
    traffic::transfer(machine, 1 << 20);
    traffic::assert_nothing_lost(machine);
}

#[test]
fn an_interface_goes_down_and_comes_up_again() {
    let Some(mut machine) = boot("pci-down") else { return };
    down_and_up(&mut machine);
}

#[test]
fn a_driver_is_unloaded_and_loaded_again() {
    let Some(mut machine) = boot("pci-reload") else { return };
    for _ in 0..3 {
        traffic::lease_and_ping(&mut machine);
        machine.run("rmmod ne2k-pci");
        assert_ne!(machine.try_run("ip link show eth0").0, 0);
        machine.run("modprobe ne2k-pci");
    }
    traffic::lease_and_ping(&mut machine);
    traffic::transfer(&mut machine, 1 << 20);
}
