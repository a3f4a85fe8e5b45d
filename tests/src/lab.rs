//! A NAT with everything around it, moved by the test alone.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use core::time::Duration;

use ipstack::Instant;
use ipstack::frag::FragmentSlot;
use managed::ManagedSlice;
use slirp_nat::host::{ForwardId, HostEvent};
use slirp_nat::link::{Frame, Offload};
use slirp_nat::{
    Config, Counters, Deadline, DropReason, Due, Flow, Forward, ForwardError, ForwardSlot, Lease,
    Nat, Permit, Protocol, Recovery, Secret, Storage,
};

use crate::build;
use crate::guest::TcpGuest;
use crate::host::{HostKind, LabHost, Log, RING_LEN, RINGS, World, new_host};
use crate::link::ScriptedLink;
use crate::packet::{Icmp, Packet, Tcp, Udp};

/// Sizes and policy of a lab.
#[derive(Debug)]
pub struct Setup {
    /// Configuration of the NAT.
    pub config: Config,
    /// Flows in its table.
    pub flows: usize,
    /// Permitted UDP remotes.
    pub permits: usize,
    /// Datagrams in reassembly.
    pub fragments: usize,
    /// Bytes for them.
    pub fragment_memory: usize,
    /// Bytes parked after short writes, and beyond gaps.
    pub pool: usize,
    /// TCP flows in want of something lost.
    pub recoveries: usize,
    /// Longest datagram for the guest.
    pub datagram: usize,
    /// Bytes of replies that wait for room.
    pub replies: usize,
    /// DHCP leases.
    pub leases: usize,
    /// Port forwards.
    pub forwards: usize,
    /// Bytes of the link's buffer.
    pub link_capacity: usize,
    /// Rings of a [`HostKind::Ring`] host.
    pub rings: usize,
    /// Bytes of each.
    pub ring_len: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            config: Config::default(),
            flows: 64,
            permits: 256,
            fragments: 8,
            fragment_memory: 8 * 65_536,
            pool: 256 * 1024,
            recoveries: 16,
            datagram: 65_535,
            replies: 16 * 1024,
            leases: 8,
            forwards: 8,
            link_capacity: 65_549,
            rings: RINGS,
            ring_len: RING_LEN,
        }
    }
}

impl Setup {
    /// The memory for a NAT of these sizes.
    #[must_use]
    pub fn storage(&self) -> Storage<'static> {
        Storage {
            flows: lent(Flow::EMPTY, self.flows),
            buckets: lent(0, self.flows.next_power_of_two()),
            permits: lent(Permit::EMPTY, self.permits),
            fragments: lent(FragmentSlot::EMPTY, self.fragments),
            fragment_memory: lent(0, self.fragment_memory),
            pool: lent(0, self.pool),
            recoveries: lent(Recovery::EMPTY, self.recoveries),
            datagram: lent(0, self.datagram),
            replies: lent(0, self.replies),
            leases: lent(Lease::EMPTY, self.leases),
            forwards: lent(ForwardSlot::EMPTY, self.forwards),
        }
    }
}

fn lent<T: Clone>(value: T, count: usize) -> ManagedSlice<'static, T> {
    vec![value; count].into()
}

/// The secret of every lab, so that all numbers are the same each time.
pub const SECRET: Secret = Secret([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);

/// A NAT, its host with the world behind it, its link and its clock.
#[expect(missing_debug_implementations, reason = "the host is a trait object")]
pub struct Lab {
    /// The NAT.
    pub nat: Nat<'static>,
    /// Its host.
    pub host: Box<dyn LabHost>,
    /// Its link.
    pub link: ScriptedLink,
    now: Instant,
}

impl Lab {
    /// A lab of default sizes whose guest has announced itself.
    #[must_use]
    pub fn new(kind: HostKind) -> Self {
        Self::with(kind, |_| {})
    }

    /// A lab whose setup is changed by `change`.
    #[must_use]
    pub fn with(kind: HostKind, change: impl FnOnce(&mut Setup)) -> Self {
        let mut lab = Self::without_guest(kind, change);
        lab.input(&build::gratuitous_arp());
        let answers = lab.take();
        assert!(answers.is_empty(), "an announcement was answered: {answers:?}");
        lab
    }

    /// A lab whose guest has not been heard of.
    #[must_use]
    pub fn without_guest(kind: HostKind, change: impl FnOnce(&mut Setup)) -> Self {
        let mut setup = Setup::default();
        change(&mut setup);
        let mtu = usize::from(setup.config.mtu);
        let nat = Nat::new(setup.config.clone(), SECRET, setup.storage()).expect("a valid setup");
        let link = ScriptedLink::new(mtu, setup.link_capacity.max(mtu + 14));
        let host = new_host(kind, setup.rings, setup.ring_len);
        Self { nat, host, link, now: Instant::from_micros(1_000_000) }
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The outside world.
    pub fn world(&mut self) -> &mut World {
        self.host.world()
    }

    /// The host calls so far.
    pub fn log(&mut self) -> &mut Log {
        self.host.log()
    }

    /// Counters of the NAT.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.nat.stats().counters
    }

    /// How often something was dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.nat.stats().dropped(reason)
    }

    /// One frame from the guest; events are left undelivered.
    pub fn input(&mut self, frame: &[u8]) {
        self.input_batch(&[frame]);
    }

    /// A batch of frames from the guest; events are left undelivered.
    pub fn input_batch<F: AsRef<[u8]>>(&mut self, frames: &[F]) {
        let frames: Vec<Frame<'_>> = frames.iter().map(|f| Frame::new(f.as_ref())).collect();
        self.nat.receive(self.now, &frames, &mut *self.host, &mut self.link);
        self.check_fates();
    }

    /// Each TCP segment of the guest has come to exactly one end.
    fn check_fates(&self) {
        let stats = self.nat.stats();
        let sum: u64 = stats.segment_fates().map(|(_, count)| count).sum();
        assert_eq!(sum, stats.counters.tcp_segments_in, "{stats:?}");
    }

    /// One frame with work left undone.
    pub fn input_offloaded(&mut self, bytes: &[u8], offload: Offload) {
        let frame = Frame { bytes, offload };
        self.nat.receive(self.now, &[frame], &mut *self.host, &mut self.link);
        self.check_fates();
    }

    /// Frames, one a batch, and whatever follows.
    pub fn exchange<F: AsRef<[u8]>>(&mut self, frames: &[F]) -> Vec<Packet> {
        for frame in frames {
            self.input(frame.as_ref());
        }
        self.settle();
        self.take()
    }

    /// Delivers one event of the host, if any is owed.
    pub fn deliver_event(&mut self) -> Option<HostEvent> {
        let event = self.host.next_event()?;
        self.nat.on_host_event(self.now, event, &mut *self.host, &mut self.link);
        Some(event)
    }

    /// Delivers events and does what is due, without time passing, until nothing is left.
    pub fn settle(&mut self) {
        for _ in 0..100_000 {
            if self.deliver_event().is_none() && !self.timer_due_by(self.now) {
                return;
            }
        }
        panic!("the NAT never comes to rest: {:?}", self.nat.poll_at());
    }

    fn timer_due_by(&mut self, limit: Instant) -> bool {
        let Some(Deadline { at, .. }) = self.nat.poll_at().filter(|due| due.at <= limit) else {
            return false;
        };
        self.now = self.now.max(at);
        self.nat.on_timer(self.now, &mut *self.host, &mut self.link);
        true
    }

    /// Lets time pass, with a timer call at each deadline on the way.
    pub fn advance(&mut self, by: Duration) {
        let target = self.now.after(by);
        self.settle();
        while self.timer_due_by(target) {
            self.settle();
        }
        self.now = target;
    }

    /// Lets time pass until the next deadline, and says how long that took.
    pub fn advance_to_deadline(&mut self) -> Duration {
        let before = self.now;
        let Deadline { at, why } = self.nat.poll_at().expect("a deadline");
        assert_ne!(why, Due::Output, "output is due before time passes");
        self.now = self.now.max(at);
        self.nat.on_timer(self.now, &mut *self.host, &mut self.link);
        self.settle();
        self.now.since(before)
    }

    /// Lets time pass until a frame comes out, and says how long that took.
    pub fn advance_to_output(&mut self) -> Duration {
        let before = self.counters().frames_out;
        let mut waited = Duration::ZERO;
        for _ in 0..100 {
            waited += self.advance_to_deadline();
            if self.counters().frames_out > before {
                return waited;
            }
        }
        panic!("nothing comes out");
    }

    /// The clock jumps, as when a guest was paused: one timer call at the end.
    pub fn jump(&mut self, by: Duration) {
        self.now = self.now.after(by);
        self.nat.on_timer(self.now, &mut *self.host, &mut self.link);
    }

    /// Gives the link room for `frames` and tells the NAT.
    pub fn link_ready(&mut self, frames: usize) {
        self.link.set_frames(frames);
        self.nat.on_link_ready(self.now, &mut *self.host, &mut self.link);
    }

    /// Takes the frames for the guest.
    pub fn take(&mut self) -> Vec<Packet> {
        self.link.take()
    }

    /// Takes the frames for the guest, which must be TCP segments.
    pub fn take_tcp(&mut self) -> Vec<Tcp> {
        self.take().into_iter().map(tcp_of).collect()
    }

    /// Takes the one TCP segment for the guest.
    pub fn take_one_tcp(&mut self) -> Tcp {
        one(self.take_tcp())
    }

    /// Takes the one UDP datagram for the guest.
    pub fn take_one_udp(&mut self) -> Udp {
        let packet = one(self.take());
        packet.udp().cloned().unwrap_or_else(|| panic!("not UDP: {packet:?}"))
    }

    /// Takes the one ICMP message for the guest.
    pub fn take_one_icmp(&mut self) -> Icmp {
        let packet = one(self.take());
        packet.icmp().cloned().unwrap_or_else(|| panic!("not ICMP: {packet:?}"))
    }

    /// There is no frame for the guest.
    pub fn expect_nothing(&mut self) {
        let packets = self.take();
        assert!(packets.is_empty(), "unexpected: {packets:#?}");
    }

    /// A connection that the guest has opened to `remote`, MSS 1,460 and no other option.
    pub fn connect(&mut self, port: u16, remote: SocketAddrV4) -> TcpGuest {
        let mut guest = TcpGuest::new(port, remote);
        guest.open(self, Some(1460));
        guest
    }

    /// A port forward to `guest_port` of the guest, or the reason why not.
    ///
    /// # Errors
    /// As [`Nat::add_forward`].
    pub fn forward(
        &mut self,
        protocol: Protocol,
        host: SocketAddr,
        guest_port: u16,
    ) -> Result<ForwardId, ForwardError> {
        let guest = SocketAddr::from((Ipv4Addr::UNSPECIFIED, guest_port));
        self.add_forward(Forward { protocol, host, guest })
    }

    /// See [`Nat::add_forward`].
    ///
    /// # Errors
    /// As there.
    pub fn add_forward(&mut self, rule: Forward) -> Result<ForwardId, ForwardError> {
        self.nat.add_forward(rule, &mut *self.host)
    }
}

/// The TCP segment of a packet that must be one.
#[must_use]
pub fn tcp_of(packet: Packet) -> Tcp {
    packet.tcp().cloned().unwrap_or_else(|| panic!("not TCP: {packet:?}"))
}

/// The only element.
#[must_use]
pub fn one<T: core::fmt::Debug>(mut items: Vec<T>) -> T {
    assert_eq!(items.len(), 1, "one was expected: {items:#?}");
    items.remove(0)
}
