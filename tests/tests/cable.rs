//! The cable between a card and the NAT: whose turn it is, what waits, and when it goes on.

#![expect(clippy::expect_used, clippy::panic, reason = "a test's mistake is to stop the test")]

use core::time::Duration;

use ipstack::Instant;
use ne2000::driver::{Driver, Ports};
use ne2000::{Model, Ne2000, Options, TransmitTiming, Width};
use slirp_nat::Nat;
use slirp_nat::card::{Cable, FRAME_LEN, RING_LEN};
use slirpkit_tests::build::{self, ACK, Dhcp, SYN, TcpBuilder, pattern};
use slirpkit_tests::guest::{GATEWAY, SERVER};
use slirpkit_tests::host::{LabHost, new_host};
use slirpkit_tests::lab::{SECRET, Setup, one, tcp_of};
use slirpkit_tests::numbers::Numbers;
use slirpkit_tests::packet::Packet;
use slirpkit_tests::{GUEST_IP, GUEST_MAC, HostKind, TcpGuest, on_both_hosts};

/// A machine whose card is on the NAT.
struct Machine {
    card: Ne2000,
    cable: Cable<'static>,
    nat: Nat<'static>,
    host: Box<dyn LabHost>,
    now: Instant,
}

impl Machine {
    fn new(kind: HostKind, model: Model, timing: TransmitTiming) -> Self {
        Self::with(kind, model, timing, &Setup::default())
    }

    fn with(kind: HostKind, model: Model, timing: TransmitTiming, setup: &Setup) -> Self {
        let options = Options { timing, ..Options::DEFAULT };
        Self {
            card: Ne2000::with_options(model, GUEST_MAC, options),
            cable: Cable::new(vec![0; RING_LEN]),
            nat: Nat::new(setup.config.clone(), SECRET, setup.storage()).expect("a valid setup"),
            host: new_host(kind, setup.rings, setup.ring_len),
            now: Instant::from_micros(1_000_000),
        }
    }

    fn turn_if_due(&mut self) {
        if self.cable.is_due(&self.card) {
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.cable.turn(self.now, &mut self.card, &mut self.nat, &mut *self.host);
    }

    /// Hands over every event that the host owes.
    fn deliver(&mut self) {
        let Self { card, cable, nat, host, now } = self;
        while let Some(event) = host.next_event() {
            cable.on_host_event(*now, event, card, nat, &mut **host);
        }
    }

    /// An access to any port, of any width, and now and then some time.
    fn mad_access(&mut self, numbers: &mut Numbers) {
        let port = if numbers.below(3) == 0 { CR } else { numbers.byte() & 0x1F };
        let width = numbers.pick(&[Width::Byte, Width::Byte, Width::Word, Width::Dword]);
        let likely = numbers.pick(&[0x00, 0x02, 0x04, 0x0A, 0x12, 0x1A, 0x21, 0x22, 0x26, 0x62]);
        let value = if numbers.below(2) == 0 { likely } else { u32::from(numbers.byte()) };
        if numbers.below(2) == 0 {
            self.write(port, width, value);
        } else {
            self.read(port, width);
        }
        assert!(!self.cable.is_due(&self.card), "due after a turn");
        if numbers.below(5) == 0 {
            self.now = self.now.after(Duration::from_micros(numbers.next() % 100_000));
            self.deliver();
        }
        if self.cable.poll_at(&self.card, &self.nat).is_some_and(|at| at <= self.now) {
            self.turn();
        }
        let next = self.cable.poll_at(&self.card, &self.nat);
        assert!(next.is_none_or(|at| at > self.now), "due after a turn");
    }

    /// Frames in the card's ring that came from the NAT.
    fn stored(&self) -> u64 {
        self.card.stats().stored
    }
}

impl Ports for Machine {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        let value = self.card.read(offset, width);
        self.turn_if_due();
        value
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        self.card.write(offset, width, value);
        self.turn_if_due();
    }
}

/// DHCP message types (RFC 2132 9.6).
const OFFER: u8 = 2;
const ACKNOWLEDGMENT: u8 = 5;

/// A machine and its running driver.
struct Guest {
    machine: Machine,
    driver: Driver,
}

impl Guest {
    fn new(kind: HostKind) -> Self {
        Self::with(kind, Model::Rtl8029As, Width::Dword, TransmitTiming::Instant)
    }

    fn with(kind: HostKind, model: Model, width: Width, timing: TransmitTiming) -> Self {
        let mut machine = Machine::new(kind, model, timing);
        let driver = Driver::start(&mut machine, width).expect("a card");
        Self { machine, driver }
    }

    fn send(&mut self, frame: &[u8]) {
        assert!(self.driver.send(&mut self.machine, frame), "the transmitter is busy");
    }

    /// The answer to a message, of which an interrupt tells.
    fn ask(&mut self, message: &Dhcp) -> Packet {
        self.send(&message.frame());
        assert!(self.machine.card.irq_level(), "nothing tells of the answer");
        // The transmission ends in its own time.
        if let Some(sent) = self.machine.cable.poll_at(&self.machine.card, &self.machine.nat) {
            self.machine.now = sent;
            self.machine.turn();
        }
        let answer = one(self.take());
        assert!(!self.machine.card.irq_level(), "everything has been served");
        answer
    }

    /// Everything in the ring, and what takes its place meanwhile.
    fn take(&mut self) -> Vec<Packet> {
        let mut buffer = [0; FRAME_LEN];
        let frames = core::iter::from_fn(|| {
            let length = self.driver.receive(&mut self.machine, &mut buffer)?;
            Some(Packet::parse(buffer[..length].to_vec()))
        });
        frames.collect()
    }

    /// A connection to [`SERVER`].
    fn connect(&mut self) -> TcpGuest {
        self.send(&build::gratuitous_arp());
        let mut tcp = TcpGuest::new(4000, SERVER);
        self.send(&tcp.syn(Some(1460)).frame());
        self.machine.deliver();
        let answer = tcp_of(one(self.take()));
        assert!(answer.has(SYN | ACK));
        tcp.snd_nxt += 1;
        tcp.rcv_nxt = answer.seq + 1;
        self.send(&tcp.segment().frame());
        tcp
    }
}

on_both_hosts! {
    /// The answer is there when the access that sent the question returns (void-box 6a5d8b5: a
    /// queued answer that nobody is told of).
    fn an_answer_is_in_the_ring_when_the_access_returns(kind) {
        let mut guest = Guest::new(kind);
        guest.send(&build::arp_request(GATEWAY));
        assert_eq!(guest.machine.stored(), 1);
        assert!(guest.machine.card.irq_level());
        let [packet] = &guest.take()[..] else { panic!("one frame was expected") };
        assert_eq!(packet.dst_mac, GUEST_MAC);
        assert_eq!(packet.bytes.len(), 60);
    }

    /// PCem #113, #305: drivers loaded, but no guest got a lease: broadcasts arrived, and what was
    /// sent to the station did not. From DISCOVER to ACK by registers and interrupts alone, on every
    /// card, with replies to the station and, if the client asks for them, to all.
    fn pcem_113_and_305_every_card_brings_its_guest_a_lease(kind) {
        for (model, width) in [
            (Model::Ne1000, Width::Byte),
            (Model::Ne2000EightBit, Width::Byte),
            (Model::Ne2000, Width::Word),
            (Model::Rtl8029As, Width::Dword),
        ] {
            for broadcast in [false, true] {
                let mut guest = Guest::with(kind, model, width, TransmitTiming::BitTime);
                let (discover, request) = (Dhcp::discover(), Dhcp::request(GUEST_IP, GATEWAY));
                for (message, answer) in [(discover, OFFER), (request, ACKNOWLEDGMENT)] {
                    let packet = guest.ask(&Dhcp { broadcast, ..message });
                    let to = if broadcast { build::BROADCAST } else { GUEST_MAC };
                    assert_eq!(packet.dst_mac, to, "{model:?}");
                    let reply = &packet.udp().expect("UDP").data;
                    assert_eq!(reply[16..20], GUEST_IP.octets(), "{model:?}: yiaddr");
                    assert_eq!(reply[240..243], [53, 1, answer], "{model:?}: message type");
                }
            }
        }
    }

    /// A burst fills the ring by one look at the socket, and nothing more comes until the driver
    /// has acknowledged it; everything comes, in order, and nothing twice.
    fn a_download_comes_in_bursts_and_nothing_is_refused(kind) {
        let mut guest = Guest::new(kind);
        let mut tcp = guest.connect();
        let stream = guest.machine.host.world().stream_to(SERVER);
        let data = pattern(1460 * 100);
        guest.machine.host.world().sends(stream, &data);
        let before = guest.machine.stored();
        guest.machine.deliver();
        assert_eq!(guest.machine.stored() - before, 8, "a ring full");
        let mut received = Vec::new();
        while received.len() < data.len() {
            let segments: Vec<_> = guest.take().into_iter().map(tcp_of).collect();
            assert!(!segments.is_empty(), "stuck at {} bytes", received.len());
            received.extend(tcp.absorb(&segments).0);
            guest.send(&tcp.segment().frame());
            guest.machine.deliver();
        }
        assert!(received == data);
        assert_eq!(guest.machine.card.stats().no_room, 0);
        assert_eq!(guest.machine.nat.stats().counters.tcp_bytes_retransmitted, 0);
        assert_eq!(guest.machine.nat.stats().dropped_total(), 0);
    }

    /// What the world sends while the driver has not acknowledged stays there, and comes by the
    /// acknowledgment alone: no event and no timer is needed.
    fn data_waits_for_the_acknowledgment_and_needs_nothing_else(kind) {
        let mut guest = Guest::new(kind);
        guest.connect();
        let stream = guest.machine.host.world().stream_to(SERVER);
        guest.machine.host.world().sends(stream, &pattern(100));
        guest.machine.deliver();
        guest.machine.read(ISR, Width::Byte);
        let before = guest.machine.stored();
        guest.machine.host.world().sends(stream, &pattern(200));
        guest.machine.deliver();
        assert_eq!(guest.machine.stored(), before, "the driver may have looked at CURR already");
        guest.machine.write(ISR, Width::Byte, PRX);
        assert_eq!(guest.machine.stored(), before + 1);
        let lengths: Vec<_> = guest.take().into_iter().map(|p| tcp_of(p).data.len()).collect();
        assert_eq!(lengths, [100, 200]);
    }

    /// An interface that is down takes nothing and loses nothing.
    fn a_stopped_card_holds_data_at_its_source(kind) {
        let mut guest = Guest::new(kind);
        guest.connect();
        let stream = guest.machine.host.world().stream_to(SERVER);
        guest.machine.write(CR, Width::Byte, 0x21);
        guest.machine.host.world().sends(stream, &pattern(500));
        guest.machine.deliver();
        let an_hour_later = guest.machine.now.after(Duration::from_secs(3600));
        while let Some(due) = guest.machine.cable.poll_at(&guest.machine.card, &guest.machine.nat)
            && due <= an_hour_later
        {
            guest.machine.now = guest.machine.now.max(due);
            guest.machine.turn();
        }
        assert_eq!(guest.machine.card.stats().stopped, 0);
        guest.machine.write(CR, Width::Byte, 0x22);
        let segment = tcp_of(one(guest.take()));
        assert_eq!(segment.data, pattern(500));
    }

    /// A driver out of its mind makes any accesses at all. After each, nothing more is due, and the
    /// clock is asked for once at most; and a driver that starts afresh gets all that the stream
    /// holds, whatever has become of the frames before.
    fn a_mad_driver_does_not_spin_the_cable_nor_starve_the_next_one(kind) {
        for seed in 0..20 {
            let mut guest = Guest::new(kind);
            let mut tcp = guest.connect();
            let stream = guest.machine.host.world().stream_to(SERVER);
            let data = pattern(100_000);
            guest.machine.host.world().sends(stream, &data);
            guest.machine.deliver();
            let mut numbers = Numbers(seed);
            for _ in 0..2_000 {
                guest.machine.mad_access(&mut numbers);
            }
            guest.driver = Driver::start(&mut guest.machine, Width::Dword).expect("a card");
            let mut received = Vec::new();
            for _ in 0..60 {
                guest.machine.now = guest.machine.now.after(Duration::from_secs(1));
                guest.machine.turn();
                guest.machine.deliver();
                let packets = guest.take().into_iter().filter(|packet| packet.tcp().is_some());
                for segment in packets.map(tcp_of).filter(|segment| !segment.data.is_empty()) {
                    if segment.seq == tcp.rcv_nxt {
                        tcp.rcv_nxt += u32::try_from(segment.data.len()).expect("a frame");
                        received.extend(segment.data);
                    }
                }
                guest.send(&tcp.segment().frame());
            }
            assert!(received == data, "seed {seed}: {} bytes", received.len());
        }
    }
}

/// Offsets of the command register and of ISR in page 0, and the bit of a reception.
const CR: u8 = 0x00;
const ISR: u8 = 0x07;
const PRX: u32 = 0x01;

#[test]
fn a_transmission_of_65535_bytes_goes_nowhere_and_completes() {
    let mut guest = Guest::new(HostKind::Peeking);
    for (port, value) in [(0x04, 0x40), (0x05, 0xFF), (0x06, 0xFF), (CR, 0x26)] {
        guest.machine.write(port, Width::Byte, value);
    }
    assert_eq!(guest.machine.cable.oversize(), 1);
    assert_eq!(guest.machine.read(CR, Width::Byte) & 0x04, 0, "the transmitter is free");
    guest.send(&build::arp_request(GATEWAY));
    assert_eq!(guest.take().len(), 1);
}

#[test]
fn a_frame_for_the_guest_longer_than_any_of_a_card_goes_nowhere() {
    let mut setup = Setup::default();
    setup.config.mtu = 9000;
    let mut machine =
        Machine::with(HostKind::Peeking, Model::Rtl8029As, TransmitTiming::Instant, &setup);
    let driver = Driver::start(&mut machine, Width::Dword).expect("a card");
    let mut guest = Guest { machine, driver };
    guest.send(&build::udp(6000, (*SERVER.ip(), SERVER.port()), b"question"));
    let world = guest.machine.host.world();
    let socket = one(world.take_sent_datagrams()).token;
    for answer in [&[1; 4000][..], b"short"] {
        world.deliver_from(socket, SERVER, answer);
    }
    guest.machine.deliver();
    assert_eq!(guest.machine.cable.oversize(), 1);
    assert_eq!(one(guest.take()).udp().expect("UDP").data, b"short");
}

#[test]
fn time_is_asked_for_by_whoever_needs_it_first() {
    let mut machine = Machine::new(HostKind::Peeking, Model::Rtl8029As, TransmitTiming::BitTime);
    assert_eq!(machine.cable.poll_at(&machine.card, &machine.nat), None);
    let mut driver = Driver::start(&mut machine, Width::Dword).expect("a card");
    assert!(driver.send(
        &mut machine,
        &TcpBuilder::new(TcpGuest::new(1, SERVER).local, SERVER).flags(SYN).frame()
    ));
    assert!(!driver.can_send(&mut machine), "its bits are still on their way");
    let sent = machine.cable.poll_at(&machine.card, &machine.nat).expect("a transmission");
    assert!(machine.nat.poll_at().is_some_and(|deadline| deadline.at > sent));
    machine.now = sent;
    machine.turn();
    assert!(driver.can_send(&mut machine));
    let flow = machine.cable.poll_at(&machine.card, &machine.nat);
    assert_eq!(flow, machine.nat.poll_at().map(|deadline| deadline.at));
}
