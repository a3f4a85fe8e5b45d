//! What a TCP flow sends to the guest, peeked from the host straight into the link's buffer.

use ipstack::tcp::{SegmentOut, Transmit};
use ipstack::wire::ethernet::MacAddr;
use ipstack::wire::tcp::TcpFlags;

use super::{FlowKey, TcpFlow};
use crate::egress::{Egress, TCP_PAYLOAD, TcpFrame, commit, segmentation};
use crate::flow::tcp::IP_AND_TCP;
use crate::flow::tcp_end::HostEnd;
use crate::host::{FlowId, Host, HostError, Peek, Token};
use crate::link::{Link, Room};
use crate::nat::{Core, Io, Visit};
use crate::service::arp::router_mac;

/// Where data is wanted from, and how it is sent.
struct Wanted {
    token: Token,
    mac: MacAddr,
    mss: u16,
    offset: usize,
    limit: usize,
}

/// What was peeked into a buffer.
struct Peeked {
    length: usize,
    /// Nothing more is there now.
    drained: bool,
    end: bool,
    failed: Option<HostError>,
}

impl Core<'_> {
    /// Sends what a flow has to send: at most one super-segment, and segments without data.
    pub(crate) fn visit_tcp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        budget: &mut usize,
    ) -> Visit {
        let mut sent_data = false;
        loop {
            let Some(key) = self.table.get(id).map(|flow| flow.key) else { return Visit::Done };
            if !Egress::can_send_segment(io.link) {
                return self.leave(io, id, Visit::NoRoom);
            }
            let Some(mac) = self.egress.neighbours.find(key.guest.ipv4()) else {
                return self.leave(io, id, Visit::Done);
            };
            let Some((tcp, board)) = self.tcp_and_board(id) else { return Visit::Done };
            let mss = tcp.connection.mss();
            match tcp.connection.poll_transmit(io.now, board.as_deref()) {
                Transmit::Nothing => return self.leave(io, id, Visit::Done),
                Transmit::Segment(segment) => {
                    let segment = SegmentOut { sack: self.sack(id), ..segment };
                    *budget = budget.saturating_sub(TCP_PAYLOAD);
                    self.count_segment(&segment);
                    self.egress.send_segment(
                        &self.config,
                        &mut self.stats,
                        io.link,
                        (&key, mac, mss),
                        &segment,
                    );
                    if segment.flags.contains(TcpFlags::RST) {
                        self.end_tcp(io, id, HostEnd::Reset);
                        return Visit::Done;
                    }
                }
                Transmit::Data { .. } if sent_data => return self.leave(io, id, Visit::More),
                Transmit::Data { offset, limit } => {
                    let Some(token) = self.table.get(id).and_then(|flow| flow.token) else {
                        return Visit::Done;
                    };
                    let (offset, limit) = (offset as usize, limit as usize);
                    let wanted = Wanted { token, mac, mss, offset, limit };
                    let Some(sent) = self.send_data(io, id, &key, &wanted) else {
                        return self.leave(io, id, Visit::NoRoom);
                    };
                    *budget = budget.saturating_sub(sent);
                    sent_data |= sent > 0;
                }
            }
        }
    }

    fn leave<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        visit: Visit,
    ) -> Visit {
        self.after_tcp(io, id);
        visit
    }

    /// Peeks and sends one super-segment; returns how many bytes it had, or `None` if the link has
    /// no room.
    fn send_data<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        key: &FlowKey,
        wanted: &Wanted,
    ) -> Option<usize> {
        let most = payload_room(io.link.room(), wanted.mss)?.min(wanted.limit);
        let frame = io.link.reserve(TCP_PAYLOAD.saturating_add(most))?;
        let buffer = frame.get_mut(TCP_PAYLOAD..).filter(|buffer| !buffer.is_empty())?;
        let peeked = peek_all(io.host, wanted.token, wanted.offset, buffer);

        let Some((TcpFlow { connection, .. }, board)) = self.tcp_and_board(id) else {
            return Some(0);
        };
        if peeked.length == 0 {
            match (peeked.failed, peeked.end) {
                (Some(_), _) => {
                    connection.host_failed();
                    // Bytes sent before that do not peek any more must not be asked for without end.
                    connection.host_drained();
                }
                (None, true) => connection.host_ended(),
                (None, false) => connection.host_drained(),
            }
            return Some(0);
        }
        let length = u32::try_from(peeked.length).unwrap_or(u32::MAX);
        let before = connection.sent_up_to();
        let segment = connection.data_sent(io.now, length, peeked.drained, peeked.end, board);
        if peeked.failed.is_some() {
            connection.host_failed();
        }
        let resent = before.since(segment.sequence).min(length);
        let resent = if before.is_after(segment.sequence) { resent } else { 0 };

        let counters = &mut self.stats.counters;
        counters.tcp_segments_out += 1;
        counters.tcp_bytes_out += u64::from(length);
        counters.tcp_bytes_retransmitted += u64::from(resent);
        let headers = TcpFrame {
            key,
            destination: wanted.mac,
            source: router_mac(self.config.gateway),
            identification: self.egress.identification(key.remote.ipv4(), key.guest.ipv4()),
        };
        if let Some(header_len) = headers.write(frame, &segment, peeked.length) {
            let total = header_len.saturating_add(peeked.length);
            commit(&mut self.stats, io.link, total, &segmentation(header_len, wanted.mss));
        }
        Some(peeked.length)
    }

    fn count_segment(&mut self, segment: &SegmentOut) {
        let counters = &mut self.stats.counters;
        if segment.flags.contains(TcpFlags::RST) {
            counters.tcp_resets_out += 1;
        } else {
            counters.tcp_acks_out += 1;
        }
    }
}

/// How many bytes of TCP payload the link takes now in frames of `mss` bytes each, at least 1. If
/// that is more than one frame they are full, or each super-segment would end in a small one.
fn payload_room(room: Room, mss: u16) -> Option<usize> {
    let mss = usize::from(mss.max(1));
    let frame = mss.saturating_add(TCP_PAYLOAD);
    let (full, rest) = (room.bytes / frame, room.bytes % frame);
    let by_bytes = full.saturating_mul(mss).saturating_add(rest.saturating_sub(TCP_PAYLOAD));
    let by_frames = room.frames.saturating_mul(mss);
    let most = by_bytes.min(by_frames).min(usize::from(u16::MAX - IP_AND_TCP));
    let whole = most - most % mss;
    Some(if whole > 0 { whole } else { most }).filter(|most| *most > 0)
}

/// Fills `buffer` from the host's stream, so that a last piece and the end behind it go out in one
/// segment.
fn peek_all<H: Host + ?Sized>(
    host: &mut H,
    token: Token,
    offset: usize,
    buffer: &mut [u8],
) -> Peeked {
    let mut peeked = Peeked { length: 0, drained: false, end: false, failed: None };
    while let Some(rest) = buffer.get_mut(peeked.length..).filter(|rest| !rest.is_empty()) {
        match host.peek(token, offset.saturating_add(peeked.length), rest) {
            Ok(Peek::WouldBlock | Peek::Data(0)) | Err(HostError::WouldBlock) => {
                peeked.drained = true;
                break;
            }
            Ok(Peek::Data(count)) => {
                peeked.length = peeked.length.saturating_add(count.min(rest.len()));
            }
            Ok(Peek::End) => {
                peeked.end = true;
                break;
            }
            Err(error) => {
                peeked.failed = Some(error);
                break;
            }
        }
    }
    peeked
}
