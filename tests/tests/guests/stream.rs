//! QEMU's own RTL8029AS, with the program `slirpkit` behind it by `-netdev stream`.

use crate::files;
use crate::machine::{Guest, Plan};
use crate::place::Place;
use crate::program::Program;
use crate::traffic;

#[test]
fn lease_ping_and_a_mebibyte_each_way() {
    let test = "stream";
    if !files::present(test, &[&files::slirpkit()]) {
        return;
    }
    let place = Place::new("stream-program");
    let socket = place.path("net.sock");
    let _program = Program::serve("qemu", &socket);
    let plan = Plan::new(test).booting(Guest::Amd64).with_qemus_card(&socket);
    let Some(mut machine) = plan.start(test) else { return };
    machine.wait_for_shell();
    machine.run("modprobe ne2k-pci");
    traffic::lease_and_ping(&mut machine);
    traffic::transfer(&mut machine, 1 << 20);
}
