//! Streams of which one side ends first.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use crate::guest::{ROUTER, each, each_entered};
use crate::pattern;
use crate::server::{Server, connect};

const LENGTH: u64 = 3_000_000;

/// Receives everything up to the end, and answers with as much.
fn take_then_give(mut client: TcpStream) {
    pattern::receive(&mut client, LENGTH).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    pattern::send(&mut client, LENGTH).unwrap();
}

/// Sends everything and ends, and takes as much after that.
fn give_then_take(mut client: TcpStream) {
    pattern::send(&mut client, LENGTH).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    pattern::receive(&mut client, LENGTH).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}

#[test]
fn netcat_is_answered_after_the_end_of_what_it_sends() {
    each("nc-up", &["nc"], |setup| {
        let server = Server::tcp(|mut client| {
            let mut text = Vec::new();
            client.read_to_end(&mut text).unwrap();
            assert_eq!(text, b"question\n");
            client.write_all(b"answer\n").unwrap();
        });
        let script = format!("echo question | nc -N 10.0.2.2 {}", server.port());
        assert_eq!(setup.script(&[], &script), "answer\n");
    });
}

#[test]
fn netcat_is_heard_after_the_end_of_what_it_receives() {
    each("nc-down", &["nc"], |setup| {
        let server = Server::tcp(|mut client| {
            client.write_all(b"question\n").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut text = Vec::new();
            client.read_to_end(&mut text).unwrap();
            assert_eq!(text, b"answer\n");
        });
        // The end reaches netcat before there is anything for it to send.
        let script = format!(
            "coproc nc {{ exec nc -N 10.0.2.2 {}; }}; pid=$!; read -r line <&${{nc[0]}}; \
             sleep 0.1; echo answer >&${{nc[1]}}; eval \"exec ${{nc[1]}}>&-\"; wait $pid; echo $line",
            server.port()
        );
        assert_eq!(setup.script(&[], &script), "question\n");
    });
}

#[test]
fn every_byte_arrives_whichever_side_ends_first() {
    each_entered("half-close", &[], |setup| {
        let (first, second) = (Server::tcp(take_then_give), Server::tcp(give_then_take));
        let guest = setup.guest(None, &[]);
        guest.enter(|| {
            give_then_take(connect(ROUTER, first.port()).unwrap());
            take_then_give(connect(ROUTER, second.port()).unwrap());
        });
        drop((first, second));
        let counters = guest.end();
        assert_eq!(counters.get("tcp_aborted"), 0, "{}", counters.0);
        assert_eq!(counters.get("tcp_bytes_in"), 2 * LENGTH);
    });
}
