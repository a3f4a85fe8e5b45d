//! The window offered to the guest.

use super::{Connection, State};

/// Whether the guest has to send text again that was refused. While it has, the right edge stays
/// where it is, so that the window tells how far the guest has come: one byte is enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    /// All of it has come again once the window is written with fewer binary digits than this.
    digits: u8,
}

impl Refused {
    pub(super) const NOTHING: Self = Self { digits: 0 };

    /// Text was refused that left a `window` beyond it.
    pub(super) fn add(&mut self, window: u32) {
        let digits = binary_digits(window).max(1);
        self.digits = if self.is_awaited() { self.digits.min(digits) } else { digits };
    }

    /// More text was taken, which left a `window` beyond it. With less than a segment no more is
    /// missing than the next segment brings, and a sender may not use so small a window.
    pub(super) const fn clear_at(&mut self, window: u32, segment: u32) {
        if binary_digits(window) < self.digits || window < segment {
            self.digits = 0;
        }
    }

    const fn is_awaited(self) -> bool {
        self.digits > 0
    }
}

#[expect(clippy::cast_possible_truncation, reason = "32 at most")]
const fn binary_digits(number: u32) -> u8 {
    (u32::BITS - number.leading_zeros()) as u8
}

impl Connection {
    /// Promises room for `bytes` beyond what was received so far: what the host takes for certain
    /// and the link can queue. The right edge already offered never moves back. What arrives uses
    /// the promise up; the owner makes a new one when [`Connection::is_receive_limited`].
    pub fn promise(&mut self, bytes: u32) {
        self.rcv_limit = bytes;
        self.rcv_limit_max = self.rcv_limit_max.max(bytes);
    }

    /// The guest asks whether its closed window is still closed. It has waited for its persist
    /// timer, and in that time nothing better came: what is promised now, be it less than a segment
    /// or than half of what was promised once, is then the measure of what is worthwhile.
    pub(super) const fn note_window_probe(&mut self) {
        let shift = self.window_shift();
        if self.receive_window() >> shift == 0 && self.rcv_limit >> shift > 0 {
            self.rcv_limit_max = self.rcv_limit;
        }
    }

    /// Bytes the guest may send now.
    #[must_use]
    pub const fn receive_window(&self) -> u32 {
        self.rcv_adv.since(self.rcv_nxt)
    }

    /// Whether the guest may send no more than half of what it could at best, or less than a
    /// segment, so that it is time to look for more room. One that has ended needs none.
    #[must_use]
    pub fn is_receive_limited(&self) -> bool {
        self.is_little(self.receive_window())
    }

    /// Whether that will still be so after the next segment to the guest.
    #[must_use]
    pub fn stays_receive_limited(&self) -> bool {
        let window = if self.is_worthwhile() { self.rcv_limit } else { self.receive_window() };
        self.is_little(window)
    }

    fn is_little(&self, window: u32) -> bool {
        let ended = !self.state.receives() && !self.is_half_open();
        !ended && (window < u32::from(self.offered_mss) || window <= self.most_promised() / 2)
    }

    /// Whether the guest is to be told that there is room again. It is told when its window has
    /// become small while much more could be offered, so that it never waits for a window that
    /// is open (RFC 9293 3.8.6.2.2).
    #[must_use]
    pub fn owes_window_update(&self) -> bool {
        let gain = self.window_gain();
        self.state.receives()
            && self.is_worthwhile()
            && self.receive_window() <= gain.max(2 * u32::from(self.offered_mss))
    }

    /// Sends the guest an ACK with the window as it is now.
    pub const fn owe_ack(&mut self) {
        self.flags.ack_owed = true;
    }

    /// How much further the right edge could be offered than it was.
    fn window_gain(&self) -> u32 {
        self.rcv_limit.min(self.largest_window()).saturating_sub(self.receive_window())
    }

    /// The largest window that the header can say.
    pub(super) fn largest_window(&self) -> u32 {
        u32::from(u16::MAX) << self.window_shift()
    }

    /// The most ever promised, as far as the header can say it.
    fn most_promised(&self) -> u32 {
        self.rcv_limit_max.min(self.largest_window())
    }

    /// The window of a SYN is never scaled (RFC 7323 2.2).
    const fn window_shift(&self) -> u8 {
        if self.state.is_synchronized() { self.rcv_shift } else { 0 }
    }

    /// Whether the edge is to be moved as far as it could be: by much, or for the guest to have room
    /// for a full segment where it had none. Not while the guest has to send again what was refused:
    /// it would send new text beside, which comes behind a gap and may be refused, too, unnoticed by
    /// a sender without SACK until its timer runs out.
    fn is_worthwhile(&self) -> bool {
        let (segment, window) = (u32::from(self.offered_mss), self.receive_window());
        let gain = self.window_gain();
        let opens = window < segment && window.saturating_add(gain) >= segment;
        !self.refused.is_awaited() && (opens || gain >= self.worthwhile_gain())
    }

    /// Silly window avoidance: the edge moves by at least one segment or a quarter of the most ever
    /// promised, whichever is less. The latter lets a window open that is smaller than a segment
    /// of a large MTU. RFC 9293 3.8.6.2.2 recommends half; a quarter is less than the third of its
    /// buffer at which a host says that it is writable, so that no window stays shut after that.
    fn worthwhile_gain(&self) -> u32 {
        u32::from(self.offered_mss).min(self.most_promised() / 4).max(1)
    }

    /// The window field of the next segment, after moving the edge as far as is worthwhile. A
    /// duplicate ACK keeps the edge, since with another window it would not count as one.
    #[expect(clippy::cast_possible_truncation, reason = "limited to what the field holds")]
    pub(super) fn advertise_window(&mut self, duplicate: bool) -> u16 {
        let largest = self.largest_window();
        let shift = self.window_shift();
        if !duplicate && self.is_worthwhile() {
            self.rcv_adv = self.rcv_nxt.plus(self.rcv_limit.min(largest));
        }
        let window = self.receive_window().min(largest);
        // A scaled field is rounded up, or the edge would seem to move back by less than one unit.
        // Where that is more than was promised it is rounded down (RFC 7323 2.4 has senders take
        // it), or small segments would push the edge on for ever.
        let up = window.div_ceil(1 << shift);
        let units = if up << shift <= self.rcv_limit { up } else { window >> shift };
        let field = units.min(u32::from(u16::MAX));
        self.rcv_adv = self.rcv_adv.max(self.rcv_nxt.plus(field << shift));
        field as u16
    }

    /// The window of a SYN. Our own SYN has no receive sequence space yet.
    #[expect(clippy::cast_possible_truncation, reason = "limited to what the field holds")]
    pub(super) fn syn_window(&mut self) -> u16 {
        let window = self.rcv_limit.min(u32::from(u16::MAX));
        if self.state != State::SynSent {
            self.rcv_adv = self.rcv_adv.max(self.rcv_nxt.plus(window));
        }
        window as u16
    }
}
