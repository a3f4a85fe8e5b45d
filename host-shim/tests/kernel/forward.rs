//! Port forwards, from another machine and from the host itself.

use core::net::{Ipv4Addr, SocketAddr};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};

use crate::guest::{ROUTER, each_entered};
use crate::server::{PATIENCE, Server, connect};
use crate::world::{HOST, HOST_TOO, SERVER, World};

/// Tells a client by what address it is seen.
fn mirror(guest: &crate::guest::Guest) -> [Server; 2] {
    let (streams, datagrams) = guest.enter(|| {
        (TcpListener::bind("0.0.0.0:80").unwrap(), UdpSocket::bind("0.0.0.0:53").unwrap())
    });
    let over_tcp = Server::tcp_on(streams, |mut client| {
        let seen = client.peer_addr().unwrap().ip().to_string();
        client.write_all(seen.as_bytes()).unwrap();
    });
    [over_tcp, Server::mirror(datagrams)]
}

fn seen_over_tcp(host: Ipv4Addr) -> String {
    let mut text = String::new();
    connect(host, 8080).unwrap().read_to_string(&mut text).unwrap();
    text
}

/// The socket takes replies from the address only that it has sent to.
fn seen_over_udp(host: Ipv4Addr) -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(SocketAddr::from((host, 5353))).unwrap();
    socket.send(b"who am I?").unwrap();
    let mut buffer = [0; 64];
    let length = socket.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

#[test]
fn clients_keep_their_address_and_are_answered_from_the_one_they_called() {
    each_entered("forward", &["ip"], |setup| {
        let world = World::new();
        let options = ["--forward", ":8080-:80", "--forward", "udp::5353-:53"];
        let guest = setup.guest(Some(&world.host.path()), &options);
        let servers = mirror(&guest);
        for host in [HOST, HOST_TOO] {
            let seen = world.server.enter(|| [seen_over_tcp(host), seen_over_udp(host)]);
            assert_eq!(seen, [(); 2].map(|()| SERVER.to_string()), "{}", setup.name());
        }
        // The host's own loopback means nothing to the guest: its router stands for it.
        let seen = world
            .host
            .enter(|| [Ipv4Addr::LOCALHOST].map(|ip| [seen_over_tcp(ip), seen_over_udp(ip)]));
        assert_eq!(seen, [[(); 2].map(|()| ROUTER.to_string())]);
        drop(servers);
        assert_eq!(guest.end().get("tcp_accepted"), 3);
    });
}

#[test]
fn a_client_is_reset_if_nobody_listens_in_the_guest() {
    each_entered("forward-refused", &["ip"], |setup| {
        let world = World::new();
        let guest = setup.guest(Some(&world.host.path()), &["--forward", ":8080-:80"]);
        // The reset may come before the client has seen that it is connected.
        let read = || connect(HOST, 8080).and_then(|mut stream| stream.read(&mut [0]));
        let error = world.server.enter(read).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        drop(guest);
    });
}
