//! A segment as the state machine sees it.

use super::{SackBlocks, SeqNumber};
use crate::wire::tcp::{TcpFlags, TcpSegment};

/// A segment from the guest: what [`TcpSegment`] holds, without ports.
#[derive(Clone, Copy, Debug)]
pub struct SegmentIn<'a> {
    /// SEG.SEQ.
    pub sequence: SeqNumber,
    /// SEG.ACK; meaningful with the ACK flag.
    pub acknowledgment: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.WND as sent, not scaled.
    pub window: u16,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option.
    pub window_scale: Option<u8>,
    /// SACK-permitted option.
    pub sack_permitted: bool,
    /// SACK option.
    pub sack: SackBlocks,
    /// Text.
    pub payload: &'a [u8],
}

impl<'a> SegmentIn<'a> {
    /// The segment parsed from the wire.
    #[must_use]
    pub fn new(segment: &TcpSegment<'a>) -> Self {
        let flags = segment.flags();
        let options = segment.options();
        let of_syn = flags.contains(TcpFlags::SYN);
        Self {
            sequence: SeqNumber(segment.sequence()),
            acknowledgment: SeqNumber(segment.acknowledgment()),
            flags,
            window: segment.window(),
            mss: options.mss.filter(|_| of_syn),
            window_scale: options.window_scale.filter(|_| of_syn),
            sack_permitted: options.sack_permitted && of_syn,
            sack: SackBlocks::from_options(&options),
            payload: segment.payload(),
        }
    }

    pub(super) const fn has(&self, flag: TcpFlags) -> bool {
        self.flags.contains(flag)
    }

    /// SEG.LEN: octets of text, and one each for SYN and FIN (RFC 9293 3.4).
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "an IP packet has at most 65,535 bytes")]
    pub const fn len(&self) -> u32 {
        self.payload.len() as u32 + self.has(TcpFlags::SYN) as u32 + self.has(TcpFlags::FIN) as u32
    }

    /// Whether the segment occupies no sequence space.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
