//! One connection: what the guest's program and the server do, and what each has seen.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use host_shim::demo::pattern;
use slirp_nat::Protocol;
use slirp_nat::host::{HostError, Token};
use slirpkit_tests::guest::GUEST_IP;
use slirpkit_tests::host::State;
use slirpkit_tests::numbers::Numbers;
use slirpkit_tests::{Connect, Lab};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::State as TcpState;

use crate::guest::{Guest, Received};
use crate::plan::{Ending, FlowPlan, Opener, Pace};

/// What the server has given and the NAT has not fetched, at most.
const SERVED: usize = 64 << 10;

const A_MINUTE: usize = 60_000_000;

/// How seldom a side that finds nothing to do looks again, in microseconds, unless it is slower.
const LONGEST_PAUSE: usize = 50_000;

/// Streams begin this far apart in the pattern, so that a byte of another one shows.
const APART: u64 = 10_007;

/// A connection at work.
pub(crate) struct Flow {
    pub(crate) plan: FlowPlan,
    pub(crate) local: SocketAddrV4,
    pub(crate) remote: SocketAddrV4,
    number: u64,
    numbers: Numbers,
    handle: SocketHandle,
    token: Option<Token>,
    /// When the server accepts.
    accepts_at: u64,
    begun: bool,
    /// When the guest's program and the server next do something.
    guest_at: u64,
    server_at: u64,
    guest: Side,
    server: Side,
    /// What the server has in its host's buffer.
    unread: usize,
    /// Either side has reset it.
    pub(crate) broken: bool,
    /// The guest has gone back to an earlier state, so that it need not come to its end.
    pub(crate) may_break: bool,
    /// The guest has opened it once more since.
    renewed: bool,
}

/// What goes back with the guest: what its program has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saved {
    guest: Side,
    begun: bool,
    broken: bool,
    over: bool,
}

/// What one side has done and seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Side {
    sent: u64,
    received: u64,
    /// How many times in a row it found nothing to do, up to what matters.
    idle: u32,
    /// It has ended its own direction.
    ended: bool,
    /// It has seen the end of the other.
    saw_end: bool,
}

impl Side {
    fn note_idleness(&mut self, before: &Self) {
        self.idle = if self == before { (self.idle + 1).min(10) } else { 0 };
    }
}

impl Flow {
    pub(crate) fn new(number: u16, seed: u64, plan: &FlowPlan, guest: &mut Guest) -> Self {
        let client = plan.opener == Opener::Client;
        let ports = if client { (8000 + number, 50_000 + number) } else { (50_000 + number, 80) };
        let far = Ipv4Addr::new(203, 0, 113, 5 + number as u8);
        Self {
            plan: plan.clone(),
            local: SocketAddrV4::new(GUEST_IP, ports.0),
            remote: SocketAddrV4::new(far, ports.1),
            number: number.into(),
            numbers: Numbers(seed ^ u64::from(number) << 32),
            handle: guest.socket(plan),
            token: None,
            accepts_at: 0,
            begun: false,
            guest_at: plan.begins,
            server_at: plan.begins,
            guest: Side::default(),
            server: Side::default(),
            unread: 0,
            broken: false,
            may_break: false,
            renewed: false,
        }
    }

    /// What the guest's program has done so far.
    pub(crate) fn save(&self, guest: &Guest) -> Saved {
        let Self { guest: side, begun, broken, .. } = *self;
        let over =
            begun && guest.is_over(self.handle) && guest.state(self.handle) != TcpState::Listen;
        Saved { guest: side, begun, broken, over }
    }

    /// The guest's program has done no more than it had then.
    pub(crate) fn go_back(&mut self, saved: &Saved) {
        self.may_break = self.begun && !saved.over;
        self.guest = saved.guest;
        // A client does not begin again.
        if self.plan.opener == Opener::Guest {
            self.begun = saved.begun;
        }
        if let Ending::GuestAborts { .. } = self.plan.ending {
            self.broken = saved.broken;
        }
    }

    /// Where a client of this connection connects to.
    fn forwarded(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.local.port()))
    }

    /// Prepares the world before anything happens.
    pub(crate) fn prepare(&self, lab: &mut Lab, guest: &mut Guest) {
        if self.plan.opener == Opener::Client {
            lab.forward(Protocol::Tcp, self.forwarded(), self.local.port()).unwrap();
            guest.listen(self.handle, self.local.port());
        }
        let outcome = match self.plan.ending {
            Ending::Refused => Connect::Fails(HostError::Refused),
            _ if self.plan.answers_after > 0 => Connect::Pending,
            _ => Connect::Succeeds,
        };
        lab.world().on_connect(self.remote, outcome);
    }

    /// When something is to be done next.
    pub(crate) fn due(&self) -> u64 {
        self.guest_at.min(self.server_at)
    }

    /// Does what is due.
    pub(crate) fn act(&mut self, now: u64, lab: &mut Lab, guest: &mut Guest) {
        if now >= self.guest_at {
            let before = self.guest;
            self.begin(lab, guest);
            self.guest_acts(guest);
            self.guest.note_idleness(&before);
            self.guest_at = now + Self::pause(&mut self.numbers, &self.plan.guest, &self.guest);
        }
        if now >= self.server_at {
            let before = self.server;
            self.server_acts(now, lab);
            self.server.note_idleness(&before);
            self.server_at = now + Self::pause(&mut self.numbers, &self.plan.server, &self.server);
        }
    }

    /// How long a side does nothing.
    fn pause(n: &mut Numbers, pace: &Pace, side: &Side) -> u64 {
        let stalls = pace.stalls_one_in > 0 && n.below(pace.stalls_one_in) == 0;
        let stall = if stalls { n.below(8_000_000) } else { 0 };
        let pause = n.within(&pace.micros) << side.idle;
        (pause.min(LONGEST_PAUSE.max(*pace.micros.end())) + stall) as u64
    }

    fn begin(&mut self, lab: &mut Lab, guest: &mut Guest) {
        if core::mem::replace(&mut self.begun, true) {
            return;
        }
        match self.plan.opener {
            Opener::Guest => guest.connect(self.handle, self.local.port(), self.remote),
            Opener::Client => {
                let (address, client) = (self.forwarded(), self.remote);
                self.token = Some(lab.world().dial(address, client));
            }
        }
    }

    /// Where the pattern of a stream begins.
    fn origin(&self, download: bool) -> u64 {
        APART * (2 * self.number + u64::from(download))
    }

    fn guest_acts(&mut self, guest: &mut Guest) {
        if guest.state(self.handle) == TcpState::TimeWait {
            self.guest_reads(guest, usize::MAX);
        }
        let most = self.numbers.within(&self.plan.guest.bytes);
        self.guest_reads(guest, most);
        if let Ending::GuestAborts { received } = self.plan.ending
            && self.guest.received >= received
            && guest.may_send(self.handle)
        {
            self.broken = true;
            guest.abort(self.handle);
        }
        if self.broken || !guest.may_send(self.handle) {
            return;
        }
        let rest = self.plan.upload - self.guest.sent;
        let mut piece = vec![0; most.min(rest as usize).min(guest.room(self.handle))];
        pattern::fill(self.origin(false) + self.guest.sent, &mut piece);
        self.guest.sent += guest.send(self.handle, &piece) as u64;
        let closes = match self.plan.ending {
            Ending::Orderly { guest_waits: true, .. } => self.guest.saw_end,
            Ending::GuestAborts { .. } => false,
            _ => true,
        };
        if self.guest.sent == self.plan.upload && closes {
            self.guest.ended = true;
            guest.close(self.handle);
        }
    }

    fn guest_reads(&mut self, guest: &mut Guest, most: usize) {
        match guest.receive(self.handle, most) {
            Received::Bytes(bytes) => {
                let at = self.origin(true) + self.guest.received;
                assert_eq!(pattern::check(at, &bytes), Ok(()), "to the guest: {self:?}");
                self.guest.received += bytes.len() as u64;
            }
            Received::End => self.guest.saw_end = true,
            Received::Nothing => {}
        }
    }

    fn server_acts(&mut self, now: u64, lab: &mut Lab) {
        let latest = lab.world().find_stream_to(self.remote);
        if self.token.is_none() || self.may_break && self.token != latest {
            self.turn_to(latest, lab);
            self.accepts_at = now + self.plan.answers_after;
        }
        let Some(token) = self.token.filter(|token| lab.world().is_accepted(*token)) else {
            return;
        };
        if lab.world().is_connecting(token) {
            if now >= self.accepts_at && lab.world().state(token) == State::Open {
                lab.world().complete(token, Ok(()));
            }
            return;
        }
        self.server_reads(lab, token);
        if lab.world().state(token) == State::Open && !self.broken && !self.server.ended {
            self.server_writes(lab, token);
        }
    }

    /// The server has another connection now.
    fn turn_to(&mut self, latest: Option<Token>, lab: &mut Lab) {
        if let Some(before) = self.token {
            self.server_reads(lab, before);
            (self.server, self.unread, self.renewed) = (Side::default(), 0, true);
            self.broken = false;
        }
        self.token = latest;
    }

    fn server_reads(&mut self, lab: &mut Lab, token: Token) {
        let n = &mut self.numbers;
        let read = n.within(&self.plan.server.bytes);
        let short = self.plan.short_one_in > 0 && n.below(self.plan.short_one_in) == 0;
        let short = short.then(|| n.below(2000));
        let bytes = lab.world().take_sent(token);
        let at = self.origin(false) + self.server.received;
        assert_eq!(pattern::check(at, &bytes), Ok(()), "to the server: {self:?}");
        self.server.received += bytes.len() as u64;
        self.server.saw_end |= lab.world().is_write_shut(token);
        self.unread += bytes.len();
        self.unread -= read.min(self.unread);
        lab.world().set_room(token, self.plan.host_buffer.saturating_sub(self.unread));
        lab.world().drain(token);
        if let Some(short) = short {
            lab.world().take_short(token, &[short]);
        }
    }

    fn server_writes(&mut self, lab: &mut Lab, token: Token) {
        let reset_at = match self.plan.ending {
            Ending::ServerResets { sent } => Some(sent),
            _ => None,
        };
        let end = reset_at.unwrap_or(self.plan.download);
        let most = self.numbers.within(&self.plan.server.bytes);
        let room = SERVED.saturating_sub(lab.world().unconsumed(token));
        let piece = (end - self.server.sent).min(most.min(room) as u64);
        let mut bytes = vec![0; piece as usize];
        pattern::fill(self.origin(true) + self.server.sent, &mut bytes);
        if !bytes.is_empty() {
            lab.world().sends(token, &bytes);
        }
        self.server.sent += piece;
        if self.server.sent < end {
            return;
        }
        let waits = matches!(self.plan.ending, Ending::Orderly { server_waits: true, .. });
        if reset_at.is_some() {
            self.broken = true;
            lab.world().fails(token, HostError::Reset);
        } else if !waits || self.server.saw_end {
            self.server.ended = true;
            lab.world().ends(token);
        }
    }

    /// The guest's program does no more, and the server reads what comes now and then.
    pub(crate) fn fade(&mut self) {
        self.guest_at = u64::MAX;
        self.plan.server.bytes = usize::MAX - 1..=usize::MAX - 1;
        self.plan.server.micros = A_MINUTE..=A_MINUTE;
    }

    /// How much both sides have done.
    pub(crate) fn progress(&self) -> u64 {
        let done = |side: &Side| {
            let ends = [side.ended, side.saw_end, self.broken].map(u64::from);
            side.sent + side.received + ends.iter().sum::<u64>()
        };
        done(&self.guest) + done(&self.server)
    }

    /// The guest's program is no more.
    pub(crate) fn quit(&self, guest: &mut Guest) {
        guest.abort(self.handle);
    }

    /// Whether the NAT holds it, and the host is connected.
    pub(crate) fn is_held(&self, lab: &mut Lab) -> bool {
        self.token.is_some_and(|token| {
            let world = lab.world();
            world.state(token) == State::Open
                && world.is_accepted(token)
                && !world.is_connecting(token)
        })
    }

    /// Whether both sides have come to the end that was planned.
    pub(crate) fn is_over(&mut self, lab: &mut Lab, guest: &mut Guest) -> bool {
        let over = self.begun && guest.is_over(self.handle);
        let state = self.token.map(|token| lab.world().state(token));
        match self.plan.ending {
            Ending::Refused => over,
            Ending::GuestAborts { .. } => self.broken && over,
            Ending::ServerResets { .. } => {
                over && self.broken && self.guest.received == self.server.sent
            }
            Ending::Orderly { .. } => {
                assert_ne!(state, Some(State::Reset), "{self:?}");
                let ended = self.guest.ended && self.server.ended;
                over && ended && state == Some(State::Closed) && self.has_all()
            }
        }
    }

    fn has_all(&self) -> bool {
        self.guest.saw_end
            && self.server.saw_end
            && self.guest.received == self.plan.download
            && self.server.received == self.plan.upload
    }

    /// How many bytes the server's host has taken, and the server has given; `None` if nothing is
    /// known of them any more.
    pub(crate) fn moved(&self, lab: &mut Lab) -> Option<(u64, u64)> {
        let known = !self.broken && !self.renewed && (!self.may_break || self.is_held(lab));
        let token = self.token.filter(|_| known)?;
        let waiting = lab.world().sent(token).len() as u64;
        Some((self.server.received + waiting, self.server.sent))
    }
}

impl core::fmt::Debug for Flow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Flow")
            .field("plan", &self.plan)
            .field("guest", &self.guest)
            .field("server", &self.server)
            .field("token", &self.token)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}
