//! Linux's own TCP at the end of a wire that takes a few milliseconds, loses frames, and lets some
//! overtake others. `SLIRPKIT_WIRE_SEED` chooses another seed than the usual one.

use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use host_shim::clock;

use crate::guest::{ROUTER, may_enter};
use crate::relay::{Conditions, Tally};
use crate::server::{Server, connect};
use crate::wired::{Totals, Wired};
use crate::{netstat, pattern};

const DELAY: Duration = Duration::from_millis(2);

/// What a guest without SACK, whose timeouts double without end, may take for one of its gaps.
const PATIENCE: Duration = Duration::from_secs(600);

/// A transfer each way.
#[derive(Clone, Copy)]
struct Case {
    mebibytes: u64,
    mtu: u16,
    /// How many of a thousand frames get lost. If any do, a few come late, too.
    lost: usize,
    /// Whether the guest has SACK.
    sack: bool,
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

fn seed() -> u64 {
    number("SLIRPKIT_WIRE_SEED", 1)
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Takes the bytes that a client sends, then gives it as many.
fn serve(client: TcpStream, length: u64) {
    let mut client = patient(client);
    pattern::receive(&mut client, length).unwrap();
    client.write_all(b"!").unwrap();
    client.read_exact(&mut [0]).unwrap();
    pattern::send(&mut client, length).unwrap();
}

/// Moves the bytes up and down and compares each; returns how long that took.
fn transfer(port: u16, length: u64) -> [Duration; 2] {
    let mut stream = patient(connect(ROUTER, port).unwrap());
    let start = clock::now();
    pattern::send(&mut stream, length).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let half = clock::now();
    stream.write_all(b"?").unwrap();
    pattern::receive(&mut stream, length).unwrap();
    [half.since(start), clock::now().since(half)]
}

impl Case {
    fn run(&self) -> Totals {
        let length = self.mebibytes << 20;
        let server = Server::tcp(move |client| serve(client, length));
        let late = if self.lost > 0 { 10 } else { 0 };
        let conditions = Conditions { delay: DELAY, lost: self.lost, late, seed: seed() };
        let name = format!("lossy-{}-{}-{}", self.mtu, self.lost, self.sack);
        let wired = Wired::new(&name, self.mtu, &conditions);
        wired.guest.script(&format!(
            "cd /proc/sys/net/ipv4; echo {} >tcp_sack; echo reno >tcp_congestion_control
             {}",
            u8::from(self.sack),
            if self.lost == 0 { netstat::WITHOUT_TIMERS } else { "" }
        ));
        let took = wired.guest.enter(|| transfer(server.port(), length));
        drop(server);
        let totals = wired.end();
        self.print(&totals, took);
        totals
    }

    /// What took how long is for a reader, and no matter of passing.
    fn print(&self, Totals { program, guest, wire }: &Totals, [up, down]: [Duration; 2]) {
        let lost = self.lost as f64 / 10.0;
        let head = format!(
            "MTU {}, {lost} % lost, SACK {}, {} MiB, seed {}",
            self.mtu,
            self.sack,
            self.mebibytes,
            seed()
        );
        let up = format!(
            "up: {:.2} s, {} frames lost, {} segments again, {} recoveries, {} timeouts",
            up.as_secs_f64(),
            wire[0].lost,
            guest.get("TcpRetransSegs"),
            guest.get("TcpExtTCPSackRecovery") + guest.get("TcpExtTCPRenoRecovery"),
            guest.get("TcpExtTCPTimeouts")
        );
        let down = format!(
            "down: {:.2} s, {} frames lost, {} bytes again, {} recoveries, {} timeouts",
            down.as_secs_f64(),
            wire[1].lost,
            program.get("tcp_bytes_retransmitted"),
            program.get("tcp_fast_retransmits"),
            program.get("tcp_timeouts")
        );
        io::stderr().write_all(format!("{head}\n  {up}\n  {down}\n").as_bytes()).unwrap();
    }
}

#[test]
fn without_loss_nothing_is_sent_twice() {
    if !may_enter("lossless") {
        return;
    }
    for mtu in [1500, 65_520] {
        let Totals { program, guest, wire } = Case { mebibytes: 8, mtu, lost: 0, sack: true }.run();
        assert!(wire.iter().all(|way| way.lost == 0), "{wire:?}");
        // A busy machine may take its time for the first of all.
        assert_eq!(guest.get("TcpRetransSegs"), guest.get("TcpExtTCPSynRetrans"), "{guest:?}");
        let again = ["tcp_fast_retransmits", "tcp_bytes_stored", "tcp_duplicate_acks_out"];
        for name in [&again[..], &["dropped: tcp gap", "dropped: tcp duplicate"]].concat() {
            assert_eq!(program.get(name), 0, "{name}: {}", program.0);
        }
    }
}

/// What is lost is sent again, and not much else.
fn check_selective(case: Case) {
    let Totals { program, guest, wire: [up, down] } = case.run();
    let again = guest.get("TcpRetransSegs");
    assert!(again <= allowance(up), "{again} segments again: {up:?}, {guest:?}");
    let recoveries = guest.get("TcpExtTCPSackRecovery");
    let timeouts = guest.get("TcpExtTCPTimeouts");
    assert!(recoveries > 0 && timeouts <= recoveries / 6 + 3, "{guest:?}");

    let again = program.get("tcp_bytes_retransmitted") / u64::from(case.mtu);
    assert!(again <= allowance(down), "{again} segments again: {down:?}, {}", program.0);
    let recoveries = program.get("tcp_fast_retransmits");
    let timeouts = program.get("tcp_timeouts");
    assert!(recoveries > 0 && timeouts <= recoveries / 6 + 3, "{}", program.0);
    assert_eq!(program.get("tcp_bytes_evicted"), 0, "{}", program.0);
}

/// How often something may be sent again: all that was lost or late, half of that by mistake, and
/// some at the beginning, which finds out what the wire takes.
fn allowance(way: Tally) -> u64 {
    100 + (way.lost + way.frames / 100) * 3 / 2
}

#[test]
fn losses_are_repaired_by_sack_rather_than_by_timeouts() {
    if !may_enter("lossy") {
        return;
    }
    for lost in [10, 50] {
        check_selective(Case { mebibytes: 8, mtu: 1500, lost, sack: true });
    }
}

/// Without SACK, or with segments of which there are few, every byte arrives all the same.
#[test]
fn losses_are_repaired_without_sack_and_in_large_segments() {
    if !may_enter("lossy-others") {
        return;
    }
    for (mtu, lost, sack) in [(1500, 10, false), (65_520, 50, false), (65_520, 50, true)] {
        let Totals { program, guest, wire } = Case { mebibytes: 8, mtu, lost, sack }.run();
        assert!(wire.iter().all(|way| way.lost > 0), "{wire:?}");
        assert!(guest.get("TcpRetransSegs") > 0);
        assert!(program.get("tcp_bytes_retransmitted") > 0);
    }
}

#[test]
#[ignore = "takes half an hour: `.ci/run relay`"]
fn table() {
    let mebibytes = number("SLIRPKIT_WIRE_MIB", 100);
    for mtu in [65_520, 1500] {
        for sack in [true, false] {
            for lost in [0, 10, 50] {
                Case { mebibytes, mtu, lost, sack }.run();
            }
        }
    }
}
