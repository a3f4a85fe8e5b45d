//! The one timer of a connection. Waiting for an ACK, for a window, for the peer's FIN or for the
//! end of TIME-WAIT exclude each other, so one deadline serves them all.

use core::time::Duration;

use super::{Connection, Scoreboard, SegmentIn, State};
use crate::Instant;
use crate::fmt::{debug, trace};

/// How long the host may take to connect; above the two minutes that Linux tries.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(130);

/// Retransmissions of a SYN before the guest is given up (RFC 9293 3.8.3, R2 for SYN).
const SYN_RETRIES: u8 = 6;

/// Retransmissions of data before the guest is given up (R2 of RFC 9293 3.8.3).
const DATA_RETRIES: u8 = 12;

/// Silence before the first keep-alive probe (RFC 9293 3.8.4: no less than two hours).
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// Time between keep-alive probes, and how many go unanswered before the guest is given up.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(75);
const KEEP_ALIVE_PROBES: u8 = 9;

/// How long FIN-WAIT-2 may stand without a segment from the guest.
const FIN_WAIT_2_IDLE: Duration = Duration::from_secs(10 * 60);

/// How long the host may go without taking more of what came before both ended.
const HOST_TAKES_REST: Duration = Duration::from_secs(10 * 60);

/// Twice the maximum segment lifetime: five seconds is long on a link without routers.
pub(super) const TIME_WAIT: Duration = Duration::from_secs(10);

/// Backoffs of the persist timer that an answered probe keeps, so that some more may get lost.
const ANSWERED_PROBE_RETRIES: u8 = 8;

/// How long a sender waits with a window too small to be worth using
/// (RFC 9293 3.8.6.2.1, the override timeout of 0.1 to 1.0 seconds).
pub(super) const OVERRIDE_TIMEOUT: Duration = Duration::from_millis(200);

/// What the deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    Off,
    /// The host is to connect.
    Connect,
    /// SYN, data or FIN is to be acknowledged.
    Retransmit,
    /// The same, and the first of it is to be sent again before its time.
    TailProbe,
    /// The guest's window is closed, or too small, or its hardware address is not known.
    Persist,
    /// Nothing is under way: keep-alive, or the limit of FIN-WAIT-2.
    Idle,
    /// TIME-WAIT.
    TimeWait,
    /// Both have ended, and the host is to take the rest of what came before.
    HostTakesRest,
}

/// What came of [`Connection::on_timer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerOutcome {
    /// It was early: nothing happened.
    Early,
    /// Something is to be sent again: a retransmission timeout.
    Retransmit,
    /// Something is to be sent: a probe.
    Probe,
    /// TIME-WAIT is over.
    Closed,
    /// The guest, or the host's connect, is given up.
    GiveUp,
}

impl Connection {
    /// When to call [`Connection::on_timer`].
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        (self.timer != Timer::Off).then_some(self.deadline)
    }

    pub(super) const fn set_timer(&mut self, timer: Timer, deadline: Instant) {
        self.timer = timer;
        self.deadline = deadline;
    }

    /// Moves the deadline, since the link had no room and nothing could be sent: time without room
    /// counts towards no timeout.
    pub fn postpone(&mut self, now: Instant) {
        if matches!(self.timer, Timer::Retransmit | Timer::TailProbe | Timer::Persist) {
            self.deadline = now.after(self.interval());
        }
    }

    /// Gives whoever is waited for one more chance, since the clock has jumped.
    pub fn forgive(&mut self, now: Instant) {
        self.deadline = now.after(self.rtt.timeout(u8::MAX));
    }

    /// Time until the next retransmission or probe.
    fn interval(&self) -> Duration {
        let doublings = if self.timer == Timer::Persist { self.retries } else { self.backoffs };
        self.rtt.timeout(doublings)
    }

    /// Whether what the timer waits for is an answer of the guest to something sent.
    #[must_use]
    pub const fn awaits_guest(&self) -> bool {
        matches!(self.timer, Timer::Retransmit | Timer::TailProbe | Timer::Persist)
    }

    /// The host has not taken all that came before both ended: from now on it has some time to take
    /// more of it.
    pub const fn await_host(&mut self, now: Instant) {
        if matches!(self.state, State::Closed) {
            self.set_timer(Timer::HostTakesRest, now.after(HOST_TAKES_REST));
        }
    }

    /// Nothing can be sent, since the guest's hardware address is not known. Where nothing else would
    /// have it asked for again, the timer comes as for a closed window.
    pub fn await_address(&mut self, now: Instant) {
        if self.timer == Timer::Idle {
            self.retries = 0;
            self.set_timer(Timer::Persist, now.after(self.rtt.timeout(0)));
        }
    }

    /// Does what is due at `now`. Early and repeated calls are harmless.
    pub fn on_timer(&mut self, now: Instant, board: Option<&mut Scoreboard>) -> TimerOutcome {
        if now < self.deadline {
            return TimerOutcome::Early;
        }
        match self.timer {
            Timer::Off => TimerOutcome::Early,
            Timer::Connect | Timer::HostTakesRest => TimerOutcome::GiveUp,
            Timer::Retransmit => self.on_retransmission_timeout(now, board),
            Timer::TailProbe => self.on_tail_probe_timeout(now),
            Timer::Persist => self.on_persist_timeout(now),
            Timer::Idle => self.on_idle(now),
            Timer::TimeWait => {
                self.close();
                TimerOutcome::Closed
            }
        }
    }

    /// RFC 6298 5.4 to 5.6, and go-back-N from the first unacknowledged byte, past what the guest is
    /// known to hold.
    fn on_retransmission_timeout(
        &mut self,
        now: Instant,
        board: Option<&mut Scoreboard>,
    ) -> TimerOutcome {
        let limit = if self.is_half_open() { SYN_RETRIES } else { DATA_RETRIES };
        if self.retries >= limit {
            debug!("no acknowledgment of {} after {} tries", self.snd_una.0, self.retries);
            return TimerOutcome::GiveUp;
        }
        trace!("retransmission timeout at {}", self.snd_una.0);
        let first = self.retries == 0;
        self.retries += 1;
        self.backoffs = self.backoffs.saturating_add(1);
        self.flags.timing = false;
        self.flags.retransmit = false;
        // It has repaired nothing, and what comes now answers what is sent from here on.
        self.flags.tail_probed = false;
        if self.is_half_open() {
            self.flags.syn_owed = true;
        } else {
            let flight = self.snd_max.since(self.snd_una);
            self.congestion.on_timeout(first, self.snd_max, flight, u32::from(self.mss));
            self.snd_nxt = self.snd_una;
            if let Some(board) = board.filter(|board| !first || board.holds(self.snd_una)) {
                // The guest may have thrown it away (RFC 2018 8).
                board.clear();
            }
            self.out_of_pipe = 0;
        }
        self.set_timer(Timer::Retransmit, now.after(self.interval()));
        TimerOutcome::Retransmit
    }

    /// Whether the first segment out may be sent again long before the timeout, as a tail loss probe
    /// (RFC 8985 7): the one ACK of a flight may be lost, or the end of it, of which nothing else
    /// tells. The RFC sends the last segment, for what its SACK block tells; the first one is as good
    /// to a guest with SACK, and repairs something for one without.
    ///
    /// Only where something was lost before, since on other links it would hit guests that are slow;
    /// and of several segments only, since a guest may delay the ACK of one.
    fn may_probe_tail(&self) -> bool {
        let quiet = self.retries == 0 && self.backoffs == 0 && !self.flags.tail_probed;
        let lossy = self.congestion.has_seen_loss() && !self.congestion.is_recovering();
        quiet && lossy && self.data_outstanding() > u32::from(self.mss)
    }

    /// RFC 8985 7.3; the timeout itself follows if that does not help.
    fn on_tail_probe_timeout(&mut self, now: Instant) -> TimerOutcome {
        self.flags.tail_probed = true;
        self.flags.retransmit = true;
        self.set_timer(Timer::Retransmit, now.after(self.rtt.timeout(0)));
        TimerOutcome::Probe
    }

    /// RFC 9293 3.8.6.1: probes go on for as long as the guest answers them.
    fn on_persist_timeout(&mut self, now: Instant) -> TimerOutcome {
        if self.retries >= DATA_RETRIES {
            return TimerOutcome::GiveUp;
        }
        self.retries += 1;
        if self.is_only_fin_outstanding() {
            self.snd_nxt = self.snd_una;
        } else {
            self.flags.probe = true;
        }
        self.set_timer(Timer::Persist, now.after(self.interval()));
        TimerOutcome::Probe
    }

    /// The guest was heard from. If it is in step, what it answers keeps it from being given up; the
    /// interval of probes goes on growing while its window stays closed (RFC 9293 3.8.6.1).
    pub(super) fn heard(&mut self, segment: &SegmentIn<'_>) {
        if !self.is_in_step(segment) {
            return;
        }
        match self.timer {
            Timer::Persist => self.retries = self.retries.min(ANSWERED_PROBE_RETRIES),
            // The wait begins anew.
            Timer::Idle => self.timer = Timer::Off,
            Timer::Off
            | Timer::Connect
            | Timer::Retransmit
            | Timer::TailProbe
            | Timer::TimeWait
            | Timer::HostTakesRest => {}
        }
    }

    fn on_idle(&mut self, now: Instant) -> TimerOutcome {
        if self.state == State::FinWait2 || self.retries >= KEEP_ALIVE_PROBES {
            return TimerOutcome::GiveUp;
        }
        self.retries += 1;
        self.flags.keep_alive = true;
        self.set_timer(Timer::Idle, now.after(KEEP_ALIVE_INTERVAL));
        TimerOutcome::Probe
    }

    /// Chooses the timer after anything has happened. `progress` says that the guest acknowledged
    /// something new, which restarts the retransmission timer (RFC 6298 5.3).
    pub(super) fn rearm(&mut self, now: Instant, progress: bool) {
        if matches!(self.timer, Timer::Connect | Timer::TimeWait) || self.state == State::Closed {
            return;
        }
        let outstanding = self.snd_max != self.snd_una;
        // A SYN goes out before any window is known.
        let closed = self.snd_wnd == 0 && !self.is_half_open();
        let (timer, delay) = if outstanding && !closed && self.may_probe_tail() {
            (Timer::TailProbe, self.rtt.probe_timeout())
        } else if outstanding && !closed {
            (Timer::Retransmit, self.rtt.timeout(self.backoffs))
        } else if outstanding || self.is_blocked() {
            (Timer::Persist, if closed { self.rtt.timeout(0) } else { OVERRIDE_TIMEOUT })
        } else if self.state == State::FinWait2 {
            (Timer::Idle, FIN_WAIT_2_IDLE)
        } else {
            (Timer::Idle, KEEP_ALIVE_IDLE)
        };
        if self.timer != timer {
            self.retries = 0;
        } else if !(progress && matches!(timer, Timer::Retransmit | Timer::TailProbe)) {
            return;
        }
        self.set_timer(timer, now.after(delay));
    }
}
