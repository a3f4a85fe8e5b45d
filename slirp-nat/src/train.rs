//! The datagram on its way to the guest, which may take many frames: a train that can stop when
//! the link has no room and go on later.

use core::net::{IpAddr, Ipv4Addr};

use ipstack::frag::Fragmenter;
use ipstack::wire::ipv4::{self, IpProtocol, Ipv4Header};
use ipstack::wire::udp::{self, UdpHeader};
use managed::ManagedSlice;

/// Bytes of a UDP header, and of the room kept for it before the data.
const PREFIX: usize = udp::HEADER_LEN;

/// What the packets of a train have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consist {
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    /// Ports of a UDP datagram; `None` if the data is a whole ICMP message.
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) ttl: u8,
    pub(crate) ecn: u8,
    pub(crate) identification: u16,
    /// If not 0, the data is several datagrams of this many bytes, the last may be shorter.
    pub(crate) segment_size: u16,
}

/// At most one train at a time, with its data in lent memory: [`PREFIX`] bytes for a header, then
/// the data.
#[derive(Debug)]
pub(crate) struct Train<'a> {
    memory: ManagedSlice<'a, u8>,
    moving: Option<Moving>,
}

#[derive(Clone, Copy, Debug)]
struct Moving {
    consist: Consist,
    /// Data of all datagrams that are not done, in `memory`: the header of the first stands in the
    /// bytes before it, over the end of the datagram that went before.
    start: usize,
    end: usize,
    /// Cuts the first of them.
    fragmenter: Fragmenter,
    /// Its IP payload begins here.
    payload_start: usize,
}

/// The next packet of a train.
pub(crate) struct Packet<'t> {
    pub(crate) header: Ipv4Header,
    pub(crate) payload: &'t [u8],
}

impl<'a> Train<'a> {
    pub(crate) const fn new(memory: ManagedSlice<'a, u8>) -> Self {
        Self { memory, moving: None }
    }

    pub(crate) const fn is_moving(&self) -> bool {
        self.moving.is_some()
    }

    /// Where the data of the next train is to be put; empty while one is moving.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        if self.is_moving() {
            return &mut [];
        }
        self.memory.get_mut(PREFIX..).unwrap_or_default()
    }

    /// Sets a train of the first `length` bytes of the buffer in motion. Returns whether it can be
    /// carried at all.
    pub(crate) fn start(&mut self, consist: Consist, length: usize, mtu: u16) -> bool {
        let end = PREFIX.saturating_add(length);
        if self.is_moving() || end > self.memory.len() {
            return false;
        }
        self.moving = self.couple(consist, PREFIX, end, mtu);
        self.is_moving()
    }

    /// Makes the datagram that begins at `start` ready to be cut.
    fn couple(&mut self, consist: Consist, start: usize, end: usize, mtu: u16) -> Option<Moving> {
        let segment = match usize::from(consist.segment_size) {
            0 => end.checked_sub(start)?,
            size => size.min(end.checked_sub(start)?),
        };
        let mut payload_start = start;
        if let Some((source_port, destination_port)) = consist.ports {
            payload_start = start.checked_sub(PREFIX)?;
            let span = self.memory.get_mut(payload_start..start.checked_add(segment)?)?;
            let (header, data) = span.split_first_chunk_mut::<PREFIX>()?;
            let payload_len = u16::try_from(segment).ok()?;
            UdpHeader { source_port, destination_port, payload_len }.emit(
                header,
                IpAddr::V4(consist.source),
                IpAddr::V4(consist.destination),
                data,
            );
        }
        let payload_len = start.checked_add(segment)?.checked_sub(payload_start)?;
        let fragmenter = Fragmenter::new(payload_len, ipv4::HEADER_LEN, usize::from(mtu))?;
        Some(Moving { consist, start, end, fragmenter, payload_start })
    }

    /// The next packet, which stays the next one until [`Train::advance`].
    pub(crate) fn peek(&self) -> Option<Packet<'_>> {
        let moving = self.moving.as_ref()?;
        let piece = moving.fragmenter.peek()?;
        let payload = self.memory.get(moving.payload_start..)?.get(piece.range)?;
        let consist = &moving.consist;
        let protocol = if consist.ports.is_some() { IpProtocol::Udp } else { IpProtocol::Icmp };
        let header = Ipv4Header {
            tos: consist.ecn & 3,
            total_len: u16::try_from(payload.len().checked_add(ipv4::HEADER_LEN)?).ok()?,
            identification: consist.identification,
            more_fragments: piece.more,
            fragment_offset: piece.offset,
            ttl: consist.ttl,
            ..Ipv4Header::new(protocol, consist.source, consist.destination)
        };
        Some(Packet { header, payload })
    }

    /// Goes on to the packet after the next one.
    pub(crate) fn advance(&mut self, mtu: u16) {
        let Some(moving) = self.moving.as_mut() else { return };
        moving.fragmenter.advance();
        if moving.fragmenter.peek().is_some() {
            return;
        }
        let Moving { mut consist, start, end, .. } = *moving;
        let size = usize::from(consist.segment_size);
        let next = start.saturating_add(size);
        consist.identification = consist.identification.wrapping_add(1);
        self.moving =
            if size > 0 && next < end { self.couple(consist, next, end, mtu) } else { None };
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn consist(segment_size: u16) -> Consist {
        Consist {
            source: Ipv4Addr::new(192, 0, 2, 1),
            destination: Ipv4Addr::new(10, 0, 2, 15),
            ports: Some((7, 9)),
            ttl: 60,
            ecn: 0,
            identification: 100,
            segment_size,
        }
    }

    fn drain(train: &mut Train<'_>, mtu: u16) -> Vec<(u16, u16, bool, usize)> {
        let mut out = Vec::new();
        while let Some(packet) = train.peek() {
            let h = packet.header;
            out.push((h.identification, h.fragment_offset, h.more_fragments, packet.payload.len()));
            train.advance(mtu);
        }
        out
    }

    #[test]
    fn a_long_datagram_becomes_fragments() {
        let mut memory = [0; 4096];
        let mut train = Train::new(ManagedSlice::Borrowed(&mut memory));
        assert!(train.start(consist(0), 3000, 1500));
        assert!(train.buffer().is_empty(), "the buffer is in use");
        assert_eq!(
            drain(&mut train, 1500),
            [(100, 0, true, 1480), (100, 1480, true, 1480), (100, 2960, false, 48)]
        );
        assert!(!train.is_moving());
    }

    #[test]
    fn a_segmented_datagram_becomes_datagrams_with_headers_of_their_own() {
        let mut memory = [0; 4096];
        let mut train = Train::new(ManagedSlice::Borrowed(&mut memory));
        assert!(train.start(consist(1000), 2500, 1500));
        assert_eq!(
            drain(&mut train, 1500),
            [(100, 0, false, 1008), (101, 0, false, 1008), (102, 0, false, 508)]
        );
    }

    #[test]
    fn an_empty_datagram_is_one_packet_and_an_empty_segment_none_more() {
        let mut memory = [0; 64];
        let mut train = Train::new(ManagedSlice::Borrowed(&mut memory));
        for segment_size in [0, 10] {
            assert!(train.start(consist(segment_size), 0, 1500));
            assert_eq!(drain(&mut train, 1500), [(100, 0, false, 8)]);
        }
    }

    #[test]
    fn long_segments_are_fragmented_each_under_its_own_identification() {
        let mut memory = [0; 4096];
        let mut train = Train::new(ManagedSlice::Borrowed(&mut memory));
        assert!(train.start(consist(700), 1400, 576));
        assert_eq!(
            drain(&mut train, 576),
            [
                (100, 0, true, 552),
                (100, 552, false, 156),
                (101, 0, true, 552),
                (101, 552, false, 156)
            ]
        );
    }

    #[test]
    fn a_packet_stays_the_next_one_until_it_has_left() {
        let mut memory = [0; 4096];
        let mut train = Train::new(ManagedSlice::Borrowed(&mut memory));
        train.buffer().fill(7);
        assert!(train.start(consist(0), 3000, 1500));
        assert!(!train.start(consist(0), 1, 1500), "one train at a time");
        train.advance(1500);
        for _ in 0..2 {
            let packet = train.peek().unwrap();
            assert_eq!((packet.header.fragment_offset, packet.payload), (1480, &[7; 1480][..]));
        }
    }

    #[test]
    fn more_than_the_memory_holds_does_not_start() {
        let mut memory = [0; 100];
        let mut train = Train::new(ManagedSlice::Borrowed(&mut memory));
        assert!(!train.start(consist(0), 93, 1500));
        assert!(train.start(consist(0), 92, 1500));
    }
}
