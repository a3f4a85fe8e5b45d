//! A host that answers anything.

use core::net::{IpAddr, SocketAddr};

use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, Host, HostError, Peek, Token,
};
use slirp_nat::{PushHost, Received};
use slirpkit_nopanic::{any, keep, one_of};

pub(crate) struct AnyHost;

fn token() -> Token {
    Token(any())
}

fn error() -> HostError {
    if any() {
        return HostError::TooBig { mtu: any() };
    }
    one_of(
        HostError::Refused,
        &[
            HostError::NetUnreachable,
            HostError::HostUnreachable,
            HostError::Prohibited,
            HostError::TimedOut,
            HostError::Reset,
            HostError::HopLimit,
            HostError::NoResources,
            HostError::Denied,
            HostError::InUse,
            HostError::Unsupported,
            HostError::WouldBlock,
            HostError::Other,
        ],
    )
}

fn perhaps<T>(value: T) -> Result<T, HostError> {
    if any() { Ok(value) } else { Err(error()) }
}

fn meta() -> DatagramMeta {
    DatagramMeta {
        remote: any(),
        local: any(),
        ttl: any(),
        ecn: any(),
        segment_size: any(),
        truncated: any(),
    }
}

/// What the two kinds of host have in common.
macro_rules! shared_calls {
    () => {
        fn capabilities(&self) -> Capabilities {
            Capabilities { ping: any(), segmented_send: any() }
        }

        fn is_own_address(&mut self, address: IpAddr) -> bool {
            keep(address);
            any()
        }

        fn connect(&mut self, flow: FlowId, to: SocketAddr, mss: u16) -> Result<Token, HostError> {
            keep((flow, to, mss));
            perhaps(token())
        }

        fn connect_result(&mut self, token: Token) -> Result<Connected, HostError> {
            keep(token);
            perhaps(Connected { local: any(), remote: any() })
        }

        fn send(&mut self, token: Token, data: &[&[u8]]) -> Result<usize, HostError> {
            keep((token, data));
            perhaps(any())
        }

        fn send_room(&mut self, token: Token) -> usize {
            keep(token);
            any()
        }

        fn arm_write(&mut self, token: Token) {
            keep(token);
        }

        fn shutdown_write(&mut self, token: Token) {
            keep(token);
        }

        fn close(&mut self, token: Token) {
            keep(token);
        }

        fn reset(&mut self, token: Token) {
            keep(token);
        }

        fn listen(&mut self, forward: ForwardId, address: SocketAddr) -> Result<Token, HostError> {
            keep((forward, address));
            perhaps(token())
        }

        fn accept(&mut self, listener: Token, flow: FlowId) -> Result<Option<Accepted>, HostError> {
            keep((listener, flow));
            let accepted = Accepted { token: token(), peer: any(), local: any() };
            perhaps(if any() { Some(accepted) } else { None })
        }

        fn open_datagram(
            &mut self,
            flow: FlowId,
            kind: DatagramKind,
            remote: SocketAddr,
        ) -> Result<Token, HostError> {
            keep((flow, kind, remote));
            perhaps(token())
        }

        fn bind_datagram(
            &mut self,
            forward: ForwardId,
            address: SocketAddr,
        ) -> Result<Token, HostError> {
            keep((forward, address));
            perhaps(token())
        }

        fn send_datagram(
            &mut self,
            token: Token,
            meta: &DatagramMeta,
            data: &[&[u8]],
        ) -> Result<(), HostError> {
            keep((token, meta, data));
            perhaps(())
        }

        fn receive_datagram(
            &mut self,
            token: Token,
            buffer: &mut [u8],
        ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
            keep((token, buffer));
            perhaps(if any() { Some((any(), meta())) } else { None })
        }

        fn datagram_error(&mut self, token: Token) -> Option<DatagramError> {
            keep(token);
            let error =
                DatagramError { error: error(), offender: any(), remote: any(), quoted: any() };
            if any() { Some(error) } else { None }
        }
    };
}

impl Host for AnyHost {
    shared_calls!();

    fn peek(&mut self, token: Token, offset: usize, buffer: &mut [u8]) -> Result<Peek, HostError> {
        keep((token, offset, buffer));
        perhaps(one_of(Peek::Data(any()), &[Peek::WouldBlock, Peek::End]))
    }

    fn consume(&mut self, token: Token, count: usize) {
        keep((token, count));
    }
}

impl PushHost for AnyHost {
    shared_calls!();

    fn receive(&mut self, token: Token, buffer: &mut [u8]) -> Result<Received, HostError> {
        keep((token, buffer));
        perhaps(one_of(Received::Data(any()), &[Received::WouldBlock, Received::End]))
    }

    fn credit(&mut self, token: Token, free_bytes: usize) {
        keep((token, free_bytes));
    }
}
