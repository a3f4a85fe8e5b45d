//! The one table from error numbers, and from ICMP types and codes, to [`HostError`].

use rustix::io::Errno;
use slirp_nat::host::HostError;

/// What an error number of a socket call means to a flow.
pub(super) fn from_errno(errno: Errno) -> HostError {
    match errno {
        Errno::AGAIN => HostError::WouldBlock,
        Errno::CONNREFUSED => HostError::Refused,
        Errno::NETUNREACH | Errno::NETDOWN => HostError::NetUnreachable,
        Errno::HOSTUNREACH | Errno::HOSTDOWN => HostError::HostUnreachable,
        Errno::TIMEDOUT => HostError::TimedOut,
        // EPIPE is what a send gives once the reset itself has been reported.
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => HostError::Reset,
        Errno::MSGSIZE => HostError::TooBig { mtu: 0 },
        // EADDRNOTAVAIL from a connect means that no local port is left.
        Errno::MFILE
        | Errno::NFILE
        | Errno::NOBUFS
        | Errno::NOMEM
        | Errno::NOSPC
        | Errno::ADDRNOTAVAIL => HostError::NoResources,
        Errno::ACCESS | Errno::PERM => HostError::Denied,
        Errno::ADDRINUSE => HostError::InUse,
        Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT | Errno::OPNOTSUPP | Errno::SOCKTNOSUPPORT => {
            HostError::Unsupported
        }
        _ => HostError::Other,
    }
}

/// What a failed bind means. Here EADDRNOTAVAIL says that the address is not one of the host's.
pub(super) fn from_bind_errno(errno: Errno) -> HostError {
    if errno == Errno::ADDRNOTAVAIL { HostError::Other } else { from_errno(errno) }
}

/// What an ICMP error says (RFC 792, RFC 1122 3.2.2.1, RFC 1812 5.2.7.1).
pub(super) fn from_icmpv4(kind: u8, code: u8, mtu: u32) -> HostError {
    match (kind, code) {
        (3, 0 | 6 | 11) => HostError::NetUnreachable,
        (3, 1 | 5 | 7 | 8 | 12) => HostError::HostUnreachable,
        (3, 2 | 3) => HostError::Refused,
        (3, 4) => too_big(mtu),
        (3, 9 | 10 | 13) => HostError::Prohibited,
        (11, 0) => HostError::HopLimit,
        _ => HostError::Other,
    }
}

/// What an ICMPv6 error says (RFC 4443 3).
pub(super) fn from_icmpv6(kind: u8, code: u8, mtu: u32) -> HostError {
    match (kind, code) {
        (1, 0) => HostError::NetUnreachable,
        (1, 1 | 5 | 6) => HostError::Prohibited,
        (1, 2 | 3) => HostError::HostUnreachable,
        (1, 4) => HostError::Refused,
        (2, _) => too_big(mtu),
        (3, 0) => HostError::HopLimit,
        _ => HostError::Other,
    }
}

/// The path MTU that came with an error; one beyond 65,535 limits nothing that IP can carry.
pub(super) fn too_big(mtu: u32) -> HostError {
    HostError::TooBig { mtu: u16::try_from(mtu).unwrap_or(u16::MAX) }
}

/// Whether an accept that failed so had no descriptor or memory, rather than a dead connection.
pub(super) fn is_starved(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}
