//! Streams over a path of 40 ms there and back, between the host's socket and the server.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use host_shim::clock;

use crate::guest::{Counters, each_entered};
use crate::namespace::Namespace;
use crate::pattern;
use crate::relay::Relay;
use crate::server::{Server, connect};

const DELAY: Duration = Duration::from_millis(20);
const LENGTH: u64 = 48 << 20;
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PORT: u16 = 7;

/// Takes what a client sends after `u`, or gives it what it wants after `d`.
fn serve(mut client: TcpStream) {
    let mut direction = [0];
    client.read_exact(&mut direction).unwrap();
    match direction {
        [b'u'] => {
            pattern::receive(&mut client, LENGTH).unwrap();
            client.write_all(b"!").unwrap();
        }
        _ => pattern::send(&mut client, LENGTH).unwrap(),
    }
}

/// Moves the bytes of one direction; returns how long that took.
fn transfer(direction: u8) -> io::Result<Duration> {
    let mut stream = connect(SERVER, PORT)?;
    let start = clock::now();
    stream.write_all(&[direction])?;
    if direction == b'u' {
        pattern::send(&mut stream, LENGTH)?;
        stream.read_exact(&mut [0])?;
    } else {
        pattern::receive(&mut stream, LENGTH)?;
    }
    Ok(clock::now().since(start))
}

/// Every byte went through once, and with as few calls as there were segments.
fn check(direction: u8, counters: &Counters) {
    let [out, again] = ["tcp_bytes_out", "tcp_bytes_retransmitted"].map(|name| counters.get(name));
    let carried = if direction == b'u' { counters.get("tcp_bytes_in") - 1 } else { out - again };
    assert_eq!(carried, LENGTH, "{}", counters.0);
    for reason in ["dropped: tcp gap", "dropped: tcp no room"] {
        assert_eq!(
            counters.get(reason),
            0,
            "promised more than there was room for: {}",
            counters.0
        );
    }
    assert!(counters.get("calls: send") <= counters.get("tcp_segments_in"), "{}", counters.0);
}

#[test]
fn a_long_path_is_filled_both_ways() {
    each_entered("delay", &["ip"], |setup| {
        let (host, world) = (Namespace::new(), Namespace::new());
        let ends = [(&host, "192.0.2.1"), (&world, "192.0.2.2")];
        let _relay = Relay::between(ends, DELAY);
        let listener = world.enter(|| TcpListener::bind((SERVER, PORT)).unwrap());
        let _server = Server::tcp_on(listener, serve);
        for (direction, name) in [(b'u', "upload"), (b'd', "download")] {
            let plain = host.enter(|| transfer(direction)).unwrap();
            let guest = setup.guest(Some(&host.path()), &[]);
            let ours = guest.enter(|| transfer(direction)).unwrap();
            let counters = guest.end();
            check(direction, &counters);
            // What took how long is for a reader, and no matter of passing.
            let line = format!(
                "{}: {name} with 40 ms of round trip: {:.2} of a plain socket's rate, {:.0} Mbit/s\n",
                setup.name(),
                plain.as_secs_f64() / ours.as_secs_f64(),
                LENGTH as f64 * 8e-6 / plain.as_secs_f64(),
            );
            io::stderr().write_all(line.as_bytes()).unwrap();
        }
    });
}
