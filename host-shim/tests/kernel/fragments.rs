//! Datagrams that are larger than the link.

use std::net::UdpSocket;

use crate::guest::{ROUTER, each_entered};
use crate::pattern;
use crate::server::{PATIENCE, Server};

/// The largest that IPv4 has, and what history found to break at.
const SIZES: [usize; 5] = [1473, 4097, 8192, 32_769, 65_507];

const ROUNDS: u64 = 5;

/// Sends each size `ROUNDS` times and expects it back.
fn exchange(socket: &UdpSocket) {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = vec![0; 1 << 16];
    for size in SIZES {
        let sent = pattern::bytes(size);
        for _ in 0..ROUNDS {
            assert_eq!(socket.send(&sent).unwrap(), size);
            let length = socket.recv(&mut buffer).unwrap();
            assert!(buffer[..length] == sent, "{size}: {length} bytes came back");
        }
    }
}

#[test]
fn the_largest_datagrams_come_back_whole() {
    each_entered("fragments", &[], |setup| {
        let server = Server::udp(|datagram| Some(datagram.to_vec()));
        let guest = setup.guest(None, &["--mtu", "1500"]);
        guest.enter(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect((ROUTER, server.port())).unwrap();
            exchange(&socket);
        });
        let counters = guest.end();
        assert_eq!(counters.get("reassembled"), ROUNDS * SIZES.len() as u64, "{}", counters.0);
    });
}

#[test]
fn the_largest_datagrams_pass_a_forward_whole() {
    each_entered("fragments-forward", &[], |setup| {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let rule = format!("udp:127.0.0.1:{port}-:7");
        let guest = setup.guest(None, &["--mtu", "1500", "--forward", &rule]);
        let echo = guest.enter(|| UdpSocket::bind("0.0.0.0:7").unwrap());
        let server = Server::udp_on(echo, |datagram| Some(datagram.to_vec()));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        exchange(&socket);
        drop(server);
        assert!(guest.end().get("fragments_out") > 0);
    });
}
