//! What must hold for every TCP segment for the guest, whoever the guest is and whatever it sends.
//!
//! A [`Watch`] sees all segments in the order in which the NAT takes and makes them, and panics
//! where one breaks a promise: an acknowledgment of what was never sent, a right edge that moves
//! back, text beyond the guest's window or MSS, a gap, a second end. What the bytes are is for the
//! test to compare, as are acknowledgments with what the host took: see [`Watch::acknowledged`].

use core::net::SocketAddrV4;
use std::collections::HashMap;

use crate::build::{ACK, FIN, RST, SYN};
use crate::packet::{Tcp, is_after};

/// The segment size of a guest that names none (RFC 9293 3.7.1).
const DEFAULT_MSS: u16 = 536;

/// The largest window scale (RFC 7323 2.3).
const MAX_SHIFT: u8 = 14;

/// What no window is larger than (RFC 7323 2.3); the NAT takes nothing from beyond.
const LARGEST_WINDOW: u32 = 1 << 30;

/// The guest's end and the far one.
type Ends = (SocketAddrV4, SocketAddrV4);

/// Watches the TCP connections of one NAT.
#[derive(Debug)]
pub struct Watch {
    connections: HashMap<Ends, Connection>,
    /// What the link's MTU leaves for text.
    link_mss: u16,
    /// What [`Watch::taken`] was of connections whose place another has taken.
    taken_before: u64,
}

/// What one end has said in its SYN.
#[derive(Clone, Copy, Debug)]
struct Syn {
    number: u32,
    mss: Option<u16>,
    shift: Option<u8>,
    sack: bool,
}

/// One connection between guest and NAT.
#[derive(Debug, Default)]
struct Connection {
    /// The guest's latest SYN, and those before it, of which a late one may still be answered.
    guest_syns: Vec<Syn>,
    /// Where the guest's FINs end.
    guest_ends: Vec<u32>,
    /// Once the NAT has sent a SYN.
    nat: Option<Nat>,
    /// One side has sent a reset since.
    was_reset: bool,
}

/// The NAT's side of a connection.
#[derive(Clone, Copy, Debug)]
struct Nat {
    syn: Syn,
    /// The guest's SYN, once the NAT has taken it.
    guest: Option<Syn>,
    /// It has sent something other than SYNs.
    is_synchronized: bool,
    /// The number behind the last that the guest has sent.
    guest_sent: u32,
    /// The last number acknowledged, and the right edge.
    acknowledged: u32,
    edge: u32,
    /// The number behind the last that the NAT has sent.
    sent: u32,
    /// The number behind its FIN.
    end: Option<u32>,
    /// The furthest that the guest may have acknowledged.
    taken: u32,
    /// The furthest right edge of the guest's window.
    guest_edge: u32,
}

fn later(a: u32, b: u32) -> u32 {
    if is_after(a, b) { a } else { b }
}

impl Syn {
    fn of(segment: &Tcp) -> Self {
        let shift = segment.window_scale().map(|shift| shift.min(MAX_SHIFT));
        let sack = segment.option(4).is_some();
        Self { number: segment.seq, mss: segment.mss(), shift, sack }
    }
}

impl Watch {
    /// Nothing seen yet, on a link of this MTU.
    #[must_use]
    pub fn new(mtu: u16) -> Self {
        Self { connections: HashMap::new(), link_mss: mtu - 40, taken_before: 0 }
    }

    /// The NAT is about to take this segment of the guest.
    pub fn on_guest_segment(&mut self, segment: &Tcp) {
        self.connections.entry((segment.src, segment.dst)).or_default().on_guest_segment(segment);
    }

    /// The NAT has made this segment for the guest.
    ///
    /// # Panics
    /// If it must not.
    pub fn on_nat_segment(&mut self, segment: &Tcp) {
        let link_mss = self.link_mss;
        let connection = self.connections.entry((segment.dst, segment.src)).or_default();
        if segment.has(RST) {
            connection.was_reset = true;
        } else if segment.has(SYN) {
            self.taken_before += connection.on_nat_syn(segment);
        } else {
            connection.on_nat_segment(segment, link_mss);
        }
    }

    /// How many bytes of text the guest has been acknowledged on the present connection between
    /// these ends: at most what the host took, and what is parked.
    #[must_use]
    pub fn acknowledged(&self, guest: SocketAddrV4, remote: SocketAddrV4) -> u32 {
        let Some(connection) = self.connections.get(&(guest, remote)) else { return 0 };
        let Some(Nat { guest: Some(syn), acknowledged, .. }) = connection.nat else { return 0 };
        let numbers = acknowledged.wrapping_sub(syn.number).wrapping_sub(1);
        numbers.saturating_sub(u32::from(connection.guest_ends.contains(&acknowledged)))
    }

    /// How many bytes more the guest may send there.
    #[must_use]
    pub fn window(&self, guest: SocketAddrV4, remote: SocketAddrV4) -> u32 {
        self.nat(guest, remote).map_or(0, |nat| nat.edge.wrapping_sub(nat.acknowledged))
    }

    /// The number of the guest's SYN on the present connection between these ends.
    #[must_use]
    pub fn guest_isn(&self, guest: SocketAddrV4, remote: SocketAddrV4) -> Option<u32> {
        Some(self.nat(guest, remote)?.guest?.number)
    }

    /// Whether the guest has said that it ends its stream behind `bytes` bytes of text on the
    /// present connection between these ends.
    #[must_use]
    pub fn guest_ends_at(&self, guest: SocketAddrV4, remote: SocketAddrV4, bytes: u32) -> bool {
        let Some(isn) = self.guest_isn(guest, remote) else { return false };
        let end = isn.wrapping_add(bytes).wrapping_add(2);
        let connection = self.connections.get(&(guest, remote));
        connection.is_some_and(|connection| connection.guest_ends.contains(&end))
    }

    /// How many bytes of text the NAT has sent on the present connection between these ends: at
    /// most what the host gave.
    #[must_use]
    pub fn sent(&self, guest: SocketAddrV4, remote: SocketAddrV4) -> u32 {
        self.nat(guest, remote).map_or(0, |nat| nat.text_before(nat.sent))
    }

    /// How many of them the guest may have acknowledged: at least what the host was let forget.
    #[must_use]
    pub fn taken(&self, guest: SocketAddrV4, remote: SocketAddrV4) -> u32 {
        self.nat(guest, remote).map_or(0, Nat::taken_text)
    }

    /// The same of all connections, present and past.
    #[must_use]
    pub fn taken_in_all(&self) -> u64 {
        let nats = self.connections.values().filter_map(|connection| connection.nat.as_ref());
        self.taken_before + nats.map(|nat| u64::from(nat.taken_text())).sum::<u64>()
    }

    /// Whether the NAT has sent a FIN on the present connection between these ends.
    #[must_use]
    pub fn has_ended(&self, guest: SocketAddrV4, remote: SocketAddrV4) -> bool {
        self.nat(guest, remote).is_some_and(|nat| nat.end.is_some())
    }

    fn nat(&self, guest: SocketAddrV4, remote: SocketAddrV4) -> Option<&Nat> {
        self.connections.get(&(guest, remote))?.nat.as_ref()
    }
}

impl Connection {
    fn on_guest_segment(&mut self, segment: &Tcp) {
        if segment.has(RST) {
            self.was_reset = true;
            return;
        }
        if segment.has(SYN) {
            self.guest_syns.retain(|syn| syn.number != segment.seq);
            self.guest_syns.push(Syn::of(segment));
        }
        if segment.has(FIN) {
            self.guest_ends.push(segment.seq_end());
        }
        let Some(nat) = &mut self.nat else { return };
        if nat.guest.is_none() {
            nat.on_answer(segment);
        }
        if segment.seq_end().wrapping_sub(nat.acknowledged) <= LARGEST_WINDOW {
            nat.guest_sent = later(nat.guest_sent, segment.seq_end());
        }
        if segment.has(ACK) && !is_after(segment.ack, nat.sent) {
            let shift = if segment.has(SYN) { 0 } else { nat.guest_shift() };
            let edge = segment.ack.wrapping_add(u32::from(segment.window) << shift);
            nat.guest_edge = later(nat.guest_edge, edge);
            nat.taken = later(nat.taken, segment.ack);
        }
    }

    fn on_nat_segment(&mut self, segment: &Tcp, link_mss: u16) {
        let nat = self.nat.as_mut().unwrap_or_else(|| panic!("no SYN before {segment:?}"));
        assert!(nat.guest.is_some(), "before the guest's SYN: {segment:?}");
        nat.is_synchronized = true;
        nat.check_acknowledgment(segment);
        nat.check_blocks(segment);
        nat.check_text(segment, link_mss);
    }

    /// Returns how much text the guest had taken of a connection that is over.
    fn on_nat_syn(&mut self, segment: &Tcp) -> u64 {
        let answers = |syn: &Syn| syn.number.wrapping_add(1) == segment.ack;
        let asked = self.guest_syns.iter().find(|syn| answers(syn)).copied();
        let asked = asked.filter(|_| segment.has(ACK));
        assert_eq!(asked.is_some(), segment.has(ACK), "no SYN of the guest's: {segment:?}");
        let syn = Syn::of(segment);
        let known = self.nat.filter(|nat| {
            let same = nat.syn.number == syn.number && nat.guest.as_ref().is_none_or(answers);
            same && !nat.is_synchronized && !self.was_reset
        });
        let before = if known.is_none() { self.nat } else { None };
        let mut nat = known.unwrap_or_else(|| Nat::new(syn, segment));
        if let Some(asked) = asked {
            assert!(syn.shift.is_none() || asked.shift.is_some(), "a window scale sent unasked");
            nat.meet(asked);
            nat.edge = later(nat.edge, segment.ack.wrapping_add(segment.window.into()));
        }
        (self.nat, self.was_reset) = (Some(nat), false);
        before.map_or(0, |nat| nat.taken_text().into())
    }
}

impl Nat {
    /// The NAT has sent its first SYN.
    fn new(syn: Syn, segment: &Tcp) -> Self {
        let (sent, ack) = (segment.seq_end(), segment.ack);
        Self {
            syn,
            guest: None,
            is_synchronized: false,
            guest_sent: ack,
            acknowledged: ack,
            edge: ack,
            sent,
            end: None,
            taken: sent,
            guest_edge: sent,
        }
    }

    /// The guest answers the NAT's SYN, or asks at the same time (RFC 9293 3.10.7.3): only the first
    /// such SYN counts.
    fn on_answer(&mut self, segment: &Tcp) {
        if segment.has(SYN) && (!segment.has(ACK) || segment.ack == self.sent) {
            self.meet(Syn::of(segment));
        }
    }

    /// The guest's SYN is known from now on.
    fn meet(&mut self, syn: Syn) {
        if self.guest.is_none() {
            self.guest = Some(syn);
            let first = syn.number.wrapping_add(1);
            (self.guest_sent, self.acknowledged, self.edge) = (first, first, first);
        }
    }

    /// How many bytes of the NAT's text lie before `number`.
    fn text_before(&self, number: u32) -> u32 {
        let end = u32::from(self.end == Some(number));
        number.wrapping_sub(self.syn.number).wrapping_sub(1) - end
    }

    fn taken_text(&self) -> u32 {
        self.text_before(self.taken)
    }

    /// The scale of the guest's windows.
    fn guest_shift(&self) -> u8 {
        self.syn.shift.and(self.guest.and_then(|syn| syn.shift)).unwrap_or(0)
    }

    /// The scale of the NAT's windows.
    fn shift(&self) -> u8 {
        self.guest.and_then(|syn| syn.shift).and(self.syn.shift).unwrap_or(0)
    }

    fn check_acknowledgment(&mut self, segment: &Tcp) {
        assert!(segment.has(ACK), "no ACK: {segment:?}");
        assert!(!is_after(segment.ack, self.guest_sent), "an ACK of the future: {segment:?}");
        assert!(!is_after(self.acknowledged, segment.ack), "an ACK that moves back: {segment:?}");
        self.acknowledged = segment.ack;
        let edge = segment.ack.wrapping_add(u32::from(segment.window) << self.shift());
        let back = self.edge.wrapping_sub(edge);
        assert!(!is_after(self.edge, edge), "an edge that moves back by {back}: {segment:?}");
        self.edge = edge;
    }

    /// Blocks of text beyond a gap (RFC 2018 3), which the guest must have permitted and sent.
    fn check_blocks(&self, segment: &Tcp) {
        let Some(blocks) = segment.option(5) else { return };
        assert!(self.guest.is_some_and(|syn| syn.sack), "SACK unasked: {segment:?}");
        assert!(!blocks.is_empty() && blocks.len().is_multiple_of(8), "SACK: {segment:?}");
        for block in blocks.chunks(8) {
            let [left, right] = [0, 4].map(|at| {
                u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
            });
            let sent = is_after(right, left) && !is_after(right, self.guest_sent);
            assert!(is_after(left, segment.ack) && sent, "{left}..{right}: {segment:?}");
        }
    }

    fn check_text(&mut self, segment: &Tcp, link_mss: u16) {
        let length = segment.data.len();
        let asked = self.guest.and_then(|syn| syn.mss).unwrap_or(DEFAULT_MSS);
        // No link carries less than 28 bytes of text (RFC 791 3.2).
        let most = asked.min(link_mss).max(28);
        assert!(length <= usize::from(most), "{length} bytes with an MSS of {asked}");
        if length == 0 && !segment.has(FIN) {
            return;
        }
        assert!(!is_after(segment.seq, self.sent), "a gap before {segment:?}");
        let text_end = segment.seq.wrapping_add(length as u32);
        // A closed window is probed with one byte (RFC 9293 3.8.6.1).
        let limit = self.guest_edge.wrapping_add(1);
        assert!(!is_after(text_end, limit), "beyond the window at {limit}: {segment:?}");
        if let Some(end) = self.end {
            assert!(!is_after(segment.seq_end(), end), "beyond the end at {end}: {segment:?}");
            assert!(!segment.has(FIN) || segment.seq_end() == end, "another end: {segment:?}");
        }
        if segment.has(FIN) {
            assert!(self.end.is_some() || !is_after(self.sent, text_end), "an early end");
            self.end = Some(segment.seq_end());
        }
        self.sent = later(self.sent, segment.seq_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::{GUEST_IP, SERVER};

    const GUEST: SocketAddrV4 = SocketAddrV4::new(GUEST_IP, 4000);

    fn segment(flags: u8, seq: u32, ack: u32, window: u16, length: usize) -> Tcp {
        let (src, dst) = (SERVER, GUEST);
        Tcp { src, dst, seq, ack, flags, window, options: vec![], data: vec![0; length] }
    }

    fn from_guest(flags: u8, seq: u32, ack: u32, window: u16, length: usize) -> Tcp {
        let segment = segment(flags, seq, ack, window, length);
        Tcp { src: segment.dst, dst: segment.src, ..segment }
    }

    /// A connection that stands: the guest is at 101 and the NAT at 501, with windows of 1,000.
    fn established() -> Watch {
        let mut watch = Watch::new(1500);
        watch.on_guest_segment(&from_guest(SYN, 100, 0, 1000, 0));
        watch.on_nat_segment(&segment(SYN | ACK, 500, 101, 1000, 0));
        watch.on_guest_segment(&from_guest(ACK, 101, 501, 1000, 0));
        watch
    }

    #[test]
    fn what_is_right_passes_and_is_measured() {
        let mut watch = established();
        watch.on_guest_segment(&from_guest(ACK, 101, 501, 1000, 300));
        watch.on_nat_segment(&segment(ACK, 501, 401, 700, 536));
        watch.on_nat_segment(&segment(FIN | ACK, 1037, 401, 700, 464));
        watch.on_nat_segment(&segment(FIN | ACK, 1037, 401, 700, 464));
        watch.on_guest_segment(&from_guest(FIN | ACK, 401, 501, 1000, 0));
        watch.on_nat_segment(&segment(ACK, 1502, 402, 699, 0));
        assert_eq!(watch.acknowledged(GUEST, SERVER), 300);
        assert_eq!(watch.sent(GUEST, SERVER), 1000);
    }

    #[test]
    #[should_panic(expected = "an ACK of the future")]
    fn an_ack_of_what_was_never_sent_is_noticed() {
        established().on_nat_segment(&segment(ACK, 501, 102, 1000, 0));
    }

    #[test]
    #[should_panic(expected = "an edge that moves back by 1:")]
    fn a_right_edge_that_moves_back_is_noticed() {
        established().on_nat_segment(&segment(ACK, 501, 101, 999, 0));
    }

    #[test]
    #[should_panic(expected = "beyond the window at 1502")]
    fn text_beyond_the_window_is_noticed() {
        let mut watch = established();
        watch.on_nat_segment(&segment(ACK, 501, 101, 1000, 536));
        watch.on_nat_segment(&segment(ACK, 1037, 101, 1000, 466));
    }

    #[test]
    #[should_panic(expected = "with an MSS of 536")]
    fn text_beyond_the_segment_size_is_noticed() {
        established().on_nat_segment(&segment(ACK, 501, 101, 1000, 537));
    }

    #[test]
    #[should_panic(expected = "a gap before")]
    fn a_gap_is_noticed() {
        established().on_nat_segment(&segment(ACK, 502, 101, 1000, 10));
    }

    #[test]
    #[should_panic(expected = "beyond the end")]
    fn text_behind_a_fin_is_noticed() {
        let mut watch = established();
        watch.on_nat_segment(&segment(FIN | ACK, 501, 101, 1000, 10));
        watch.on_nat_segment(&segment(ACK, 511, 101, 1000, 2));
    }

    /// A SYN-ACK of another number, sent after the one that counts.
    #[test]
    fn the_first_answer_to_a_syn_counts() {
        let mut watch = Watch::new(1500);
        watch.on_nat_segment(&segment(SYN, 500, 0, 1000, 0));
        watch.on_guest_segment(&from_guest(SYN | ACK, 100, 400, 1000, 0));
        watch.on_guest_segment(&from_guest(SYN | ACK, 200, 501, 1000, 0));
        watch.on_guest_segment(&from_guest(SYN | ACK, 300, 501, 1000, 0));
        watch.on_nat_segment(&segment(ACK, 501, 201, 1000, 0));
        assert_eq!(watch.guest_isn(GUEST, SERVER), Some(200));
        assert_eq!(watch.acknowledged(GUEST, SERVER), 0);
    }

    /// The NAT's number may be the one before, if no time has passed.
    #[test]
    fn a_connection_after_a_reset_is_another() {
        let mut watch = established();
        watch.on_nat_segment(&segment(ACK, 501, 101, 1000, 10));
        watch.on_guest_segment(&from_guest(ACK, 101, 511, 1000, 0));
        watch.on_guest_segment(&from_guest(RST, 101, 0, 0, 0));
        watch.on_guest_segment(&from_guest(SYN, 100, 0, 1000, 0));
        watch.on_nat_segment(&segment(SYN | ACK, 500, 101, 100, 0));
        watch.on_nat_segment(&segment(ACK, 501, 101, 100, 0));
        assert_eq!((watch.sent(GUEST, SERVER), watch.taken(GUEST, SERVER)), (0, 0));
        assert_eq!(watch.taken_in_all(), 10);
    }
}
