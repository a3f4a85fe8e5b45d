//! Fragments of IPv6, as they come out of the walk over extension headers.

use core::net::Ipv6Addr;
use core::time::Duration;

use super::*;
use crate::wire::ipv6::HEADER_LEN;
use crate::wire::{IpProtocol, Ipv6Fragment, Ipv6Header, Ipv6Packet, Ipv6Payload};

const GUEST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 15);
const WORLD: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const UDP: u8 = 17;
const DESTINATION_OPTIONS: u8 = 60;
/// Destination options without an option, in front of what has this number.
const fn no_options(next_header: u8) -> [u8; 8] {
    [next_header, 0, 1, 4, 0, 0, 0, 0]
}

/// A packet with one fragment, behind as many headers of destination options.
fn packet(before: usize, fragment: &Ipv6Fragment<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    for left in (0..before).rev() {
        payload.extend(no_options(if left == 0 { 44 } else { DESTINATION_OPTIONS }));
    }
    let mut header = [0; 8];
    fragment.emit_header(&mut header);
    payload.extend(header);
    payload.extend(fragment.payload);
    let header = Ipv6Header {
        payload_len: u16::try_from(payload.len()).unwrap(),
        next_header: if before == 0 { 44 } else { DESTINATION_OPTIONS },
        hop_limit: 9,
        ..Ipv6Header::new(IpProtocol::Udp, GUEST, WORLD)
    };
    let mut bytes = [0; HEADER_LEN];
    header.emit(&mut bytes);
    [&bytes, &payload[..]].concat()
}

fn fragment(datagram: &[u8], range: Range<usize>) -> Ipv6Fragment<'_> {
    Ipv6Fragment {
        next_header: UDP,
        offset: u16::try_from(range.start).unwrap(),
        more: range.end < datagram.len(),
        identification: 0x0102_0304,
        payload: &datagram[range],
    }
}

/// What comes of a packet that the walk takes for a fragment.
fn insert<'q>(queue: &'q mut FragmentQueue<'_>, now: Instant, bytes: &[u8]) -> Insert<'q> {
    let packet = Ipv6Packet::parse(bytes).unwrap();
    let Ok(Ipv6Payload::Fragment(fragment)) = packet.payload_behind_extensions() else {
        panic!("no fragment")
    };
    let header = packet.quoted_header(&fragment);
    queue.insert(now, &Fragment::ipv6(&packet, &fragment, &header))
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO.after(Duration::from_secs(seconds))
}

/// RFC 8200 4.5: the next header is that of the first fragment, whatever the others say.
#[test]
fn the_walk_goes_on_behind_a_datagram_put_together() {
    let datagram = [&no_options(UDP), &pattern(52)[..]].concat();
    let first = Ipv6Fragment { next_header: DESTINATION_OPTIONS, ..fragment(&datagram, 0..24) };
    let last = Ipv6Fragment { next_header: 99, ..fragment(&datagram, 24..60) };
    // The headers before the fragment header differ, too.
    let (first, last) = (packet(2, &first), packet(0, &last));
    let mut memory = Memory::new(1, 64);
    let mut queue = memory.queue();
    for order in [[&first, &last], [&last, &first]] {
        assert_eq!(insert(&mut queue, at(0), order[0]), Insert::Held);
        let Insert::Complete(whole) = insert(&mut queue, at(0), order[1]) else { panic!() };
        assert_eq!(whole.payload, datagram);
        assert_eq!((whole.header[6], whole.header[7], whole.header.len()), (44, 9, 48));
        let upper = Ipv6Payload::of_reassembled(whole.header[40], whole.payload);
        let (protocol, payload) = (IpProtocol::Udp, &datagram[8..]);
        assert_eq!(upper, Ok(Ipv6Payload::Upper { protocol, payload }));
    }
}

#[test]
fn all_32_bits_of_the_identification_and_all_128_of_an_address_count() {
    let datagram = pattern(16);
    let base = key(15, 1);
    let mapped = |key: FragmentKey| match key.source {
        core::net::IpAddr::V4(source) => source.to_ipv6_mapped(),
        core::net::IpAddr::V6(source) => source,
    };
    let ipv6 = FragmentKey { source: GUEST.into(), destination: WORLD.into(), ..base };
    let keys = [
        base,
        // The bits of an IPv4 address are not that address.
        FragmentKey { source: mapped(base).into(), ..base },
        ipv6,
        FragmentKey { identification: 1 << 31 | 1, ..ipv6 },
        FragmentKey { source: Ipv6Addr::from_bits(GUEST.to_bits() ^ 1 << 127).into(), ..ipv6 },
        FragmentKey { destination: Ipv6Addr::from_bits(WORLD.to_bits() ^ 1).into(), ..ipv6 },
    ];
    let mut memory = Memory::new(16, 64);
    let mut queue = memory.queue();
    for key in keys {
        let first = Fragment { key, ..part(&datagram, 0..8) };
        assert_eq!(queue.insert(at(0), &first), Insert::Held);
    }
    assert_eq!(queue.len(), keys.len());
    for key in keys {
        let last = Fragment { key, ..part(&datagram, 8..16) };
        assert!(matches!(queue.insert(at(0), &last), Insert::Complete(_)));
    }
}

/// RFC 5722 4, RFC 8200 4.5. Over IPv4 the same is harmless.
#[test]
fn an_overlap_in_part_drops_the_datagram_even_if_its_bytes_agree() {
    let datagram = pattern(64);
    for overlap in [0..24, 8..32, 40..64, 0..56] {
        let mut memory = Memory::new(1, 64);
        let mut queue = memory.queue();
        let held = packet(0, &fragment(&datagram, 16..48));
        assert_eq!(insert(&mut queue, at(0), &held), Insert::Held);
        let refused = insert(&mut queue, at(0), &packet(0, &fragment(&datagram, overlap.clone())));
        assert_eq!(refused, Insert::Dropped(FragmentDrop::Overlap), "{overlap:?}");
        for rest in [0..16, 48..64] {
            let rest = insert(&mut queue, at(0), &packet(0, &fragment(&datagram, rest)));
            assert_eq!(rest, Insert::Dropped(FragmentDrop::Discarded));
        }
        assert_eq!((queue.counters().overlap, queue.counters().completed), (1, 0));
    }
}

/// RFC 8200 4.5: networks make them. One that is a part of what came is as harmless.
#[test]
fn duplicates_are_ignored_unless_a_byte_differs() {
    let datagram = pattern(61);
    let mut forged = datagram.clone();
    forged[60] ^= 1;
    let mut memory = Memory::new(1, 64);
    let mut queue = memory.queue();
    for range in [40..61, 40..61, 48..61, 56..61, 0..40, 8..24] {
        let bytes = packet(0, &fragment(&datagram, range.clone()));
        let outcome = insert(&mut queue, at(0), &bytes);
        match range.start {
            0 => assert!(matches!(outcome, Insert::Complete(_))),
            _ => assert_eq!(outcome, Insert::Held),
        }
    }
    let mut memory = Memory::new(1, 64);
    let mut queue = memory.queue();
    let last = packet(0, &fragment(&datagram, 40..61));
    assert_eq!(insert(&mut queue, at(0), &last), Insert::Held);
    let refused = insert(&mut queue, at(0), &packet(0, &fragment(&forged, 40..61)));
    assert_eq!(refused, Insert::Dropped(FragmentDrop::Overlap));
}

/// RFC 8200 3 counts no header; RFC 791 3.1 does.
#[test]
fn the_payload_alone_may_have_65535_bytes() {
    let datagram = pattern(65_535);
    let mut memory = Memory::new(1, 65_535);
    let mut queue = memory.queue();
    for range in [0..32_768, 32_768..65_528] {
        let bytes = packet(0, &fragment(&datagram, range));
        assert_eq!(insert(&mut queue, at(0), &bytes), Insert::Held);
    }
    let last = packet(0, &fragment(&datagram, 65_528..65_535));
    let Insert::Complete(whole) = insert(&mut queue, at(0), &last) else { panic!() };
    assert!(whole.payload == datagram);
}

/// RFC 8200 4.5 has 60 seconds, and RFC 4443 2.4 as much of the packet as fits.
#[test]
fn after_60_seconds_all_of_the_first_fragment_can_be_quoted() {
    let datagram = pattern(96);
    let (first, second) = (fragment(&datagram, 0..24), fragment(&datagram, 24..48));
    let mut memory = Memory::new(4, 96);
    let mut queue = memory.queue();
    assert_eq!(insert(&mut queue, at(1), &packet(3, &second)), Insert::Held);
    assert_eq!(insert(&mut queue, at(2), &packet(3, &first)), Insert::Held);
    // One of IPv4 that came later ends earlier.
    assert_eq!(queue.insert(at(3), &part(&datagram, 0..8)), Insert::Held);
    assert_eq!(queue.poll_at(), Some(at(33)));
    assert_eq!(queue.expire(at(33)).map(|expired| expired.key), Some(key(15, 1)));
    assert_eq!(queue.poll_at(), Some(at(61)));
    assert_eq!(queue.expire(at(60)), None);
    let quoted = queue.expire(at(61)).unwrap().first.unwrap();
    let bytes = [quoted.header, quoted.payload].concat();
    let quoted = Ipv6Packet::parse(&bytes).unwrap();
    assert_eq!(quoted.payload_behind_extensions(), Ok(Ipv6Payload::Fragment(first)));
    assert_eq!((quoted.source(), quoted.destination()), (GUEST, WORLD));
    assert!(queue.is_empty());
}

/// RFC 6946 4: it is handled apart from fragments of the same name.
#[test]
fn a_datagram_in_one_fragment_leaves_others_of_its_name_alone() {
    let (datagram, atomic) = (pattern(32), [7; 12]);
    let mut memory = Memory::new(1, 64);
    let mut queue = memory.queue();
    let first = packet(0, &fragment(&datagram, 0..16));
    assert_eq!(insert(&mut queue, at(0), &first), Insert::Held);
    let bytes = packet(0, &fragment(&atomic, 0..12));
    let found = Ipv6Packet::parse(&bytes).unwrap().payload_behind_extensions();
    assert_eq!(found, Ok(Ipv6Payload::Upper { protocol: IpProtocol::Udp, payload: &atomic }));
    let last = packet(0, &fragment(&datagram, 16..32));
    assert!(matches!(insert(&mut queue, at(0), &last), Insert::Complete(_)));
}
