//! The window offered to the guest.

use super::{Connection, SeqNumber, State};

impl Connection {
    /// Promises room for `bytes` beyond what was received so far: what the host takes for certain
    /// and the link can queue. The right edge already offered never moves back. What arrives uses
    /// the promise up; the owner makes a new one when [`Connection::is_receive_limited`].
    pub fn promise(&mut self, bytes: u32) {
        self.rcv_limit = bytes;
        self.rcv_limit_max = self.rcv_limit_max.max(bytes);
    }

    /// Text that ends at `end` was refused, all or the last of it. Until that has come again, the
    /// right edge stays where it is.
    pub(super) fn note_refused_text(&mut self, end: SeqNumber) {
        self.refused_up_to = Some(self.refused_up_to.map_or(end, |before| before.max(end)));
    }

    /// Text was received. With a window of less than a segment no more is missing than the next
    /// segment brings, and a sender may not use so small a window.
    pub(super) fn note_received_text(&mut self) {
        let is_usable = self.receive_window() >= u32::from(self.offered_mss);
        self.refused_up_to =
            self.refused_up_to.filter(|end| is_usable && end.is_after(self.rcv_nxt));
    }

    /// The guest asks whether its closed window is still closed. It has waited for its persist
    /// timer, and in that time nothing better came: what is promised now, be it less than a segment
    /// or than half of what was promised once, is then the measure of what is worthwhile.
    pub(super) const fn note_window_probe(&mut self) {
        if self.receive_window() == 0 && self.promised_window() > 0 {
            self.rcv_limit_max = self.rcv_limit;
        }
    }

    /// The guest sends again what was received and, for want of a promise, not acknowledged. Now it
    /// is, though its window then reaches up to one unit beyond what is promised: a guest that is
    /// never answered gives the connection up.
    pub(super) fn promise_what_is_behind(&mut self) {
        self.rcv_limit = self.rcv_limit.max(self.whole_window());
    }

    /// Bytes the guest may send now; none once its FIN is beyond the edge of a full window.
    #[must_use]
    pub const fn receive_window(&self) -> u32 {
        if self.rcv_nxt.is_after(self.rcv_adv) { 0 } else { self.rcv_adv.since(self.rcv_nxt) }
    }

    /// Whether the guest may send no more than half of what it could at best, or less than a
    /// segment, or cannot be told of all that it has sent, so that it is time to look for more
    /// room. One that has ended needs none.
    #[must_use]
    pub fn is_receive_limited(&self) -> bool {
        self.is_little(self.receive_window()) || self.will_be_behind()
    }

    /// Whether that will still be so after the next segment to the guest.
    #[must_use]
    pub fn stays_receive_limited(&self) -> bool {
        let window = if self.is_worthwhile() { self.rcv_limit } else { self.receive_window() };
        self.is_little(window) || self.will_be_behind()
    }

    fn is_little(&self, window: u32) -> bool {
        let ended = !self.state.receives() && !self.is_half_open();
        !ended && (window < u32::from(self.offered_mss) || window <= self.most_promised() / 2)
    }

    /// Whether the guest is to be told that there is room again. It is told when its window has
    /// become small while much more could be offered, so that it never waits for a window that
    /// is open (RFC 9293 3.8.6.2.2), and when it can be told of all that it has sent.
    #[must_use]
    pub fn owes_window_update(&self) -> bool {
        let gain = self.window_gain();
        let opens = self.is_worthwhile()
            && self.receive_window() <= gain.max(2 * u32::from(self.offered_mss));
        self.state.receives() && (opens || self.is_behind() && !self.will_be_behind())
    }

    /// Sends the guest an ACK with the window as it is now.
    pub const fn owe_ack(&mut self) {
        self.flags.ack_owed = true;
    }

    /// How much further the right edge could be offered than it was.
    fn window_gain(&self) -> u32 {
        self.promised_window().saturating_sub(self.receive_window())
    }

    /// The largest window that the header can say.
    pub(super) const fn largest_window(&self) -> u32 {
        (u16::MAX as u32) << self.window_shift()
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
        self.refused_up_to.is_none() && (opens || gain >= self.worthwhile_gain())
    }

    /// Silly window avoidance: the edge moves by at least one segment or a quarter of the most ever
    /// promised, whichever is less. The latter lets a window open that is smaller than a segment
    /// of a large MTU. RFC 9293 3.8.6.2.2 recommends half; a quarter is less than the third of its
    /// buffer at which a host says that it is writable, so that no window stays shut after that.
    fn worthwhile_gain(&self) -> u32 {
        u32::from(self.offered_mss).min(self.most_promised() / 4).max(1)
    }

    /// What is promised, in whole units of the window field.
    const fn promised_window(&self) -> u32 {
        let largest = self.largest_window();
        let bytes = if self.rcv_limit < largest { self.rcv_limit } else { largest };
        bytes >> self.window_shift() << self.window_shift()
    }

    /// The window, or the next that the header can say.
    fn whole_window(&self) -> u32 {
        self.receive_window().next_multiple_of(1 << self.window_shift())
    }

    /// Whether the edge lies where no window from the next byte expected can say it, so that the
    /// guest was not told of the last bytes that it has sent.
    fn is_behind(&self) -> bool {
        self.whole_window() != self.receive_window()
    }

    /// Whether that will be so after the next segment to the guest.
    fn will_be_behind(&self) -> bool {
        self.is_behind()
            && self.whole_window() > self.rcv_limit
            && self.state.receives()
            && !self.is_worthwhile()
    }

    /// Where the next segment says that this end stands, after moving the edge as far as is
    /// worthwhile. A duplicate ACK keeps the edge, since with another window it would not count as
    /// one.
    ///
    /// A scaled field cannot say every window, so that most receivers let their edge move back by
    /// less than one unit now and then (RFC 7323 2.4), and not every sender takes that well. Here it
    /// never moves back. A new grant is rounded down to whole units. What text leaves of a grant is
    /// rounded up if that much is promised; if it is not, the last bytes that came, fewer than a
    /// unit, are left unacknowledged until it is. Rounding up all the same would let each small
    /// segment push the edge a little further, for ever.
    #[expect(clippy::cast_possible_truncation, reason = "limited to what the field holds")]
    pub(super) fn advertise(&mut self, duplicate: bool) -> Advertised {
        if !duplicate {
            self.move_edge();
        }
        Advertised {
            acknowledgment: self.acknowledged(),
            window: (self.whole_window() >> self.window_shift()) as u16,
        }
    }

    /// The number that the guest is told to be expected of it: not always the next one.
    pub(super) fn acknowledged(&self) -> SeqNumber {
        self.rcv_nxt.minus(self.whole_window().saturating_sub(self.receive_window()))
    }

    fn move_edge(&mut self) {
        let window = if self.is_worthwhile() {
            self.promised_window()
        } else if self.will_be_behind() {
            self.receive_window()
        } else {
            self.whole_window()
        };
        self.rcv_adv = self.rcv_nxt.plus(window);
    }

    /// The window of a SYN, in bytes and in whole units of those that come later. Our own SYN has no
    /// receive sequence space yet.
    #[expect(clippy::cast_possible_truncation, reason = "limited to what the field holds")]
    pub(super) fn syn_window(&mut self) -> u16 {
        let window = self.rcv_limit.min(u32::from(u16::MAX)) >> self.rcv_shift << self.rcv_shift;
        if self.state != State::SynSent {
            self.rcv_adv = self.rcv_adv.max(self.rcv_nxt.plus(window));
        }
        window as u16
    }
}

/// What a segment says of its sender's receive sequence space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Advertised {
    pub(super) acknowledgment: SeqNumber,
    pub(super) window: u16,
}
