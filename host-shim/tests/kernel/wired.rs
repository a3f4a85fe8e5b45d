//! A guest behind a wire: a namespace, a relay, and `slirpkit qemu` at its other end.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};

use crate::guest::{Counters, ROUTER};
use crate::namespace::Namespace;
use crate::netstat::{self, Netstat};
use crate::place::Place;
use crate::relay::{Conditions, Relay, Tally, tap};
use crate::user::PROGRAM;

/// The first lease, which the guest takes without asking.
const ADDRESS: &str = "10.0.2.15";

/// The guest, as long as this value.
pub(crate) struct Wired {
    pub(crate) guest: Namespace,
    relay: Relay,
    program: Child,
    _place: Place,
}

/// What everybody counted.
pub(crate) struct Totals {
    pub(crate) program: Counters,
    pub(crate) guest: Netstat,
    /// Frames of the guest, and for it.
    pub(crate) wire: [Tally; 2],
}

impl Wired {
    /// A guest at the end of a wire.
    pub(crate) fn new(name: &str, mtu: u16, conditions: &Conditions) -> Self {
        let (guest, place) = (Namespace::new(), Place::new(name));
        let tap = tap(&guest, ADDRESS, mtu);
        guest.script(&format!(
            "ip route add default via {ROUTER}
             ip neigh add {ROUTER} lladdr 52:55:0a:00:02:02 dev wire"
        ));
        let (theirs, ours) = (place.path("program"), place.path("wire"));
        let socket = UnixDatagram::bind(&ours).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"exec "$0" "$@" 8<&0 9>&1"#, PROGRAM, "qemu", "--host-loopback"])
            .args(["--stats", "--ready-fd", "9", "--exit-fd", "8", "--mtu", &mtu.to_string()])
            .arg("--socket")
            .arg(&theirs)
            .arg("--dgram")
            .arg(&ours);
        let mut program = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        program.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        socket.connect(&theirs).unwrap();
        socket.set_nonblocking(true).unwrap();
        let relay = Relay::new([tap, File::from(OwnedFd::from(socket))], conditions);
        Self { guest, relay, program, _place: place }
    }

    /// Ends it, and returns what was counted.
    pub(crate) fn end(mut self) -> Totals {
        let guest = Netstat::parse(&self.guest.script(netstat::SCRIPT));
        drop(self.program.stdin.take());
        let mut text = String::new();
        self.program.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.program.wait().unwrap().success(), "{text}");
        Totals { program: Counters(text), guest, wire: self.relay.end() }
    }
}
