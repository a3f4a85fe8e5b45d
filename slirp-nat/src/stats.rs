//! What happened: plain counters, and a name for every frame or datagram that was dropped.

use ipstack::tcp::Fate;

use crate::fmt::trace;

macro_rules! counters {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($(#[$field_doc:meta])* $field:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        $vis struct $name { $($(#[$field_doc])* pub $field: u64,)+ }

        impl $name {
            const ZERO: Self = Self { $($field: 0,)+ };

            /// Every counter with its name, in the order of declaration.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field),)+].into_iter()
            }
        }
    };
}

macro_rules! reasons {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[non_exhaustive]
        $vis enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every one, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// A short lower-case name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

counters! {
    /// Counters since the NAT was made.
    pub struct Counters {
        /// Frames from the guest.
        frames_in,
        /// Bytes in them.
        bytes_in,
        /// Frames and super-segments for the guest.
        frames_out,
        /// Bytes in them.
        bytes_out,
        /// TCP segments from the guest whose header is as it should be: each has one [`SegmentFate`].
        tcp_segments_in,
        /// TCP segments for the guest that carried data, super-segments counted once.
        tcp_segments_out,
        /// TCP segments for the guest without data.
        tcp_acks_out,
        /// TCP payload bytes from the guest that the host or the pool took.
        tcp_bytes_in,
        /// TCP payload bytes for the guest, retransmissions included.
        tcp_bytes_out,
        /// TCP payload bytes for the guest sent again.
        tcp_bytes_retransmitted,
        /// TCP payload bytes from the guest that came before their turn and were stored.
        tcp_bytes_stored,
        /// Stored bytes that were given up for others, so that the guest has to send them again.
        tcp_bytes_evicted,
        /// TCP segments from the guest that brought some bytes for the second time, and others for
        /// the first.
        tcp_segments_overlapped,
        /// Retransmission timeouts.
        tcp_timeouts,
        /// Fast retransmissions.
        tcp_fast_retransmits,
        /// Zero-window, tail loss and keep-alive probes sent.
        tcp_probes,
        /// Challenge ACKs sent (RFC 5961).
        tcp_challenge_acks,
        /// Duplicate ACKs sent to ask for missing data.
        tcp_duplicate_acks_out,
        /// Resets sent to the guest.
        tcp_resets_out,
        /// Connections that the guest asked for and the host began to make. Each is counted again
        /// when it is over, as each accepted one: as closed or as aborted.
        tcp_opened,
        /// Connections accepted for the guest.
        tcp_accepted,
        /// Connections that ended in good order; the host's socket is closed.
        tcp_closed,
        /// Connections that were refused, reset by either side, or given up.
        tcp_aborted,
        /// Writes to the host that it took only in part.
        short_writes,
        /// Bytes parked after short writes.
        bytes_parked,
        /// Datagrams from the guest sent on.
        datagrams_in,
        /// Datagrams for the guest.
        datagrams_out,
        /// Echo requests answered by the gateway.
        echo_replies,
        /// ICMP errors sent to the guest.
        icmp_errors_out,
        /// ARP requests answered.
        arp_replies,
        /// DHCP replies sent.
        dhcp_replies,
        /// DNS queries relayed.
        dns_queries,
        /// DNS queries answered with SERVFAIL.
        dns_failures,
        /// IP datagrams reassembled from fragments.
        reassembled,
        /// Fragments sent to the guest.
        fragments_out,
        /// Flows made.
        flows_created,
        /// Flows evicted to make room.
        flows_evicted,
        /// Flows whose lifetime ended.
        flows_expired,
        /// Visits to a flow, for whatever reason: the measure of work.
        flow_visits,
    }
}

reasons! {
    /// Why a frame or datagram went no further.
    pub enum DropReason {
        /// Shorter than an Ethernet header, or longer than any frame can be.
        FrameLength => "frame length",
        /// Neither to the virtual router nor broadcast.
        NotForRouter => "not for the router",
        /// An Ethernet type the router does not speak.
        EtherType => "ethernet type",
        /// A malformed ARP packet, or one that is not about IPv4 over Ethernet.
        Arp => "arp",
        /// A malformed IP header.
        IpHeader => "ip header",
        /// A wrong IP header checksum.
        IpChecksum => "ip checksum",
        /// A source address that cannot be the guest's.
        IpSource => "ip source",
        /// A destination that is not forwarded: multicast, class E, broadcast; or a single host in a
        /// broadcast frame.
        IpDestination => "ip destination",
        /// A TTL that ran out here; the guest is told.
        TtlExceeded => "ttl exceeded",
        /// An IP protocol that is not translated.
        IpProtocol => "ip protocol",
        /// A malformed fragment, or one that contradicts others of its datagram.
        Fragment => "bad fragment",
        /// No memory for a fragment, or over the source's quota.
        FragmentMemory => "fragment memory",
        /// A datagram whose fragments did not all come in time, or which was pushed out.
        FragmentExpired => "fragment expired",
        /// A malformed TCP header.
        TcpHeader => "tcp header",
        /// A wrong TCP checksum.
        TcpChecksum => "tcp checksum",
        /// A TCP segment without a flow; answered by a reset, unless it is one or comes in one
        /// batch with one.
        TcpNoFlow => "tcp no flow",
        /// A TCP segment with neither SYN, ACK nor RST, or another senseless combination of flags.
        TcpFlags => "tcp flags",
        /// A TCP segment out of the window.
        TcpWindow => "tcp window",
        /// TCP data all of which had been received before.
        TcpDuplicate => "tcp duplicate",
        /// TCP data beyond a gap that could not be stored, or not all of it.
        TcpGap => "tcp gap",
        /// TCP data that neither the host nor the pool could take.
        TcpNoRoom => "tcp no room",
        /// A malformed UDP header.
        UdpHeader => "udp header",
        /// A wrong UDP checksum.
        UdpChecksum => "udp checksum",
        /// A datagram from a remote that the guest has not written to.
        UdpFiltered => "udp filtered",
        /// A malformed ICMP message.
        IcmpHeader => "icmp header",
        /// A wrong ICMP checksum.
        IcmpChecksum => "icmp checksum",
        /// An ICMP message that is not translated.
        IcmpType => "icmp type",
        /// An ICMP error about a TCP segment that is not on its way: anybody could make it up
        /// (RFC 5927 4.1).
        IcmpQuote => "icmp quote",
        /// A malformed or unanswerable DHCP message.
        Dhcp => "dhcp",
        /// A malformed DNS message.
        Dns => "dns",
        /// No resolver is known.
        NoResolver => "no resolver",
        /// Forbidden by policy, as the host's loopback.
        Denied => "denied",
        /// The flow table is full, and nothing in it may be evicted.
        FlowTableFull => "flow table full",
        /// The host failed; the guest is told where there is a way to tell it.
        HostError => "host error",
        /// The host had no room for a datagram, or has yet to take what came over a connection in
        /// whose place a TCP segment asks for another.
        HostBusy => "host busy",
        /// The link had no room, and the reply queue was full.
        ReplyQueueFull => "reply queue full",
        /// The guest's hardware address is not known.
        NoNeighbour => "no neighbour",
        /// Longer than can be carried: buffer, or 65,535 bytes.
        TooLong => "too long",
    }
}

reasons! {
    /// What became of a TCP segment from the guest. Each has exactly one of these.
    pub enum SegmentFate {
        /// It began a connection.
        Opened => "opened",
        /// A SYN that began none: forbidden, out of reach, without room in the flow table, or before
        /// the host has all that came over the connection before.
        Refused => "refused",
        /// Without a flow: reset, or dropped if it is a reset itself.
        NoFlow => "no flow",
        /// A senseless combination of flags, or none of SYN, ACK and RST: dropped.
        Flags => "flags",
        /// Processed.
        Taken => "taken",
        /// Processed, but some of its text was received before.
        Overlapped => "overlapped",
        /// Before its turn: asked for what is missing, and stored if there is room.
        Ahead => "ahead",
        /// All of its text was received before: acknowledged again.
        Duplicate => "duplicate",
        /// Out of the window: acknowledged again, as a keep-alive is.
        Unacceptable => "unacceptable",
        /// Answered by a challenge ACK (RFC 5961).
        Challenged => "challenged",
        /// To be challenged too soon after another: dropped.
        ChallengeWithheld => "challenge withheld",
        /// A reset out of the window: dropped.
        StrayReset => "stray reset",
        /// An ACK of something never sent, in a handshake: reset.
        BadHandshake => "bad handshake",
    }
}

impl From<Fate> for SegmentFate {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Taken => Self::Taken,
            Fate::Overlapped => Self::Overlapped,
            Fate::Gap => Self::Ahead,
            Fate::Duplicate => Self::Duplicate,
            Fate::Unacceptable => Self::Unacceptable,
            Fate::Challenged => Self::Challenged,
            Fate::ChallengeWithheld => Self::ChallengeWithheld,
            Fate::Flags => Self::Flags,
            Fate::StrayReset => Self::StrayReset,
            Fate::BadHandshake => Self::BadHandshake,
        }
    }
}

/// All counters.
#[derive(Clone, Debug)]
pub struct Stats {
    /// What happened.
    pub counters: Counters,
    drops: [u64; DropReason::ALL.len()],
    segments: [u64; SegmentFate::ALL.len()],
}

impl Stats {
    pub(crate) const fn new() -> Self {
        Self {
            counters: Counters::ZERO,
            drops: [0; DropReason::ALL.len()],
            segments: [0; SegmentFate::ALL.len()],
        }
    }

    /// How often something was dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(reason as usize).copied().unwrap_or(0)
    }

    /// Every reason that occurred, with its count.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&reason| (reason, self.dropped(reason))).filter(|(_, n)| *n > 0)
    }

    /// The sum of all drops.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.drops.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// How many TCP segments from the guest came to this end.
    #[must_use]
    pub fn segments(&self, fate: SegmentFate) -> u64 {
        self.segments.get(fate as usize).copied().unwrap_or(0)
    }

    /// Every fate that a TCP segment from the guest had, with how many had it. The sum is
    /// [`Counters::tcp_segments_in`].
    pub fn segment_fates(&self) -> impl Iterator<Item = (SegmentFate, u64)> + '_ {
        SegmentFate::ALL.iter().map(|&fate| (fate, self.segments(fate))).filter(|(_, n)| *n > 0)
    }

    pub(crate) fn count_segment(&mut self, fate: SegmentFate) {
        trace!("segment: {}", fate.name());
        if let Some(count) = self.segments.get_mut(fate as usize) {
            *count = count.saturating_add(1);
        }
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        trace!("dropped: {}", reason.name());
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count = count.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn only_what_occurred_is_listed() {
        let mut stats = Stats::new();
        stats.drop(DropReason::TooLong);
        stats.drop(DropReason::Arp);
        stats.drop(DropReason::TooLong);
        let listed: Vec<_> = stats.drops().collect();
        assert_eq!(listed, [(DropReason::Arp, 1), (DropReason::TooLong, 2)]);
        assert_eq!(stats.dropped_total(), 3);
    }

    #[test]
    fn every_reason_has_a_name_of_its_own() {
        let names: BTreeSet<_> = DropReason::ALL.iter().map(|r| std::format!("{r}")).collect();
        assert_eq!(names.len(), DropReason::ALL.len());
        assert!(names.contains("tcp no room"));
    }

    #[test]
    fn every_counter_is_listed_by_its_name() {
        let counters = Counters { frames_in: 7, flow_visits: 9, ..Counters::ZERO };
        let listed: Vec<_> = counters.iter().collect();
        assert_eq!(listed.first(), Some(&("frames_in", 7)));
        assert_eq!(listed.last(), Some(&("flow_visits", 9)));
        assert_eq!(size_of_val(&counters), listed.len() * size_of::<u64>());
    }
}
