//! Pings over whatever the host allows: its own ping sockets, or raw ones.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketType, ipproto};

use super::options::{self, IcmpFilter, instruction};

const ECHO_REPLY: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;

/// What kind of socket can ping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PingMode {
    /// An unprivileged ping socket (`net.ipv4.ping_group_range`): the kernel chooses the
    /// identifier, fills it in and delivers only what belongs to it.
    Datagram,
    /// A raw socket, for who has CAP_NET_RAW but is outside the range.
    Raw,
}

/// Finds out what kind this process may open, if any.
pub(super) fn probe() -> Option<PingMode> {
    let opens = |kind| rustix::net::socket(AddressFamily::INET, kind, Some(ipproto::ICMP)).is_ok();
    if opens(SocketType::DGRAM) {
        return Some(PingMode::Datagram);
    }
    opens(SocketType::RAW).then_some(PingMode::Raw)
}

/// Asks the kernel to keep requests and errors out of a raw socket; errors come by its queue.
/// [`RawPing::accept`] does not rely on it.
pub(super) fn let_only_replies_in(fd: &OwnedFd, ipv6: bool) {
    if !ipv6 {
        let _ = options::set(fd, IcmpFilter, &!(1 << ECHO_REPLY));
    }
}

/// Asks the kernel to keep replies to all others out of a raw socket, which would else hear each:
/// with many flows that ping, each reply would be read as often as there are flows.
/// [`RawPing::accept`] does not rely on it.
fn let_only_own_replies_in(fd: &OwnedFd, ipv6: bool, identifier: [u8; 2]) {
    let identifier = u32::from(u16::from_be_bytes(identifier));
    let load = if ipv6 {
        // No IP header comes before the message.
        [instruction(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, 4); 2]
    } else {
        [
            instruction(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0),
            instruction(libc::BPF_LD | libc::BPF_H | libc::BPF_IND, 0, 0, 4),
        ]
    };
    let [first, second] = load;
    let mut program = [
        first,
        second,
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, identifier),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let _ = options::attach_filter(fd, &mut program);
}

/// Raw sockets that ping at the same time, at most: the kernel shows each reply to every one of
/// them, so that the cost of a reply grows with their number.
const MAX_RAW_SOCKETS: usize = 64;

/// Counts raw sockets: each holds a share of it.
#[derive(Debug, Default)]
pub(super) struct RawSockets(Arc<()>);

impl RawSockets {
    /// A share for one more, if there may be one.
    pub(super) fn take(&self) -> Option<RawPing> {
        (Arc::strong_count(&self.0) <= MAX_RAW_SOCKETS)
            .then(|| RawPing { identifier: None, _share: Arc::clone(&self.0) })
    }
}

/// Tells the replies to one flow's pings from all others that a raw socket hears.
#[derive(Debug)]
pub(super) struct RawPing {
    _share: Arc<()>,
    /// Identifier of the latest request, which is kept as the NAT chose it.
    identifier: Option<[u8; 2]>,
}

impl RawPing {
    /// Takes note of a request that is to go out by `fd`, given at least its 8-byte header.
    /// Returns whether the socket had to be told.
    pub(super) fn sends(&mut self, fd: &OwnedFd, ipv6: bool, message: &[u8]) -> bool {
        let Some(new) = identifier(message).filter(|new| self.identifier != Some(*new)) else {
            return false;
        };
        self.identifier = Some(new);
        let_only_own_replies_in(fd, ipv6, new);
        true
    }

    /// Moves the ICMP message of a received packet to the front of `buffer` and returns its
    /// length; `None` if it is not a reply to this flow. Raw IPv4 sockets deliver the IP header,
    /// raw IPv6 ones do not (RFC 3542 3).
    pub(super) fn accept(&self, ipv6: bool, buffer: &mut [u8], length: usize) -> Option<usize> {
        let header = if ipv6 { 0 } else { usize::from(buffer.first()? & 0xf) * 4 };
        let message = buffer.get(header..length)?;
        let reply = if ipv6 { ECHO_REPLY_V6 } else { ECHO_REPLY };
        let wanted = message.first() == Some(&reply)
            && self.identifier.is_some()
            && identifier(message) == self.identifier;
        if !wanted {
            return None;
        }
        let count = message.len();
        buffer.copy_within(header..length, 0);
        Some(count)
    }

    /// Whether an error quotes a request of this flow.
    pub(super) fn is_own_request(&self, quoted: Option<&[u8; 8]>) -> bool {
        self.identifier.is_some() && quoted.and_then(|quoted| identifier(quoted)) == self.identifier
    }
}

fn identifier(message: &[u8]) -> Option<[u8; 2]> {
    message.get(4..6)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_sockets_are_few_and_make_room_when_they_go() {
        let sockets = RawSockets::default();
        let mut held: Vec<RawPing> = (0..MAX_RAW_SOCKETS).filter_map(|_| sockets.take()).collect();
        assert_eq!(held.len(), MAX_RAW_SOCKETS);
        assert!(sockets.take().is_none());
        held.pop();
        assert!(sockets.take().is_some());
    }
}
