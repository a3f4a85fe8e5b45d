//! The calls of the NAT on a [`World`].

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, Peek, Token,
};
use slirp_nat::{PushHost, Received};

use super::super::socket::SentDatagram;
use super::{Connect, Datagram, Kind, Listener, Owner, READABLE, State, Stream, World};

impl World {
    /// See [`slirp_nat::Host::peek`].
    ///
    /// # Errors
    /// As there.
    pub fn peek(
        &mut self,
        token: Token,
        offset: usize,
        buffer: &mut [u8],
    ) -> Result<Peek, HostError> {
        let stream = self.stream(token);
        let mut count = 0;
        let (front, back) = stream.incoming.as_slices();
        let skipped = offset.saturating_sub(front.len());
        for piece in [front.get(offset..), back.get(skipped..)].into_iter().flatten() {
            let here = piece.len().min(buffer.len() - count);
            buffer[count..count + here].copy_from_slice(&piece[..here]);
            count += here;
        }
        match (count, stream.end) {
            (0, None) => {
                self.socket_mut(token).read_armed = true;
                Ok(Peek::WouldBlock)
            }
            (0, Some(end)) => end.map(|()| Peek::End),
            (count, _) => Ok(Peek::Data(count)),
        }
    }

    /// See [`slirp_nat::Host::consume`].
    pub fn consume(&mut self, token: Token, count: usize) {
        self.stream(token).incoming.drain(..count);
    }
}

impl PushHost for World {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn is_own_address(&mut self, address: IpAddr) -> bool {
        self.own_addresses.contains(&address)
    }

    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        max_segment: u16,
    ) -> Result<Token, HostError> {
        let outcome = self.connects.get(&remote).copied().unwrap_or(Connect::Succeeds);
        if let Connect::FailsAtOnce(error) = outcome {
            return Err(error);
        }
        let mut stream = Stream::new(self.local, remote);
        stream.max_segment = max_segment;
        stream.room = self.room;
        if let Connect::SucceedsAt(other) = outcome {
            stream.remote = other;
        }
        let token = self.add(Owner::Flow(flow), Kind::Stream(stream));
        match outcome {
            Connect::Pending | Connect::FailsAtOnce(_) => {}
            Connect::Succeeds | Connect::SucceedsAt(_) => self.complete(token, Ok(())),
            Connect::Fails(error) => self.complete(token, Err(error)),
        }
        Ok(token)
    }

    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError> {
        self.stream(token).connected.unwrap_or(Err(HostError::WouldBlock))
    }

    fn receive(&mut self, token: Token, buffer: &mut [u8]) -> Result<Received, HostError> {
        Ok(match self.peek(token, 0, buffer)? {
            Peek::WouldBlock => Received::WouldBlock,
            Peek::End => Received::End,
            Peek::Data(count) => {
                self.consume(token, count);
                Received::Data(count)
            }
        })
    }

    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        let stream = self.stream(token);
        match &mut stream.failing_write {
            Some((0, error)) => stream.end = Some(Err(*error)),
            Some((writes, _)) => *writes -= 1,
            None => {}
        }
        if core::mem::take(&mut stream.blocks_write) {
            stream.write_armed = true;
            return Err(HostError::WouldBlock);
        }
        match stream.error() {
            Some(error) => Err(error),
            None => Ok(stream.send(data)),
        }
    }

    fn send_room(&mut self, token: Token) -> usize {
        self.stream(token).room()
    }

    fn arm_write(&mut self, token: Token) {
        let stream = self.stream(token);
        match stream.room_when_armed.take() {
            Some(room) => stream.room = Some(room),
            None => stream.write_armed = true,
        }
    }

    fn shutdown_write(&mut self, token: Token) {
        self.stream(token).write_shut = true;
    }

    fn close(&mut self, token: Token) {
        self.end(token, State::Closed);
    }

    fn reset(&mut self, token: Token) {
        self.end(token, State::Reset);
    }

    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
        let listener = Listener { address, backlog: VecDeque::new(), errors: VecDeque::new() };
        self.bind(forward, address, Kind::Listener(listener))
    }

    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError> {
        let queue = self.listener(listener);
        if let Some(error) = queue.errors.pop_front() {
            self.socket_mut(listener).read_armed = true;
            return Err(error);
        }
        let Some(token) = queue.backlog.pop_front() else {
            self.socket_mut(listener).read_armed = true;
            return Ok(None);
        };
        self.socket_mut(token).owner = Owner::Flow(flow);
        let stream = self.stream(token);
        let (peer, local) = (stream.remote, stream.local);
        if stream.has_news() {
            self.announce(token, READABLE);
        }
        Ok(Some(Accepted { token, peer, local }))
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError> {
        if let Some(error) = self.open_errors.pop_front() {
            return Err(error);
        }
        let datagram = Datagram::new(kind, remote.is_ipv6(), None);
        Ok(self.add(Owner::Flow(flow), Kind::Datagram(datagram)))
    }

    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError> {
        let datagram = Datagram::new(DatagramKind::Udp, address.is_ipv6(), Some(address));
        self.bind(forward, address, Kind::Datagram(datagram))
    }

    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        let ipv6 = self.datagram(token).ipv6;
        assert_eq!(ipv6, meta.remote.is_ipv6(), "a socket of one family sends to the other");
        if let Some(error) = self.send_errors.pop_front() {
            return Err(error);
        }
        self.sent_datagrams.push(SentDatagram { token, meta: *meta, data: data.concat() });
        Ok(())
    }

    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        let datagram = self.datagram(token);
        if let Some(error) = datagram.receive_errors.pop_front() {
            return Err(error);
        }
        let Some((data, meta)) = datagram.inbox.pop_front() else {
            self.socket_mut(token).read_armed = true;
            return Ok(None);
        };
        let count = data.len().min(buffer.len());
        buffer[..count].copy_from_slice(&data[..count]);
        Ok(Some((count, DatagramMeta { truncated: count < data.len(), ..meta })))
    }

    fn datagram_error(&mut self, token: Token) -> Option<DatagramError> {
        self.datagram(token).reports.pop_front()
    }
}
