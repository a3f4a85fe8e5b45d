//! The contract of [`slirp_nat::Host`], sentence by sentence, over loopback.

mod datagram;
mod forward;
mod room;
mod stream;

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use std::net::{TcpListener, TcpStream};

use slirp_nat::Host;
use slirp_nat::host::{FlowId, HostError, HostEvent, Peek, Ready, Token};

use super::{HostOptions, OsHost, PeekMode};

const FLOW: FlowId = FlowId { slot: 7, generation: 3 };

/// Long enough for any machine; a test that passes does not wait so long.
const PATIENCE: Duration = Duration::from_secs(5);

fn host(mode: PeekMode) -> OsHost {
    OsHost::new(&HostOptions { peek: Some(mode) }).unwrap()
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Collects events until one satisfies `wanted`.
fn wait_for(host: &mut OsHost, wanted: impl Fn(&HostEvent) -> bool) -> HostEvent {
    loop {
        while let Some(event) = host.next_event() {
            if wanted(&event) {
                return event;
            }
        }
        host.wait(Some(PATIENCE)).unwrap();
        assert!(host.event_count() > 0, "the event never came");
    }
}

fn wait_ready(host: &mut OsHost, wanted: impl Fn(Ready) -> bool) {
    wait_for(host, |event| matches!(event, HostEvent::Flow(FLOW, ready) if wanted(*ready)));
}

fn wait_readable(host: &mut OsHost) {
    wait_ready(host, |ready| ready.readable);
}

/// What has happened by now.
fn events_now(host: &mut OsHost) -> Vec<HostEvent> {
    host.wait(Some(Duration::ZERO)).unwrap();
    core::iter::from_fn(|| host.next_event()).collect()
}

/// A host with one connection, and the other end of it.
struct Pair {
    host: OsHost,
    token: Token,
    peer: TcpStream,
}

impl Pair {
    fn new(mode: PeekMode) -> Self {
        let listener = TcpListener::bind(loopback(0)).unwrap();
        Self::with(host(mode), &listener)
    }

    fn with(mut host: OsHost, listener: &TcpListener) -> Self {
        let remote = listener.local_addr().unwrap();
        let token = host.connect(FLOW, remote, 0).unwrap();
        wait_ready(&mut host, |ready| ready.writable);
        let connected = host.connect_result(token).unwrap();
        let (peer, from) = listener.accept().unwrap();
        assert_eq!((connected.local, connected.remote), (from, remote));
        Self { host, token, peer }
    }

    fn peek(&mut self, offset: usize, length: usize) -> Result<Vec<u8>, Result<Peek, HostError>> {
        let mut buffer = vec![0; length];
        match self.host.peek(self.token, offset, &mut buffer) {
            Ok(Peek::Data(count)) => {
                buffer.truncate(count);
                Ok(buffer)
            }
            other => Err(other),
        }
    }

    /// Peeks from `offset` until nothing is there, waiting for as much as `total` bytes.
    fn peek_all(&mut self, offset: usize, total: usize) -> Vec<u8> {
        let mut seen = Vec::new();
        while offset + seen.len() < total {
            match self.peek(offset + seen.len(), 1000) {
                Ok(bytes) => seen.extend(bytes),
                Err(Ok(Peek::WouldBlock)) => wait_readable(&mut self.host),
                Err(other) => panic!("{other:?} after {} bytes", seen.len()),
            }
        }
        seen
    }
}

/// Runs a test with every way to peek that this kernel has, and says what was left out.
fn in_both_modes(test: impl Fn(PeekMode)) {
    test(PeekMode::Discard);
    if host(PeekMode::Offset).peek_mode() == PeekMode::Offset {
        test(PeekMode::Offset);
    } else {
        eprintln!("left out: this kernel does not peek at TCP by offset (Linux 6.9)");
    }
}

/// Bytes that differ from their neighbours and from those 256 further on.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index % 251) as u8).collect()
}
