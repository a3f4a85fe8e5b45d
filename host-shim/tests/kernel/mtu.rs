//! Streams and datagrams at every size of link.

use std::io::Read as _;
use std::net::Shutdown;

use crate::guest::{ROUTER, each_entered};
use crate::pattern;
use crate::server::{Server, connect};

/// Payload of a full segment or fragment at the smallest MTU is 28 bytes: less for that one.
const SIZES: [(&str, u64); 6] = [
    ("68", 200_000),
    ("576", 2_000_000),
    ("1500", 4_000_000),
    ("9000", 4_000_000),
    ("65520", 8_000_000),
    ("65521", 8_000_000),
];

#[test]
fn streams_are_intact_both_ways_at_every_mtu() {
    for (mtu, length) in SIZES {
        each_entered(&format!("mtu-{mtu}"), &["ip"], |setup| {
            let server = Server::tcp(move |mut client| {
                let mut sending = client.try_clone().unwrap();
                std::thread::scope(|scope| {
                    scope.spawn(|| pattern::send(&mut sending, length).unwrap());
                    pattern::receive(&mut client, length).unwrap();
                });
                assert_eq!(client.read(&mut [0]).unwrap(), 0);
            });
            let guest = setup.guest(None, &["--mtu", mtu]);
            guest.enter(|| {
                let mut stream = connect(ROUTER, server.port()).unwrap();
                let mut sending = stream.try_clone().unwrap();
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        pattern::send(&mut sending, length).unwrap();
                        sending.shutdown(Shutdown::Write).unwrap();
                    });
                    pattern::receive(&mut stream, length).unwrap();
                });
                assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            });
            let link = guest.outcome("ip link show tap0");
            let link = String::from_utf8_lossy(&link.stdout);
            assert!(link.contains(&format!("mtu {mtu} ")), "{link}");
            drop(server);
            assert_eq!(guest.end().get("tcp_aborted"), 0);
        });
    }
}
