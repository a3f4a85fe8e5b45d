//! The host's sockets, which are JavaScript's.

use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use slirp_nat::HostEvent;
use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, Ready, Token,
};
use slirp_nat::ring_host::{PushHost, Received};
use slirpkit_embedded::Events;

/// The longest datagram that a guest with an MTU of 1,500 sends in one piece.
const MAX_DATAGRAM: usize = 1472;

/// JavaScript's sockets do not tell their own end.
const UNKNOWN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

const READABLE: u32 = 1;
const WRITABLE: u32 = 2;
const ERROR: u32 = 4;

/// Addresses are IPv4, as numbers; pointers point to as many bytes as the number behind them says,
/// and nobody keeps them.
mod import {
    #[link(wasm_import_module = "host")]
    unsafe extern "C" {
        /// The token, or a negative number if nobody is there.
        pub(super) safe fn connect(slot: u32, generation: u32, address: u32, port: u32) -> i32;
        /// 1 once it is made, 0 until then, -1 if it failed; address and port of the far end to
        /// `remote`.
        pub(super) safe fn connect_result(token: u32, remote: *mut [u32; 2]) -> i32;
        /// How many bytes were put to `to`; 0 if there are none now, -1 at the end.
        pub(super) safe fn receive(token: u32, to: *mut u8, len: usize) -> i32;
        /// How many bytes were taken.
        pub(super) safe fn send(token: u32, from: *const u8, len: usize) -> usize;
        pub(super) safe fn send_room(token: u32) -> usize;
        pub(super) safe fn arm_write(token: u32);
        pub(super) safe fn shutdown_write(token: u32);
        pub(super) safe fn close(token: u32);
        pub(super) safe fn reset(token: u32);
        /// The token, or a negative number if there are no more.
        pub(super) safe fn open_datagram(slot: u32, generation: u32) -> i32;
        pub(super) safe fn send_datagram(
            token: u32,
            address: u32,
            port: u32,
            from: *const u8,
            len: usize,
        );
        /// Bytes put to `to`, or -1 if there is no datagram; address and port to `sender`.
        pub(super) safe fn receive_datagram(
            token: u32,
            to: *mut u8,
            len: usize,
            sender: *mut [u32; 2],
        ) -> i32;
        /// What a flow is ready for, 0 if nothing has happened; slot and generation to `flow`.
        pub(super) safe fn next_event(flow: *mut [u32; 2]) -> u32;
        pub(super) safe fn report(name: *const u8, len: usize, value: u64);
    }
}

/// Hands a number to the host, by name.
pub(crate) fn report(name: &str, value: u64) {
    import::report(name.as_ptr(), name.len(), value);
}

/// The host's sockets.
#[derive(Clone, Copy, Debug)]
pub struct Sockets;

impl Events for Sockets {
    fn next_event(&mut self) -> Option<HostEvent> {
        let mut flow = [0; 2];
        let bits = import::next_event(&raw mut flow);
        let [slot, generation] = flow;
        let ready = Ready {
            readable: bits & READABLE != 0,
            writable: bits & WRITABLE != 0,
            error: bits & ERROR != 0,
        };
        (bits != 0).then_some(HostEvent::Flow(FlowId { slot, generation }, ready))
    }
}

/// Address and port as numbers.
fn numbers(address: SocketAddr) -> Result<(u32, u32), HostError> {
    match address.ip() {
        IpAddr::V4(ip) => Ok((ip.to_bits(), address.port().into())),
        IpAddr::V6(_) => Err(HostError::NetUnreachable),
    }
}

/// The inverse of [`numbers`].
fn address([ip, port]: [u32; 2]) -> Result<SocketAddr, HostError> {
    let port = u16::try_from(port).map_err(|_| HostError::Other)?;
    Ok(SocketAddr::from((Ipv4Addr::from_bits(ip), port)))
}

fn token(answer: i32, otherwise: HostError) -> Result<Token, HostError> {
    u32::try_from(answer).map(Token).map_err(|_| otherwise)
}

impl PushHost for Sockets {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn is_own_address(&mut self, _: IpAddr) -> bool {
        false
    }

    fn connect(&mut self, flow: FlowId, to: SocketAddr, _: u16) -> Result<Token, HostError> {
        let (ip, port) = numbers(to)?;
        let answer = import::connect(flow.slot, flow.generation, ip, port);
        token(answer, HostError::NetUnreachable)
    }

    fn connect_result(&mut self, Token(token): Token) -> Result<Connected, HostError> {
        let mut remote = [0; 2];
        match import::connect_result(token, &raw mut remote) {
            0 => Err(HostError::WouldBlock),
            1 => Ok(Connected { local: UNKNOWN, remote: address(remote)? }),
            _ => Err(HostError::Refused),
        }
    }

    fn receive(&mut self, Token(token): Token, buffer: &mut [u8]) -> Result<Received, HostError> {
        match import::receive(token, buffer.as_mut_ptr(), buffer.len()) {
            0 => Ok(Received::WouldBlock),
            count => Ok(usize::try_from(count).map_or(Received::End, Received::Data)),
        }
    }

    fn send(&mut self, Token(token): Token, data: &[&[u8]]) -> Result<usize, HostError> {
        let mut taken = 0;
        for piece in data {
            let count = import::send(token, piece.as_ptr(), piece.len());
            taken += count;
            if count < piece.len() {
                break;
            }
        }
        Ok(taken)
    }

    fn send_room(&mut self, Token(token): Token) -> usize {
        import::send_room(token)
    }

    fn arm_write(&mut self, Token(token): Token) {
        import::arm_write(token);
    }

    fn shutdown_write(&mut self, Token(token): Token) {
        import::shutdown_write(token);
    }

    fn close(&mut self, Token(token): Token) {
        import::close(token);
    }

    fn reset(&mut self, Token(token): Token) {
        import::reset(token);
    }

    fn listen(&mut self, _: ForwardId, _: SocketAddr) -> Result<Token, HostError> {
        Err(HostError::Unsupported)
    }

    fn accept(&mut self, _: Token, _: FlowId) -> Result<Option<Accepted>, HostError> {
        Ok(None)
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        _: SocketAddr,
    ) -> Result<Token, HostError> {
        match kind {
            DatagramKind::Udp => {
                token(import::open_datagram(flow.slot, flow.generation), HostError::NoResources)
            }
            DatagramKind::Ping => Err(HostError::Unsupported),
        }
    }

    fn bind_datagram(&mut self, _: ForwardId, _: SocketAddr) -> Result<Token, HostError> {
        Err(HostError::Unsupported)
    }

    fn send_datagram(
        &mut self,
        Token(token): Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        let (ip, port) = numbers(meta.remote)?;
        let mut whole = [0; MAX_DATAGRAM];
        let length = data.iter().map(|piece| piece.len()).sum();
        let to = whole.get_mut(..length).ok_or(HostError::TooBig { mtu: 1500 })?;
        to.iter_mut().zip(data.iter().copied().flatten()).for_each(|(to, byte)| *to = *byte);
        import::send_datagram(token, ip, port, to.as_ptr(), to.len());
        Ok(())
    }

    fn receive_datagram(
        &mut self,
        Token(token): Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        let mut sender = [0; 2];
        let answer =
            import::receive_datagram(token, buffer.as_mut_ptr(), buffer.len(), &raw mut sender);
        let Ok(length) = usize::try_from(answer) else { return Ok(None) };
        Ok(Some((length, DatagramMeta::new(address(sender)?))))
    }

    fn datagram_error(&mut self, _: Token) -> Option<DatagramError> {
        None
    }
}
