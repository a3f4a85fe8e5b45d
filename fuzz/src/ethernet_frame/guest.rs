//! What the guest remembers: enough to send segments that are nearly right, and to check text.

use core::net::SocketAddrV4;
use std::collections::HashMap;

use slirpkit_tests::build::{FIN, SYN};
use slirpkit_tests::packet::{Packet, Tcp};

use super::content;

/// The guest's ends of its connections.
#[derive(Debug, Default)]
pub(super) struct Guest {
    ends: HashMap<(SocketAddrV4, SocketAddrV4), End>,
    /// Sequence numbers of all SYNs sent.
    isns: Vec<u32>,
}

/// One end.
#[derive(Debug)]
pub(super) struct End {
    pub(super) iss: u32,
    pub(super) snd_nxt: u32,
    pub(super) rcv_nxt: u32,
    /// The NAT's initial sequence number, once it has sent a SYN.
    irs: Option<u32>,
}

/// The text that the guest sends at `seq`, whatever the connection: a byte out of place shows, and a
/// SYN that the NAT may take or not does no harm.
pub(super) fn text(seq: u32, len: usize) -> Vec<u8> {
    (0..).take(len).map(|at| content(seq.wrapping_add(at).into())).collect()
}

impl End {
    const NEW: Self = Self { iss: 1_000_000, snd_nxt: 1_000_001, rcv_nxt: 0, irs: None };

    /// Numbers of a new connection, far from those of the one before.
    pub(super) fn begin(&mut self) {
        self.iss = self.iss.wrapping_add(1 << 26);
        self.snd_nxt = self.iss.wrapping_add(1);
    }

    fn take(&mut self, segment: &Tcp) {
        if segment.has(SYN) && self.irs != Some(segment.seq) {
            self.irs = Some(segment.seq);
            self.rcv_nxt = segment.seq.wrapping_add(1);
        }
        let Some(irs) = self.irs else {
            assert!(segment.data.is_empty(), "text without a SYN");
            return;
        };
        let start = segment.seq.wrapping_sub(irs).wrapping_sub(1);
        for (at, byte) in (u64::from(start)..).zip(&segment.data) {
            assert_eq!(*byte, content(at), "byte {at} of {} to the guest", segment.src);
        }
        if segment.seq == self.rcv_nxt {
            let fin = u32::from(segment.has(FIN));
            let len = u32::try_from(segment.data.len()).unwrap_or(u32::MAX);
            self.rcv_nxt = self.rcv_nxt.wrapping_add(len).wrapping_add(fin);
        }
    }
}

impl Guest {
    pub(super) fn end(&mut self, local: SocketAddrV4, remote: SocketAddrV4) -> &mut End {
        self.ends.entry((local, remote)).or_insert(End::NEW)
    }

    /// A SYN goes out: whatever the NAT makes of it, a stream may begin behind it.
    pub(super) fn note_syn(&mut self, seq: u32) {
        if !self.isns.contains(&seq) {
            self.isns.push(seq);
        }
    }

    /// Whether `bytes` are those behind one of the SYNs.
    pub(super) fn may_have_sent(&self, bytes: &[u8]) -> bool {
        bytes.is_empty()
            || self.isns.iter().any(|isn| text(isn.wrapping_add(1), bytes.len()) == bytes)
    }

    /// Takes a frame that the lab has verified.
    pub(super) fn take(&mut self, packet: &Packet) {
        if let Some(segment) = packet.tcp() {
            self.end(segment.dst, segment.src).take(segment);
        }
    }
}
