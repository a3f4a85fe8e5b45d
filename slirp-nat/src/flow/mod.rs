//! One guest flow and its host socket.

mod datagram_in;
mod forwarded;
mod icmp_error;
pub(crate) mod key;
mod lists;
mod permits;
pub(crate) mod ping;
mod recovery;
pub(crate) mod share;
mod table;
pub(crate) mod tcp;
mod tcp_end;
mod tcp_events;
mod tcp_gap;
mod tcp_output;
mod tcp_window;
pub(crate) mod udp;
pub(crate) mod verdict;
mod wheel;

use core::time::Duration;

use ipstack::Instant;
use ipstack::pool::Parked;
use ipstack::tcp::Connection;

use crate::host::Token;

pub(crate) use key::{Endpoint, FlowKey, FlowKind};
pub(crate) use lists::Class;
pub use permits::Permit;
pub(crate) use permits::Permits;
pub(crate) use recovery::Recoveries;
pub use recovery::Recovery;
pub(crate) use table::FlowTable;
use table::Links;

/// A timer that is served later than this says that the clock has jumped, as after a sleep of the
/// host: then nobody is given up for not having answered.
const CLOCK_JUMP: Duration = Duration::from_secs(5);

/// One entry of the flow table: plain data, at most 248 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    links: Links,
    pub(crate) generation: u32,
    pub(crate) token: Option<Token>,
    pub(crate) key: FlowKey,
    pub(crate) body: Body,
}

impl Flow {
    /// An unused entry.
    pub const EMPTY: Self = Self {
        links: Links::NONE,
        generation: 0,
        token: None,
        key: FlowKey { guest: Endpoint::ANY, remote: Endpoint::ANY, kind: FlowKind::Tcp },
        body: Body::Free,
    };

    /// When the flow wants to be visited again, whatever happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match &self.body {
            Body::Free => None,
            Body::Tcp(tcp) => tcp.connection.deadline(),
            Body::Datagram(datagram) => Some(datagram.expires),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Free,
    Tcp(TcpFlow),
    Datagram(DatagramFlow),
}

/// A TCP connection and what the host did not take of it at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpFlow {
    pub(crate) connection: Connection,
    pub(crate) parked: Parked,
    /// When data last came from the guest, in epochs of [`share::UploadShare`].
    pub(crate) upload_epoch: u16,
    /// What it keeps while something of its stream is missing, if it has to and may.
    pub(crate) recovery: recovery::RecoveryIndex,
    /// The guest has ended its stream, and the host is told once nothing is parked.
    pub(crate) shutdown_owed: bool,
}

impl TcpFlow {
    /// Whether the guest was promised something that the host has not got yet.
    pub(crate) const fn owes_host(&self) -> bool {
        self.shutdown_owed || !self.parked.is_empty()
    }
}

/// A UDP or ping flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramFlow {
    pub(crate) expires: Instant,
    pub(crate) role: DatagramRole,
    /// A reply has come, so the flow lives longer.
    pub(crate) answered: bool,
    /// The socket may hold datagrams.
    pub(crate) readable: bool,
    /// It may hold errors about datagrams sent earlier.
    pub(crate) failing: bool,
    /// The host's address that a forwarded datagram came to; replies leave from it.
    pub(crate) local: core::net::Ipv6Addr,
    /// The remote end as the host knows it, where it differs from what the guest sees: a client of
    /// a forward, or the resolver asked last.
    pub(crate) actual_remote: Endpoint,
}

/// What a datagram flow is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DatagramRole {
    /// Opened by the guest.
    Outgoing,
    /// DNS queries of the guest to the virtual name server.
    Dns,
    /// From a client of a forward, whose socket it shares.
    Forwarded,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_leaves_room_for_its_bucket_within_256_bytes() {
        assert!(size_of::<Flow>() <= 248, "{} bytes", size_of::<Flow>());
    }
}
