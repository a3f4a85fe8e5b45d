//! A state of the guest to go back to, as a virtual machine restored from a snapshot does.
//!
//! smoltcp's sockets cannot be cloned, but they do the same each time: a [`Record`] holds all that was
//! asked of a guest since it began, and the same once more makes another guest in the same state,
//! which is checked. Its programs go back with it (`Flow::go_back`); the network, the NAT and the
//! servers do not, so that frames from before are still on their way.

use core::net::SocketAddrV4;

use smoltcp::iface::SocketHandle;

use crate::guest::Guest;
use crate::network::Sent;
use crate::plan::FlowPlan;

/// All that was asked of a guest.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) mtu: u16,
    pub(crate) seed: u64,
    pub(crate) calls: Vec<Call>,
}

/// Something asked of a guest.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Socket(FlowPlan),
    Listen(SocketHandle, u16),
    Connect(SocketHandle, u16, SocketAddrV4),
    Take(u64, Sent),
    Poll(u64),
    Receive(SocketHandle, usize),
    Send(SocketHandle, Vec<u8>),
    Close(SocketHandle),
    Abort(SocketHandle),
}

/// The state that a guest had at some time.
#[derive(Debug)]
pub(crate) struct Snapshot {
    record: Record,
    /// What all its sockets were like.
    sockets: String,
}

impl Snapshot {
    pub(crate) fn new(record: Record, sockets: String) -> Self {
        Self { record, sockets }
    }

    /// Another guest in that state.
    pub(crate) fn restore(self) -> Guest {
        let Self { record: Record { mtu, seed, calls }, sockets } = self;
        let mut guest = Guest::new(mtu, seed);
        calls.into_iter().for_each(|call| call.repeat(&mut guest));
        assert_eq!(guest.describe(), sockets, "the guest does not do the same again");
        guest
    }
}

impl Call {
    fn repeat(self, guest: &mut Guest) {
        match self {
            Self::Socket(plan) => {
                guest.socket(&plan);
            }
            Self::Listen(handle, port) => guest.listen(handle, port),
            Self::Connect(handle, port, remote) => guest.connect(handle, port, remote),
            Self::Take(now, sent) => guest.take(now, sent),
            Self::Poll(now) => {
                guest.poll(now);
            }
            Self::Receive(handle, most) => {
                guest.receive(handle, most);
            }
            Self::Send(handle, bytes) => {
                guest.send(handle, &bytes);
            }
            Self::Close(handle) => guest.close(handle),
            Self::Abort(handle) => guest.abort(handle),
        }
    }
}
