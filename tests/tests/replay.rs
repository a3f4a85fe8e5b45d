//! A recorded session gives the same frames again, and what differs is found.

#![expect(clippy::expect_used, clippy::panic, reason = "a test's mistake is to stop the test")]

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use host_shim::replay::{Act, Divergence, Fault, Recorded, ReplayError, Report, replay};
use ipstack::Instant;
use slirp_nat::host::{DatagramError, DatagramMeta, HostError};
use slirp_nat::link::{Frame, Offload};
use slirp_nat::{Due, Forward, Protocol};
use slirpkit_tests::build::{self, ACK, FIN, PSH, SYN, pattern};
use slirpkit_tests::guest::{DNS, GATEWAY, OTHER, SERVER};
use slirpkit_tests::host::{LabHost, new_host};
use slirpkit_tests::lab::SECRET;
use slirpkit_tests::{Connect, HostKind, ScriptedLink, Setup, TcpGuest};

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("the lock").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("the lock").clone()).expect("UTF-8")
    }
}

const PUBLIC: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 2222);
const RESOLVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53)), 53);

const BOOT_FILE: &str = "http://10.0.2.2:8000/boot.ipxe";
const SERVER_OF_BOOT_FILE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

/// A NAT that is recorded, with what is around it.
struct Session {
    nat: Recorded<'static>,
    host: Box<dyn LabHost>,
    link: ScriptedLink,
    now: Instant,
    frames: usize,
}

impl Session {
    fn new(kind: HostKind, writer: impl Write + Send + 'static) -> Self {
        let mut setup = Setup { flows: 16, ..Setup::default() };
        setup.config.hostname = "guest".try_into().expect("a name");
        setup.config.boot_file = BOOT_FILE.try_into().expect("a name");
        setup.config.next_server = Some(SERVER_OF_BOOT_FILE);
        setup.config.tftp_server_name = "tftp.example".try_into().expect("a name");
        setup.config.udp_mapping = slirp_nat::UdpMapping::AddressAndPortDependent;
        let nat = Recorded::new(setup.config.clone(), SECRET, setup.storage(), writer);
        Self {
            nat: nat.expect("a valid setup"),
            host: new_host(kind, setup.rings, setup.ring_len),
            link: ScriptedLink::new(1500, setup.link_capacity),
            now: Instant::from_millis(5),
            frames: 0,
        }
    }

    fn input(&mut self, frames: &[Vec<u8>]) {
        let frames: Vec<Frame<'_>> = frames.iter().map(|bytes| Frame::new(bytes)).collect();
        self.nat.receive(self.now, &frames, &mut *self.host, &mut self.link);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            if let Some(event) = self.host.next_event() {
                self.nat.on_host_event(self.now, event, &mut *self.host, &mut self.link);
            } else if self.nat.poll_at().is_some_and(|due| due.why == Due::Output) {
                self.nat.on_timer(self.now, &mut *self.host, &mut self.link);
            } else {
                return;
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.nat.on_timer(self.now, &mut *self.host, &mut self.link);
        self.settle();
    }

    fn take(&mut self) -> Vec<slirpkit_tests::Packet> {
        let packets = self.link.take();
        self.frames += packets.len();
        packets
    }

    /// Opens a connection of the guest and uses it both ways, with loss.
    fn tcp(&mut self) {
        let mut guest = TcpGuest::new(4000, SERVER);
        self.input(&[guest.syn(Some(1460)).window_scale(7).frame()]);
        let syn_ack = self.take().pop().expect("SYN-ACK");
        guest.snd_nxt += 1;
        guest.rcv_nxt = syn_ack.tcp().expect("TCP").seq.wrapping_add(1);
        let stream = self.host.world().stream_to(SERVER);
        self.host.world().take_short(stream, &[100]);
        let segments = guest.segments(&pattern(5000));
        self.input(&segments);
        self.host.world().drain(stream);
        self.host.world().set_room(stream, 20_000);
        for _ in 0..10 {
            let segments = guest.segments(&pattern(5000));
            self.input(&segments);
        }
        self.host.world().set_room(stream, 100_000);
        self.host.world().sends(stream, &pattern(30_000));
        self.settle();
        self.take();
        self.pass(Duration::from_secs(2));
        self.link.set_frames(0);
        guest.rcv_nxt = guest.rcv_nxt.wrapping_add(30_000);
        self.input(&[guest.segment().flags(FIN | ACK).frame()]);
        self.host.world().ends(stream);
        self.settle();
        self.link.set_frames(usize::MAX);
        self.nat.on_link_ready(self.now, &mut *self.host, &mut self.link);
        self.settle();
        self.take();
        let offload = Offload { checksum_partial: true, segment_size: 1460 };
        let bytes = guest.segment().flags(ACK | PSH).data(&pattern(4000)).frame();
        let frame = Frame { bytes: &bytes, offload };
        self.nat.receive(self.now, &[frame], &mut *self.host, &mut self.link);
    }

    /// Connections that fail, and a client of a forward.
    fn failures_and_forwards(&mut self) {
        self.host.world().on_connect(OTHER, Connect::Fails(HostError::NetUnreachable));
        self.input(&[TcpGuest::new(4001, OTHER).syn(None).frame()]);
        self.host.world().on_connect(OTHER, Connect::FailsAtOnce(HostError::NoResources));
        self.input(&[TcpGuest::new(4002, OTHER).syn(None).frame()]);
        let guest = "10.0.2.15:22".parse().expect("an address");
        let rule = Forward { protocol: Protocol::Tcp, host: PUBLIC, guest };
        let forward = self.nat.add_forward(rule, &mut *self.host).expect("a forward");
        let host = SocketAddr::new(PUBLIC.ip(), 2223);
        let udp = Forward { protocol: Protocol::Udp, host, guest };
        self.nat.add_forward(udp, &mut *self.host).expect("a forward");
        self.take();
        self.host.world().dial(PUBLIC, OTHER);
        self.settle();
        let syn = self.take().pop().expect("SYN");
        let guest = TcpGuest::answering(syn.tcp().expect("TCP"), 22);
        let seq = guest.snd_nxt.wrapping_sub(1);
        self.input(&[guest.segment().flags(SYN | ACK).seq(seq).frame()]);
        self.input(&[guest.segment().flags(build::RST).frame()]);
        assert!(self.nat.remove_forward(forward, &mut *self.host));
    }

    /// Datagrams, names, leases and pings.
    fn datagrams(&mut self) {
        self.nat.set_resolvers(&[RESOLVER]);
        self.input(&[build::udp(6000, (DNS, 53), &build::dns_query(7, "example.org"))]);
        let peer = (Ipv4Addr::new(203, 0, 113, 9), 7);
        self.input(&[build::udp(6001, peer, b"question")]);
        let socket = self.host.world().sent_datagrams().last().expect("a datagram").token;
        let remote = SocketAddr::from(peer);
        self.host.world().deliver(socket, &pattern(9000), DatagramMeta::new(remote));
        let report = DatagramError {
            error: HostError::TooBig { mtu: 1280 },
            offender: None,
            remote,
            quoted: None,
        };
        self.host.world().report(socket, report);
        self.settle();
        self.input(&[build::Dhcp::discover().frame(), build::arp_request(GATEWAY)]);
        self.input(&[build::ping(peer.0, 1, 1, b"ping"), build::ping(GATEWAY, 1, 1, b"ping")]);
        let first = build::IpBuilder::new(peer.0, build::UDP).fragments(&pattern(3000), &[1480]);
        self.input(&first[..1]);
        self.pass(Duration::from_secs(40));
        self.pass(Duration::from_secs(400));
    }
}

/// A session that uses every call, as it was recorded, and how many frames came out of it.
fn recording(kind: HostKind) -> (String, usize) {
    let memory = Memory::default();
    let mut session = Session::new(kind, memory.clone());
    session.input(&[build::gratuitous_arp()]);
    session.tcp();
    session.failures_and_forwards();
    session.datagrams();
    session.take();
    assert!(session.nat.failure().is_none());
    let frames = session.frames;
    drop(session);
    (memory.text(), frames)
}

fn again(text: &str) -> Result<Report, ReplayError> {
    let (report, result) = replay(text.as_bytes(), |_, _| {});
    result.map(|()| report)
}

fn divergence(text: &str) -> Divergence {
    match again(text) {
        Err(ReplayError::Diverged(divergence)) => *divergence,
        other => panic!("no divergence: {other:?}"),
    }
}

fn diverges_at(text: &str) -> u64 {
    divergence(text).line
}

/// What is wrong with a recording, and in which line.
fn fault(text: &str) -> (u64, Fault) {
    match again(text) {
        Err(ReplayError::Broken { line, fault }) => (line, fault),
        other => panic!("not broken: {other:?}"),
    }
}

/// The number of the first line that has all of `parts`, from 1.
fn line_with(text: &str, parts: &[&str]) -> usize {
    let position = text.lines().position(|line| parts.iter().all(|part| line.contains(part)));
    position.unwrap_or_else(|| panic!("no line with {parts:?}")) + 1
}

/// The number behind `label` in a line.
fn number_after<'t>(text: &'t str, number: usize, label: &str) -> &'t str {
    let line = text.lines().nth(number - 1).expect("the line");
    let rest = line.split_once(label).expect("the label").1;
    rest.split(|c: char| !c.is_ascii_digit()).next().expect("digits")
}

/// The text with the first `from` of one line replaced.
fn altered(text: &str, number: usize, from: &str, to: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = &mut lines[number - 1];
    assert!(line.contains(from), "{line}");
    *line = line.replacen(from, to, 1);
    lines.join("\n") + "\n"
}

#[test]
fn a_session_is_replayed_frame_by_frame_on_both_hosts() {
    for kind in [HostKind::Peeking, HostKind::Ring] {
        let (text, frames) = recording(kind);
        let report = again(&text).expect("the same again");
        let count = |part: &str| text.lines().filter(|line| line.starts_with(part)).count() as u64;
        assert_eq!(report.inputs, count("{\"input\""));
        assert_eq!(report.answers, count("{\"host\"") + count("{\"link\""));
        assert_eq!(report.frames, count("{\"sent\""));
        assert!(report.frames > 20 && report.frames <= frames as u64, "{report:?}, {frames}");
    }
}

/// The test is worth its name only if every call of the two traits occurs in it.
#[test]
fn the_session_uses_every_call() {
    let (text, _) = recording(HostKind::Peeking);
    for call in [
        "is_own_address",
        "connect",
        "connect_result",
        "peek",
        "consume",
        "send",
        "send_room",
        "arm_write",
        "shutdown_write",
        "close",
        "reset",
        "listen",
        "accept",
        "open_datagram",
        "bind_datagram",
        "send_datagram",
        "receive_datagram",
        "datagram_error",
    ] {
        let found = text.contains(&format!("{{\"host\":{{\"call\":{{\"{call}\":"));
        assert!(found, "{call} does not occur");
    }
    for call in
        ["receive", "flow_event", "forward_event", "add_forward", "remove_forward", "set_resolvers"]
    {
        assert!(text.contains(&format!("\"call\":{{\"{call}\":")), "{call} does not occur");
    }
    for call in ["\"call\":\"link_ready\"", "\"call\":\"timer\"", "\"call\":\"room\"", "reserve"] {
        assert!(text.contains(call), "{call} does not occur");
    }
}

/// Recordings made before there were boot options have none in their header.
#[test]
fn a_header_without_boot_options_is_read() {
    let (text, _) = recording(HostKind::Peeking);
    let boot = format!(
        "\"boot\":{{\"file\":\"{BOOT_FILE}\",\"next_server\":\"{SERVER_OF_BOOT_FILE}\",\
         \"server_name\":\"tftp.example\"}},"
    );
    let divergence = divergence(&altered(&text, 1, &boot, ""));
    let shown = divergence.to_string();
    assert!(shown.contains("10.0.2.2:67 > 10.0.2.15:68"), "the DHCP reply: {shown}");
}

#[test]
fn an_altered_input_is_found() {
    let (text, _) = recording(HostKind::Peeking);
    // The guest's SYN, with another source port: its checksum is wrong now.
    let input = line_with(&text, &["{\"input\"", "0fa00050"]);
    let line = diverges_at(&altered(&text, input, "0fa00050", "0fa10050"));
    assert!(line > input as u64);
}

#[test]
fn altered_host_data_is_found_in_the_frame_that_carries_it() {
    let (text, _) = recording(HostKind::Peeking);
    let answer = line_with(&text, &["{\"host\"", "\"peek\"", "\"data\":\"001f3e"]);
    let divergence = divergence(&altered(&text, answer, "001f3e", "001f3f"));
    assert!(divergence.line > answer as u64);
    let shown = divergence.to_string();
    for part in [
        "\n- frame of ",
        "\n+ frame of ",
        "TCP 203.0.113.5:80 > 10.0.2.15:4000 PSH ACK seq ",
        " 00 1f 3e",
        " 00 1f 3f",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn altered_data_of_the_guest_is_found_in_the_call_that_carries_it() {
    let (text, _) = recording(HostKind::Peeking);
    let send = line_with(&text, &["{\"host\"", "\"send\""]);
    let digest = number_after(&text, send, "\"digest\":");
    let other = (digest.parse::<u64>().expect("a number") ^ 1).to_string();
    let divergence = divergence(&altered(&text, send, digest, &other));
    assert_eq!(divergence.line, send as u64);
    let Act::Other(call) = divergence.replayed else { panic!("a frame") };
    assert!(call.starts_with("host: {\"send\""), "{call}");
}

#[test]
fn an_altered_frame_time_or_deadline_is_found() {
    let (text, _) = recording(HostKind::Peeking);
    let sent = line_with(&text, &["{\"sent\""]);
    let digest = number_after(&text, sent, "\"digest\":");
    let other = (digest.parse::<u64>().expect("a number") ^ 1).to_string();
    assert_eq!(diverges_at(&altered(&text, sent, digest, &other)), sent as u64);
    let due = line_with(&text, &["{\"due\":{\"at\":1", "}"]);
    assert_eq!(diverges_at(&altered(&text, due, "\"at\":1", "\"at\":2")), due as u64);
    let retransmission = line_with(&text, &["\"call\":\"timer\""]);
    let at = number_after(&text, retransmission, "\"at\":");
    diverges_at(&altered(&text, retransmission, at, "6000"));
}

#[test]
fn another_secret_or_configuration_is_found() {
    let (text, _) = recording(HostKind::Peeking);
    diverges_at(&altered(&text, 1, "\"secret\":[", "\"secret\":[7"));
    diverges_at(&altered(&text, 1, "\"mtu\":1500", "\"mtu\":1400"));
    let invalid = altered(&text, 1, "\"mtu\":1500", "\"mtu\":15");
    assert!(matches!(fault(&invalid), (1, Fault::Configuration)));
}

#[test]
fn missing_lines_are_found() {
    let (text, _) = recording(HostKind::Peeking);
    for end in ["\n{\"end\":{}}\n", "}\n", "\n"] {
        let cut = text.strip_suffix(end).expect("the end");
        assert!(matches!(fault(cut), (_, Fault::Cut)), "{end:?}");
    }
    let sent = line_with(&text, &["{\"sent\""]);
    let without: Vec<&str> =
        text.lines().enumerate().filter(|(n, _)| n + 1 != sent).map(|(_, line)| line).collect();
    diverges_at(&without.join("\n"));
}

#[test]
fn what_is_no_recording_is_refused() {
    let (text, _) = recording(HostKind::Peeking);
    let later = altered(&text, 1, "\"version\":1", "\"version\":2");
    for other in ["", "\n", "{\"due\":{\"at\":null}}\n", "{\"header\":{}}\n", later.as_str()] {
        assert!(matches!(fault(other), (1, Fault::Header)), "{other}");
    }
    let pool = format!("\"pool\":{}", number_after(&text, 1, "\"pool\":"));
    let greedy = altered(&text, 1, &pool, "\"pool\":3000000000");
    assert!(matches!(fault(&greedy), (1, Fault::Configuration)));
    let header = text.lines().next().expect("a header");
    let misplaced = format!("{header}\n{{\"due\":{{\"at\":null}}}}\n");
    assert!(matches!(fault(&misplaced), (2, Fault::Misplaced)));
    let endless = format!("{header}\n{}", "7".repeat(17 << 20));
    assert!(matches!(fault(&endless), (2, Fault::TooLong)));
    for garbage in ["not json", "{\"input\":{\"at\":1,\"call\":\"dance\"}}", "{\"sent\":{}}"] {
        let broken = format!("{header}\n{garbage}\n");
        assert!(matches!(fault(&broken), (2, Fault::Syntax(_))), "{garbage}");
    }
}

/// A recording that cannot be written ends, and the NAT goes on.
#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut session = Session::new(HostKind::Peeking, Full);
    session.input(&[build::gratuitous_arp(), build::ping(GATEWAY, 1, 1, b"x")]);
    assert_eq!(session.take().len(), 1);
    assert_eq!(session.nat.failure().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
}
