//! `slirpkit qemu`, with a test in the place of QEMU.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixDatagram, UnixStream};

use nix::sys::signal::Signal;

use crate::place::Place;
use crate::server::Server;

#[test]
fn a_guest_may_leave_and_come_back_and_a_second_is_turned_away() {
    let place = Place::new("stream");
    let socket = place.path("net.sock");
    let mut server = Server::start("qemu", &["--socket", &socket.display().to_string()]);
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
    let mut server = Server::start("qemu", &arguments);
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
    let mut server = Server::start("qemu", &["--socket", &socket.display().to_string()]);
    let guest = UnixStream::connect(&socket).unwrap();
    server.expect("a guest has connected");
    (&guest).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    server.expect("dropped the guest: the guest's end announced a frame of 1195725856 bytes");
    assert_eq!((&guest).read(&mut [0; 1]).unwrap_or(0), 0);
    server.end(Signal::SIGINT);
}

#[test]
fn datagrams_go_to_the_peer_whenever_it_comes() {
    let place = Place::new("dgram");
    let (ours, theirs) = (place.path("ours"), place.path("theirs"));
    let arguments =
        ["--socket", &theirs.display().to_string(), "--dgram", &ours.display().to_string()];
    let mut server = Server::start("qemu", &arguments);
    server.expect("-netdev dgram,id=n0,local.type=unix,local.path=");
    let guest = UnixDatagram::bind(&ours).unwrap();
    assert_eq!(guest.send_to(&[0xff; 60], &theirs).unwrap(), 60);
    server.end(Signal::SIGTERM);
    drop(guest);
    assert_eq!(place.entries(), [std::path::PathBuf::from("ours")]);
}

/// A guest whose flows have taken all descriptors may leave and come back, and a second one is
/// turned away rather than announced without end.
#[test]
fn guests_come_and_go_when_there_is_no_descriptor_left() {
    let place = Place::new("starved");
    let socket = place.path("net.sock");
    let arguments = ["--host-loopback", "--socket", &socket.display().to_string()];
    let mut server = Server::start_after("ulimit -n 20", "qemu", &arguments);
    for _ in 0..2 {
        let mut guest = UnixStream::connect(&socket).unwrap();
        server.expect("a guest has connected");
        (4000..4040).for_each(|port| send_frame(&mut guest, &datagram_from(port)));
        send_frame(&mut guest, &who_has_the_router());
        // Once this is answered all before it has been read.
        while receive_frame(&mut guest)[12..14] != ARP {}
        let mut second = UnixStream::connect(&socket).unwrap();
        server.expect("turned a second guest away");
        assert_eq!(second.read(&mut [0; 1]).unwrap_or(0), 0);
        drop(guest);
        server.expect("closed");
    }
    server.end(Signal::SIGTERM);
}

const ROUTER_MAC: [u8; 6] = [0x52, 0x55, 10, 0, 2, 2];
const GUEST_MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const ROUTER: [u8; 4] = [10, 0, 2, 2];
const GUEST: [u8; 4] = [10, 0, 2, 15];
const ARP: [u8; 2] = [8, 6];
const IPV4: [u8; 2] = [8, 0];

fn send_frame(guest: &mut UnixStream, frame: &[u8]) {
    let length = u32::try_from(frame.len()).unwrap();
    guest.write_all(&[&length.to_be_bytes(), frame].concat()).unwrap();
}

fn receive_frame(guest: &mut UnixStream) -> Vec<u8> {
    let mut length = [0; 4];
    guest.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    guest.read_exact(&mut frame).unwrap();
    frame
}

/// An empty UDP datagram to the router, without a UDP checksum (RFC 768).
fn datagram_from(port: u16) -> Vec<u8> {
    let mut ip = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 2, 15, 10, 0, 2, 2];
    let sum: u32 = ip.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let folded = u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    ip[10..12].copy_from_slice(&(!folded).to_be_bytes());
    let [high, low] = port.to_be_bytes();
    let udp = [high, low, 0, 9, 0, 8, 0, 0];
    [&ROUTER_MAC[..], &GUEST_MAC, &IPV4, &ip, &udp].concat()
}

fn who_has_the_router() -> Vec<u8> {
    let header = [0, 1, 8, 0, 6, 4, 0, 1];
    [&[0xff; 6][..], &GUEST_MAC, &ARP, &header, &GUEST_MAC, &GUEST, &[0; 6], &ROUTER].concat()
}
