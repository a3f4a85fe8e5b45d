//! What the guest is told of a failure of the host's: the one table.

use ipstack::wire::icmpv4::{self, Icmpv4Error};

use crate::host::HostError;

/// What the guest is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// A TCP reset; for a datagram, port unreachable.
    Refuse,
    /// This ICMP error.
    Icmp(Icmpv4Error),
    /// Nothing: the guest finds out by waiting, or asks again.
    Silence,
}

const fn unreachable(code: u8) -> Verdict {
    Verdict::Icmp(Icmpv4Error::DestinationUnreachable { code, next_hop_mtu: 0 })
}

/// What the guest is told of `error`.
pub(crate) const fn verdict(error: HostError) -> Verdict {
    match error {
        HostError::Refused | HostError::Reset | HostError::Other => Verdict::Refuse,
        HostError::NetUnreachable => unreachable(icmpv4::CODE_NET_UNREACHABLE),
        HostError::HostUnreachable | HostError::TimedOut => {
            unreachable(icmpv4::CODE_HOST_UNREACHABLE)
        }
        // RFC 1812 5.2.7.1: code 13, communication administratively prohibited.
        HostError::Prohibited | HostError::Denied | HostError::Unsupported => {
            unreachable(icmpv4::CODE_PROHIBITED)
        }
        HostError::TooBig { mtu } => Verdict::Icmp(Icmpv4Error::DestinationUnreachable {
            code: icmpv4::CODE_FRAGMENTATION_NEEDED,
            next_hop_mtu: mtu,
        }),
        HostError::HopLimit => {
            Verdict::Icmp(Icmpv4Error::TimeExceeded { code: icmpv4::CODE_TTL_EXCEEDED })
        }
        HostError::NoResources | HostError::InUse | HostError::WouldBlock => Verdict::Silence,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const fn code(code: u8) -> Verdict {
        Verdict::Icmp(Icmpv4Error::DestinationUnreachable { code, next_hop_mtu: 0 })
    }

    #[test]
    fn every_failure_has_its_answer() {
        let mtu = Icmpv4Error::DestinationUnreachable { code: 4, next_hop_mtu: 1400 };
        let table = [
            (HostError::Refused, Verdict::Refuse),
            (HostError::Reset, Verdict::Refuse),
            (HostError::Other, Verdict::Refuse),
            (HostError::NetUnreachable, code(0)),
            (HostError::HostUnreachable, code(1)),
            (HostError::TimedOut, code(1)),
            (HostError::Prohibited, code(13)),
            (HostError::Denied, code(13)),
            (HostError::Unsupported, code(13)),
            (HostError::TooBig { mtu: 1400 }, Verdict::Icmp(mtu)),
            (HostError::HopLimit, Verdict::Icmp(Icmpv4Error::TimeExceeded { code: 0 })),
            (HostError::NoResources, Verdict::Silence),
            (HostError::InUse, Verdict::Silence),
            (HostError::WouldBlock, Verdict::Silence),
        ];
        let mut texts = BTreeSet::new();
        for (error, expected) in table {
            assert_eq!(verdict(error), expected, "{error}");
            assert!(texts.insert(std::format!("{error}")), "{error:?} reads as another");
        }
    }
}
