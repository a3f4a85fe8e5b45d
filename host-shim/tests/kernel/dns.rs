//! The DNS relay, asked by dig.

use core::net::Ipv4Addr;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};

use crate::guest::each;
use crate::server::Server;

/// A response with one address (RFC 1035 4.1) to a query of one question.
fn answer(query: &[u8], address: Ipv4Addr) -> Option<Vec<u8>> {
    let name = query.get(12..)?.iter().position(|&byte| byte == 0)?;
    let question = query.get(12..12 + name + 5)?;
    let header = [&query[..2], &[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]].concat();
    // The name as a pointer to the question, type A, class IN, an hour, four bytes.
    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4];
    Some([&header[..], question, &record, &address.octets()].concat())
}

/// A resolver over UDP and TCP that has the same answer for every name.
fn resolver(address: Ipv4Addr) -> (Server, Server) {
    let (datagrams, streams) = loop {
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Ok(streams) = TcpListener::bind(datagrams.local_addr().unwrap()) {
            break (datagrams, streams);
        }
    };
    let over_tcp = Server::tcp_on(streams, move |mut client| {
        let mut length = [0; 2];
        client.read_exact(&mut length).unwrap();
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        client.read_exact(&mut query).unwrap();
        let reply = answer(&query, address).unwrap();
        let length = u16::try_from(reply.len()).unwrap().to_be_bytes();
        client.write_all(&[&length[..], &reply].concat()).unwrap();
    });
    (Server::udp_on(datagrams, move |query| answer(query, address)), over_tcp)
}

const DIG: &str = "dig +short +tries=4 +timeout=5 @10.0.2.3 slirpkit.test A";

#[test]
fn queries_are_answered_over_udp_and_tcp() {
    each("dig", &["dig"], |setup| {
        let (udp, _tcp) = resolver(Ipv4Addr::new(192, 0, 2, 1));
        let options = ["--dns", &udp.address.to_string()];
        assert_eq!(setup.script(&options, DIG), "192.0.2.1\n");
        assert_eq!(setup.script(&options, &format!("{DIG} +tcp")), "192.0.2.1\n");
    });
}

#[test]
fn the_next_resolver_is_asked_when_the_first_is_dead_or_silent() {
    each("dig-failover", &["dig"], |setup| {
        let (udp, _tcp) = resolver(Ipv4Addr::new(192, 0, 2, 2));
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let dead = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for first in [dead, silent.local_addr().unwrap()] {
            let options = ["--dns", &first.to_string(), "--dns", &udp.address.to_string()];
            // dig says that it has asked again, which is when the relay tries another.
            let script = format!("{DIG} | grep -v '^;;'");
            assert_eq!(setup.script(&options, &script), "192.0.2.2\n", "{}", setup.name());
        }
    });
}
