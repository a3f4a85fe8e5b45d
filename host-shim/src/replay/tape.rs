//! Host and link, with their answers written down.

use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr};

use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, Peek, Token,
};
use slirp_nat::link::{Room, TxMeta};
use slirp_nat::{Host, Link};

use super::format::{
    Answer, HostCall, InDatagram, InReport, Line, LinkAnswer, LinkCall, Meta, Payload, Sent,
};
use super::recorder::Tape;

/// A host whose answers are written down.
#[derive(Debug)]
pub(super) struct TapedHost<'t, H: ?Sized> {
    host: &'t mut H,
    tape: &'t RefCell<Tape>,
}

impl<'t, H: ?Sized> TapedHost<'t, H> {
    pub(super) const fn new(host: &'t mut H, tape: &'t RefCell<Tape>) -> Self {
        Self { host, tape }
    }

    fn write(&self, call: HostCall, answer: Answer) {
        self.tape.borrow_mut().write(&Line::Host { call, answer });
    }
}

fn token(Token(number): Token) -> Answer {
    Answer::Token(number)
}

impl<H: Host + ?Sized> Host for TapedHost<'_, H> {
    fn capabilities(&self) -> Capabilities {
        let capabilities = self.host.capabilities();
        self.write(HostCall::Capabilities, Answer::capabilities(capabilities));
        capabilities
    }

    fn is_own_address(&mut self, address: IpAddr) -> bool {
        let own = self.host.is_own_address(address);
        self.write(HostCall::IsOwnAddress(address), Answer::Yes(own));
        own
    }

    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        max_segment: u16,
    ) -> Result<Token, HostError> {
        let result = self.host.connect(flow, remote, max_segment);
        let FlowId { slot, generation } = flow;
        let call = HostCall::Connect { slot, generation, remote, max_segment };
        self.write(call, Answer::of(result, token));
        result
    }

    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError> {
        let result = self.host.connect_result(token);
        self.write(HostCall::ConnectResult(token.0), Answer::of(result, Answer::connected));
        result
    }

    fn peek(&mut self, token: Token, offset: usize, buffer: &mut [u8]) -> Result<Peek, HostError> {
        let result = self.host.peek(token, offset, buffer);
        let call = HostCall::Peek { token: token.0, offset, len: buffer.len() };
        self.write(call, Answer::of(result, |found| Answer::peeked(found, buffer)));
        result
    }

    fn consume(&mut self, token: Token, count: usize) {
        self.host.consume(token, count);
        self.write(HostCall::Consume { token: token.0, count }, Answer::Nothing);
    }

    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        let result = self.host.send(token, data);
        let call = HostCall::Send { token: token.0, payload: Payload::new(data) };
        self.write(call, Answer::of(result, Answer::Count));
        result
    }

    fn send_room(&mut self, token: Token) -> usize {
        let room = self.host.send_room(token);
        self.write(HostCall::SendRoom(token.0), Answer::Count(room));
        room
    }

    fn arm_write(&mut self, token: Token) {
        self.host.arm_write(token);
        self.write(HostCall::ArmWrite(token.0), Answer::Nothing);
    }

    fn shutdown_write(&mut self, token: Token) {
        self.host.shutdown_write(token);
        self.write(HostCall::ShutdownWrite(token.0), Answer::Nothing);
    }

    fn close(&mut self, token: Token) {
        self.host.close(token);
        self.write(HostCall::Close(token.0), Answer::Nothing);
    }

    fn reset(&mut self, token: Token) {
        self.host.reset(token);
        self.write(HostCall::Reset(token.0), Answer::Nothing);
    }

    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
        let result = self.host.listen(forward, address);
        let call = HostCall::Listen { forward: forward.0, address };
        self.write(call, Answer::of(result, token));
        result
    }

    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError> {
        let result = self.host.accept(listener, flow);
        let FlowId { slot, generation } = flow;
        let found = |found: Option<Accepted>| found.map_or(Answer::Nothing, Answer::accepted);
        let call = HostCall::Accept { listener: listener.0, slot, generation };
        self.write(call, Answer::of(result, found));
        result
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError> {
        let result = self.host.open_datagram(flow, kind, remote);
        self.write(HostCall::open_datagram(flow, kind, remote), Answer::of(result, token));
        result
    }

    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError> {
        let result = self.host.bind_datagram(forward, address);
        let call = HostCall::BindDatagram { forward: forward.0, address };
        self.write(call, Answer::of(result, token));
        result
    }

    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        let result = self.host.send_datagram(token, meta, data);
        let (meta, payload) = (Meta::new(meta), Payload::new(data));
        let call = HostCall::SendDatagram { token: token.0, meta, payload };
        self.write(call, Answer::of(result, |()| Answer::Nothing));
        result
    }

    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        let result = self.host.receive_datagram(token, buffer);
        let found = |found: Option<(usize, DatagramMeta)>| match found {
            None => Answer::Nothing,
            Some((len, meta)) => Answer::Datagram(InDatagram {
                data: buffer.get(..len).unwrap_or(buffer).to_vec(),
                meta: Meta::new(&meta),
            }),
        };
        let call = HostCall::ReceiveDatagram { token: token.0, len: buffer.len() };
        self.write(call, Answer::of(result, found));
        result
    }

    fn datagram_error(&mut self, token: Token) -> Option<DatagramError> {
        let report = self.host.datagram_error(token);
        let answer =
            report.map_or(Answer::Nothing, |report| Answer::Report(InReport::new(&report)));
        self.write(HostCall::DatagramError(token.0), answer);
        report
    }
}

/// A link whose answers, and what is sent by it, are written down.
#[derive(Debug)]
pub(super) struct TapedLink<'t, L: ?Sized> {
    link: &'t mut L,
    tape: &'t RefCell<Tape>,
    /// What was lent out instead of the link's buffer, which cannot be looked at in `commit`.
    scratch: &'t mut Vec<u8>,
    wanted: usize,
}

impl<'t, L: ?Sized> TapedLink<'t, L> {
    pub(super) const fn new(
        link: &'t mut L,
        tape: &'t RefCell<Tape>,
        scratch: &'t mut Vec<u8>,
    ) -> Self {
        Self { link, tape, scratch, wanted: 0 }
    }

    fn write(&self, call: LinkCall, answer: LinkAnswer) {
        self.tape.borrow_mut().write(&Line::Link { call, answer });
    }
}

impl<L: Link + ?Sized> Link for TapedLink<'_, L> {
    fn room(&mut self) -> Room {
        let room = self.link.room();
        self.write(LinkCall::Room, LinkAnswer::room(room));
        room
    }

    fn guest_queue_frames(&self) -> usize {
        let frames = self.link.guest_queue_frames();
        self.write(LinkCall::GuestQueueFrames, LinkAnswer::Frames(frames));
        frames
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        let lent = self.link.reserve(wanted).map(|buffer| buffer.len());
        self.write(LinkCall::Reserve(wanted), LinkAnswer::Lent(lent));
        self.wanted = wanted;
        self.scratch.clear();
        self.scratch.resize(lent?, 0);
        Some(self.scratch)
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        let frame = self.scratch.get(..length).unwrap_or(self.scratch);
        if let Some(buffer) = self.link.reserve(self.wanted) {
            for (to, from) in buffer.iter_mut().zip(frame) {
                *to = *from;
            }
        }
        self.tape.borrow_mut().write(&Line::Sent(Sent::new(frame, meta)));
        self.link.commit(length, meta);
    }
}
