//! Linux's `ne2k-pci` on the card of `slirpkit nic`, which QEMU has by vfio-user.

use crate::files;
use crate::machine::{Guest, Machine, Plan};
use crate::place::Place;
use crate::program::Program;
use crate::traffic;

/// A guest with a card that is served at `place`, and its driver loaded.
fn boot(test: &'static str, place: &Place) -> Option<Machine> {
    let plan = Plan::new(test).booting(Guest::Amd64);
    let mut machine = plan.with_vfio_user_card(&place.path("nic.sock")).start(test)?;
    machine.wait_for_shell();
    machine.run("modprobe ne2k-pci");
    Some(machine)
}

/// The program's card at a socket in `place`; `None`, which is said aloud, if it was not built.
fn serve(test: &str, place: &Place) -> Option<Program> {
    files::present(test, &[&files::slirpkit()])
        .then(|| Program::serve("nic", &place.path("nic.sock")))
}

#[test]
fn a_mebibyte_each_way_and_no_frame_is_lost() {
    let test = "vfio-transfer";
    let place = Place::new("vfio-transfer-program");
    let Some(program) = serve(test, &place) else { return };
    let Some(mut machine) = boot(test, &place) else { return };
    traffic::lease_and_ping(&mut machine);
    // An access takes some 20 microseconds: this is about 1 Mbit/s.
    for _ in 0..4 {
        traffic::transfer(&mut machine, 1 << 18);
    }
    machine.run("ip link set eth0 down");
    let (received, sent) = (machine.counter("rx_packets"), machine.counter("tx_packets"));
    assert_eq!((machine.counter("rx_errors"), machine.counter("tx_errors")), (0, 0));
    drop(machine);
    let counters = program.end();
    assert_eq!(
        (counters.count("card: stored"), counters.count("card: transmitted")),
        (received, sent)
    );
    assert_eq!(counters.count("card: no_room"), 0);
}

#[test]
fn a_guest_reloads_its_driver_and_reboots_and_another_one_follows() {
    let test = "vfio-restart";
    let place = Place::new("vfio-restart-program");
    let Some(_program) = serve(test, &place) else { return };
    let Some(mut machine) = boot(test, &place) else { return };
    traffic::lease_and_ping(&mut machine);
    machine.run("ip link set eth0 down");
    machine.run("ip link set eth0 up");
    traffic::lease_and_ping(&mut machine);
    machine.run("rmmod ne2k-pci");
    machine.run("modprobe ne2k-pci");
    traffic::lease_and_ping(&mut machine);
    machine.type_line("reboot -f");
    machine.wait_for_shell();
    machine.run("modprobe ne2k-pci");
    traffic::lease_and_ping(&mut machine);
    drop(machine);
    let Some(mut machine) = boot(test, &place) else { return };
    traffic::lease_and_ping(&mut machine);
}
