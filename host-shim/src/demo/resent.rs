//! Whether the guest's stack sends something again, which it does not tell by itself.

use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, TcpPacket};

/// Watches what one TCP connection at a time sends.
#[derive(Debug, Default)]
pub(super) struct Resent {
    /// Ports of the connection.
    connection: Option<(u16, u16)>,
    /// The sequence number behind the last that was sent.
    next: u32,
    segments: u64,
}

impl Resent {
    /// Segments, of all connections so far, that began with a sequence number sent before.
    pub(super) const fn segments(&self) -> u64 {
        self.segments
    }

    pub(super) fn watch(&mut self, frame: &[u8]) {
        let Some((connection, sequence, length)) = segment(frame) else { return };
        let end = sequence.wrapping_add(length);
        if self.connection != Some(connection) {
            (self.connection, self.next) = (Some(connection), end);
        } else if is_before(sequence, self.next) {
            self.segments += 1;
        }
        if is_before(self.next, end) {
            self.next = end;
        }
    }
}

/// Whether sequence number `a` lies before `b` (RFC 9293 3.4).
const fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// Ports, first sequence number and how many of them a TCP segment takes, if it takes any.
fn segment(frame: &[u8]) -> Option<((u16, u16), u32, u32)> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let ip = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
    if ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
    let length = u32::try_from(tcp.segment_len()).ok()?;
    let connection = (tcp.src_port(), tcp.dst_port());
    (length > 0).then_some((connection, tcp.seq_number().0.cast_unsigned(), length))
}
