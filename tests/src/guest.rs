//! The guest: its addresses, and a TCP end that does exactly what a test says.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::build::{ACK, FIN, PSH, RST, SYN, TcpBuilder};
use crate::lab::{Lab, one};
use crate::packet::Tcp;

/// The guest's hardware address.
pub const GUEST_MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

/// The guest's address.
pub const GUEST_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);

/// The gateway.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// The name server.
pub const DNS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);

/// A server somewhere.
pub const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 5), 80);

/// Another server.
pub const OTHER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 9), 443);

/// One TCP connection of the guest. It keeps sequence numbers and nothing else: no timers, no
/// retransmission, no acknowledgment unless asked.
#[derive(Clone, Debug)]
pub struct TcpGuest {
    /// The guest's end.
    pub local: SocketAddrV4,
    /// The far end.
    pub remote: SocketAddrV4,
    /// Next sequence number to send.
    pub snd_nxt: u32,
    /// Next sequence number expected.
    pub rcv_nxt: u32,
    /// Window field of every segment.
    pub window: u16,
    /// Most payload bytes in a segment.
    pub mss: usize,
}

impl TcpGuest {
    /// An end that has not begun.
    #[must_use]
    pub const fn new(port: u16, remote: SocketAddrV4) -> Self {
        let local = SocketAddrV4::new(GUEST_IP, port);
        Self { local, remote, snd_nxt: 1_000_000, rcv_nxt: 0, window: 65_535, mss: 1460 }
    }

    /// A segment with this end's numbers and the ACK flag.
    #[must_use]
    pub fn segment(&self) -> TcpBuilder {
        TcpBuilder::new(self.local, self.remote)
            .seq(self.snd_nxt)
            .ack(self.rcv_nxt)
            .flags(ACK)
            .window(self.window)
    }

    /// The SYN that opens, with an MSS option or none.
    #[must_use]
    pub fn syn(&self, mss: Option<u16>) -> TcpBuilder {
        let syn = self.segment().flags(SYN).ack(0);
        mss.map_or(syn.clone(), |mss| syn.mss(mss))
    }

    /// Opens the connection; returns the SYN-ACK.
    pub fn open(&mut self, lab: &mut Lab, mss: Option<u16>) -> Tcp {
        let syn = self.syn(mss);
        self.open_by(lab, &syn)
    }

    /// Opens the connection with MSS and SACK-permitted options; returns the SYN-ACK.
    pub fn open_with_sack(&mut self, lab: &mut Lab) -> Tcp {
        let syn = self.syn(Some(1460)).sack_permitted();
        self.open_by(lab, &syn)
    }

    /// A bare ACK that tells of blocks beyond a gap, by the distance of their ends from what is
    /// acknowledged (RFC 2018 3).
    #[must_use]
    pub fn telling_of(&self, blocks: &[(u32, u32)]) -> TcpBuilder {
        let number = |distance: u32| self.rcv_nxt.wrapping_add(distance);
        let blocks: Vec<_> =
            blocks.iter().map(|(start, end)| (number(*start), number(*end))).collect();
        self.segment().sack(&blocks)
    }

    /// Opens the connection by a SYN of the test's own; returns the SYN-ACK.
    pub fn open_by(&mut self, lab: &mut Lab, syn: &TcpBuilder) -> Tcp {
        lab.input(&syn.frame());
        lab.settle();
        self.finish_open(lab)
    }

    /// Takes the SYN-ACK to a SYN sent before and acknowledges it. What went to other connections
    /// meanwhile is lost.
    pub fn finish_open(&mut self, lab: &mut Lab) -> Tcp {
        let mut segments = lab.take_tcp();
        segments.retain(|segment| (segment.src, segment.dst) == (self.remote, self.local));
        let syn_ack = one(segments);
        self.snd_nxt = self.snd_nxt.wrapping_add(1);
        self.expect_syn_ack(&syn_ack);
        self.rcv_nxt = syn_ack.seq.wrapping_add(1);
        self.send_ack(lab);
        lab.settle();
        syn_ack
    }

    /// Checks a SYN-ACK to this end's SYN.
    pub fn expect_syn_ack(&self, segment: &Tcp) {
        assert!(segment.is_syn_ack(), "no SYN-ACK: {segment:?}");
        assert_eq!((segment.src, segment.dst), (self.remote, self.local));
        assert_eq!(segment.ack, self.snd_nxt, "acknowledgment of the SYN");
    }

    /// Answers a SYN of a forwarded connection, which becomes this end; returns the SYN.
    pub fn accept(lab: &mut Lab, port: u16) -> (Self, Tcp) {
        let syn = lab.take_one_tcp();
        let guest = Self::answering(&syn, port);
        lab.input(
            &guest.segment().flags(SYN | ACK).seq(guest.snd_nxt.wrapping_sub(1)).mss(1460).frame(),
        );
        lab.settle();
        (guest, syn)
    }

    /// The end that would answer `syn`, its own SYN counted.
    #[must_use]
    pub fn answering(syn: &Tcp, port: u16) -> Self {
        assert_eq!(syn.flags, SYN, "no SYN: {syn:?}");
        assert_eq!(syn.dst, SocketAddrV4::new(GUEST_IP, port));
        let mut guest = Self::new(port, syn.src);
        guest.snd_nxt = guest.snd_nxt.wrapping_add(1);
        guest.rcv_nxt = syn.seq.wrapping_add(1);
        guest
    }

    /// Sends a bare ACK; events are left undelivered.
    pub fn send_ack(&self, lab: &mut Lab) {
        lab.input(&self.segment().frame());
    }

    /// The frames that carry `data` from here on, in segments of at most the MSS.
    pub fn segments(&mut self, data: &[u8]) -> Vec<Vec<u8>> {
        let count = data.len().div_ceil(self.mss);
        let mut frames = Vec::new();
        for (index, piece) in data.chunks(self.mss).enumerate() {
            let push = if index + 1 == count { PSH } else { 0 };
            frames.push(self.segment().flags(ACK | push).data(piece).frame());
            self.snd_nxt = self.snd_nxt.wrapping_add(piece.len() as u32);
        }
        frames
    }

    /// Sends `data` as one batch; events are left undelivered.
    pub fn send(&mut self, lab: &mut Lab, data: &[u8]) {
        let frames = self.segments(data);
        lab.input_batch(&frames);
    }

    /// Sends FIN; events are left undelivered.
    pub fn send_fin(&mut self, lab: &mut Lab) {
        lab.input(&self.segment().flags(FIN | ACK).frame());
        self.snd_nxt = self.snd_nxt.wrapping_add(1);
    }

    /// Sends RST at the next sequence number; events are left undelivered.
    pub fn send_reset(&self, lab: &mut Lab) {
        lab.input(&self.segment().flags(RST | ACK).frame());
    }

    /// Takes in segments that are in order, and returns their bytes and whether FIN was there.
    pub fn absorb(&mut self, segments: &[Tcp]) -> (Vec<u8>, bool) {
        let (mut bytes, mut fin) = (Vec::new(), false);
        for segment in segments {
            assert!(!segment.is_reset(), "reset: {segment:?}");
            assert_eq!((segment.src, segment.dst), (self.remote, self.local));
            if segment.data.is_empty() && !segment.has(FIN) {
                continue;
            }
            assert_eq!(segment.seq, self.rcv_nxt, "out of order: {segment:?}");
            assert!(!fin, "data behind FIN: {segment:?}");
            bytes.extend(&segment.data);
            fin = segment.has(FIN);
            self.rcv_nxt = segment.seq_end();
        }
        (bytes, fin)
    }

    /// Receives and acknowledges until nothing more comes without time passing.
    pub fn drain(&mut self, lab: &mut Lab) -> (Vec<u8>, bool) {
        let (mut all, mut fin) = (Vec::new(), false);
        loop {
            lab.settle();
            let before = self.rcv_nxt;
            let (bytes, ended) = self.absorb(&lab.take_tcp());
            all.extend(bytes);
            fin |= ended;
            if self.rcv_nxt == before {
                return (all, fin);
            }
            self.send_ack(lab);
        }
    }

    /// Receives and acknowledges `len` bytes, and no others, without time passing.
    pub fn receive(&mut self, lab: &mut Lab, len: usize) -> Vec<u8> {
        let (bytes, _) = self.drain(lab);
        assert_eq!(bytes.len(), len, "bytes received");
        bytes
    }
}
