//! What every driver must be able to do.

use std::io::{Read as _, Write as _};

use crate::machine::Machine;
use crate::pattern;
use crate::server::Server;

/// Errors that the guest's driver counts.
const ERRORS: [&str; 6] = [
    "rx_errors",
    "rx_dropped",
    "rx_over_errors",
    "rx_missed_errors",
    "rx_fifo_errors",
    "tx_errors",
];

/// Gets an address by DHCP, and pings the router.
pub(crate) fn lease_and_ping(machine: &mut Machine) {
    let leased = machine.run("lease");
    let expected = "ip=10.0.2.15 router=10.0.2.2 dns=10.0.2.3 server=10.0.2.2";
    assert!(leased.contains(expected), "{leased}");
    ping(machine);
}

/// Pings the router, in frames of the shortest length and of the longest.
pub(crate) fn ping(machine: &mut Machine) {
    for size in [0, 1472] {
        let text = machine.run(&format!("ping -c 3 -i 0.1 -W 10 -s {size} 10.0.2.2"));
        assert!(text.contains("3 packets transmitted, 3 packets received"), "{text}");
    }
}

/// Downloads this many bytes from a server of the host and uploads them to another one; each must
/// arrive as it was.
pub(crate) fn transfer(machine: &mut Machine, length: u64) {
    let source = Server::tcp(move |mut client| pattern::send(&mut client, length).unwrap());
    let sink = Server::tcp(move |mut client| {
        pattern::receive(&mut client, length).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "more than was sent");
        client.write_all(b"all of it\n").unwrap();
    });
    let sum = machine.run(&format!("download {} | tee /tmp/data | sha256sum", source.port()));
    assert_eq!(sum[..64], pattern::sha256(|to| pattern::send(&mut { to }, length)));
    assert_eq!(machine.run(&format!("upload {} /tmp/data", sink.port())), "all of it");
    machine.run("rm /tmp/data");
}

/// Says how it went: the driver saw every frame that the card stored, and no error; the card
/// refused none, and the NAT sent nothing twice but the byte of each zero-window probe, and what a
/// guest without a CPU did not answer in time.
pub(crate) fn assert_nothing_lost(machine: &mut Machine) {
    for error in ERRORS {
        assert_eq!(machine.counter(error), 0, "{error}");
    }
    let (received, sent) = (machine.counter("rx_packets"), machine.counter("tx_packets"));
    let report = machine.overlay().report();
    assert_eq!((report["card.stored"], report["card.transmitted"]), (received, sent), "{report:?}");
    let clean = ["card.no_room", "card.stopped", "oversize", "nat.tcp_fast_retransmits"];
    for counter in clean {
        assert_eq!(report[counter], 0, "{counter}: {report:?}");
    }
    assert_eq!(report["nat.tcp_timeouts"], report["timeouts_off_the_cpu"], "{report:?}");
    if report["nat.tcp_timeouts"] == 0 {
        // A probe of a small window may carry a new byte.
        assert!(report["nat.tcp_bytes_retransmitted"] <= report["nat.tcp_probes"], "{report:?}");
    }
}
