//! A guest with a stack that nobody here wrote, at the registers of `slirpkit nic`.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use host_shim::clock;
use host_shim::demo::{Guest, Stream, pattern};
use ne2000::Width;
use nix::sys::signal::Signal;

use crate::place::Place;
use crate::server::Server;
use crate::vfio_client::Client;

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// Bytes of each transfer; a full frame takes some 400 messages over the socket, and as many back.
const SIZE: usize = 128 << 10;

/// A guest and where its card is.
struct World {
    guest: Guest,
    client: Client,
}

impl World {
    fn boot(mut client: Client) -> Self {
        let guest = Guest::boot(clock::now(), &mut client, Width::Dword, 1).unwrap();
        Self { guest, client }
    }

    /// Lets the guest work until it has `done` something.
    fn until(&mut self, mut done: impl FnMut(&mut Guest) -> bool) {
        while !done(&mut self.guest) {
            let now = clock::now();
            self.guest.poll(now, &mut self.client, &mut ());
            let due = self.guest.poll_at(now).map_or(1000, |due| due.since(now).as_millis());
            self.client.is_interrupted_within(u16::try_from(due).unwrap_or(1000));
        }
    }
}

/// Serves one connection on the host's loopback: its port, and what comes of it.
fn serve(work: impl FnOnce(TcpStream) + Send + 'static) -> (SocketAddrV4, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || work(listener.accept().unwrap().0));
    (SocketAddrV4::new(ROUTER, port), server)
}

#[test]
fn a_stack_gets_its_lease_and_carries_streams_both_ways() {
    let place = Place::new("transfer");
    let socket = place.path("nic.sock");
    let path = socket.display().to_string();
    let server = Server::start("nic", &["--host-loopback", "--stats", "--socket", &path]);
    let mut world = World::boot(Client::with_interrupt(&socket));
    world.until(|guest| guest.lease().is_some());
    assert_eq!(world.guest.lease().unwrap().address, Ipv4Addr::new(10, 0, 2, 15));

    let (source, sent) = serve(|mut guest| {
        let mut bytes = vec![0; SIZE];
        pattern::fill(0, &mut bytes);
        guest.write_all(&bytes).unwrap();
        guest.shutdown(Shutdown::Write).unwrap();
        guest.read_to_end(&mut Vec::new()).unwrap();
    });
    assert!(world.guest.connect(source));
    let mut received = 0;
    world.until(|guest| {
        let stream = guest.receive(|bytes| {
            assert_eq!(pattern::check(received as u64, bytes), Ok(()));
            received += bytes.len();
            bytes.len()
        });
        assert_ne!(stream, Stream::Broken);
        stream == Stream::Ended
    });
    assert_eq!(received, SIZE);
    world.guest.close();
    world.until(|guest| guest.is_closed());
    sent.join().unwrap();

    let (sink, taken) = serve(|mut guest| {
        let mut bytes = Vec::new();
        guest.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len(), pattern::check(0, &bytes)), (SIZE, Ok(())));
    });
    assert!(world.guest.connect(sink));
    let mut given = 0;
    world.until(|guest| {
        let stream = guest.send(|room| {
            let length = room.len().min(SIZE - given);
            pattern::fill(given as u64, &mut room[..length]);
            given += length;
            length
        });
        assert_ne!(stream, Stream::Broken);
        given == SIZE
    });
    world.guest.close();
    world.until(|guest| guest.is_closed());
    taken.join().unwrap();
    assert_eq!(world.guest.driver_stats().overflows, 0);
    drop(world);
    let said = server.end(Signal::SIGTERM);
    assert!(!said.contains("card: no_room"), "{said}");
}
