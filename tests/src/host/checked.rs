//! A host wrapper that panics where the NAT breaks the contract of [`Host`], and logs its calls.

use core::net::{IpAddr, SocketAddr};
use std::collections::HashMap;

use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, Peek, Token,
};
use slirp_nat::{Host, HostEvent};

use super::{LabHost, World, Worldly};

/// The calls made on a host, one line each, sockets named `s1`, `s2` … in the order of creation.
#[derive(Debug, Default)]
pub struct Log(Vec<String>);

impl Log {
    /// The lines so far.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.0
    }

    /// How many lines begin with `prefix`.
    #[must_use]
    pub fn count(&self, prefix: &str) -> usize {
        self.0.iter().filter(|line| line.starts_with(prefix)).count()
    }

    /// Takes the lines so far.
    pub fn take(&mut self) -> Vec<String> {
        core::mem::take(&mut self.0)
    }

    fn push(&mut self, line: String) {
        self.0.push(line);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Stream { connected: bool, write_shut: bool, peeked: usize },
    Listener,
    Datagram,
}

#[derive(Debug)]
struct Held {
    name: usize,
    kind: Kind,
}

/// A host that is checked.
#[derive(Debug)]
pub struct Checked<H> {
    host: H,
    held: HashMap<Token, Held>,
    made: usize,
    consumed: u64,
    log: Log,
}

impl<H: Worldly> Checked<H> {
    /// Checks `host`.
    #[must_use]
    pub fn new(host: H) -> Self {
        Self { host, held: HashMap::new(), made: 0, consumed: 0, log: Log::default() }
    }

    fn add(&mut self, token: Token, kind: Kind) -> usize {
        self.made += 1;
        let before = self.held.insert(token, Held { name: self.made, kind });
        assert!(before.is_none(), "the host gave {token:?} twice");
        self.made
    }

    fn held(&mut self, token: Token, call: &str) -> &mut Held {
        let log = &self.log;
        self.held
            .get_mut(&token)
            .unwrap_or_else(|| panic!("{call} with void {token:?} after {:#?}", last(log)))
    }

    /// The name of a stream, and what it may do.
    fn stream(&mut self, token: Token, call: &str) -> (usize, &mut bool, &mut bool, &mut usize) {
        let held = self.held(token, call);
        match &mut held.kind {
            Kind::Stream { connected, write_shut, peeked } => {
                (held.name, connected, write_shut, peeked)
            }
            kind => panic!("{call} on {kind:?}"),
        }
    }

    fn datagram(&mut self, token: Token, call: &str) -> usize {
        let held = self.held(token, call);
        assert_eq!(held.kind, Kind::Datagram, "{call}");
        held.name
    }
}

fn last(log: &Log) -> &[String] {
    &log.0[log.0.len().saturating_sub(12)..]
}

fn length(data: &[&[u8]]) -> usize {
    data.iter().map(|slice| slice.len()).sum()
}

impl<H: Worldly> LabHost for Checked<H> {
    fn world(&mut self) -> &mut World {
        self.host.world()
    }

    fn next_event(&mut self) -> Option<HostEvent> {
        self.host.world().next_event().or_else(|| self.host.own_event())
    }

    fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    fn consumed(&self) -> u64 {
        self.consumed
    }
}

impl<H: Worldly> Host for Checked<H> {
    fn capabilities(&self) -> Capabilities {
        self.host.capabilities()
    }

    fn is_own_address(&mut self, address: IpAddr) -> bool {
        self.host.is_own_address(address)
    }

    fn connect(
        &mut self,
        flow: FlowId,
        remote: SocketAddr,
        max_segment: u16,
    ) -> Result<Token, HostError> {
        let result = self.host.connect(flow, remote, max_segment);
        match result {
            Ok(token) => {
                let kind = Kind::Stream { connected: false, write_shut: false, peeked: 0 };
                let name = self.add(token, kind);
                self.log.push(format!("connect s{name} {remote} max_segment {max_segment}"));
            }
            Err(error) => self.log.push(format!("connect {remote} -> {error}")),
        }
        result
    }

    fn connect_result(&mut self, token: Token) -> Result<Connected, HostError> {
        let result = self.host.connect_result(token);
        let (name, connected, ..) = self.stream(token, "connect_result");
        *connected |= result.is_ok();
        self.log.push(format!("connect_result s{name} -> {result:?}"));
        result
    }

    fn peek(&mut self, token: Token, offset: usize, buffer: &mut [u8]) -> Result<Peek, HostError> {
        assert!(!buffer.is_empty(), "a peek into nothing");
        let result = self.host.peek(token, offset, buffer);
        let (name, connected, _, peeked) = self.stream(token, "peek");
        assert!(*connected, "a peek before the connection is known to stand");
        assert!(offset <= *peeked, "a peek at {offset}, {} beyond the last", offset - *peeked);
        if let Ok(Peek::Data(count)) = result {
            *peeked = (*peeked).max(offset + count);
        }
        self.log.push(format!("peek s{name} {offset} {} -> {result:?}", buffer.len()));
        result
    }

    fn consume(&mut self, token: Token, count: usize) {
        let (name, _, _, peeked) = self.stream(token, "consume");
        assert!(count <= *peeked, "{count} bytes consumed of {} peeked", *peeked);
        *peeked -= count;
        self.consumed += count as u64;
        self.log.push(format!("consume s{name} {count}"));
        self.host.consume(token, count);
    }

    fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        let result = self.host.send(token, data);
        let (name, connected, write_shut, _) = self.stream(token, "send");
        assert!(*connected, "a send before the connection is known to stand");
        assert!(!*write_shut, "a send after shutdown_write");
        assert!(length(data) > 0, "a send of nothing");
        self.log.push(format!("send s{name} {} -> {result:?}", length(data)));
        result
    }

    fn send_room(&mut self, token: Token) -> usize {
        self.stream(token, "send_room");
        self.host.send_room(token)
    }

    fn arm_write(&mut self, token: Token) {
        let (name, _, write_shut, _) = self.stream(token, "arm_write");
        assert!(!*write_shut, "arm_write after shutdown_write");
        self.log.push(format!("arm_write s{name}"));
        self.host.arm_write(token);
    }

    fn shutdown_write(&mut self, token: Token) {
        let (name, connected, write_shut, _) = self.stream(token, "shutdown_write");
        assert!(*connected, "shutdown_write before the connection is known to stand");
        assert!(!core::mem::replace(write_shut, true), "shutdown_write twice");
        self.log.push(format!("shutdown_write s{name}"));
        self.host.shutdown_write(token);
    }

    fn close(&mut self, token: Token) {
        let name = self.held(token, "close").name;
        self.held.remove(&token);
        self.log.push(format!("close s{name}"));
        self.host.close(token);
    }

    fn reset(&mut self, token: Token) {
        let (name, ..) = self.stream(token, "reset");
        self.held.remove(&token);
        self.log.push(format!("reset s{name}"));
        self.host.reset(token);
    }

    fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
        let result = self.host.listen(forward, address);
        match result {
            Ok(token) => {
                let name = self.add(token, Kind::Listener);
                self.log.push(format!("listen s{name} {address}"));
            }
            Err(error) => self.log.push(format!("listen {address} -> {error}")),
        }
        result
    }

    fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError> {
        let held = self.held(listener, "accept");
        assert_eq!(held.kind, Kind::Listener, "accept");
        let name = held.name;
        let result = self.host.accept(listener, flow);
        match result {
            Ok(Some(Accepted { token, peer, .. })) => {
                let kind = Kind::Stream { connected: true, write_shut: false, peeked: 0 };
                let stream = self.add(token, kind);
                self.log.push(format!("accept s{name} -> s{stream} {peer}"));
            }
            _ => self.log.push(format!("accept s{name} -> {result:?}")),
        }
        result
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Result<Token, HostError> {
        let result = self.host.open_datagram(flow, kind, remote);
        match result {
            Ok(token) => {
                let name = self.add(token, Kind::Datagram);
                self.log.push(format!("open_datagram s{name} {kind:?} {remote}"));
            }
            Err(error) => self.log.push(format!("open_datagram {kind:?} -> {error}")),
        }
        result
    }

    fn bind_datagram(
        &mut self,
        forward: ForwardId,
        address: SocketAddr,
    ) -> Result<Token, HostError> {
        let result = self.host.bind_datagram(forward, address);
        match result {
            Ok(token) => {
                let name = self.add(token, Kind::Datagram);
                self.log.push(format!("bind_datagram s{name} {address}"));
            }
            Err(error) => self.log.push(format!("bind_datagram {address} -> {error}")),
        }
        result
    }

    fn send_datagram(
        &mut self,
        token: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        let name = self.datagram(token, "send_datagram");
        let result = self.host.send_datagram(token, meta, data);
        let line = format!("send_datagram s{name} {} {} -> {result:?}", meta.remote, length(data));
        self.log.push(line);
        result
    }

    fn receive_datagram(
        &mut self,
        token: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        let name = self.datagram(token, "receive_datagram");
        let result = self.host.receive_datagram(token, buffer);
        let found = result.map(|found| found.map(|(count, _)| count));
        self.log.push(format!("receive_datagram s{name} -> {found:?}"));
        result
    }

    fn datagram_error(&mut self, token: Token) -> Option<DatagramError> {
        let name = self.datagram(token, "datagram_error");
        let result = self.host.datagram_error(token);
        self.log.push(format!("datagram_error s{name} -> {:?}", result.map(|r| r.error)));
        result
    }
}
