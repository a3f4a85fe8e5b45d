//! A guest that sends packets at random, as fast as they are read, while a stream of its own goes
//! on. `SLIRPKIT_STORM_PACKETS` says how many of each kind. What a kernel would not send goes out
//! all the same, since it is written below its stack.

use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::thread;

use host_shim::clock;
use rustix::net::{AddressFamily, SocketType};

use crate::guest::{Guest, ROUTER, each_entered};
use crate::netstat::Netstat;
use crate::noise::{Kind, Noise};
use crate::numbers::Numbers;
use crate::pattern;
use crate::server::{PATIENCE, Server, connect};
use crate::world::{SERVER, World};

/// The address of a namespace, and its router's on the link.
const GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 100);
const ROUTER_MAC: &str = "52:55:0a:00:02:02";

/// Where the second flow goes.
const PORT: u16 = 7;

/// So few that flows have to make way from early on.
const FLOWS: &str = "1024";

/// Bytes of one round of the second flow: one segment, so that the guest's stack counts what the tap
/// counts.
const ROUND: usize = 1024;

/// The time between two rounds.
const PACE: Duration = Duration::from_millis(1);

/// Packets between two looks at how many were read. The queue of a tap holds some hundreds.
const STRIDE: u64 = 64;

/// What the program may touch for the first time: 4 MiB of its pool, 1 MiB of fragments, its tables
/// and the replies that wait, and the sockets' own; and what may come on top of that once it has,
/// which is nothing but the allocator's moods.
const TABLES_KIB: u64 = 8 << 10;
const MOODS_KIB: u64 = 1 << 10;

/// The longest that a flow lives without traffic, with time to spare: a ping's 60 s.
const LONGEST_LIFE: Duration = Duration::from_secs(150);

fn packets() -> u64 {
    std::env::var("SLIRPKIT_STORM_PACKETS").map_or(20_000, |text| text.parse().unwrap())
}

/// Sends back what it receives, until the client has gone.
fn echo(mut client: TcpStream) {
    let mut buffer = [0; ROUND];
    while let Ok(length @ 1..) = client.read(&mut buffer)
        && client.write_all(&buffer[..length]).is_ok()
    {}
}

/// A stream that has every round come back whole, and counts them.
#[derive(Default)]
struct Rounds {
    count: AtomicU64,
    stop: AtomicBool,
}

impl Rounds {
    fn go(&self, mut stream: TcpStream) {
        let sent = pattern::bytes(ROUND);
        let mut received = vec![0; ROUND];
        while !self.stop.load(Ordering::Relaxed) {
            stream.write_all(&sent).unwrap();
            stream.read_exact(&mut received).unwrap();
            assert!(received == sent, "a wrong byte in round {}", self.so_far());
            self.count.fetch_add(1, Ordering::Relaxed);
            thread::park_timeout(PACE);
        }
    }

    fn so_far(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until one more has come back since there were `before`.
    fn expect_more_than(&self, before: u64) {
        let start = clock::now();
        while self.so_far() <= before {
            assert!(clock::now().since(start) < PATIENCE, "the second flow is stuck at {before}");
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}

/// The second flow goes on as long as this value.
struct Going<'a>(&'a Rounds);

impl Drop for Going<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// The guest's link, below its stack.
struct Wire {
    socket: File,
    header: Vec<u8>,
    sent: u64,
    /// What the guest's stack had sent itself and the program read, before.
    before: i64,
}

impl Wire {
    /// In the namespace of this thread.
    fn open(mac: &str) -> Self {
        let octets = |text: &str| -> Vec<u8> {
            text.split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect()
        };
        let header = [octets(ROUTER_MAC), octets(mac), vec![8, 0]].concat();
        let mut wire = Self { socket: packet_socket("tap0"), header, sent: 0, before: 0 };
        wire.before = wire.unread();
        wire
    }

    /// How many frames wait to be read, but for those from before.
    fn unread(&self) -> i64 {
        let netstat = Netstat::parse(&fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
        let [read, dropped] = tap_counters();
        let own = self.sent + netstat.get("IpOutRequests");
        own.cast_signed() - (read + dropped).cast_signed() - self.before
    }

    /// Sends so many packets, no faster than they are read.
    fn send(&mut self, count: u64, noises: &mut [Noise; 2]) {
        for index in 0..count {
            let noise = if index.is_multiple_of(2) { &mut noises[0] } else { &mut noises[1] };
            let frame = [&self.header[..], &noise.packet()].concat();
            self.socket.write_all(&frame).unwrap();
            self.sent += 1;
            while self.sent.is_multiple_of(STRIDE) && self.unread() > STRIDE.cast_signed() {
                thread::park_timeout(Duration::from_micros(50));
            }
        }
    }
}

/// Frames of the guest that the program has read from its tap, and those that it did not get.
fn tap_counters() -> [u64; 2] {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("tap0:")).unwrap();
    let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    // Eight of what was received; bytes, packets, errors and drops of what was sent.
    [numbers[9], numbers[11]]
}

/// A packet socket (packet(7)), each of whose writes is a frame on an interface.
fn packet_socket(interface: &str) -> File {
    let socket = rustix::net::socket(AddressFamily::PACKET, SocketType::RAW, None).unwrap();
    let index = nix::net::if_::if_nametoindex(interface).unwrap();
    // SAFETY: sockaddr_ll is plain data, for which all zeros is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { core::mem::zeroed() };
    address.sll_family = libc::c_ushort::try_from(libc::AF_PACKET).unwrap();
    address.sll_ifindex = libc::c_int::try_from(index).unwrap();
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).unwrap();
    // SAFETY: the address outlives the call, which reads as much of it as it has.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    File::from(socket)
}

/// Sends the packets of one kind, half of them to the router and half to the server, and checks in
/// ten places that the second flow goes on. Memory stays as it is from the middle on.
fn storm(guest: &Guest, wire: &mut Wire, kind: Kind, rounds: &Rounds) -> [u64; 2] {
    let noise = |destination: Ipv4Addr| {
        let numbers = Numbers(u64::from(destination.to_bits()) << 8 | kind as u64);
        Noise { kind, source: GUEST, destination, port: PORT, numbers }
    };
    let mut noises = [ROUTER, SERVER].map(noise);
    let mut memory = Vec::new();
    for _ in 0..10 {
        let before = rounds.so_far();
        wire.send(packets() / 10, &mut noises);
        rounds.expect_more_than(before);
        memory.push(guest.memory_kib());
    }
    let [middle, end] = [memory[4], memory[9]];
    assert!(end <= middle + MOODS_KIB, "{kind:?}: memory grows: {memory:?} KiB");
    [rounds.so_far(), end]
}

/// Waits until every flow but the second one has gone.
fn expect_descriptors(guest: &Guest, wanted: usize) {
    let start = clock::now();
    while guest.descriptors() > wanted {
        let left = guest.descriptors();
        assert!(clock::now().since(start) < LONGEST_LIFE, "{left} descriptors, {wanted} before");
        thread::park_timeout(Duration::from_millis(100));
    }
}

#[test]
fn packets_at_random_stall_nobody_and_leave_nothing() {
    each_entered("storm", &["ip"], |setup| {
        if !setup.is_first() {
            return;
        }
        let world = World::new();
        let listener = world.server.enter(|| TcpListener::bind((SERVER, PORT)).unwrap());
        let server = Server::tcp_on(listener, echo);
        let guest = setup.guest(Some(&world.host.path()), &["--flows", FLOWS, "--mtu", "1500"]);
        let link = guest.outcome("ip -br link show tap0");
        let link = String::from_utf8(link.stdout).unwrap();
        let mac = link.split_whitespace().nth(2).unwrap();
        let rounds = Rounds::default();
        let stream = guest.enter(|| connect(SERVER, PORT).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| rounds.go(stream));
            let _going = Going(&rounds);
            rounds.expect_more_than(0);
            let (memory, descriptors) = (guest.memory_kib(), guest.descriptors());
            let report = guest.enter(|| {
                let mut wire = Wire::open(mac);
                let dropped = tap_counters()[1];
                let report = Kind::ALL.map(|kind| (kind, storm(&guest, &mut wire, kind, &rounds)));
                assert_eq!(tap_counters()[1], dropped, "frames were not read");
                report
            });
            let most = guest.memory_kib();
            assert!(most <= memory + TABLES_KIB, "{memory} KiB grew to {most}: {report:?}");
            let during = guest.descriptors();
            expect_descriptors(&guest, descriptors);
            print(&report, [memory, most], [descriptors, during, guest.descriptors()]);
        });
        drop(server);
        let counters = guest.end();
        io::stderr().write_all(counters.0.as_bytes()).unwrap();
        assert!(counters.get("frames_in") >= 4 * packets(), "{}", counters.0);
    });
}

fn print(report: &[(Kind, [u64; 2]); 4], memory: [u64; 2], descriptors: [usize; 3]) {
    let mut text = format!("{} packets of each kind\n", packets());
    for (kind, [rounds, kib]) in report {
        text += &format!("{kind:?}: {rounds} rounds of the second flow, {kib} KiB\n");
    }
    let [before, most] = memory;
    let [first, during, last] = descriptors;
    text += &format!("memory before {before} KiB, after {most} KiB\n");
    text += &format!("descriptors before {first}, after {during}, once flows have ended {last}\n");
    io::stderr().write_all(text.as_bytes()).unwrap();
}

#[test]
fn the_packets_follow_from_the_seed_and_have_the_sums_they_should() {
    for kind in Kind::ALL {
        let noise = |seed| {
            let numbers = Numbers(seed);
            let mut noise = Noise { kind, source: GUEST, destination: ROUTER, port: PORT, numbers };
            (0..1000).map(|_| noise.packet()).collect::<Vec<_>>()
        };
        assert!(noise(1) == noise(1) && noise(1) != noise(2));
        assert!(noise(1).iter().all(|packet| (20..=1500).contains(&packet.len())));
        let version_4 = noise(1).iter().filter(|packet| packet[0] >> 4 == 4).count();
        assert!((850..=950).contains(&version_4), "{kind:?}: {version_4} of 1000");
    }
}
