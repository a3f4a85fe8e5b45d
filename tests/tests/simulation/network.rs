//! The way between the NAT and the guest, which does to frames what a seed decides.

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, HashMap};

use slirpkit_tests::build::{ICMP, IpBuilder, icmp_message};
use slirpkit_tests::numbers::Numbers;

use crate::plan::{Plan, Weather};
use crate::trace::Trace;

/// Which way a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Way {
    ToNat,
    ToGuest,
}

/// So many frames of one connection get lost in a row at most, each way: otherwise connections
/// would be given up now and then, and rightly so.
const LOST_IN_A_ROW: u8 = 2;

/// Where the Ethernet header ends, and the ports of a TCP segment without IP options are.
const HEADER_LEN: usize = 14;
const PORTS: core::ops::Range<usize> = 34..38;

/// A frame on its way.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) way: Way,
    pub(crate) frame: Vec<u8>,
    /// No byte of it has been changed.
    pub(crate) intact: bool,
}

/// Frames on their way.
#[derive(Debug)]
pub(crate) struct Network {
    weather: [Weather; 2],
    narrowed: Option<(u64, u16)>,
    vanishes: Option<u64>,
    numbers: Numbers,
    /// By time of arrival, and in the order sent.
    frames: BTreeMap<(u64, u64), Sent>,
    sent: u64,
    last_arrival: [u64; 2],
    lost_in_a_row: HashMap<(Way, Vec<u8>), u8>,
    trace: Trace,
}

impl Network {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Self {
        Self {
            weather: plan.weather.clone(),
            narrowed: plan.narrowed,
            vanishes: plan.vanishes,
            numbers: Numbers(!seed),
            frames: BTreeMap::new(),
            sent: 0,
            last_arrival: [0; 2],
            lost_in_a_row: HashMap::new(),
            trace: Trace::new(),
        }
    }

    /// When the next frame arrives.
    pub(crate) fn next_arrival(&self) -> Option<u64> {
        self.frames.keys().next().map(|(at, _)| *at)
    }

    /// The next frame that has arrived by `now`.
    pub(crate) fn arrived(&mut self, now: u64) -> Option<Sent> {
        let first = self.frames.first_entry().filter(|entry| entry.key().0 <= now)?;
        let sent = first.remove();
        if sent.intact {
            self.trace.note(now, "comes", sent.way, &sent.frame);
        }
        Some(sent)
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// How many frames are on their way to the guest.
    pub(crate) fn queued(&self) -> usize {
        self.frames.values().filter(|sent| sent.way == Way::ToGuest).count()
    }

    /// A frame sets out.
    pub(crate) fn carry(&mut self, now: u64, way: Way, frame: Vec<u8>) {
        if self.vanishes.is_some_and(|at| now >= at) {
            return;
        }
        if way == Way::ToGuest
            && let Some((at, mtu)) = self.narrowed
            && now >= at
            && frame.len() > HEADER_LEN + usize::from(mtu)
        {
            return self.carry(now, Way::ToNat, fragmentation_needed(&frame, mtu));
        }
        let weather = self.weather[way as usize].clone();
        let copies = 1 + usize::from(self.happens(weather.doubled));
        for _ in 0..copies {
            let mut copy = Sent { way, frame: frame.clone(), intact: true };
            if !self.survives(&weather, &mut copy) {
                self.trace.note(now, "lost", way, &frame);
                continue;
            }
            let what = if copy.intact { "sent" } else { "broken" };
            self.trace.note(now, what, way, &frame);
            let mut at = now + self.numbers.within(&weather.delay) as u64;
            if self.happens(weather.late) {
                at += self.numbers.within(&weather.lateness) as u64;
            } else {
                at = at.max(self.last_arrival[way as usize]);
                self.last_arrival[way as usize] = at;
            }
            self.sent += 1;
            self.frames.insert((at, self.sent), copy);
        }
    }

    /// Whether a frame gets through, be it with a wrong byte.
    fn survives(&mut self, weather: &Weather, sent: &mut Sent) -> bool {
        let (lost, corrupted) = (self.happens(weather.lost), self.happens(weather.corrupted));
        let frame = &mut sent.frame;
        // ARP has no checksum, so that nothing protects it.
        let is_ip = frame[12..14] == [8, 0];
        let connection = if is_ip && frame[23] == 6 { frame[PORTS].to_vec() } else { vec![] };
        let in_a_row = self.lost_in_a_row.entry((sent.way, connection)).or_default();
        if !(lost || corrupted && is_ip) || *in_a_row == LOST_IN_A_ROW {
            *in_a_row = 0;
            return true;
        }
        *in_a_row += 1;
        if lost {
            return false;
        }
        let at = HEADER_LEN + self.numbers.below(frame.len() - HEADER_LEN);
        frame[at] ^= 1 << self.numbers.below(8);
        sent.intact = false;
        true
    }

    fn happens(&mut self, per_mille: usize) -> bool {
        self.numbers.below(1000) < per_mille
    }
}

/// What a router before the guest says of a frame that is too long (RFC 1191 4).
fn fragmentation_needed(frame: &[u8], mtu: u16) -> Vec<u8> {
    let quoted = &frame[HEADER_LEN..HEADER_LEN + 28];
    let [high, low] = mtu.to_be_bytes();
    let source = Ipv4Addr::new(quoted[12], quoted[13], quoted[14], quoted[15]);
    IpBuilder::new(source, ICMP).frame(&icmp_message(3, 4, [0, 0, high, low], quoted))
}
