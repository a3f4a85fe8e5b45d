//! A machine of QEMU's, and what goes over its serial port.

use core::time::Duration;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::files;
use crate::overlay::Overlay;
use crate::place::Place;

/// Nothing here waits longer for a guest to say something.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the kernels are told: no messages, no waiting before a reboot, and no work that only
/// hardware needs, which is slow under emulation.
pub(crate) const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 nokaslr tsc=reliable mitigations=off \
    random.trust_cpu=on cryptomgr.notests";

/// Guests: a Linux with a shell on its serial port.
#[derive(Clone, Copy)]
pub(crate) enum Guest {
    Amd64,
    I386,
}

impl Guest {
    /// Its `kernel` or `initrd`.
    pub(crate) fn file(self, name: &str) -> PathBuf {
        let architecture = match self {
            Self::Amd64 => "amd64",
            Self::I386 => "i386",
        };
        files::of_guest(architecture, name)
    }

    const fn processor(self) -> &'static str {
        match self {
            Self::Amd64 => "qemu64",
            Self::I386 => "qemu32",
        }
    }
}

/// Where a card of ours is put.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    /// An RTL8029AS on the PCI bus.
    Pci,
    /// An NE2000 at port 300h with interrupt 10.
    Isa,
}

/// A machine that is not there yet.
pub(crate) struct Plan {
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    needed: Vec<PathBuf>,
    place: Place,
    has_overlay: bool,
}

impl Plan {
    /// A machine with a processor, memory and a serial port; `name` is the test's.
    pub(crate) fn new(name: &'static str) -> Self {
        let place = Place::new(name);
        let qmp = format!("unix:{},server=on,wait=off", place.path("qmp").display());
        let mut plan = Self {
            arguments: vec![],
            environment: vec![],
            needed: vec![],
            place,
            has_overlay: false,
        };
        plan.needed.push(files::qemu());
        plan.with(&["-accel", "tcg", "-m", "256", "-display", "none", "-nodefaults"]).with(&[
            "-no-user-config",
            "-serial",
            "stdio",
            "-qmp",
            &qmp,
        ])
    }

    /// With further arguments of QEMU's.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    /// That boots this guest.
    pub(crate) fn booting(mut self, guest: Guest) -> Self {
        for (option, name) in [("-kernel", "kernel"), ("-initrd", "initrd")] {
            let file = guest.file(name);
            self.arguments.extend([OsString::from(option), file.clone().into()]);
            self.needed.push(file);
        }
        self.with(&["-cpu", guest.processor(), "-append", KERNEL_ARGUMENTS])
    }

    /// With a card of ours, and the NAT behind it, in QEMU's process.
    pub(crate) fn with_card(self, slot: Slot) -> Self {
        self.with_card_as(slot, "romfile=")
    }

    /// The same with another property of the device that gives the place on the PCI bus.
    fn with_card_as(mut self, slot: Slot, property: &str) -> Self {
        let place = match slot {
            Slot::Pci => "pci:card",
            Slot::Isa => "isa:300:10",
        };
        self.needed.push(files::overlay());
        self.has_overlay = true;
        let preload =
            if std::env::var_os("SLIRPKIT_QEMU").is_some() { "LD_PRELOAD" } else { "QEMU_PRELOAD" };
        self.environment.push((preload, files::overlay().into()));
        self.environment.push(("SLIRPKIT_OVERLAY", place.into()));
        self.environment.push(("SLIRPKIT_CONTROL", self.place.path("control").into()));
        match slot {
            Slot::Pci => self.with(&["-device", &format!("ne2k_pci,id=card,{property}")]),
            Slot::Isa => self,
        }
    }

    /// With a card of ours on the PCI bus, by whose ROM it boots what is at `url`: this guest.
    pub(crate) fn booting_by_network(mut self, guest: Guest, url: &str) -> Self {
        self.needed.extend(["kernel", "initrd"].map(|name| guest.file(name)));
        self.environment.push(("SLIRPKIT_BOOTFILE", url.into()));
        self.with_card_as(Slot::Pci, "bootindex=0").with(&["-cpu", guest.processor()])
    }

    /// With QEMU's own RTL8029AS, and `slirpkit qemu` or another NAT at this socket behind it.
    pub(crate) fn with_qemus_card(self, socket: &std::path::Path) -> Self {
        let netdev =
            format!("stream,id=net,server=off,addr.type=unix,addr.path={}", socket.display());
        self.with(&["-netdev", &netdev, "-device", "ne2k_pci,netdev=net,romfile="])
    }

    /// With the card of `slirpkit nic` at this socket.
    pub(crate) fn with_vfio_user_card(self, socket: &std::path::Path) -> Self {
        let socket = format!(r#"{{"type":"unix","path":"{}"}}"#, socket.display());
        let device = format!(r#"{{"driver":"vfio-user-pci","rombar":0,"socket":{socket}}}"#);
        self.with(&["-device", &device])
    }

    /// Starts it; `None`, which is said aloud, if something that it takes is missing.
    pub(crate) fn start(self, test: &str) -> Option<Machine> {
        let needed: Vec<_> = self.needed.iter().map(PathBuf::as_path).collect();
        files::present(test, &needed).then(|| self.launch())
    }

    fn launch(self) -> Machine {
        let mut child = Command::new(files::qemu())
            .args(&self.arguments)
            .envs(self.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keyboard = child.stdin.take().unwrap();
        let screen = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut screen = BufReader::new(screen);
            let mut line = Vec::new();
            while screen.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                if sender.send(text).is_err() {
                    break;
                }
                line.clear();
            }
        });
        let overlay = self.has_overlay.then(|| Overlay::at(self.place.path("control")));
        Machine { child, keyboard, lines, overlay, place: self.place }
    }
}

/// A machine that runs, until it is dropped.
pub(crate) struct Machine {
    child: Child,
    keyboard: ChildStdin,
    lines: Receiver<String>,
    overlay: Option<Overlay>,
    place: Place,
}

impl Machine {
    /// Waits for a line with `part` in it, and returns the lines up to and with it.
    pub(crate) fn wait_for(&mut self, part: &str) -> Vec<String> {
        self.wait_until(part, |line| line.contains(part))
    }

    fn wait_until(&mut self, what: &str, found: impl Fn(&str) -> bool) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("never said {what:?}, but this:\n{}", seen.join("\n"))
            };
            seen.push(line);
            if seen.last().is_some_and(|line| found(line)) {
                return seen;
            }
        }
    }

    /// Waits until the guest has booted.
    pub(crate) fn wait_for_shell(&mut self) {
        self.wait_for("@ready");
    }

    /// Types a command into the guest's shell.
    pub(crate) fn type_line(&mut self, command: &str) {
        writeln!(self.keyboard, "{command}").unwrap();
    }

    /// Runs a command in the guest's shell: its exit status, and what it printed.
    pub(crate) fn try_run(&mut self, command: &str) -> (i32, String) {
        self.type_line(command);
        let status = |line: &str| line.strip_prefix('@')?.parse::<i32>().ok();
        let mut lines = self.wait_until(command, |line| status(line).is_some());
        let status = lines.pop().as_deref().and_then(status).unwrap();
        (status, lines.join("\n").trim().to_owned())
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(crate) fn run(&mut self, command: &str) -> String {
        let (status, text) = self.try_run(command);
        assert_eq!(status, 0, "{command}: {text}");
        text
    }

    /// A counter of the guest's driver, by its name in /sys.
    pub(crate) fn counter(&mut self, name: &str) -> u64 {
        self.run(&format!("counter {name}")).parse().unwrap()
    }

    /// Tells QEMU something without arguments, as `stop` or `cont`, and waits until it is done.
    pub(crate) fn tell_qemu(&self, command: &str) {
        let stream = UnixStream::connect(self.place.path("qmp")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answers = BufReader::new(&stream);
        for command in ["qmp_capabilities", command] {
            (&stream).write_all(format!("{{\"execute\":\"{command}\"}}\n").as_bytes()).unwrap();
            let mut answer = String::new();
            // The greeting and events come in between.
            while !answer.contains("\"return\"") {
                assert!(!answer.contains("\"error\""), "{command}: {answer}");
                answer.clear();
                assert!(answers.read_line(&mut answer).unwrap() > 0, "{command}");
            }
        }
    }

    /// The card and the NAT in QEMU's process.
    pub(crate) fn overlay(&self) -> &Overlay {
        self.overlay.as_ref().unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
