//! The adapter against a host that is a script.

#![expect(clippy::std_instead_of_alloc, reason = "tests have std and no alloc crate")]

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::*;

const FLOW: FlowId = FlowId { slot: 7, generation: 1 };
const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1)), 80);

/// One stream at a time is scripted: bytes to receive, then how it ends.
#[derive(Debug, Default)]
struct Script {
    incoming: VecDeque<u8>,
    end: Option<Result<(), HostError>>,
    send_error: Option<HostError>,
    waiting: u32,
    accept_error: Option<HostError>,
    credits: Vec<usize>,
    closed: Vec<Token>,
    was_reset: Vec<Token>,
    receives: usize,
    next_token: u32,
}

impl PushHost for Script {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    fn is_own_address(&mut self, _: IpAddr) -> bool {
        false
    }
    fn connect(&mut self, _: FlowId, remote: SocketAddr, _: u16) -> Result<Token, HostError> {
        if remote.port() == 1 {
            return Err(HostError::Refused);
        }
        self.next_token += 1;
        Ok(Token(self.next_token))
    }
    fn connect_result(&mut self, _: Token) -> Result<Connected, HostError> {
        Ok(Connected { local: REMOTE, remote: REMOTE })
    }
    fn receive(&mut self, _: Token, buffer: &mut [u8]) -> Result<Received, HostError> {
        assert!(!buffer.is_empty());
        self.receives += 1;
        let count = buffer.len().min(self.incoming.len());
        for (to, from) in buffer.iter_mut().zip(self.incoming.drain(..count)) {
            *to = from;
        }
        match (count, self.end.take()) {
            (0, Some(Ok(()))) => Ok(Received::End),
            (0, Some(Err(error))) => Err(error),
            (0, None) => Ok(Received::WouldBlock),
            (count, end) => {
                self.end = end;
                Ok(Received::Data(count))
            }
        }
    }
    fn credit(&mut self, _: Token, free_bytes: usize) {
        self.credits.push(free_bytes);
    }
    fn send(&mut self, _: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        self.send_error.take().map_or(Ok(data.iter().map(|d| d.len()).sum()), Err)
    }
    fn send_room(&mut self, _: Token) -> usize {
        1000
    }
    fn arm_write(&mut self, _: Token) {}
    fn shutdown_write(&mut self, _: Token) {}
    fn close(&mut self, token: Token) {
        self.closed.push(token);
    }
    fn reset(&mut self, token: Token) {
        self.was_reset.push(token);
    }
    fn listen(&mut self, _: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
        Ok(Token(if address.port() == 1 { u32::MAX } else { 500 }))
    }
    fn accept(&mut self, _: Token, _: FlowId) -> Result<Option<Accepted>, HostError> {
        if self.waiting == 0 {
            return self.accept_error.take().map_or(Ok(None), Err);
        }
        self.waiting -= 1;
        self.next_token += 1;
        Ok(Some(Accepted { token: Token(self.next_token), peer: REMOTE, local: REMOTE }))
    }
    fn open_datagram(
        &mut self,
        _: FlowId,
        _: DatagramKind,
        _: SocketAddr,
    ) -> Result<Token, HostError> {
        Ok(Token(600))
    }
    fn bind_datagram(&mut self, _: ForwardId, _: SocketAddr) -> Result<Token, HostError> {
        Ok(Token(700))
    }
    fn send_datagram(
        &mut self,
        token: Token,
        _: &DatagramMeta,
        _: &[&[u8]],
    ) -> Result<(), HostError> {
        assert_eq!(token, Token(600));
        Ok(())
    }
    fn receive_datagram(
        &mut self,
        _: Token,
        _: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        Ok(None)
    }
    fn datagram_error(&mut self, _: Token) -> Option<DatagramError> {
        None
    }
}

fn host(rings: usize, bytes: usize) -> RingHost<'static, Script> {
    let (rings, memory) = (vec![RingSlot::EMPTY; rings].leak(), vec![0; bytes].leak());
    RingHost::new(Script::default(), rings, memory)
}

fn connected(rings: usize, bytes: usize) -> (RingHost<'static, Script>, Token) {
    let mut host = host(rings, bytes);
    let token = host.connect(FLOW, REMOTE, 0).unwrap();
    (host, token)
}

fn peek(host: &mut RingHost<'_, Script>, token: Token, offset: usize) -> Vec<u8> {
    let mut buffer = [0; 64];
    match host.peek(token, offset, &mut buffer) {
        Ok(Peek::Data(count)) => buffer[..count].to_vec(),
        other => panic!("no data: {other:?}"),
    }
}

fn ends(host: &mut RingHost<'_, Script>, token: Token, offset: usize) -> Result<Peek, HostError> {
    host.peek(token, offset, &mut [0; 64])
}

#[test]
fn bytes_stay_until_they_are_consumed() {
    let (mut host, token) = connected(1, 8);
    host.inner_mut().incoming.extend(b"abcdef");
    assert_eq!(peek(&mut host, token, 0), b"abcdef");
    assert_eq!(peek(&mut host, token, 2), b"cdef");
    assert_eq!(peek(&mut host, token, 0), b"abcdef");
    host.consume(token, 4);
    assert_eq!(peek(&mut host, token, 0), b"ef");
    assert_eq!(ends(&mut host, token, 2), Ok(Peek::WouldBlock));
}

#[test]
fn every_byte_comes_through_a_ring_that_wraps() {
    let (mut host, token) = connected(1, 7);
    let sent: Vec<u8> = (0..=250).collect();
    host.inner_mut().incoming.extend(&sent);
    let mut received = Vec::new();
    for step in (1..=7).cycle() {
        if received.len() == sent.len() {
            break;
        }
        let bytes = peek(&mut host, token, 0);
        let take = bytes.len().min(step);
        received.extend_from_slice(&bytes[..take]);
        host.consume(token, take);
    }
    assert_eq!(received, sent);
}

#[test]
fn a_peek_across_the_wrap_is_one_piece() {
    let (mut host, token) = connected(1, 8);
    host.inner_mut().incoming.extend(b"abcdef");
    assert_eq!(peek(&mut host, token, 0), b"abcdef");
    host.consume(token, 5);
    host.inner_mut().incoming.extend(b"ghijkl");
    assert_eq!(peek(&mut host, token, 0), b"fghijkl");
    assert_eq!(peek(&mut host, token, 4), b"jkl");
}

#[test]
fn a_full_ring_owes_one_event_once_it_is_consumed_from() {
    let (mut host, token) = connected(2, 8);
    host.inner_mut().incoming.extend(b"abcdefgh");
    assert_eq!(peek(&mut host, token, 0), b"abcd");
    assert_eq!(ends(&mut host, token, 4), Ok(Peek::WouldBlock));
    assert_eq!(host.next_event(), None);
    host.consume(token, 1);
    host.consume(token, 1);
    let readable = Ready { readable: true, ..Ready::default() };
    assert_eq!(host.next_event(), Some(HostEvent::Flow(FLOW, readable)));
    assert_eq!(host.next_event(), None);
    assert_eq!(peek(&mut host, token, 2), b"ef");
}

#[test]
fn an_empty_ring_owes_nothing_because_the_inner_host_does() {
    let (mut host, token) = connected(1, 4);
    host.inner_mut().incoming.extend(b"ab");
    assert_eq!(peek(&mut host, token, 0), b"ab");
    assert_eq!(ends(&mut host, token, 2), Ok(Peek::WouldBlock));
    host.consume(token, 2);
    assert_eq!(host.next_event(), None);
}

#[test]
fn an_event_owed_to_a_stream_that_went_is_dropped() {
    let (mut host, token) = connected(2, 8);
    host.inner_mut().incoming.extend(b"abcdefgh");
    assert_eq!(ends(&mut host, token, 4), Ok(Peek::WouldBlock));
    host.consume(token, 1);
    host.close(token);
    assert_eq!(host.next_event(), None);
    let again = host.connect(FLOW, REMOTE, 0).unwrap();
    assert_eq!(again, token);
    assert_eq!(peek(&mut host, again, 0), b"efgh");
}

#[test]
fn an_error_comes_after_the_bytes_and_stays() {
    let (mut host, token) = connected(1, 4);
    host.inner_mut().incoming.extend(b"abcdef");
    host.inner_mut().end = Some(Err(HostError::Reset));
    assert_eq!(peek(&mut host, token, 0), b"abcd");
    host.consume(token, 4);
    assert_eq!(peek(&mut host, token, 0), b"ef");
    for _ in 0..3 {
        assert_eq!(ends(&mut host, token, 2), Err(HostError::Reset));
    }
    assert_eq!(peek(&mut host, token, 0), b"ef");
    assert_eq!(host.send(token, &[b"x"]), Err(HostError::Reset));
}

#[test]
fn the_end_comes_after_the_bytes_and_stays() {
    let (mut host, token) = connected(1, 4);
    host.inner_mut().incoming.extend(b"ab");
    host.inner_mut().end = Some(Ok(()));
    assert_eq!(peek(&mut host, token, 0), b"ab");
    for _ in 0..3 {
        assert_eq!(ends(&mut host, token, 2), Ok(Peek::End));
    }
    assert_eq!(host.send(token, &[b"x"]), Ok(1));
}

#[test]
fn an_error_met_by_send_is_kept_and_does_not_hide_bytes_received() {
    let (mut host, token) = connected(1, 4);
    host.inner_mut().incoming.extend(b"ab");
    host.inner_mut().send_error = Some(HostError::Reset);
    assert_eq!(host.send(token, &[b"x"]), Err(HostError::Reset));
    assert_eq!(host.send(token, &[b"x"]), Err(HostError::Reset));
    assert_eq!(peek(&mut host, token, 0), b"ab");
    assert_eq!(ends(&mut host, token, 2), Err(HostError::Reset));
}

#[test]
fn a_send_that_would_block_is_no_error_to_keep() {
    let (mut host, token) = connected(1, 4);
    host.inner_mut().send_error = Some(HostError::WouldBlock);
    assert_eq!(host.send(token, &[b"x"]), Err(HostError::WouldBlock));
    assert_eq!(host.send(token, &[b"x"]), Ok(1));
}

#[test]
fn credit_is_the_free_space_at_the_start_and_after_each_consume() {
    let (mut host, token) = connected(2, 8);
    host.inner_mut().incoming.extend(b"abcdef");
    assert_eq!(peek(&mut host, token, 0), b"abcd");
    host.consume(token, 3);
    host.consume(token, 1);
    assert_eq!(host.inner().credits, [4, 3, 4]);
}

#[test]
fn without_a_ring_there_is_no_connect_and_a_failed_one_takes_none() {
    let mut host = host(1, 8);
    let refused = SocketAddr::new(REMOTE.ip(), 1);
    assert_eq!(host.connect(FLOW, refused, 0), Err(HostError::Refused));
    let first = host.connect(FLOW, REMOTE, 0).unwrap();
    assert_eq!(host.connect(FLOW, REMOTE, 0), Err(HostError::NoResources));
    assert_eq!(host.inner().next_token, 1);
    host.reset(first);
    assert_eq!(host.inner().was_reset, [Token(1)]);
    host.connect(FLOW, REMOTE, 0).unwrap();
}

#[test]
fn without_a_ring_those_who_wait_are_reset_and_the_listener_stays() {
    let (mut host, token) = connected(1, 8);
    let listener = host.listen(ForwardId(0), REMOTE).unwrap();
    host.inner_mut().waiting = 2;
    assert_eq!(host.accept(listener, FLOW), Err(HostError::NoResources));
    assert_eq!(host.inner().was_reset, [Token(2), Token(3)]);
    host.inner_mut().accept_error = Some(HostError::Other);
    assert_eq!(host.accept(listener, FLOW), Err(HostError::Other));
    host.close(token);
    assert_eq!(host.accept(listener, FLOW), Ok(None));
    host.inner_mut().waiting = 1;
    let accepted = host.accept(listener, FLOW).unwrap().unwrap();
    host.inner_mut().incoming.extend(b"hi");
    assert_eq!(peek(&mut host, accepted.token, 0), b"hi");
}

#[test]
fn memory_is_shared_evenly_by_the_rings() {
    assert_eq!(
        [host(4, 35), host(1, 7), host(4, 3), host(0, 9)].map(|h| h.ring_len()),
        [8, 7, 0, 0]
    );
}

#[test]
fn no_memory_means_no_streams_but_datagrams() {
    let mut host = host(4, 3);
    assert_eq!(host.connect(FLOW, REMOTE, 0), Err(HostError::NoResources));
    let socket = host.open_datagram(FLOW, DatagramKind::Udp, REMOTE).unwrap();
    assert_eq!(host.send_datagram(socket, &DatagramMeta::new(REMOTE), &[b"x"]), Ok(()));
    host.close(socket);
    assert_eq!(host.inner().closed, [Token(600)]);
}

#[test]
fn a_listener_token_that_looks_like_a_stream_is_refused() {
    let mut host = host(1, 8);
    let address = SocketAddr::new(REMOTE.ip(), 1);
    assert_eq!(host.listen(ForwardId(0), address), Err(HostError::NoResources));
    assert_eq!(host.inner().closed, [Token(u32::MAX)]);
}

#[test]
fn void_tokens_are_harmless() {
    let (mut host, token) = connected(1, 8);
    host.close(token);
    host.close(token);
    host.consume(token, 1);
    assert_eq!(host.send_room(token), 0);
    assert_eq!(ends(&mut host, token, 0), Err(HostError::Other));
    assert_eq!(host.inner().closed, [Token(1)]);
    let first = host.connect(FLOW, REMOTE, 0).unwrap();
    assert_eq!(host.connect(FLOW, REMOTE, 0), Err(HostError::NoResources));
    host.close(first);
}

#[test]
fn what_the_ring_holds_is_not_received_again() {
    let (mut host, token) = connected(1, 64);
    host.inner_mut().incoming.extend([1; 64]);
    assert_eq!(peek(&mut host, token, 0).len(), 64);
    let receives = host.inner().receives;
    assert_eq!(peek(&mut host, token, 0).len(), 64);
    assert_eq!(host.inner().receives, receives);
}
