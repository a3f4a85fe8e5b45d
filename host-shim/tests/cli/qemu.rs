//! `slirpkit qemu`, with a test in the place of QEMU.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Child, ChildStderr, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::Place;
use crate::user::PROGRAM;

/// The program in service, and what it says.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 9>&1 >&2", PROGRAM, "qemu", "--ready-fd", "9", "-v"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        child.stdout.as_mut().unwrap().read_to_string(&mut ready).unwrap();
        assert_eq!(ready, "1");
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Waits for a line of stderr with `part` in it.
    fn expect(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "never said {part:?}");
        }
    }

    fn end(mut self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_guest_may_leave_and_come_back_and_a_second_is_turned_away() {
    let place = Place::new("stream");
    let socket = place.path("net.sock");
    let mut server = Server::start(&["--socket", &socket.display().to_string()]);
    server.expect("-netdev stream,id=n0,server=off,addr.type=unix,addr.path=");
    for _ in 0..3 {
        let guest = UnixStream::connect(&socket).unwrap();
        server.expect("a guest has connected");
        let mut second = UnixStream::connect(&socket).unwrap();
        server.expect("turned a second guest away");
        assert_eq!(second.read(&mut [0; 1]).unwrap(), 0);
        drop(guest);
        server.expect("closed");
    }
    server.end(Signal::SIGTERM);
    assert!(place.entries().is_empty());
}

/// Whether `haystack` has `needle` in it.
fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn one_capture_has_the_frames_of_every_guest() {
    let place = Place::new("captured");
    let (socket, file) = (place.path("net.sock"), place.path("out.pcap"));
    let arguments =
        ["--socket", &socket.display().to_string(), "--pcap", &file.display().to_string()];
    let mut server = Server::start(&arguments);
    let frames = [[0x11_u8; 60], [0x22; 60]];
    for frame in &frames {
        let mut guest = UnixStream::connect(&socket).unwrap();
        server.expect("a guest has connected");
        guest.write_all(&60_u32.to_be_bytes()).unwrap();
        guest.write_all(frame).unwrap();
        drop(guest);
        server.expect("closed");
    }
    server.end(Signal::SIGTERM);
    let capture = std::fs::read(&file).unwrap();
    assert!(frames.iter().all(|frame| contains(&capture, frame)));
}

#[test]
fn a_peer_that_does_not_speak_the_protocol_is_cut_off() {
    let place = Place::new("oversized");
    let socket = place.path("net.sock");
    let mut server = Server::start(&["--socket", &socket.display().to_string()]);
    let guest = UnixStream::connect(&socket).unwrap();
    (&guest).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    server.expect("not a QEMU stream socket?");
    assert_eq!((&guest).read(&mut [0; 1]).unwrap_or(0), 0);
    server.end(Signal::SIGINT);
}

#[test]
fn datagrams_go_to_the_peer_whenever_it_comes() {
    let place = Place::new("dgram");
    let (ours, theirs) = (place.path("ours"), place.path("theirs"));
    let arguments =
        ["--socket", &theirs.display().to_string(), "--dgram", &ours.display().to_string()];
    let mut server = Server::start(&arguments);
    server.expect("-netdev dgram,id=n0,local.type=unix,local.path=");
    let guest = UnixDatagram::bind(&ours).unwrap();
    assert_eq!(guest.send_to(&[0xff; 60], &theirs).unwrap(), 60);
    server.end(Signal::SIGTERM);
    drop(guest);
    assert_eq!(place.entries(), [std::path::PathBuf::from("ours")]);
}
