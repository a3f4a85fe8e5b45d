//! QEMU's own RTL8029AS, with the program `slirpkit` behind it by `-netdev stream`.

use std::process::{Child, Command, Stdio};

use crate::files;
use crate::machine::{Guest, Plan};
use crate::place::Place;
use crate::traffic;

/// `slirpkit qemu` at a socket.
struct Program(Child);

impl Program {
    fn serve(socket: &std::path::Path) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" qemu --host-loopback --ready-fd 9 --socket \"$1\" 9>&1 >&2"])
            .args([files::slirpkit(), socket.to_owned()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ready = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
        assert_eq!(ready, "1");
        Self(child)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn lease_ping_and_a_mebibyte_each_way() {
    let test = "stream";
    if !files::present(test, &[&files::slirpkit()]) {
        return;
    }
    let place = Place::new("stream-program");
    let socket = place.path("net.sock");
    let _program = Program::serve(&socket);
    let plan = Plan::new(test).booting(Guest::Amd64).with_qemus_card(&socket);
    let Some(mut machine) = plan.start(test) else { return };
    machine.wait_for_shell();
    machine.run("modprobe ne2k-pci");
    traffic::lease_and_ping(&mut machine);
    traffic::transfer(&mut machine, 1 << 20);
}
