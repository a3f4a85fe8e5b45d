//! Guest, network, NAT and servers, in time that nothing else moves.

use core::time::Duration;

use ipstack::Instant;
use ipstack::pool::{BLOCK_DATA_LEN, BLOCK_LEN};
use slirp_nat::DropReason;
use slirpkit_tests::packet::Packet;
use slirpkit_tests::{Lab, Watch};

use crate::flow::{Flow, Saved};
use crate::guest::Guest;
use crate::lifetime::Lifetimes;
use crate::network::{Network, Sent, Way};
use crate::plan::{Opener, Plan};
use crate::snapshot::Snapshot;

/// How long the connections of a simulation may take together.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// How long they may do nothing: some timeouts in a row, each of a minute at most.
const STANDSTILL: Duration = Duration::from_secs(10 * 60);

/// How long connections may last whose guest says nothing, all waits together: keep-alives after two
/// hours, and the retransmissions of what was on its way.
const SILENCE: Duration = Duration::from_secs(3 * 3600);

/// What a simulation came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How long the connections took.
    pub(crate) took: Duration,
    /// How many bytes they moved.
    pub(crate) bytes: u64,
}

/// All of it.
pub(crate) struct Simulation {
    plan: Plan,
    /// Every connection is to end in good order.
    orderly: bool,
    lab: Lab,
    guest: Guest,
    network: Network,
    watch: Watch,
    lifetimes: Lifetimes,
    flows: Vec<Flow>,
    /// The guest's earlier state, and that of its programs.
    snapshot: Option<(Snapshot, Vec<Saved>)>,
}

impl Simulation {
    pub(crate) fn new(seed: u64) -> Self {
        let plan = Plan::of(seed);
        let mut lab = Lab::with(plan.host, |setup| {
            setup.config.mtu = plan.mtu;
            (setup.pool, setup.rings, setup.ring_len) = (plan.pool, 16, 65_536);
        });
        if plan.queue_known {
            lab.link.guest_queue_frames = plan.queue.unwrap_or(usize::MAX);
        }
        let new_guest = if plan.goes_back.is_some() { Guest::recorded } else { Guest::new };
        let mut guest = new_guest(plan.mtu, seed);
        let flows: Vec<Flow> = (0..)
            .zip(&plan.flows)
            .map(|(number, flow)| Flow::new(number, seed, flow, &mut guest))
            .collect();
        for flow in &flows {
            flow.prepare(&mut lab, &mut guest);
        }
        let (network, watch) = (Network::new(&plan, seed), Watch::new(plan.mtu));
        let (orderly, lifetimes) = (plan.is_orderly(), Lifetimes::default());
        Self { plan, orderly, lab, guest, network, watch, lifetimes, flows, snapshot: None }
    }

    fn now(&self) -> u64 {
        self.lab.now().micros()
    }

    /// Lets everything happen.
    pub(crate) fn run(mut self) -> Outcome {
        let begin = self.lab.now();
        let (mut done, mut moved) = (0, begin);
        while !self.is_over() {
            self.step(u64::MAX);
            let now = self.lab.now();
            let progress = self.flows.iter().map(Flow::progress).sum();
            if core::mem::replace(&mut done, progress) != progress {
                moved = now;
            }
            let stands = now.since(moved) > STANDSTILL;
            let late = now.since(begin) > LIMIT;
            assert!(!late && !stands, "no end: {:#?} {:#?}", self.flows, self.lab.counters());
        }
        let took = self.lab.now().since(begin);
        self.fall_silent();
        let counters = self.lab.counters();
        Outcome { took, bytes: counters.tcp_bytes_in + counters.tcp_bytes_out }
    }

    /// Lets time pass while there is a flow, or a frame on its way.
    fn wait(&mut self, limit: Duration) {
        let limit = self.lab.now().after(limit);
        let busy = |this: &Self| this.lab.nat.flow_count() > 0 || !this.network.is_empty();
        while self.lab.now() < limit && busy(self) {
            self.step(limit.micros());
        }
    }

    fn is_over(&mut self) -> bool {
        let now = self.now();
        if self.plan.vanishes.is_some_and(|at| now >= at) {
            return true;
        }
        let Self { lab, guest, flows, .. } = self;
        flows.iter_mut().all(|flow| flow.may_break || flow.is_over(lab, guest))
    }

    /// Goes on to whatever happens next, or to `limit`.
    fn step(&mut self, limit: u64) {
        let now = self.now();
        let flows = self.flows.iter().map(Flow::due).min();
        let nat = self.lab.nat.poll_at().map(|deadline| deadline.at.micros());
        let turn = self.plan.goes_back.map(|(snapshot, back)| snapshot.min(back));
        let due = [self.network.next_arrival(), self.guest.poll_at(now), flows, nat, turn];
        let next = due.into_iter().flatten().min().unwrap_or(limit).clamp(now, limit);
        self.lab.advance(Instant::from_micros(next).since(self.lab.now()));
        self.travel(next);
        self.carry_to_guest();
        while let Some(sent) = self.network.arrived(next) {
            match sent.way {
                Way::ToGuest => self.guest.take(next, sent),
                Way::ToNat => self.deliver(sent),
            }
        }
        for index in 0..self.flows.len() {
            let Self { flows, lab, guest, .. } = self;
            flows[index].act(next, lab, guest);
        }
        self.lab.settle();
        self.carry_to_guest();
        for frame in self.guest.poll(next) {
            self.network.carry(next, Way::ToNat, frame);
        }
        self.check();
        self.lab.log().take();
    }

    /// Takes the guest's snapshot, or has it go back to that, when it is time.
    fn travel(&mut self, now: u64) {
        let Some((snapshot, back)) = self.plan.goes_back else { return };
        if snapshot <= now && snapshot < back {
            let saved = self.flows.iter().map(|flow| flow.save(&self.guest)).collect();
            self.snapshot = self.guest.snapshot().map(|snapshot| (snapshot, saved));
            self.plan.goes_back = Some((back, back));
        } else if back <= now {
            self.plan.goes_back = None;
            let Some((snapshot, saved)) = self.snapshot.take() else { return };
            self.guest = snapshot.restore();
            self.flows.iter_mut().zip(&saved).for_each(|(flow, saved)| flow.go_back(saved));
        }
    }

    fn deliver(&mut self, Sent { frame, intact, .. }: Sent) {
        self.lab.input(&frame);
        if intact && let Some(segment) = Packet::parse(frame).tcp() {
            self.watch.on_guest_segment(segment);
            self.lifetimes.on_guest_segment(self.now(), segment);
        }
        self.lab.settle();
        self.carry_to_guest();
    }

    /// Sends on what the NAT has for the guest, as far as the link has room.
    fn carry_to_guest(&mut self) {
        loop {
            let now = self.now();
            let packets = self.lab.take();
            for packet in &packets {
                if let Some(segment) = packet.tcp() {
                    self.watch.on_nat_segment(segment);
                    self.lifetimes.on_nat_segment(now, segment);
                }
                self.network.carry(now, Way::ToGuest, packet.bytes.clone());
            }
            let Some(queue) = self.plan.queue else { return };
            if self.network.queued() >= queue {
                self.lifetimes.put_off(now);
            }
            self.lab.link_ready(queue.saturating_sub(self.network.queued()));
            self.lab.settle();
            if packets.is_empty() {
                return;
            }
        }
    }

    /// Nothing is acknowledged that is neither with the host nor in the pool, and nothing sent that
    /// the host did not give.
    fn check(&mut self) {
        let mut parked = 0;
        for flow in &self.flows {
            let Some((taken, given)) = flow.moved(&mut self.lab) else { continue };
            let (local, remote) = (flow.local, flow.remote);
            let sent = u64::from(self.watch.sent(local, remote));
            assert!(sent <= given, "{sent} bytes sent of {given}: {flow:?}");
            parked += u64::from(self.watch.acknowledged(local, remote)).saturating_sub(taken);
        }
        let pool = (self.plan.pool / BLOCK_LEN * BLOCK_DATA_LEN) as u64;
        assert!(parked <= pool, "{parked} bytes are acknowledged, and nobody has them");
        self.check_lifetimes();
    }

    /// Nothing is there any more whose time is over.
    fn check_lifetimes(&mut self) {
        let now = self.now();
        for flow in &self.flows {
            if flow.is_held(&mut self.lab) {
                self.lifetimes.check(now, flow.local, flow.remote);
            }
        }
        if self.lifetimes.is_time_wait_over(now) {
            let (flows, held) = (self.lab.nat.flow_count(), self.lab.world().open_streams().len());
            assert_eq!(flows, held, "TIME-WAIT lasts too long: {:?}", self.flows);
        }
    }

    /// Lets time pass until no flow is left, nor anything on its way that could make one.
    fn fall_silent(&mut self) {
        // A SYN that came twice, the second time when its connection was over, makes another one.
        let asked = self.flows.iter().filter(|flow| flow.plan.opener == Opener::Guest).count();
        let clients = self.flows.len() - asked;
        let again = self.lab.world().connects() > self.flows.len();
        let orderly = self.orderly && !again;
        self.flows.iter_mut().for_each(Flow::fade);
        if !self.plan.quits {
            self.wait(SILENCE);
        }
        if self.flows.iter().any(|flow| flow.may_break) {
            // What is left of them is in step, and the guest's keep-alives hold it.
            self.flows.iter().for_each(|flow| flow.quit(&mut self.guest));
        }
        self.wait(SILENCE);
        assert_eq!(self.lab.nat.flow_count(), 0, "a flow outlives its time: {:?}", self.flows);
        assert_eq!(self.lab.world().open_sockets(), clients, "a socket outlives its flow");
        let counters = self.lab.counters();
        let begun = counters.tcp_opened + counters.tcp_accepted;
        assert_eq!(begun, counters.tcp_closed + counters.tcp_aborted, "{counters:?}");
        if orderly {
            let uploaded: u64 = self.flows.iter().map(|flow| flow.plan.upload).sum();
            let downloaded: u64 = self.flows.iter().map(|flow| flow.plan.download).sum();
            assert_eq!(counters.tcp_aborted, 0, "{counters:?}");
            assert_eq!(counters.tcp_bytes_in, uploaded);
            assert_eq!(counters.tcp_bytes_out - counters.tcp_bytes_retransmitted, downloaded);
            assert_eq!(self.lab.dropped(DropReason::HostError), 0);
        }
    }
}
