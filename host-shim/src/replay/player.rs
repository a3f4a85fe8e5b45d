//! Feeding a recording to a fresh NAT.

use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr};
use std::io::{self, BufRead};

use ipstack::Instant;
use serde::Serialize;
use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, HostEvent, Peek, Token,
};
use slirp_nat::link::{Frame, Room, TxMeta};
use slirp_nat::{Forward, Host, Link, Nat, Protocol};

use super::format::{Answer, Call, HostCall, Input, Line, LinkAnswer, LinkCall, Meta, Sent};

/// What was replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Calls on the NAT.
    pub inputs: u64,
    /// Calls of the NAT on its host and link.
    pub answers: u64,
    /// Frames and super-segments for the guest.
    pub frames: u64,
}

/// Why a replay ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// Reading failed.
    Io(io::Error),
    /// A line that is not one of a recording.
    Syntax {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// It does not begin with the header of a known version.
    Header,
    /// The configuration in the header makes no NAT.
    Configuration,
    /// The NAT did something else than what was recorded.
    Divergence {
        /// Number of the line, from 1.
        line: u64,
        /// What is written there; `None` at the end.
        recorded: Option<String>,
        /// What the NAT did.
        replayed: String,
    },
}

impl core::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read the recording: {error}"),
            Self::Syntax { line, cause } => {
                write!(f, "line {line} is no line of a recording: {cause}")
            }
            Self::Header => write!(f, "no recording of version {}", super::VERSION),
            Self::Configuration => f.write_str("the recorded configuration makes no NAT"),
            Self::Divergence { line, recorded: Some(recorded), replayed } => {
                write!(f, "line {line}: recorded {recorded}, replayed {replayed}")
            }
            Self::Divergence { line, recorded: None, replayed } => {
                write!(f, "line {line}: the recording ends, replayed {replayed}")
            }
        }
    }
}

impl core::error::Error for ReplayError {}

/// Replays a recording and checks that the NAT does the same again: the same calls on host and
/// link, the same frames, the same deadlines.
///
/// # Errors
/// The first thing that differs, or what is wrong with the recording.
pub fn replay(reader: impl BufRead) -> Result<Report, ReplayError> {
    let mut script = Script::new(reader);
    let Some(Line::Header(header)) = script.next_line()? else { return Err(ReplayError::Header) };
    if !header.is_known() {
        return Err(ReplayError::Header);
    }
    let (config, secret, storage) = header.parts().ok_or(ReplayError::Configuration)?;
    let mut nat = Nat::new(config, secret, storage).map_err(|_| ReplayError::Configuration)?;
    let script = RefCell::new(script);
    loop {
        let line = script.borrow_mut().next_line()?;
        match line {
            None => return Ok(script.into_inner().report),
            Some(Line::Input(input)) => step(&mut nat, &script, input)?,
            Some(_) => {
                let replayed = "the end of the call".to_owned();
                return Err(script.borrow().divergence(true, replayed));
            }
        }
    }
}

/// One call on the NAT.
fn step<R: BufRead>(
    nat: &mut Nat<'static>,
    script: &RefCell<Script<R>>,
    input: Input,
) -> Result<(), ReplayError> {
    let now = Instant::from_micros(input.at);
    let mut host = ScriptHost { script };
    let mut link = ScriptLink { script, buffer: Vec::new() };
    script.borrow_mut().report.inputs += 1;
    match input.call {
        Call::Receive(frames) => {
            let frames: Vec<Frame<'_>> = frames.iter().map(|frame| frame.frame()).collect();
            nat.receive(now, &frames, &mut host, &mut link);
        }
        Call::FlowEvent { slot, generation, ready } => {
            let event = HostEvent::Flow(FlowId { slot, generation }, ready.ready());
            nat.on_host_event(now, event, &mut host, &mut link);
        }
        Call::ForwardEvent { forward, ready } => {
            let event = HostEvent::Forward(ForwardId(forward), ready.ready());
            nat.on_host_event(now, event, &mut host, &mut link);
        }
        Call::LinkReady => nat.on_link_ready(now, &mut host, &mut link),
        Call::Timer => nat.on_timer(now, &mut host, &mut link),
        Call::AddForward { udp, host: address, guest } => {
            let protocol = if udp { Protocol::Udp } else { Protocol::Tcp };
            let rule = Forward { protocol, host: address, guest };
            // Whether it succeeds follows from the host's answers, which are compared.
            let _ = nat.add_forward(rule, &mut host);
        }
        Call::RemoveForward { forward } => {
            nat.remove_forward(ForwardId(forward), &mut host);
        }
        Call::SetResolvers(resolvers) => nat.set_resolvers(&resolvers),
    }
    let due = Line::Due { at: nat.poll_at().map(|deadline| deadline.at.micros()) };
    script.borrow_mut().expect(&due);
    script.borrow_mut().failure.take().map_or(Ok(()), Err)
}

/// The lines still to come.
#[derive(Debug)]
struct Script<R> {
    reader: R,
    text: String,
    number: u64,
    report: Report,
    failure: Option<ReplayError>,
}

impl<R: BufRead> Script<R> {
    const fn new(reader: R) -> Self {
        let report = Report { inputs: 0, answers: 0, frames: 0 };
        Self { reader, text: String::new(), number: 0, report, failure: None }
    }

    fn next_line(&mut self) -> Result<Option<Line>, ReplayError> {
        self.text.clear();
        self.number += 1;
        match self.reader.read_line(&mut self.text) {
            Ok(0) => Ok(None),
            Ok(_) => serde_json::from_str(&self.text)
                .map(Some)
                .map_err(|cause| ReplayError::Syntax { line: self.number, cause }),
            Err(error) => Err(ReplayError::Io(error)),
        }
    }

    /// The line read last says something else than `replayed`, or there was none.
    fn divergence(&self, is_there: bool, replayed: String) -> ReplayError {
        let recorded = is_there.then(|| shortened(self.text.trim_end()));
        ReplayError::Divergence { line: self.number, recorded, replayed: shortened(&replayed) }
    }

    /// The next line, which `fits`; `None` once something has differed.
    fn take(
        &mut self,
        fits: impl FnOnce(&Line) -> bool,
        replayed: impl FnOnce() -> String,
    ) -> Option<Line> {
        if self.failure.is_some() {
            return None;
        }
        match self.next_line() {
            Ok(Some(line)) if fits(&line) => return Some(line),
            Ok(other) => self.failure = Some(self.divergence(other.is_some(), replayed())),
            Err(error) => self.failure = Some(error),
        }
        None
    }

    fn expect(&mut self, expected: &Line) {
        self.take(|line| line == expected, || json(expected));
    }

    fn ask(&mut self, call: &HostCall) -> Option<Answer> {
        self.report.answers += 1;
        let fits =
            |line: &Line| matches!(line, Line::Host { call: recorded, .. } if recorded == call);
        match self.take(fits, || json(call))? {
            Line::Host { answer, .. } => Some(answer),
            _ => None,
        }
    }

    fn ask_link(&mut self, call: &LinkCall) -> Option<LinkAnswer> {
        self.report.answers += 1;
        let fits =
            |line: &Line| matches!(line, Line::Link { call: recorded, .. } if recorded == call);
        match self.take(fits, || json(call))? {
            Line::Link { answer, .. } => Some(answer),
            _ => None,
        }
    }
}

/// As a recording would have it.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

/// What fits a message.
fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// A host that answers as recorded. Where there is no fitting answer the replay has failed
/// already, and what it says no longer matters.
struct ScriptHost<'s, R> {
    script: &'s RefCell<Script<R>>,
}

impl<R: BufRead> ScriptHost<'_, R> {
    fn ask(&self, call: &HostCall) -> Option<Answer> {
        self.script.borrow_mut().ask(call)
    }

    fn token(&self, call: &HostCall) -> Result<Token, HostError> {
        match self.ask(call) {
            Some(Answer::Token(number)) => Ok(Token(number)),
            other => Err(error_of(other)),
        }
    }
}

fn error_of(answer: Option<Answer>) -> HostError {
    match answer {
        Some(Answer::Error(name)) => name.error(),
        _ => HostError::Other,
    }
}

fn fill(buffer: &mut [u8], data: &[u8]) -> usize {
    for (to, from) in buffer.iter_mut().zip(data) {
        *to = *from;
    }
    data.len().min(buffer.len())
}

fn total(data: &[&[u8]]) -> usize {
    data.iter().map(|slice| slice.len()).sum()
}

impl<R: BufRead> Host for ScriptHost<'_, R> {
    fn capabilities(&self) -> Capabilities {
        match self.ask(&HostCall::Capabilities) {
            Some(Answer::Capabilities { ping, segmented_send }) => {
                Capabilities { ping, segmented_send }
            }
            _ => Capabilities::default(),
        }
    }

    fn is_own_address(&mut self, address: IpAddr) -> bool {
        self.ask(&HostCall::IsOwnAddress(address)) == Some(Answer::Yes(true))
    }

    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        max_segment: u16,
    ) -> Result<Token, HostError> {
        let FlowId { slot, generation } = flow;
        self.token(&HostCall::Connect { slot, generation, remote, max_segment })
    }

    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError> {
        match self.ask(&HostCall::ConnectResult(token.0)) {
            Some(Answer::Connected { local, remote }) => Ok(Connected { local, remote }),
            other => Err(error_of(other)),
        }
    }

    fn peek(&mut self, token: Token, offset: usize, buffer: &mut [u8]) -> Result<Peek, HostError> {
        let call = HostCall::Peek { token: token.0, offset, len: buffer.len() };
        match self.ask(&call) {
            Some(Answer::Data(data)) => Ok(Peek::Data(fill(buffer, &data))),
            Some(Answer::WouldBlock) => Ok(Peek::WouldBlock),
            Some(Answer::End) => Ok(Peek::End),
            other => Err(error_of(other)),
        }
    }

    fn consume(&mut self, token: Token, count: usize) {
        self.ask(&HostCall::Consume { token: token.0, count });
    }

    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        match self.ask(&HostCall::Send { token: token.0, len: total(data) }) {
            Some(Answer::Count(count)) => Ok(count),
            other => Err(error_of(other)),
        }
    }

    fn send_room(&mut self, token: Token) -> usize {
        match self.ask(&HostCall::SendRoom(token.0)) {
            Some(Answer::Count(count)) => count,
            _ => 0,
        }
    }

    fn arm_write(&mut self, token: Token) {
        self.ask(&HostCall::ArmWrite(token.0));
    }

    fn shutdown_write(&mut self, token: Token) {
        self.ask(&HostCall::ShutdownWrite(token.0));
    }

    fn close(&mut self, token: Token) {
        self.ask(&HostCall::Close(token.0));
    }

    fn reset(&mut self, token: Token) {
        self.ask(&HostCall::Reset(token.0));
    }

    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
        self.token(&HostCall::Listen { forward: forward.0, address })
    }

    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError> {
        let FlowId { slot, generation } = flow;
        match self.ask(&HostCall::Accept { listener: listener.0, slot, generation }) {
            Some(Answer::Accepted { token, peer, local }) => {
                Ok(Some(Accepted { token: Token(token), peer, local }))
            }
            Some(Answer::Nothing) => Ok(None),
            other => Err(error_of(other)),
        }
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError> {
        self.token(&HostCall::open_datagram(flow, kind, remote))
    }

    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError> {
        self.token(&HostCall::BindDatagram { forward: forward.0, address })
    }

    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        let (meta, len) = (Meta::new(meta), total(data));
        match self.ask(&HostCall::SendDatagram { token: token.0, meta, len }) {
            Some(Answer::Nothing) => Ok(()),
            other => Err(error_of(other)),
        }
    }

    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        let call = HostCall::ReceiveDatagram { token: token.0, len: buffer.len() };
        match self.ask(&call) {
            Some(Answer::Datagram(datagram)) => {
                Ok(Some((fill(buffer, &datagram.data), datagram.meta.meta())))
            }
            Some(Answer::Nothing) => Ok(None),
            other => Err(error_of(other)),
        }
    }

    fn datagram_error(&mut self, token: Token) -> Option<DatagramError> {
        match self.ask(&HostCall::DatagramError(token.0)) {
            Some(Answer::Report(report)) => Some(report.report()),
            _ => None,
        }
    }
}

/// A link that answers as recorded and compares what is sent.
struct ScriptLink<'s, R> {
    script: &'s RefCell<Script<R>>,
    buffer: Vec<u8>,
}

impl<R: BufRead> ScriptLink<'_, R> {
    fn ask(&self, call: &LinkCall) -> Option<LinkAnswer> {
        self.script.borrow_mut().ask_link(call)
    }
}

impl<R: BufRead> Link for ScriptLink<'_, R> {
    fn room(&mut self) -> Room {
        match self.ask(&LinkCall::Room) {
            Some(LinkAnswer::Room { frames, bytes }) => Room { frames, bytes },
            _ => Room { frames: 0, bytes: 0 },
        }
    }

    fn guest_queue_frames(&self) -> usize {
        match self.ask(&LinkCall::GuestQueueFrames) {
            Some(LinkAnswer::Frames(frames)) => frames,
            _ => 0,
        }
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        let Some(LinkAnswer::Lent(lent)) = self.ask(&LinkCall::Reserve(wanted)) else {
            return None;
        };
        self.buffer.clear();
        self.buffer.resize(lent?.min(wanted), 0);
        Some(&mut self.buffer)
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        let frame = self.buffer.get(..length).unwrap_or(&self.buffer);
        let mut script = self.script.borrow_mut();
        script.report.frames += 1;
        script.expect(&Line::Sent(Sent::new(frame, meta)));
    }
}
