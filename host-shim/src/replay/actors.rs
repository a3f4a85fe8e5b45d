//! Host and link of a replay.

use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr};
use std::io::BufRead;

use ipstack::Instant;
use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, Peek, Token,
};
use slirp_nat::link::{Room, TxMeta};
use slirp_nat::{Host, Link};

use super::Traffic;
use super::format::{Answer, HostCall, LinkAnswer, LinkCall, Meta, Payload, Sent};
use super::script::Script;

/// A host that answers as recorded. Where there is no fitting answer the replay has failed
/// already, and what it says no longer matters.
#[derive(Debug)]
pub(super) struct ScriptHost<'s, R> {
    pub(super) script: &'s RefCell<Script<R>>,
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
        match self.ask(&HostCall::Send { token: token.0, payload: Payload::new(data) }) {
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
        let (meta, payload) = (Meta::new(meta), Payload::new(data));
        match self.ask(&HostCall::SendDatagram { token: token.0, meta, payload }) {
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

/// A link that answers as recorded, compares what is sent and shows it to `watch`.
pub(super) struct ScriptLink<'s, R> {
    pub(super) script: &'s RefCell<Script<R>>,
    pub(super) watch: &'s mut dyn FnMut(Instant, Traffic<'_>),
    pub(super) now: Instant,
    pub(super) buffer: Vec<u8>,
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
        if script.sends(&Sent::new(frame, meta)) {
            (self.watch)(self.now, Traffic::ForGuest(frame, meta));
        }
    }
}
