//! QEMU's `ne2k_isa` without a guest: its registers by the qtest protocol, its network by datagrams.

use core::sync::atomic::{AtomicU32, Ordering};
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use ne2000::Width;

use crate::card::Card;

/// Where the card is.
const BASE: u16 = 0x300;
/// Its interrupt, as an input of the I/O APIC.
const IRQ: &str = "5";

/// All that the firmware does.
const HLT: u8 = 0xF4;

/// A QEMU with nothing but the card in it.
pub(crate) struct Qemu {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    network: UnixDatagram,
    place: Place,
    irq_level: bool,
}

/// A folder for sockets and firmware.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("slirpkit-oracle-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a folder for sockets and firmware");
        let place = Self(path);
        fs::write(place.firmware(), [HLT; 0x1_0000]).expect("a file of firmware");
        place
    }

    fn firmware(&self) -> PathBuf {
        self.0.join("firmware")
    }

    fn card(&self) -> PathBuf {
        self.0.join("card")
    }

    fn network(&self) -> PathBuf {
        self.0.join("network")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Qemu {
    /// Starts `program`.
    pub(crate) fn start(program: &Path, mac: [u8; 6]) -> Self {
        let place = Place::new();
        let network = UnixDatagram::bind(place.network()).expect("the network's socket");
        network.set_nonblocking(true).expect("a socket that does not block");
        let netdev = format!(
            "dgram,id=n0,local.type=unix,local.path={},remote.type=unix,remote.path={}",
            place.card().display(),
            place.network().display()
        );
        let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
        let device = format!("ne2k_isa,netdev=n0,iobase={BASE:#x},irq={IRQ},mac={mac}");
        let mut child = Command::new(program)
            .args(["-accel", "tcg", "-machine", "pc", "-nodefaults", "-display", "none"])
            .arg("-bios")
            .arg(place.firmware())
            .args(["-qtest", "stdio", "-qtest-log", "/dev/null"])
            .args(["-netdev", &netdev, "-device", &device])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a QEMU that starts");
        let commands = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut qemu = Self { child, commands, answers, network, place, irq_level: false };
        qemu.command("irq_intercept_in ioapic");
        qemu
    }

    /// One command, and what is answered besides `OK`. Interrupts are told in front of the answer.
    fn command(&mut self, command: &str) -> String {
        self.commands.write_all(format!("{command}\n").as_bytes()).expect("a QEMU that lives");
        loop {
            let mut line = String::new();
            self.answers.read_line(&mut line).expect("an answer");
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match *words {
                ["IRQ", direction, IRQ] => self.irq_level = direction == "raise",
                ["IRQ", ..] => {}
                ["OK"] => return String::new(),
                ["OK", value] => return value.to_owned(),
                _ => panic!("{command}: {line}"),
            }
        }
    }
}

const fn suffix(width: Width) -> char {
    match width {
        Width::Byte => 'b',
        Width::Word => 'w',
        Width::Dword => 'l',
    }
}

impl Card for Qemu {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        let port = BASE + u16::from(offset);
        let answer = self.command(&format!("in{} {port:#x}", suffix(width)));
        let digits = answer.strip_prefix("0x").expect("a number");
        u32::from_str_radix(digits, 16).expect("a number of 32 bits")
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        let port = BASE + u16::from(offset);
        self.command(&format!("out{} {port:#x} {value:#x}", suffix(width)));
    }

    fn irq_level(&mut self) -> bool {
        self.irq_level
    }

    fn receive(&mut self, frame: &[u8]) {
        self.network.send_to(frame, self.place.card()).expect("a socket of the card's");
        // QEMU's loop looks at all its descriptors before it serves any, so that the frame is taken
        // in the turn of the first command at the latest, and all is over in that of the second.
        self.command("endianness");
        self.command("endianness");
    }

    fn sent(&mut self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 0x1_0000];
        match self.network.recv(&mut frame) {
            Ok(len) => {
                frame.truncate(len);
                Some(frame)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("the network: {error}"),
        }
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
