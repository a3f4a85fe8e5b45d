//! TCP segments.

use core::net::SocketAddrV4;

use super::{IpBuilder, TCP};
use crate::sum;

/// Flag bits.
pub const FIN: u8 = 0x01;
/// Synchronise.
pub const SYN: u8 = 0x02;
/// Reset.
pub const RST: u8 = 0x04;
/// Push.
pub const PSH: u8 = 0x08;
/// Acknowledgment.
pub const ACK: u8 = 0x10;
/// Urgent.
pub const URG: u8 = 0x20;
/// Congestion experienced.
pub const ECE: u8 = 0x40;
/// Congestion window reduced.
pub const CWR: u8 = 0x80;

/// A TCP segment to be.
#[derive(Clone, Debug)]
pub struct TcpBuilder {
    /// The IP packet around it; addresses are taken from here.
    pub ip: IpBuilder,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window field.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options; padded to a multiple of 4 with end-of-options.
    pub options: Vec<u8>,
    /// Payload.
    pub data: Vec<u8>,
}

impl TcpBuilder {
    /// An empty segment without flags.
    #[must_use]
    pub fn new(src: SocketAddrV4, dst: SocketAddrV4) -> Self {
        let mut ip = IpBuilder::new(*dst.ip(), TCP);
        ip.src = *src.ip();
        ip.dont_fragment = true;
        Self {
            ip,
            src_port: src.port(),
            dst_port: dst.port(),
            seq: 0,
            ack: 0,
            flags: 0,
            window: 65_535,
            urgent: 0,
            options: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Sets flags.
    #[must_use]
    pub fn flags(mut self, flags: u8) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the sequence number.
    #[must_use]
    pub fn seq(mut self, seq: u32) -> Self {
        self.seq = seq;
        self
    }

    /// Sets the acknowledgment number.
    #[must_use]
    pub fn ack(mut self, ack: u32) -> Self {
        self.ack = ack;
        self
    }

    /// Sets the window field.
    #[must_use]
    pub fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }

    /// Sets the payload.
    #[must_use]
    pub fn data(mut self, data: &[u8]) -> Self {
        self.data = data.to_vec();
        self
    }

    /// Adds raw options.
    #[must_use]
    pub fn options(mut self, options: &[u8]) -> Self {
        self.options.extend(options);
        self
    }

    /// Adds a maximum segment size option (RFC 9293 3.2).
    #[must_use]
    pub fn mss(self, mss: u16) -> Self {
        let [a, b] = mss.to_be_bytes();
        self.options(&[2, 4, a, b])
    }

    /// Adds a window scale option (RFC 7323 2.2).
    #[must_use]
    pub fn window_scale(self, shift: u8) -> Self {
        self.options(&[1, 3, 3, shift])
    }

    /// Adds a SACK-permitted option (RFC 2018 2).
    #[must_use]
    pub fn sack_permitted(self) -> Self {
        self.options(&[1, 1, 4, 2])
    }

    /// Adds a SACK option of these blocks, at most four (RFC 2018 3).
    #[must_use]
    pub fn sack(self, blocks: &[(u32, u32)]) -> Self {
        let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        for (start, end) in blocks {
            option.extend(start.to_be_bytes());
            option.extend(end.to_be_bytes());
        }
        self.options(&option)
    }

    /// The frame.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 0);
        let mut segment = Vec::new();
        segment.extend(self.src_port.to_be_bytes());
        segment.extend(self.dst_port.to_be_bytes());
        segment.extend(self.seq.to_be_bytes());
        segment.extend(self.ack.to_be_bytes());
        segment.extend([(((20 + options.len()) / 4) << 4) as u8, self.flags]);
        segment.extend(self.window.to_be_bytes());
        segment.extend([0, 0]);
        segment.extend(self.urgent.to_be_bytes());
        segment.extend(options);
        segment.extend(&self.data);
        let field = sum::transport(self.ip.src, self.ip.dst, TCP, &segment);
        segment[16..18].copy_from_slice(&field.to_be_bytes());
        self.ip.frame(&segment)
    }
}
