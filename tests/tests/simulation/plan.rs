//! What a seed decides.

use core::ops::RangeInclusive;

use slirpkit_tests::HostKind;
use slirpkit_tests::numbers::Numbers;

/// When a simulation begins, in microseconds.
const START: u64 = 1_000_000;

/// All of a simulation.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) host: HostKind,
    pub(crate) mtu: u16,
    /// From then on, in microseconds, the way to the guest carries no longer packets than this.
    pub(crate) narrowed: Option<(u64, u16)>,
    /// Bytes of the parking pool.
    pub(crate) pool: usize,
    /// Frames that the link to the guest holds.
    pub(crate) queue: Option<usize>,
    /// Whether the NAT knows of that.
    pub(crate) queue_known: bool,
    /// On the way to the NAT, and to the guest.
    pub(crate) weather: [Weather; 2],
    /// When the guest is cut off for good, in microseconds.
    pub(crate) vanishes: Option<u64>,
    /// From when the guest has a snapshot, and when it goes back to that, in microseconds.
    pub(crate) goes_back: Option<(u64, u64)>,
    /// Whether its programs end after that, or stay where they are.
    pub(crate) quits: bool,
    pub(crate) flows: Vec<FlowPlan>,
}

/// What a way does to frames, each per mille.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) lost: usize,
    pub(crate) corrupted: usize,
    pub(crate) doubled: usize,
    pub(crate) late: usize,
    /// Microseconds on the way, and how many more if late.
    pub(crate) delay: RangeInclusive<usize>,
    pub(crate) lateness: RangeInclusive<usize>,
}

/// Who opens a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opener {
    Guest,
    /// A client, by a port forward.
    Client,
}

/// How a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// When both have said all, the guest at once and the server at once, or one after the other.
    Orderly { guest_waits: bool, server_waits: bool },
    /// The server refuses the connection.
    Refused,
    /// The server resets it when it has sent this much, or at its last byte.
    ServerResets { sent: u64 },
    /// The guest resets it when it has received this much, or at its last byte.
    GuestAborts { received: u64 },
}

/// How much at a time, and how often.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub(crate) bytes: RangeInclusive<usize>,
    pub(crate) micros: RangeInclusive<usize>,
    /// One time in so many it does nothing for seconds.
    pub(crate) stalls_one_in: usize,
}

/// One connection.
#[derive(Clone, Debug)]
pub(crate) struct FlowPlan {
    pub(crate) opener: Opener,
    /// When it begins, in microseconds.
    pub(crate) begins: u64,
    /// How long the server takes to accept, in microseconds.
    pub(crate) answers_after: u64,
    pub(crate) upload: u64,
    pub(crate) download: u64,
    pub(crate) ending: Ending,
    /// The guest's buffers.
    pub(crate) receive_buffer: usize,
    pub(crate) send_buffer: usize,
    pub(crate) delays_acks: bool,
    pub(crate) nagle: bool,
    pub(crate) guest: Pace,
    /// What the host holds for the server.
    pub(crate) host_buffer: usize,
    /// The host takes less than it promised, one time in so many.
    pub(crate) short_one_in: usize,
    pub(crate) server: Pace,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let n = &mut numbers;
        let rough = n.below(4);
        let mtu = n.pick(&[1500, 1500, 1500, 576, 296, 9000, 65_521]);
        let flows = 1 + n.below(4);
        let pool = n.pick(&[0, 4096, 65_536, 262_144]);
        let mut plan = Self {
            host: n.pick(&[HostKind::Peeking, HostKind::Ring]),
            mtu,
            narrowed: (n.below(6) == 0)
                .then(|| (START + n.below(3_000_000) as u64, n.pick(&[1400, 1280, 576, 296]))),
            pool,
            queue: (n.below(3) == 0).then(|| n.within(&(2..=16))),
            queue_known: n.below(2) == 0,
            weather: [Weather::of(n, rough), Weather::of(n, rough)],
            vanishes: (n.below(12) == 0).then(|| START + n.below(5_000_000) as u64),
            goes_back: None,
            quits: false,
            flows: (0..flows).map(|_| FlowPlan::of(n)).collect(),
        };
        if n.below(5) == 0 {
            plan.go_back(n);
        }
        plan
    }

    /// Has the guest go back to an earlier state. What begins after that is as good as ever.
    fn go_back(&mut self, n: &mut Numbers) {
        let snapshot = START + n.below(2_000_000) as u64;
        let back = snapshot + n.below(4_000_000) as u64;
        (self.vanishes, self.goes_back, self.quits) =
            (None, Some((snapshot, back)), n.below(2) == 0);
        for _ in 0..n.within(&(1..=2)) {
            let mut flow = FlowPlan::of(n);
            flow.begins += back;
            flow.ending = Ending::Orderly { guest_waits: false, server_waits: n.below(2) == 0 };
            self.flows.push(flow);
        }
    }

    /// Whether every connection is to end in good order.
    pub(crate) fn is_orderly(&self) -> bool {
        let orderly = |flow: &FlowPlan| matches!(flow.ending, Ending::Orderly { .. });
        self.vanishes.is_none() && self.goes_back.is_none() && self.flows.iter().all(orderly)
    }
}

impl Weather {
    /// `rough` is 0 for a way that loses nothing, and 3 for one that loses up to 30 %.
    fn of(n: &mut Numbers, rough: usize) -> Self {
        let delay = n.pick(&[10, 100, 1000, 20_000, 150_000]);
        let spread = n.pick(&[0, 0, delay / 4, delay]);
        Self {
            lost: n.below(1 + 100 * rough),
            corrupted: n.below(1 + 10 * rough),
            doubled: n.below(1 + 30 * rough),
            late: n.below(1 + 60 * rough),
            delay: delay..=delay + spread,
            lateness: delay..=delay * 4,
        }
    }
}

impl Pace {
    fn of(n: &mut Numbers) -> Self {
        let most = n.pick(&[10, 1000, 10_000, 100_000]);
        let (shortest, longest) = (n.pick(&[10, 1000]), n.pick(&[1000, 10_000, 100_000]));
        Self {
            bytes: 1..=most,
            micros: shortest..=longest,
            stalls_one_in: n.pick(&[0, 0, 50, 500]),
        }
    }
}

impl FlowPlan {
    fn of(n: &mut Numbers) -> Self {
        let (guest, server) = (Pace::of(n), Pace::of(n));
        let (upload, download) = [(); 2].map(|()| Self::length(n, &guest, &server)).into();
        let within = |n: &mut Numbers, length: u64| (n.next() % (length + 1)).min(length);
        let (guest_waits, server_waits) =
            n.pick(&[(false, false), (false, true), (true, false), (false, false)]);
        let opener = n.pick(&[Opener::Guest, Opener::Guest, Opener::Client]);
        let ending = match n.below(12) {
            0 if opener == Opener::Guest => Ending::Refused,
            1 => Ending::ServerResets { sent: within(n, download) },
            2 => Ending::GuestAborts { received: within(n, download) },
            _ => Ending::Orderly { guest_waits, server_waits },
        };
        Self {
            opener,
            begins: START + n.below(500_000) as u64,
            answers_after: n.pick(&[0, 0, 50_000, 5_000_000]),
            upload,
            download,
            ending,
            receive_buffer: n.pick(&[536, 4096, 16_384, 65_535, 262_144]),
            send_buffer: n.pick(&[536, 4096, 16_384, 65_535]),
            delays_acks: n.below(2) == 0,
            nagle: n.below(2) == 0,
            guest,
            host_buffer: n.pick(&[1000, 4096, 16_384, 65_536, 262_144]),
            short_one_in: n.pick(&[0, 3, 20]),
            server,
        }
    }

    /// Bytes of a stream: most are short, and so are those that move by crumbs.
    fn length(n: &mut Numbers, guest: &Pace, server: &Pace) -> u64 {
        let most = n.pick(&[1, 100, 3000, 30_000, 30_000, 150_000]);
        let steps = 500 * *guest.bytes.end().min(server.bytes.end());
        n.below(most.min(steps)) as u64
    }
}
