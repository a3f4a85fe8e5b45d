//! Fragments of the guest: put together, or given up.

use ipstack::frag::{Datagram, Expired, Fragment, FragmentDrop, Insert};
use ipstack::wire::icmpv4::CODE_REASSEMBLY_TIME_EXCEEDED;
use ipstack::wire::{Icmpv4Error, IpProtocol, Ipv4Packet, MacAddr};

use super::{Collected, Inbound};
use crate::host::Host;
use crate::link::{Link, Offload};
use crate::nat::{Core, Io, Nat};
use crate::stats::DropReason;

/// Longest IPv4 header, and the eight bytes that an ICMP error quotes beside it.
const QUOTED_LEN: usize = 68;

impl Nat<'_> {
    pub(super) fn on_fragment<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Ipv4Packet<'_>,
        mac: MacAddr,
    ) -> Result<(), DropReason> {
        self.expire_fragments(io);
        let evicted = self.fragments.counters().evicted;
        let dropped = match self.fragments.insert(io.now, &Fragment::ipv4(packet)) {
            Insert::Complete(datagram) => return self.core.on_datagram(io, mac, &datagram),
            Insert::Held => None,
            Insert::Dropped(reason) => Some(reason),
        };
        for _ in evicted..self.fragments.counters().evicted {
            self.core.stats.drop(DropReason::FragmentExpired);
        }
        dropped.map_or(Ok(()), |reason| Err(fragment_drop(reason)))
    }

    /// Drops datagrams whose fragments did not all come in time; the sender is told if it could
    /// know which (RFC 792, time exceeded).
    pub(crate) fn expire_fragments<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
    ) {
        while let Some(Expired { first, .. }) = self.fragments.expire(io.now) {
            self.core.stats.drop(DropReason::FragmentExpired);
            if let Some(first) = first {
                let (quoted, length) = quotation(first.header, first.payload);
                let error = Icmpv4Error::TimeExceeded { code: CODE_REASSEMBLY_TIME_EXCEEDED };
                let quoted = quoted.get(..length).unwrap_or_default();
                self.core.send_icmp_error(io.link, error, None, quoted);
            }
        }
    }
}

impl Core<'_> {
    /// Takes a datagram whose fragments have all come. Its header is that of the first
    /// (RFC 791 3.2).
    fn on_datagram<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        mac: MacAddr,
        datagram: &Datagram<'_>,
    ) -> Result<(), DropReason> {
        let first = Ipv4Packet::parse_quoted(datagram.header).map_err(|_| DropReason::IpHeader)?;
        self.stats.counters.reassembled += 1;
        let (quoted, length) = quotation(datagram.header, datagram.payload);
        let inbound = Inbound {
            source: first.source(),
            destination: first.destination(),
            protocol: first.protocol(),
            ttl: first.ttl(),
            ecn: datagram.ecn,
            payload: datagram.payload,
            quoted: quoted.get(..length).unwrap_or_default(),
            offload: Offload::default(),
            mac,
        };
        if inbound.protocol == IpProtocol::Tcp {
            let mut collected = Collected::default();
            self.collect_tcp(io, &inbound, &mut collected)?;
            self.on_tcp_batch(io, &collected.segments);
            return Ok(());
        }
        self.on_packet(io, &inbound)
    }
}

/// How the loss of a fragment is counted.
const fn fragment_drop(reason: FragmentDrop) -> DropReason {
    match reason {
        FragmentDrop::Memory => DropReason::FragmentMemory,
        FragmentDrop::Malformed
        | FragmentDrop::TooLong
        | FragmentDrop::Overlap
        | FragmentDrop::Length
        | FragmentDrop::Ecn
        | FragmentDrop::Discarded => DropReason::Fragment,
    }
}

/// Header and first eight bytes of payload in one piece, and their length.
fn quotation(header: &[u8], payload: &[u8]) -> ([u8; QUOTED_LEN], usize) {
    let mut quoted = [0; QUOTED_LEN];
    let bytes = header.iter().chain(payload.iter().take(8));
    let length = quoted.iter_mut().zip(bytes).fold(0, |count, (to, from)| {
        *to = *from;
        count + 1
    });
    (quoted, length)
}
