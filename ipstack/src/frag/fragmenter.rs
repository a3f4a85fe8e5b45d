//! Which bytes of a datagram go into which fragment.

use core::ops::Range;

use super::fragment::MAX_TOTAL_LEN;

/// One fragment to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Offset for the IP header, in bytes: always a multiple of 8.
    pub offset: u16,
    /// Where its bytes are in the datagram's payload.
    pub range: Range<usize>,
    /// Whether more fragments follow it.
    pub more: bool,
}

/// Cuts a datagram into fragments (RFC 791 3.2), the largest that the MTU allows, in order.
///
/// It is plain data that says how far it got, so that a train of fragments can be interrupted when
/// the link has no more room: look with [`peek`](Self::peek), send, then [`advance`](Self::advance).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragmenter {
    /// Where the next piece begins; past `payload_len` at the end.
    at: u32,
    payload_len: u32,
    /// Payload of each piece but the last: all of it, or a multiple of 8.
    step: u32,
}

impl Fragmenter {
    /// Cuts `payload_len` bytes of IP payload, each piece behind a header of `header_len` bytes, for
    /// a link that carries packets of `mtu` bytes. A datagram that fits is one piece.
    ///
    /// `None` if the datagram would be longer than [`MAX_TOTAL_LEN`], or the MTU has no room for
    /// 8 bytes of payload where it must be cut.
    #[must_use]
    pub fn new(payload_len: usize, header_len: usize, mtu: usize) -> Option<Self> {
        if header_len.checked_add(payload_len)? > MAX_TOTAL_LEN {
            return None;
        }
        let room = mtu.checked_sub(header_len)?;
        let step = if payload_len <= room { payload_len.max(1) } else { room & !7 };
        if step == 0 {
            return None;
        }
        Some(Self {
            at: 0,
            payload_len: u32::try_from(payload_len).ok()?,
            step: u32::try_from(step).ok()?,
        })
    }

    /// The next piece, which stays the next one.
    #[must_use]
    pub fn peek(&self) -> Option<Piece> {
        // A datagram without payload is one piece all the same.
        if self.at > 0 && self.at >= self.payload_len {
            return None;
        }
        let end = self.at.saturating_add(self.step).min(self.payload_len);
        Some(Piece {
            offset: u16::try_from(self.at).ok()?,
            range: usize::try_from(self.at).ok()?..usize::try_from(end).ok()?,
            more: end < self.payload_len,
        })
    }

    /// Goes on to the piece after the next one.
    pub fn advance(&mut self) {
        self.at = self.at.saturating_add(self.step);
    }
}

impl Iterator for Fragmenter {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let piece = self.peek()?;
        self.advance();
        Some(piece)
    }
}
