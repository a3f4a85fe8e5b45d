//! What a command reaches through the NAT, with bash as the client: its /dev/tcp and /dev/udp are
//! sockets.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, UdpSocket};
use std::process::Output;
use std::thread;

use crate::user::{User, everybody};

fn bash(user: &User, options: &[&str], script: &str) -> Output {
    let command = ["--", "timeout", "20", "bash", "-c", script];
    user.slirpkit(&[&["run"], options, &command[..]].concat()).output().unwrap()
}

#[test]
fn a_stream_is_carried_both_ways_to_the_hosts_loopback_if_allowed() {
    for user in everybody("stream") {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut line = [0; 5];
            client.read_exact(&mut line).unwrap();
            assert_eq!(&line, b"ping\n");
            client.write_all(&[b'x'; 300_000]).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            client.read_to_end(&mut Vec::new()).unwrap();
        });
        let script = format!("exec 3<>/dev/tcp/10.0.2.2/{port}; echo ping >&3; wc -c <&3");
        let output = bash(&user, &["--host-loopback"], &script);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "300000", "{output:?}");
        server.join().unwrap();
    }
}

#[test]
fn the_hosts_loopback_is_refused_unless_allowed() {
    for user in everybody("refused") {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let output = bash(&user, &[], &format!("exec 3<>/dev/tcp/10.0.2.2/{port}"));
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains("Connection refused"), "{complaint}");
        assert!(listener.accept().is_err());
    }
}

#[test]
fn names_are_asked_of_the_resolver_given() {
    for user in everybody("resolver") {
        let resolver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = resolver.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let mut message = [0; 512];
            let (length, client) = resolver.recv_from(&mut message).unwrap();
            // The bit that makes a query a response (RFC 1035 4.1.1).
            message[2] |= 0x80;
            resolver.send_to(&message[..length], client).unwrap();
        });
        // A query for the address of "x": 19 bytes, the identifier first.
        let query = r"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01x\x00\x00\x01\x00\x01";
        let script = format!(
            "exec 3<>/dev/udp/10.0.2.3/53; printf '{query}' >&3; head -c 19 <&3 | od -An -tx1 -N3"
        );
        let output = bash(&user, &["--dns", &address], &script);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "12 34 81", "{output:?}");
        server.join().unwrap();
    }
}
