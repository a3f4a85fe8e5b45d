//! `slirpkit nic`, with a test in the place of QEMU and of the guest's driver in it.

use core::net::Ipv4Addr;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::thread;

use ipstack::checksum::ChecksumState;
use ipstack::wire::{
    EtherType, EthernetFrame, EthernetHeader, IpProtocol, Ipv4Header, Ipv4Packet, MacAddr,
    UdpDatagram, UdpHeader,
};
use ne2000::Width;
use ne2000::driver::{Driver, Ports as _};
use nix::sys::signal::Signal;

use crate::place::Place;
use crate::server::Server;
use crate::vfio_client::{
    BAR0, CONFIG, Client, DMA_MAP, REGION_READ, REGION_WRITE, RESET, SET_IRQS, TRIGGER_BY_EVENTFD,
    VERSION, access, message, words,
};

const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const ROUTER_MAC: MacAddr = MacAddr([0x52, 0x55, 10, 0, 2, 2]);
const GUEST_PORT: u16 = 4000;

/// A started program and the path of its socket, as arguments.
fn start(place: &Place, arguments: &[&str]) -> Server {
    let socket = place.path("nic.sock").display().to_string();
    Server::start("nic", &[&["--socket", &socket], arguments].concat())
}

/// A datagram from the guest to the host's loopback.
fn datagram(mac: [u8; 6], port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + 8 + payload.len()];
    let (ethernet, rest) = frame.split_first_chunk_mut().unwrap();
    let (ip, rest) = rest.split_first_chunk_mut().unwrap();
    let (udp, data) = rest.split_first_chunk_mut().unwrap();
    data.copy_from_slice(payload);
    EthernetHeader { destination: ROUTER_MAC, source: MacAddr(mac), ether_type: EtherType::Ipv4 }
        .emit(ethernet);
    let total_len = u16::try_from(20 + 8 + payload.len()).unwrap();
    Ipv4Header { total_len, ttl: 64, ..Ipv4Header::new(IpProtocol::Udp, GUEST, ROUTER) }.emit(ip);
    let payload_len = u16::try_from(payload.len()).unwrap();
    UdpHeader { source_port: GUEST_PORT, destination_port: port, payload_len }.emit(
        udp,
        GUEST.into(),
        ROUTER.into(),
        data,
    );
    frame
}

/// What the datagram in `frame` carries, if there is one from the router.
fn carried(frame: &[u8]) -> Option<&[u8]> {
    let ip = Ipv4Packet::parse(EthernetFrame::parse(frame).ok()?.payload()).ok()?;
    let (source, destination) = (ip.source().into(), ip.destination().into());
    let udp = UdpDatagram::parse(ip.payload(), source, destination, ChecksumState::Whole).ok()?;
    Some(udp.payload())
}

/// Returns every datagram to whoever sent it.
fn echo_server() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, guest)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..length], guest).unwrap();
        }
    });
    port
}

/// Sends a burst of datagrams, and fetches their echoes as interrupts tell of them.
fn exchange(driver: &mut Driver, client: &mut Client, port: u16, burst: u8) {
    let payload = |number: u8| vec![number; 1 + 180 * usize::from(number)];
    for number in 0..burst {
        while !driver.send(client, &datagram(driver.mac(), port, &payload(number))) {}
    }
    let mut buffer = [0; 1518];
    let mut fetched = 0;
    while fetched < burst {
        client.wait_for_interrupt();
        while let Some(length) = driver.receive(client, &mut buffer) {
            if let Some(echo) = carried(&buffer[..length]) {
                assert_eq!(echo, payload(fetched));
                fetched += 1;
            }
        }
    }
}

#[test]
fn a_driver_reaches_the_host_by_registers_and_interrupts() {
    let place = Place::new("nic");
    let server = start(&place, &["--host-loopback", "--stats"]);
    let mut client = Client::with_interrupt(&place.path("nic.sock"));
    client.write_region(CONFIG, 0x04, &[1, 0]);
    let mut driver = Driver::start(&mut client, Width::Dword).unwrap();
    assert_eq!(driver.mac(), [0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    let port = echo_server();
    for _ in 0..6 {
        exchange(&mut driver, &mut client, port, 8);
    }
    assert_eq!(driver.stats().overflows, 0);
    // No interrupts from here on.
    client.write(0x0f, Width::Byte, 0);
    let (accesses, interrupts) = (client.accesses, client.interrupts + client.untaken());
    drop(client);
    let said = server.end(Signal::SIGTERM);
    let count = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    };
    assert_eq!(count("card: accesses"), accesses);
    assert_eq!(count("card: interrupts"), interrupts);
    assert_eq!((count("card: transmitted"), count("card: no_room")), (48, 0));
    assert_eq!(count("card: stored"), driver.stats().received);
}

#[test]
fn a_line_that_stays_high_is_signalled_again_after_each_unmask() {
    let place = Place::new("level");
    let server = start(&place, &[]);
    let mut client = Client::with_interrupt(&place.path("nic.sock"));
    // Page 0, with an interrupt for the end of remote DMA; and one of no bytes.
    for (port, value) in [(0x00, 0x22), (0x0f, 0x40), (0x00, 0x0a)] {
        client.write(port, Width::Byte, value);
    }
    for _ in 0..3 {
        client.wait_for_interrupt();
        assert_eq!(client.read(0x07, Width::Byte) & 0x40, 0x40);
    }
    client.wait_for_interrupt();
    client.write(0x07, Width::Byte, 0x40);
    assert_eq!(client.read(0x07, Width::Byte) & 0x40, 0);
    drop(client);
    server.end(Signal::SIGTERM);
}

#[test]
fn the_card_keeps_its_state_for_the_next_client_which_may_reset_it() {
    let place = Place::new("again");
    let mut server = start(&place, &["--mac", "2:0:0:0:0:1"]);
    let path = place.path("nic.sock");
    let mut client = Client::with_interrupt(&path);
    let driver = Driver::start(&mut client, Width::Word).unwrap();
    assert_eq!(driver.mac(), [2, 0, 0, 0, 0, 1]);
    server.expect("a guest has connected");
    let mut second = Client::connect_raw(&path);
    server.expect("turned a second guest away");
    assert_eq!(second.reply(), Err(0));
    drop(client);
    server.expect("closed");
    let mut client = Client::connect(&path);
    let started = client.read(0x00, Width::Byte);
    assert_eq!(started & 3, 2);
    assert_eq!(client.ask(RESET, &[]), Ok(Vec::new()));
    assert_eq!(client.read(0x00, Width::Byte), 0x21);
    drop(client);
    server.end(Signal::SIGTERM);
    assert!(place.entries().is_empty());
}

/// Sends `bytes` with `files` descriptors to a server, and says what became of it: the error of the
/// reply, if there was one, or 0 if the client was cut off.
fn trouble(client: &mut Client, bytes: &[u8], files: usize) -> Option<u32> {
    let fds = vec![client.eventfd().as_raw_fd(); files];
    client.send(bytes, &fds);
    client.reply().err()
}

#[test]
fn no_malformed_message_costs_a_descriptor_or_the_next_client() {
    const EINVAL: Option<u32> = Some(22);
    const CUT_OFF: Option<u32> = Some(0);
    let sized = |size: u32| {
        let mut message = message(VERSION, &[0; 4]);
        message[4..8].copy_from_slice(&size.to_ne_bytes());
        message
    };
    let irqs = |fields: [u32; 5]| message(SET_IRQS, &words(&fields));
    let read = |region, offset, count| message(REGION_READ, &access(region, offset, count));
    let map = message(DMA_MAP, &words(&[32, 3, 0, 0, 0, 0, 0x1000, 0]));
    let place = Place::new("hostile");
    let mut server = start(&place, &[]);
    let path = place.path("nic.sock");
    // With the first client goes what was held for the lack of one.
    drop(Client::connect(&path));
    server.expect("closed");
    let quiet = server.open_files();
    for (what, bytes, files, outcome) in [
        ("memory with its file", map.clone(), 1, None),
        ("memory with many files", map, 30, None),
        ("a command that takes no file", read(BAR0, 0, 1), 8, None),
        ("an interrupt with two files", irqs(TRIGGER_BY_EVENTFD), 2, EINVAL),
        ("an interrupt with thirty", irqs(TRIGGER_BY_EVENTFD), 30, EINVAL),
        ("an unmask by file", irqs([20, 0x14, 0, 0, 1]), 1, EINVAL),
        ("an interrupt of MSI", irqs([20, 0x24, 1, 0, 1]), 1, EINVAL),
        ("interrupts without end", irqs([20, 0x24, 0, 0, u32::MAX]), 1, EINVAL),
        ("half an interrupt", message(SET_IRQS, &[0; 19]), 1, EINVAL),
        ("an unknown command", message(99, &[0; 100]), 3, Some(95)),
        ("a read behind the ports", read(BAR0, 0x20, 1), 0, EINVAL),
        ("a read of all there is", read(CONFIG, 0, u32::MAX), 0, EINVAL),
        ("a read around the end", read(CONFIG, u64::MAX, 1), 0, EINVAL),
        ("a read of no region", read(u32::MAX, 0, 1), 0, EINVAL),
        ("a write without data", message(REGION_WRITE, &access(BAR0, 0, 4)), 0, EINVAL),
        ("no length", sized(0), 2, CUT_OFF),
        ("less than a header", sized(15), 2, CUT_OFF),
        ("more than is taken", sized(4097), 2, CUT_OFF),
        ("the greatest length", sized(u32::MAX), 2, CUT_OFF),
        ("a reply", [&sized(20)[..8], &[1; 12]].concat(), 2, CUT_OFF),
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec(), 0, CUT_OFF),
    ] {
        let mut client = Client::with_interrupt(&path);
        let served = server.open_files();
        assert_eq!(served, quiet + 2, "socket and eventfd");
        assert_eq!(trouble(&mut client, &bytes, files), outcome, "{what}");
        if outcome != CUT_OFF {
            assert_eq!(server.open_files(), served, "{what}");
            assert_eq!(client.read_region(CONFIG, 0, 2), [0xec, 0x10], "{what}");
        }
        drop(client);
        server.expect(if outcome == CUT_OFF { "dropped the guest" } else { "closed" });
        assert_eq!(server.open_files(), quiet, "{what}");
    }
    let mut client = Client::with_interrupt(&path);
    client.send(&message(VERSION, &[0; 400])[..200], &[client.eventfd().as_raw_fd(); 8]);
    drop(client);
    server.expect("closed");
    assert_eq!(server.open_files(), quiet, "half a message");
    server.end(Signal::SIGTERM);
}
