//! More than the guest takes, while it takes nothing.

use core::net::SocketAddr;
use core::time::Duration;
use std::net::UdpSocket;
use std::sync::{Arc, Barrier};

use crate::machine::Machine;
use crate::pattern;
use crate::pci::boot;
use crate::server::Server;
use crate::traffic;

/// Datagrams of a flood. The ring holds eight of them, and the kernel's usual buffer the rest.
const DATAGRAMS: u64 = 64;
/// Their payload: as much as fits in a frame.
const LENGTH: usize = 1472;
const PATIENCE: Duration = Duration::from_secs(30);

/// A socket of the host, and the address at which it reaches the guest.
fn reach(machine: &mut Machine) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let port = socket.local_addr().unwrap().port();
    machine.run(&format!("syslogd -R 10.0.2.2:{port}; logger here"));
    let (_, guest) = socket.recv_from(&mut [0; 1500]).unwrap();
    (socket, guest)
}

/// Waits until the NAT has sent this many datagrams to the guest, and the driver has had all that
/// was stored.
fn settle(machine: &mut Machine, datagrams: u64) {
    for _ in 0..1000 {
        if machine.overlay().report()["nat.datagrams_out"] >= datagrams {
            break;
        }
        machine.run("usleep 10000");
    }
    assert_eq!(machine.overlay().report()["nat.datagrams_out"], datagrams);
    traffic::assert_nothing_lost(machine);
}

/// A flood for a guest that stands still waits for it.
pub(crate) fn standing_still(machine: &mut Machine) {
    traffic::lease_and_ping(machine);
    let (socket, guest) = reach(machine);
    machine.tell_qemu("stop");
    let before = machine.overlay().report();
    for _ in 0..DATAGRAMS {
        socket.send_to(&[0x5a; LENGTH], guest).unwrap();
    }
    // The ring is full of what came first, and the rest waits in the socket.
    let full = loop {
        let report = machine.overlay().report();
        if report["card.stored"] > before["card.stored"] {
            break report;
        }
    };
    assert!(full["card.stored"] - before["card.stored"] <= 8, "{full:?}");
    assert_eq!(full["accesses"], before["accesses"]);
    machine.tell_qemu("cont");
    settle(machine, before["nat.datagrams_out"] + DATAGRAMS);
    traffic::ping(machine);
    traffic::transfer(machine, 1 << 20);
    traffic::assert_nothing_lost(machine);
}

#[test]
fn a_flood_for_a_guest_that_stands_still_waits_for_it() {
    let Some(mut machine) = boot("flood-still") else { return };
    standing_still(&mut machine);
}

/// The guest's program does not read, while its driver goes on: its window closes.
#[test]
fn a_program_that_stands_still_gets_all_of_its_download() {
    const LENGTH: u64 = 4 << 20;
    let Some(mut machine) = boot("flood-program") else { return };
    traffic::lease_and_ping(&mut machine);
    let gate = Arc::new(Barrier::new(2));
    let theirs = Arc::clone(&gate);
    let source = Server::tcp(move |mut client| {
        theirs.wait();
        theirs.wait();
        pattern::send(&mut client, LENGTH).unwrap();
    });
    machine.run(&format!("nc 10.0.2.2 {} >/tmp/data & program=$!", source.port()));
    gate.wait();
    machine.run("kill -STOP $program");
    gate.wait();
    assert_eq!(machine.run("sleep 1; wc -c </tmp/data"), "0");
    assert!(machine.overlay().report()["nat.tcp_bytes_out"] < LENGTH);
    traffic::ping(&mut machine);
    machine.run("kill -CONT $program; wait $program");
    let sum = machine.run("sha256sum </tmp/data");
    assert_eq!(sum[..64], pattern::sha256(|to| pattern::send(&mut { to }, LENGTH)));
    traffic::assert_nothing_lost(&mut machine);
}
