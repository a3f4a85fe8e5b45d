//! A NAT between the guest's ends and the host's sockets, and what must hold after each step.

use core::time::Duration;

use ipstack::pool::BLOCK_LEN;
use slirp_nat::Counters;
use slirp_nat::link::Room;
use slirpkit_tests::{HostKind, Lab, Packet, Setup, Watch};

use super::guest::Guest;
use super::streams::{Output, Streams};
use super::{CONNECTIONS, Event, Pool, Sizes};

/// The longest that a silent flow lives: the keep-alive of TCP, 2 hours and a few probes.
const SILENCE: Duration = Duration::from_secs(3 * 3600);

/// Flows in the table.
const FLOWS: usize = 8;

/// How often the flows may be visited in one step besides four times for each frame, and once for
/// each connection in each tenth of a second.
const VISITS: u64 = 64;

pub(super) struct Bench {
    pub(super) lab: Lab,
    pub(super) watch: Watch,
    pub(super) guest: Guest,
    pub(super) streams: Streams,
    pub(super) batch: Vec<Vec<u8>>,
    frames: u64,
}

impl Sizes {
    fn apply(self, setup: &mut Setup) {
        setup.config.mtu = self.mtu.clamp(slirp_nat::MIN_MTU, slirp_nat::MAX_MTU);
        setup.pool = BLOCK_LEN
            * match self.pool {
                Pool::Empty => 0,
                Pool::Tiny(blocks) => usize::from(blocks % 8) + 1,
                Pool::Large => 256,
            };
        setup.recoveries = usize::from(self.recoveries % 4);
        setup.flows = FLOWS;
        (setup.rings, setup.ring_len) = (FLOWS, 8192);
        (setup.fragments, setup.fragment_memory, setup.datagram) = (0, 0, 0);
    }
}

impl Bench {
    pub(super) fn new(sizes: Sizes) -> Self {
        let kind = if sizes.ring_host { HostKind::Ring } else { HostKind::Peeking };
        let mut lab = Lab::with(kind, |setup| sizes.apply(setup));
        if sizes.queue > 0 {
            lab.link.guest_queue_frames = sizes.queue.into();
        }
        let watch = Watch::new(lab.nat.config().mtu);
        let streams = Streams::new(&mut lab);
        let frames = lab.counters().frames_in;
        Self { lab, watch, guest: Guest::new(), streams, batch: Vec::new(), frames }
    }

    pub(super) fn take(&mut self, event: &Event) {
        let before = self.lab.counters();
        let start = self.lab.now();
        match *event {
            Event::Guest(connection, ref segment) => {
                return self.batch.extend(self.guest.send(connection % CONNECTIONS, segment));
            }
            Event::Lose(connection, count) => {
                return self.guest.lose(connection % CONNECTIONS, count);
            }
            Event::Batch => self.hand_over(),
            Event::Host(connection, event) => {
                self.streams.act(&mut self.lab, connection % CONNECTIONS, event);
            }
            Event::Room(255) => self.lab.link_ready(usize::MAX),
            Event::Room(frames) => self.lab.link_ready(frames.into()),
            Event::Wait { millis } => self.lab.advance(Duration::from_millis(millis.into())),
            Event::Deadline => self.wait_for_deadline(Duration::MAX),
            Event::Jump { seconds } => self.lab.jump(Duration::from_secs(seconds.into())),
        }
        self.rest();
        let passed = self.lab.now().since(start);
        check_work(&before, &self.lab.counters(), passed);
    }

    /// The batch is taken as one. What it makes is looked at behind all of it.
    pub(super) fn hand_over(&mut self) {
        for frame in &self.batch {
            if let Some(segment) = Packet::parse(frame.clone()).tcp() {
                self.watch.on_guest_segment(segment);
            }
        }
        self.frames += self.batch.len() as u64;
        self.lab.input_batch(&core::mem::take(&mut self.batch));
    }

    /// Time passes until something is due, or as much as `most`.
    pub(super) fn wait_for_deadline(&mut self, most: Duration) {
        let now = self.lab.now();
        if let Some(deadline) = self.lab.nat.poll_at() {
            self.lab.advance(deadline.at.since(now).min(most));
        }
    }

    pub(super) fn rest(&mut self) {
        self.lab.settle();
        // A connection may be over, and another in its place.
        self.streams.take(&mut self.lab, &self.watch);
        for packet in self.lab.take() {
            if let Some(segment) = packet.tcp() {
                self.watch.on_nat_segment(segment);
                self.streams.note(&mut self.lab, segment);
                self.guest.take(segment);
            }
        }
        self.streams.check(&mut self.lab, &self.watch, &self.guest);
        let (consumed, taken) = (self.lab.host.consumed(), self.watch.taken_in_all());
        assert!(consumed <= taken, "{consumed} bytes are forgotten, and the guest has {taken}");
        let counters = self.lab.counters();
        let dropped = self.lab.nat.stats().dropped_total();
        check_counters(&counters, dropped, &self.streams.out, self.frames);
        self.check_flows(&counters);
        self.lab.log().take();
    }

    pub(super) fn check_flows(&mut self, counters: &Counters) {
        let begun = counters.tcp_opened + counters.tcp_accepted;
        let over = counters.tcp_closed + counters.tcp_aborted;
        let open = self.lab.world().open_streams().len() as u64;
        assert!(begun == over + open, "{begun} opened or accepted, {over} over and {open} open");
        assert!(self.lab.nat.flow_count() <= FLOWS, "{} flows", self.lab.nat.flow_count());
        let taken = self.streams.taken();
        assert!(taken <= counters.tcp_bytes_in, "{taken} bytes came of {}", counters.tcp_bytes_in);
        let parked = (self.lab.nat.pool_blocks_in_use() * BLOCK_LEN) as u64;
        let lost = counters.tcp_bytes_in - taken;
        let nothing_failed = counters.tcp_aborted == 0 && !self.streams.have_failed();
        assert!(lost <= parked || !nothing_failed, "{lost} bytes went nowhere");
    }

    pub(super) fn fall_silent(&mut self) {
        self.lab.link.set_room(Room { frames: usize::MAX, bytes: usize::MAX });
        self.lab.link_ready(usize::MAX);
        self.lab.advance(SILENCE);
        self.rest();
        self.check_nothing_is_left();
    }

    pub(super) fn check_nothing_is_left(&mut self) {
        let (flows, blocks) = (self.lab.nat.flow_count(), self.lab.nat.pool_blocks_in_use());
        let (sockets, resets) = (self.lab.world().open_sockets(), self.streams.out.resets);
        let left = (flows, blocks, sockets, self.lab.counters().tcp_resets_out - resets);
        // The listener stays.
        assert_eq!(left, (0, 0, 1, 0), "flows, blocks, sockets and unsent resets: what is left");
    }
}

/// What was seen is what was counted, and every frame of the guest's has a fate: one flow or another,
/// or a reason why not.
pub(super) fn check_counters(counters: &Counters, dropped: u64, out: &Output, frames: u64) {
    let counted = Output {
        bytes: counters.tcp_bytes_out,
        bytes_again: counters.tcp_bytes_retransmitted,
        bare: counters.tcp_acks_out,
        // Some may wait for room.
        resets: counters.tcp_resets_out.min(out.resets),
    };
    assert_eq!(counted, *out, "{counters:?}");
    assert_eq!(counters.frames_in, frames, "frames of the guest");
    // The first frame, an announcement, is neither a segment nor dropped.
    let fates = 1 + counters.tcp_segments_in + dropped;
    assert!(frames <= fates, "{frames} frames and {fates} fates: {counters:?}");
}

/// The work is in proportion to what happened.
pub(super) fn check_work(before: &Counters, after: &Counters, passed: Duration) {
    let traffic = |c: &Counters| c.frames_in + c.frames_out;
    let tenths = (passed.as_millis() / 100) as u64;
    let most = VISITS + 4 * (traffic(after) - traffic(before)) + tenths * u64::from(CONNECTIONS);
    let visits = after.flow_visits - before.flow_visits;
    assert!(visits <= most, "{visits} visits where {most} are enough: {after:?}");
}
