//! Refusals and resets, as either side sees them.

use core::time::Duration;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use rustix::net::sockopt;

use crate::guest::{ROUTER, each, each_entered};
use crate::pattern;
use crate::server::{Server, connect};

const LENGTH: u64 = 30_000;

fn reset(stream: TcpStream) {
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_port_where_nobody_listens_is_refused() {
    each("refused", &["curl", "nc"], |setup| {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // curl's 7 is a refusal; a silent drop would be 28.
        let script = format!("curl -s -m 10 http://10.0.2.2:{port}/; echo $?");
        assert_eq!(setup.script(&[], &script), "7\n", "{}", setup.name());
        let output = setup.outcome(&[], &format!("nc -w 10 -v 10.0.2.2 {port} </dev/null"));
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains("Connection refused"), "{complaint}");
    });
}

#[test]
fn a_refused_datagram_is_reported() {
    each_entered("refused-datagram", &[], |setup| {
        let guest = setup.guest(None, &[]);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let error = guest.enter(|| {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.set_read_timeout(Some(crate::server::PATIENCE)).unwrap();
            socket.connect((ROUTER, port)).unwrap();
            socket.send(b"anybody?").unwrap();
            socket.recv(&mut [0; 16]).unwrap_err()
        });
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn what_came_before_a_reset_of_the_host_is_delivered() {
    each_entered("host-reset", &[], |setup| {
        let server = Server::tcp(|mut client| {
            pattern::send(&mut client, LENGTH).unwrap();
            // An answer says that the guest has them, or they would die in this socket.
            client.read_exact(&mut [0]).unwrap();
            pattern::send(&mut client, LENGTH).unwrap();
            reset(client);
        });
        let guest = setup.guest(None, &[]);
        guest.enter(|| {
            let mut stream = connect(ROUTER, server.port()).unwrap();
            pattern::receive(&mut stream, LENGTH).unwrap();
            stream.write_all(b"!").unwrap();
            pattern::receive(&mut stream, LENGTH).unwrap();
            let error = stream.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        });
        drop(server);
        assert_eq!(guest.end().get("tcp_aborted"), 1);
    });
}

#[test]
fn a_reset_of_the_guest_reaches_the_server() {
    each_entered("guest-reset", &[], |setup| {
        let server = Server::tcp(|mut client| {
            pattern::receive(&mut client, LENGTH).unwrap();
            client.write_all(b"!").unwrap();
            let error = client.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        });
        let guest = setup.guest(None, &[]);
        guest.enter(|| {
            let mut stream = connect(ROUTER, server.port()).unwrap();
            pattern::send(&mut stream, LENGTH).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            reset(stream);
        });
        drop(server);
        assert_eq!(guest.end().get("tcp_aborted"), 1);
    });
}
