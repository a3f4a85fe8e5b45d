//! A server that reads little, nothing for a while, and then all.

use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use rustix::net::sockopt;

use crate::guest::{ROUTER, each_entered};
use crate::netstat::{self, Netstat};
use crate::pattern;
use crate::server::{Server, connect};

/// More than the pool holds of what the server does not take.
const LENGTH: u64 = 16 << 20;

/// The smallest that is of use: the kernel doubles it.
const RECEIVE_BUFFER: usize = 4096;

fn serve(mut client: TcpStream) {
    let mut position = 0;
    for part in [1, 100, 1459] {
        pattern::receive_part(&mut client, position, position + part).unwrap();
        position += part;
    }
    thread::park_timeout(Duration::from_secs(1));
    pattern::receive_part(&mut client, position, LENGTH).unwrap();
    client.write_all(b"!").unwrap();
}

#[test]
fn a_server_that_stalls_costs_the_guest_no_segment() {
    for mtu in ["1500", "65520"] {
        each_entered("short-reads", &[], |setup| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BUFFER).unwrap();
            let server = Server::tcp_on(listener, serve);
            let guest = setup.guest(None, &["--mtu", mtu]);
            guest.outcome(netstat::WITHOUT_TIMERS);
            guest.enter(|| {
                let mut stream = connect(ROUTER, server.port()).unwrap();
                pattern::send(&mut stream, LENGTH).unwrap();
                stream.read_exact(&mut [0]).unwrap();
            });
            let output = guest.outcome(netstat::SCRIPT);
            let netstat = Netstat::parse(&String::from_utf8(output.stdout).unwrap());
            assert_eq!(netstat.get("TcpRetransSegs"), 0, "{}: {netstat:?}", setup.name());
            drop(server);
            let counters = guest.end();
            assert_eq!(counters.get("tcp_bytes_in"), LENGTH, "{}", counters.0);
            for reason in ["dropped: tcp gap", "dropped: tcp no room", "dropped: tcp duplicate"] {
                assert_eq!(counters.get(reason), 0, "{reason}: {}", counters.0);
            }
        });
    }
}
