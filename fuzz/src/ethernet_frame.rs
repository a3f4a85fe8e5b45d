//! The whole NAT: frames of a guest, a host whose sockets do anything, a link that fills up and a
//! clock that jumps.
//!
//! The lab verifies every frame for the guest, and every call on the host against its contract.
//! Beyond that, all streams carry [`content`] by position, so that a byte out of place shows in
//! either direction; the NAT comes to rest whenever time stands still; and once guest and world
//! are silent, every flow ends.

use core::time::Duration;

use arbitrary::Arbitrary;
use slirp_nat::link::Room;
use slirp_nat::{Protocol, UdpFiltering, UdpMapping};
use slirpkit_tests::{HostKind, Lab, Setup};

use crate::Target;

mod frame;
mod guest;
mod world;

pub use frame::{FrameEvent, Sent, TcpEvent};
pub use world::{ConnectOutcome, WorldEvent};

use guest::Guest;
use world::Outside;

/// A setup and what happens then.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    /// Sizes and policy.
    pub policy: Policy,
    /// What happens, in this order.
    pub events: Vec<Event>,
}

/// Sizes and policy of the NAT.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Policy {
    /// The host cannot peek.
    pub ring_host: bool,
    /// The guest may reach the host.
    pub host_loopback: bool,
    /// UDP from anybody.
    pub full_cone: bool,
    /// A UDP mapping by destination.
    pub symmetric: bool,
    /// Tables of a few entries, and no memory where there need be none.
    pub tight: bool,
    /// Some of the MTUs.
    pub mtu: Mtu,
}

/// MTUs worth trying.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Mtu {
    /// 68 bytes, the least.
    Least,
    /// Ethernet's 1,500.
    Ethernet,
    /// 65,521 bytes, the most.
    Most,
}

/// One thing that happens.
#[derive(Arbitrary, Clone, Debug)]
pub enum Event {
    /// A frame, which joins the batch.
    Frame(FrameEvent),
    /// The batch is handed over.
    Batch,
    /// The host's sockets do something.
    World(WorldEvent),
    /// The link has room for this many frames of any size, 255 for any number, and says so.
    Room(u8),
    /// Time passes, with a call at each deadline.
    Wait {
        /// This much of it.
        millis: u16,
    },
    /// Time passes without a call, as for a paused guest.
    Jump {
        /// This much of it.
        seconds: u16,
    },
}

/// The byte at position `at` of every stream.
#[must_use]
pub fn content(at: u64) -> u8 {
    let [byte, ..] = (at ^ at >> 7 ^ at >> 16).wrapping_mul(151).to_le_bytes();
    byte
}

/// The bytes at positions from `start` on.
fn stream_bytes(start: u64, count: usize) -> Vec<u8> {
    (start..).take(count).map(content).collect()
}

/// The longest that a silent flow lives: the keep-alive of TCP, 2 hours and a few probes.
const SILENCE: Duration = Duration::from_secs(4 * 3600);

impl Target for Input {
    fn run(self) {
        let kind = if self.policy.ring_host { HostKind::Ring } else { HostKind::Peeking };
        let mut lab = Lab::with(kind, |setup| self.policy.apply(setup));
        let mut guest = Guest::default();
        let mut outside = Outside::new(&mut lab);
        let mut batch = Vec::new();
        for event in &self.events {
            match event {
                Event::Frame(frame) => batch.extend(frame.build(&mut guest)),
                Event::Batch => lab.input_batch(&core::mem::take(&mut batch)),
                Event::World(event) => outside.act(&mut lab, event),
                Event::Room(255) => lab.link_ready(usize::MAX),
                Event::Room(frames) => lab.link_ready(usize::from(*frames)),
                Event::Wait { millis } => lab.advance(Duration::from_millis((*millis).into())),
                Event::Jump { seconds } => lab.jump(Duration::from_secs((*seconds).into())),
            }
            if !matches!(event, Event::Frame(_)) {
                rest(&mut lab, &mut guest);
            }
        }
        lab.input_batch(&batch);
        rest(&mut lab, &mut guest);
        fall_silent(&mut lab, &mut guest, &outside);
    }
}

fn rest(lab: &mut Lab, guest: &mut Guest) {
    lab.settle();
    for packet in lab.take() {
        guest.take(&packet);
    }
    Outside::check(lab, guest);
}

fn fall_silent(lab: &mut Lab, guest: &mut Guest, outside: &Outside) {
    lab.link.set_room(Room { frames: usize::MAX, bytes: usize::MAX });
    lab.link_ready(usize::MAX);
    lab.advance(SILENCE);
    rest(lab, guest);
    assert_eq!(lab.nat.flow_count(), 0, "a flow outlives the silence");
    assert_eq!(lab.world().open_sockets(), outside.forwards(), "a socket outlives its flow");
}

impl Policy {
    fn apply(self, setup: &mut Setup) {
        setup.config.mtu = match self.mtu {
            Mtu::Least => slirp_nat::MIN_MTU,
            Mtu::Ethernet => 1500,
            Mtu::Most => slirp_nat::MAX_MTU,
        };
        setup.config.host_loopback = self.host_loopback;
        if self.full_cone {
            setup.config.udp_filtering = UdpFiltering::EndpointIndependent;
        }
        if self.symmetric {
            setup.config.udp_mapping = UdpMapping::AddressAndPortDependent;
        }
        setup.config.resolvers.extend(["192.0.2.53:53".parse().expect("an address")]);
        let few = if self.tight { 1 } else { 4 };
        (setup.flows, setup.permits, setup.leases) = (4 * few, 4 * few, few);
        (setup.fragments, setup.fragment_memory) = (2 * few, 8192 * few);
        (setup.pool, setup.datagram) = (4096 * few, 2048 * few * few);
        (setup.replies, setup.forwards) = (1024 * few, 4);
        (setup.rings, setup.ring_len) = (4 * few, 4096);
        if self.tight {
            (setup.pool, setup.fragments, setup.replies) = (0, 0, 0);
        }
        setup.link_capacity = if self.tight { 0 } else { 8192 };
    }
}

/// The forwards that every lab has: protocol, port of the host, port of the guest.
const FORWARDS: [(Protocol, u16, u16); 2] = [(Protocol::Tcp, 8080, 80), (Protocol::Udp, 5353, 53)];
