//! Chains of headers, named by what is wrong with them.

#![expect(clippy::std_instead_of_alloc, reason = "tests have std, and no alloc is linked")]

use core::net::Ipv6Addr;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::wire::ipv6::{Ipv6Header, QUOTED_HEADER_LEN};

const UDP: u8 = 17;
const TCP: u8 = 6;

/// A packet with these headers, each of which says itself what follows it.
fn packet(next_header: u8, headers: &[&[u8]]) -> Vec<u8> {
    let payload = headers.concat();
    let header = Ipv6Header {
        traffic_class: 2,
        payload_len: u16::try_from(payload.len()).unwrap(),
        next_header,
        ..Ipv6Header::new(IpProtocol::Udp, Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED)
    };
    let mut bytes = [0; HEADER_LEN];
    header.emit(&mut bytes);
    [&bytes, &payload[..]].concat()
}

/// Options of either kind, padded to a multiple of 8 bytes.
fn options(next_header: u8, options: &[u8]) -> Vec<u8> {
    let missing = (8 - (options.len() + 2) % 8) % 8;
    let units = u8::try_from((options.len() + 2 + missing) / 8 - 1).unwrap();
    [&[next_header, units], options, &vec![PAD_1; missing]].concat()
}

fn routing(next_header: u8, kind: u8, segments_left: u8) -> [u8; 8] {
    [next_header, 0, kind, segments_left, 0, 0, 0, 0]
}

fn fragment(next_header: u8, offset: u16, more: bool) -> [u8; 8] {
    let mut header = [0xff; 8];
    Ipv6Fragment { next_header, offset, more, identification: 0x0102_0304, payload: &[] }
        .emit_header(&mut header);
    header
}

fn walk(next_header: u8, headers: &[&[u8]]) -> Result<Vec<u8>, (ExtensionError, usize)> {
    let bytes = packet(next_header, headers);
    match Ipv6Packet::parse(&bytes).unwrap().payload_behind_extensions() {
        Ok(Ipv6Payload::Upper { payload, .. }) => Ok(payload.to_vec()),
        Ok(Ipv6Payload::Fragment(fragment)) => Ok(fragment.payload.to_vec()),
        Ok(Ipv6Payload::Nothing) => Ok(Vec::new()),
        Err(fault) => Err((fault.reason, fault.pointer)),
    }
}

#[test]
fn without_extension_headers_the_payload_is_all() {
    assert_eq!(walk(UDP, &[b"payload"]), Ok(b"payload".to_vec()));
    assert_eq!(walk(58, &[]), Ok(Vec::new()));
}

#[test]
fn every_header_in_the_order_of_the_rfc_is_passed_over() {
    let headers: [&[u8]; 6] = [
        &options(DESTINATION_OPTIONS, &[5, 2, 0, 0]),
        &options(ROUTING, &[]),
        &routing(FRAGMENT, 4, 0),
        &fragment(DESTINATION_OPTIONS, 0, false),
        &options(UDP, &[4, 1, 4]),
        b"payload",
    ];
    let bytes = packet(HOP_BY_HOP, &headers);
    let payload = Ipv6Packet::parse(&bytes).unwrap().payload_behind_extensions();
    let (protocol, payload_bytes) = (IpProtocol::Udp, &b"payload"[..]);
    assert_eq!(payload, Ok(Ipv6Payload::Upper { protocol, payload: payload_bytes }));
}

/// RFC 8200 4.1: a receiver takes them in any order.
#[test]
fn another_order_is_taken_but_for_hop_by_hop_options_which_are_first() {
    let swapped: [&[u8]; 3] =
        [&routing(DESTINATION_OPTIONS, 2, 0), &options(ROUTING, &[]), &routing(UDP, 0, 0)];
    assert_eq!(walk(ROUTING, &swapped), Ok(Vec::new()));
    let late: [&[u8]; 2] = [&options(HOP_BY_HOP, &[]), &options(UDP, &[])];
    assert_eq!(walk(DESTINATION_OPTIONS, &late), Err((ExtensionError::HopByHopMisplaced, 40)));
    let twice: [&[u8]; 2] = [&options(HOP_BY_HOP, &[]), &options(UDP, &[])];
    assert_eq!(walk(HOP_BY_HOP, &twice), Err((ExtensionError::HopByHopMisplaced, 40)));
    let in_a_fragment: [&[u8]; 2] = [&fragment(HOP_BY_HOP, 0, false), &options(UDP, &[])];
    assert_eq!(walk(FRAGMENT, &in_a_fragment), Err((ExtensionError::HopByHopMisplaced, 40)));
}

#[test]
fn eight_headers_are_taken_and_nine_refused() {
    for count in [MAX_HEADERS, MAX_HEADERS + 1] {
        let mut headers = vec![options(DESTINATION_OPTIONS, &[]); count - 1];
        headers.push(options(UDP, &[]));
        let headers: Vec<_> = headers.iter().map(|header| &header[..]).collect();
        let expected = match count {
            MAX_HEADERS => Ok(Vec::new()),
            _ => Err((ExtensionError::TooManyHeaders, 40 + 7 * 8)),
        };
        assert_eq!(walk(DESTINATION_OPTIONS, &headers), expected, "{count} headers");
    }
}

#[test]
fn a_header_beyond_the_packet_is_refused_wherever_it_is_cut() {
    let whole =
        [&options(ROUTING, &[5, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])[..], &routing(UDP, 2, 0)]
            .concat();
    for cut in 0..whole.len() {
        let at = if cut < 16 { 40 } else { 56 };
        // Hop-by-hop options without a payload have their own test.
        let expected = Err((ExtensionError::Truncated, at));
        assert_eq!(walk(DESTINATION_OPTIONS, &[&whole[..cut]]), expected, "cut at {cut}");
    }
    assert_eq!(walk(DESTINATION_OPTIONS, &[&whole]), Ok(Vec::new()));
    for cut in 0..8 {
        let expected = Err((ExtensionError::Truncated, 40));
        assert_eq!(walk(FRAGMENT, &[&fragment(UDP, 8, true)[..cut]]), expected);
    }
}

/// RFC 8504 5.3.
#[test]
fn eight_options_are_taken_and_nine_refused_in_each_header_by_itself() {
    let eight = options(DESTINATION_OPTIONS, &[5, 0].repeat(8));
    assert_eq!(walk(HOP_BY_HOP, &[&eight, &options(UDP, &[4, 0].repeat(8))]), Ok(Vec::new()));
    let nine = options(UDP, &[5, 0].repeat(9));
    assert_eq!(walk(HOP_BY_HOP, &[&nine]), Err((ExtensionError::TooManyOptions, 42 + 16)));
}

/// RFC 8504 5.3.
#[test]
fn seven_bytes_of_padding_in_a_row_are_taken_and_eight_refused() {
    let pad_1 = |count| [&vec![PAD_1; count][..], &[5, 0]].concat();
    let pad_n =
        |count: u8| [&[PAD_N, count - 2][..], &vec![0; usize::from(count) - 2], &[5, 0]].concat();
    for padded in
        [pad_1(7), pad_n(7), [pad_n(3), pad_n(7)].concat(), [&pad_n(4)[..4], &pad_1(3)].concat()]
    {
        assert_eq!(walk(HOP_BY_HOP, &[&options(UDP, &padded)]), Ok(Vec::new()));
    }
    for (padded, at) in [(pad_1(8), 7), (pad_n(8), 0), ([&pad_n(4)[..4], &pad_1(4)].concat(), 7)] {
        let expected = Err((ExtensionError::TooMuchPadding, 42 + at));
        assert_eq!(walk(HOP_BY_HOP, &[&options(UDP, &padded)]), expected);
    }
}

#[test]
fn an_option_beyond_its_header_is_refused() {
    for (bytes, at) in [([0, 5, 5, 0, 0, 0], 1), ([1, 5, 0, 0, 0, 0], 0), ([5, 2, 0, 0, 0, 5], 5)] {
        let header = [&[UDP, 0][..], &bytes].concat();
        let expected = Err((ExtensionError::OptionTruncated, 42 + at));
        assert_eq!(walk(DESTINATION_OPTIONS, &[&header, b"5 bytes"]), expected);
    }
}

/// RFC 8200 4.2.
#[test]
fn of_unknown_options_only_those_that_may_be_passed_over_are() {
    for kind in 2..=255 {
        let expected = match kind {
            0..64 => Ok(Vec::new()),
            _ => Err((ExtensionError::UnknownOption(kind), 42)),
        };
        assert_eq!(walk(DESTINATION_OPTIONS, &[&options(UDP, &[kind, 2, 0, 0])]), expected);
    }
}

/// RFC 2675 3: the length field is 0, or a length beside the option.
#[test]
fn jumbograms_are_refused() {
    let jumbo = options(UDP, &[JUMBO_PAYLOAD, 4, 0, 1, 0, 0]);
    assert_eq!(walk(HOP_BY_HOP, &[&jumbo]), Err((ExtensionError::JumboPayload, 42)));
    assert_eq!(walk(HOP_BY_HOP, &[]), Err((ExtensionError::JumboPayload, 4)));
    let expected = Err((ExtensionError::UnknownOption(JUMBO_PAYLOAD), 42));
    assert_eq!(walk(DESTINATION_OPTIONS, &[&jumbo]), expected);
}

/// RFC 5095 3, RFC 8200 4.4.
#[test]
fn routing_headers_with_segments_left_are_refused_type_0_by_its_name() {
    assert_eq!(walk(ROUTING, &[&routing(UDP, 0, 1)]), Err((ExtensionError::RoutingType0, 42)));
    for kind in 1..=255 {
        let expected = Err((ExtensionError::SegmentsLeft, 42));
        assert_eq!(walk(ROUTING, &[&routing(UDP, kind, 255)]), expected);
        assert_eq!(walk(ROUTING, &[&routing(UDP, kind, 0)]), Ok(Vec::new()));
    }
    assert_eq!(walk(ROUTING, &[&routing(UDP, 0, 0)]), Ok(Vec::new()));
}

#[test]
fn what_follows_no_next_header_is_nothing() {
    let bytes = packet(HOP_BY_HOP, &[&options(NO_NEXT_HEADER, &[]), b"no meaning"]);
    let payload = Ipv6Packet::parse(&bytes).unwrap().payload_behind_extensions();
    assert_eq!(payload, Ok(Ipv6Payload::Nothing));
}

#[test]
fn authentication_and_encryption_end_the_walk() {
    for protocol in [50, 51] {
        let bytes = packet(DESTINATION_OPTIONS, &[&options(protocol, &[]), b"opaque"]);
        let payload = Ipv6Packet::parse(&bytes).unwrap().payload_behind_extensions();
        let protocol = IpProtocol::Other(protocol);
        assert_eq!(payload, Ok(Ipv6Payload::Upper { protocol, payload: b"opaque" }));
    }
}

#[test]
fn a_fragment_shows_its_fields_and_no_header_behind_its_own() {
    let headers: [&[u8]; 3] =
        [&options(FRAGMENT, &[]), &fragment(HOP_BY_HOP, 0xfff0, true), b"not eight bytes!"];
    let bytes = packet(DESTINATION_OPTIONS, &headers);
    let packet = Ipv6Packet::parse(&bytes).unwrap();
    // 65,535 bytes at most, 8 of which are taken by the options.
    let too_long = packet.payload_behind_extensions().unwrap_err();
    assert_eq!(too_long, ExtensionFault { reason: ExtensionError::FragmentTooLong, pointer: 50 });

    let mut bytes = bytes;
    bytes[50..52].copy_from_slice(&[0x12, 0x39]);
    let packet = Ipv6Packet::parse(&bytes).unwrap();
    let expected = Ipv6Fragment {
        next_header: HOP_BY_HOP,
        offset: 0x1238,
        more: true,
        identification: 0x0102_0304,
        payload: b"not eight bytes!",
    };
    assert_eq!(packet.payload_behind_extensions(), Ok(Ipv6Payload::Fragment(expected)));
    let quoted: [u8; QUOTED_HEADER_LEN] = packet.quoted_header(&expected);
    assert_eq!(quoted[..6], [0x60, 0x20, 0, 0, 0, 24]);
    assert_eq!((quoted[6], &quoted[7..40]), (FRAGMENT, &bytes[7..40]));
    assert_eq!(quoted[40..], fragment(HOP_BY_HOP, 0x1238, true));
}

/// RFC 8200 4.5.
#[test]
fn a_datagram_of_65535_bytes_is_taken_and_one_more_refused() {
    let last = fragment(UDP, 65_528, false);
    assert_eq!(walk(FRAGMENT, &[&last, b"7 bytes"]), Ok(b"7 bytes".to_vec()));
    assert_eq!(walk(FRAGMENT, &[&last, b"8 bytes."]), Err((ExtensionError::FragmentTooLong, 42)));
    let before = options(FRAGMENT, &[]);
    let expected = Err((ExtensionError::FragmentTooLong, 50));
    assert_eq!(walk(DESTINATION_OPTIONS, &[&before, &last, b"7 bytes"]), expected);
}

#[test]
fn fragments_that_are_empty_or_end_between_units_are_refused() {
    let expected = Err((ExtensionError::FragmentLength, 4));
    for (header, payload) in [
        (fragment(UDP, 8, true), &b"12 bytes...."[..]),
        (fragment(UDP, 8, true), b""),
        (fragment(UDP, 8, false), b""),
        (fragment(UDP, 0, true), b"7 bytes"),
    ] {
        assert_eq!(walk(FRAGMENT, &[&header, payload]), expected);
    }
    assert_eq!(walk(FRAGMENT, &[&fragment(UDP, 8, false), b"7 bytes"]), Ok(b"7 bytes".to_vec()));
}

/// RFC 6946: nothing but its own headers decides about it.
#[test]
fn a_fragment_that_is_whole_is_no_fragment() {
    for payload in [&b""[..], b"7 bytes"] {
        let bytes = packet(FRAGMENT, &[&fragment(UDP, 0, false), payload]);
        let found = Ipv6Packet::parse(&bytes).unwrap().payload_behind_extensions();
        assert_eq!(found, Ok(Ipv6Payload::Upper { protocol: IpProtocol::Udp, payload }));
    }
}

#[test]
fn fragments_of_fragments_are_refused() {
    for more in [false, true] {
        let nested: [&[u8]; 3] =
            [&fragment(FRAGMENT, 0, more), &fragment(UDP, 8, true), b"8 bytes."];
        assert_eq!(walk(FRAGMENT, &nested), Err((ExtensionError::SecondFragment, 40)));
    }
    let nested = fragment(UDP, 8, true);
    let reassembled = Ipv6Payload::of_reassembled(FRAGMENT, &nested);
    assert_eq!(reassembled.unwrap_err().reason, ExtensionError::SecondFragment);
}

/// RFC 7112 5.
#[test]
fn a_first_fragment_has_every_header_up_to_the_whole_of_the_upper_layers() {
    let incomplete = |at| Err((ExtensionError::FirstFragmentIncomplete, at));
    let first = |next, rest: &[u8]| walk(FRAGMENT, &[&fragment(next, 0, true), rest]);
    let whole = |rest: &[u8]| Ok(rest.to_vec());
    let udp = [0; 8];
    assert_eq!(first(UDP, &udp), whole(&udp));

    let mut tcp = [0; 32];
    tcp[12] = 0x60;
    assert_eq!(first(TCP, &tcp[..24]), whole(&tcp[..24]), "24 bytes with options");
    assert_eq!(first(TCP, &tcp[..16]), incomplete(48), "no whole header without options");
    assert_eq!(first(TCP, &tcp[..8]), incomplete(48), "RFC 1858: ports and nothing more");
    tcp[12] = 0x80;
    assert_eq!(first(TCP, &tcp[..24]), incomplete(48), "32 bytes with options");
    assert_eq!(first(TCP, &tcp), whole(&tcp));

    let long_options = options(UDP, &[5, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(first(DESTINATION_OPTIONS, &long_options[..8]), incomplete(48));
    assert_eq!(first(DESTINATION_OPTIONS, &long_options), incomplete(64));
    let all = [&long_options[..], &udp].concat();
    assert_eq!(first(DESTINATION_OPTIONS, &all), whole(&all));
    for protocol in [TCP, UDP, 58] {
        let nothing_more = first(DESTINATION_OPTIONS, &options(protocol, &[]));
        assert_eq!(nothing_more, incomplete(56), "{protocol}");
    }
    assert_eq!(first(NO_NEXT_HEADER, &udp), whole(&udp));
    assert_eq!(first(99, &udp), whole(&udp), "an unknown protocol has no known length");
}

#[test]
fn a_fault_says_what_is_wrong_and_where() {
    for (reason, named) in [
        (ExtensionError::Truncated, "beyond the packet"),
        (ExtensionError::HopByHopMisplaced, "not first"),
        (ExtensionError::SecondFragment, "second fragment"),
        (ExtensionError::TooManyHeaders, "headers"),
        (ExtensionError::TooManyOptions, "options"),
        (ExtensionError::TooMuchPadding, "padding"),
        (ExtensionError::OptionTruncated, "beyond its header"),
        (ExtensionError::UnknownOption(0xc2), "unknown"),
        (ExtensionError::JumboPayload, "jumbogram"),
        (ExtensionError::RoutingType0, "type 0"),
        (ExtensionError::SegmentsLeft, "segments left"),
        (ExtensionError::FragmentLength, "length of a fragment"),
        (ExtensionError::FragmentTooLong, "65535"),
        (ExtensionError::FirstFragmentIncomplete, "first fragment"),
    ] {
        let text = std::format!("{}", ExtensionFault { reason, pointer: 42 });
        assert!(text.contains(named) && text.ends_with(" at byte 42"), "{reason:?}: {text}");
    }
}

#[test]
fn what_was_put_together_is_walked_over_from_the_first_fragments_next_header() {
    let payload = [&options(UDP, &[])[..], b"payload"].concat();
    let found = Ipv6Payload::of_reassembled(DESTINATION_OPTIONS, &payload);
    let (protocol, rest) = (IpProtocol::Udp, &b"payload"[..]);
    assert_eq!(found, Ok(Ipv6Payload::Upper { protocol, payload: rest }));
    let misplaced = Ipv6Payload::of_reassembled(HOP_BY_HOP, &payload).unwrap_err();
    assert_eq!((misplaced.reason, misplaced.pointer), (ExtensionError::HopByHopMisplaced, 6));
}

proptest! {
    #[test]
    fn a_fragment_header_reads_back_as_it_was_written(
        next_header: u8, units in 1_u16..8000, more: bool, identification: u32,
        payload in prop::collection::vec(any::<[u8; 8]>(), 1..9),
    ) {
        let payload = payload.concat();
        let fragment = Ipv6Fragment { next_header, offset: units * 8, more, identification, payload: &payload };
        let mut header = [0xff; 8];
        fragment.emit_header(&mut header);
        let bytes = packet(FRAGMENT, &[&header, &payload]);
        let found = Ipv6Packet::parse(&bytes).unwrap().payload_behind_extensions();
        prop_assert_eq!(found, Ok(Ipv6Payload::Fragment(fragment)));
    }

    #[test]
    fn any_chain_ends_within_the_packet(
        next_header in prop::sample::select(vec![0, 43, 44, 60, 6, 17, 59]),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        links in prop::collection::vec((0..25_usize, prop::sample::select(vec![0_u8, 43, 44, 60, 17])), 0..25),
    ) {
        for (unit, next) in links {
            if let Some([to, units, kind, left, ..]) = bytes.get_mut(unit * 8..) {
                (*to, *units, *kind, *left) = (next, 0, 1, 0);
            }
        }
        let bytes = packet(next_header, &[&bytes]);
        match Ipv6Packet::parse(&bytes).unwrap().payload_behind_extensions() {
            Ok(Ipv6Payload::Upper { payload, .. }) => prop_assert!(bytes.ends_with(payload)),
            Ok(Ipv6Payload::Fragment(fragment)) => prop_assert!(bytes.ends_with(fragment.payload)),
            Ok(Ipv6Payload::Nothing) => {}
            Err(fault) => prop_assert!(fault.pointer <= bytes.len()),
        }
    }
}
