//! The transmission control block, and what makes and moves it from outside.

use super::congestion::Congestion;
use super::rtt::RttEstimator;
use super::timer::{CONNECT_TIMEOUT, Timer};
use super::{SegmentIn, SeqNumber};
use crate::Instant;
use crate::wire::tcp_options::MAX_WINDOW_SCALE;

/// The smallest segment size honoured: what an MTU of 68 leaves (RFC 791 3.2).
pub const MIN_MSS: u16 = 28;

/// The segment size of a peer that names none (RFC 9293 3.7.1).
pub(super) const DEFAULT_MSS: u16 = 536;

/// Connection states (RFC 9293 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum State {
    /// SYN-SENT: the guest was asked.
    SynSent,
    /// SYN-RECEIVED: the guest asked; the answer waits for the host, or for the guest's ACK.
    SynReceived,
    /// ESTABLISHED.
    Established,
    /// FIN-WAIT-1: the host ended first, and the guest has not acknowledged it.
    FinWait1,
    /// FIN-WAIT-2: the host ended first, and the guest may still send.
    FinWait2,
    /// CLOSE-WAIT: the guest ended first, and the host may still send.
    CloseWait,
    /// CLOSING: both ended at the same time.
    Closing,
    /// LAST-ACK: both ended, the guest first.
    LastAck,
    /// TIME-WAIT.
    TimeWait,
    /// CLOSED: nothing is left to do.
    Closed,
}

impl State {
    /// Whether the handshake is done (RFC 9293 calls these the synchronized states).
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether text from the guest is taken.
    pub(super) const fn receives(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether text, or the end of it, may have to be sent.
    pub(super) const fn sends(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }
}

/// What a connection is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest segment the link carries to and from the guest: its MTU less 40 (or 60) bytes.
    pub mss: u16,
    /// Window scale to offer, 0 to 14 (RFC 7323 2.3). Of what is promised the guest is told in whole
    /// units of 2 to this power, and of less than one not at all.
    pub window_scale: u8,
    /// Bytes that may be received before more is promised.
    pub receive_window: u32,
    /// Whether text beyond a gap can be stored, so that SACK is worth offering (RFC 2018). A
    /// sender with SACK takes duplicate ACKs without blocks for nothing.
    pub sack: bool,
}

/// One TCP connection with the guest. Plain data; deadlines are absolute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    pub(super) state: State,
    pub(super) flags: Flags,
    pub(super) timer: Timer,
    pub(super) deadline: Instant,

    // Send sequence space (RFC 9293 3.3.1); `snd_max` is the highest ever sent, since a timeout
    // moves `snd_nxt` back.
    pub(super) snd_una: SeqNumber,
    pub(super) snd_nxt: SeqNumber,
    pub(super) snd_max: SeqNumber,
    pub(super) snd_wnd: u32,
    pub(super) snd_wl1: SeqNumber,
    /// The largest window the guest has offered (RFC 9293 3.8.6.2.1, Max(SND.WND)).
    pub(super) max_snd_wnd: u32,

    // Receive sequence space; `rcv_adv` is the right edge ever offered.
    pub(super) rcv_nxt: SeqNumber,
    pub(super) rcv_adv: SeqNumber,
    /// Where text ends that was refused, while some of it is still to come again.
    pub(super) refused_up_to: Option<SeqNumber>,
    /// Bytes promised beyond `rcv_nxt`, and the most ever promised.
    pub(super) rcv_limit: u32,
    pub(super) rcv_limit_max: u32,

    pub(super) congestion: Congestion,
    /// Bytes between `snd_una` and `snd_nxt` that are not on their way any more.
    pub(super) out_of_pipe: u32,
    pub(super) rtt: RttEstimator,
    /// The segment being timed: acknowledging this number ends the measurement.
    pub(super) rtt_seq: SeqNumber,
    /// When it was sent, microseconds modulo 2^32.
    pub(super) rtt_start: u32,
    /// When the last challenge ACK was sent, milliseconds modulo 2^32.
    pub(super) challenge_at: u32,

    /// Largest segment to the guest.
    pub(super) mss: u16,
    /// Largest segment offered to the guest.
    pub(super) offered_mss: u16,
    pub(super) snd_shift: u8,
    pub(super) rcv_shift: u8,
    /// Timeouts or probes since the guest was last heard.
    pub(super) retries: u8,
    /// Retransmission timeouts since the last measurement of the round trip. An ACK of something
    /// sent twice resets `retries` and not this, or a guest slower than the timeout would never be
    /// measured (Karn; RFC 6298 5.5).
    pub(super) backoffs: u8,
    /// Duplicate ACKs owed besides the ordinary one.
    pub(super) duplicates_owed: u8,
}

/// Small facts about a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Flags {
    /// This end sent the first SYN.
    pub(super) active: bool,
    /// The guest's SYN has the MSS option, or ours does.
    pub(super) mss_option: bool,
    /// The guest's SYN offered window scale, or ours does.
    pub(super) scaling: bool,
    /// Both ends may send SACK blocks (RFC 2018 2); this end would, until the guest's SYN is known.
    pub(super) sack: bool,
    /// The host's side is connected, so the SYN may be answered.
    pub(super) connected: bool,
    /// A SYN or SYN-ACK is to be sent.
    pub(super) syn_owed: bool,
    pub(super) ack_owed: bool,
    /// The host's socket may hold bytes, or its end, beyond what was peeked.
    pub(super) readable: bool,
    /// The host has sent its last byte, and it has been peeked.
    pub(super) host_end: bool,
    /// The host's side has failed; the guest is reset once it has what came before.
    pub(super) host_failed: bool,
    /// The host takes no more bytes.
    pub(super) host_refuses: bool,
    /// The host has lost bytes that the guest may need again: the guest is reset at once.
    pub(super) bytes_lost: bool,
    pub(super) fin_sent: bool,
    /// A FIN was taken in this batch, and its effect waits for `settle`.
    pub(super) fin_pending: bool,
    /// The first unacknowledged segment is to be sent again, out of turn.
    pub(super) retransmit: bool,
    /// What was asked for last lies between what the guest holds.
    pub(super) fills_hole: bool,
    /// The next transmission is a zero-window probe.
    pub(super) probe: bool,
    pub(super) keep_alive: bool,
    /// The first unacknowledged segment was sent again before its time.
    pub(super) tail_probed: bool,
    pub(super) timing: bool,
}

impl Connection {
    /// A connection asked for by the guest's `syn`. Nothing is answered before
    /// [`Connection::host_connected`], and the time until then is limited.
    #[must_use]
    pub fn accept(now: Instant, syn: &SegmentIn<'_>, iss: SeqNumber, limits: &Limits) -> Self {
        let mut connection = Self::new(now, State::SynReceived, iss, limits);
        connection.rcv_nxt = syn.sequence.plus(1);
        connection.rcv_adv = connection.rcv_nxt;
        connection.take_syn_options(syn);
        connection.snd_wnd = u32::from(syn.window);
        connection.max_snd_wnd = connection.snd_wnd;
        connection.snd_wl1 = syn.sequence;
        connection.set_timer(Timer::Connect, now.after(CONNECT_TIMEOUT));
        connection
    }

    /// A connection to the guest on behalf of a client of the host.
    #[must_use]
    pub fn open(now: Instant, iss: SeqNumber, limits: &Limits) -> Self {
        let mut connection = Self::new(now, State::SynSent, iss, limits);
        connection.flags.active = true;
        connection.flags.mss_option = true;
        connection.flags.scaling = true;
        connection.flags.connected = true;
        connection.flags.syn_owed = true;
        // From now on, though it may be that the SYN cannot be sent yet: the wait has an end.
        connection.set_timer(Timer::Retransmit, now.after(connection.rtt.timeout(0)));
        connection
    }

    fn new(now: Instant, state: State, iss: SeqNumber, limits: &Limits) -> Self {
        let mss = limits.mss.max(MIN_MSS);
        Self {
            state,
            flags: Flags { sack: limits.sack, ..Flags::default() },
            timer: Timer::Off,
            deadline: now,
            snd_una: iss,
            snd_nxt: iss,
            snd_max: iss,
            snd_wnd: 0,
            snd_wl1: SeqNumber(0),
            out_of_pipe: 0,
            max_snd_wnd: 0,
            rcv_nxt: SeqNumber(0),
            rcv_adv: SeqNumber(0),
            refused_up_to: None,
            rcv_limit: limits.receive_window,
            rcv_limit_max: limits.receive_window,
            congestion: Congestion::new(iss),
            rtt: RttEstimator::NEW,
            rtt_seq: iss,
            rtt_start: 0,
            challenge_at: 0,
            mss,
            offered_mss: mss,
            snd_shift: 0,
            rcv_shift: limits.window_scale.min(MAX_WINDOW_SCALE),
            retries: 0,
            backoffs: 0,
            duplicates_owed: 0,
        }
    }

    /// Takes what the guest's SYN says of itself. An option that it did not offer is never sent
    /// back: a window scale sent unasked cripples old stacks (RFC 7323 2.2).
    pub(super) fn take_syn_options(&mut self, syn: &SegmentIn<'_>) {
        let offered = syn.mss.unwrap_or(DEFAULT_MSS);
        self.mss = offered.min(self.offered_mss).max(MIN_MSS);
        // Not even this one: who sends no options may not expect any, and RFC 9293 3.7.1 lets both
        // ends live with 536 bytes then.
        self.flags.mss_option |= syn.mss.is_some();
        self.flags.sack &= syn.sack_permitted;
        match syn.window_scale {
            Some(shift) => {
                self.snd_shift = shift.min(MAX_WINDOW_SCALE);
                self.flags.scaling = true;
            }
            None => {
                self.snd_shift = 0;
                self.rcv_shift = 0;
                self.flags.scaling = false;
            }
        }
    }

    /// The host's side is connected: the guest's SYN is answered.
    pub fn host_connected(&mut self) {
        if self.state == State::SynReceived && !self.flags.connected {
            self.flags.connected = true;
            self.flags.syn_owed = true;
        }
    }

    /// The host's socket has bytes, or its end, beyond what was peeked.
    pub fn host_readable(&mut self) {
        if !self.flags.host_end {
            self.flags.readable = true;
        }
    }

    /// The host's side has failed: once the guest has what came before, it is reset.
    pub fn host_failed(&mut self) {
        self.flags.host_failed = true;
        self.flags.readable = false;
    }

    /// The host's side takes no more bytes: it has failed, but what it had received before may
    /// still be there to be peeked. No end of the guest's is told to it, which would seem to lie
    /// behind all that the guest sent.
    pub fn host_refused_bytes(&mut self) {
        self.flags.host_refuses = true;
        if self.flags.host_end {
            self.host_failed();
        } else {
            self.host_readable();
        }
    }

    /// Where the connection stands.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Largest segment that the guest takes.
    #[must_use]
    pub const fn mss(&self) -> u16 {
        self.mss
    }

    /// Lowers the largest segment, as a router between asks by ICMP; never below [`MIN_MSS`].
    pub fn limit_mss(&mut self, mss: u16) {
        self.mss = self.mss.min(mss.max(MIN_MSS));
    }

    /// Whether a loss is being repaired, so that a scoreboard is still of use.
    #[must_use]
    pub const fn is_recovering(&self) -> bool {
        self.congestion.is_recovering()
    }

    /// Whether SACK was negotiated with the guest.
    #[must_use]
    pub const fn has_sack(&self) -> bool {
        self.flags.sack && self.state.is_synchronized()
    }

    /// Whether the host's side is known to be connected.
    #[must_use]
    pub const fn is_host_connected(&self) -> bool {
        self.flags.connected
    }

    /// Whether the handshake is not done yet.
    #[must_use]
    pub const fn is_half_open(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// Whether both sides have ended and the host's socket is needed no more.
    #[must_use]
    pub const fn is_done_with_host(&self) -> bool {
        matches!(self.state, State::TimeWait | State::Closed)
    }

    /// Bytes sent to the guest and not acknowledged, without FIN.
    pub(super) const fn data_outstanding(&self) -> u32 {
        let all = self.snd_max.since(self.snd_una);
        if self.flags.fin_sent { all.saturating_sub(1) } else { all }
    }

    /// Whether a FIN, and no text, waits for its ACK.
    pub(super) const fn is_only_fin_outstanding(&self) -> bool {
        self.flags.fin_sent && self.snd_max.since(self.snd_una) == 1
    }

    /// Forgets the connection.
    pub(super) const fn close(&mut self) {
        self.state = State::Closed;
        self.timer = Timer::Off;
    }

    /// Whether `sequence` is the number of something sent and not yet acknowledged: what an ICMP
    /// error that is no forgery quotes (RFC 5927 4.1).
    #[must_use]
    pub const fn is_outstanding(&self, sequence: SeqNumber) -> bool {
        sequence.since(self.snd_una) < self.snd_max.since(self.snd_una)
    }

    /// Everything below this number was sent before.
    #[must_use]
    pub const fn sent_up_to(&self) -> SeqNumber {
        self.snd_max
    }

    /// The number of the next byte expected of the guest, unless it has ended its stream.
    #[must_use]
    pub const fn next_expected(&self) -> Option<SeqNumber> {
        if self.flags.fin_pending || !self.state.receives() { None } else { Some(self.rcv_nxt) }
    }

    /// The number of the guest's SYN.
    #[must_use]
    pub const fn guest_isn(&self) -> SeqNumber {
        self.rcv_nxt.minus(1)
    }
}
