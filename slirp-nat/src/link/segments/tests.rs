//! Cut frames are read back with the parsers of `ipstack`, which verify lengths and checksums.

#![expect(clippy::std_instead_of_alloc, reason = "tests have std and no alloc crate")]

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::vec;
use std::vec::Vec;

use ipstack::wire::{EthernetHeader, Ipv4Header, MacAddr, TcpHeader, TcpOptions};
use proptest::prelude::*;

use super::*;

const HEADER: TcpHeader = TcpHeader {
    source_port: 80,
    destination_port: 1024,
    sequence: 0xffff_fff0,
    acknowledgment: 77,
    flags: TcpFlags::ACK,
    window: 4096,
    options: TcpOptions::NONE,
};

const IDENTIFICATION: u16 = 0xfffe;
const V4: (IpAddr, IpAddr) =
    (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 2, 15)));
const V6: (IpAddr, IpAddr) = (
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 15)),
);

/// A super-segment as the NAT commits it, and its metadata.
fn super_segment(
    (source, destination): (IpAddr, IpAddr),
    tcp: &TcpHeader,
    payload: &[u8],
    segment_size: u16,
) -> (Vec<u8>, TcpSegmentation) {
    let transport_len = tcp.header_len() + payload.len();
    let mut frame = vec![0; 14];
    let ethernet = EthernetHeader {
        destination: MacAddr([2, 0, 0, 0, 0, 1]),
        source: MacAddr([2, 0, 0, 0, 0, 2]),
        ether_type: if source.is_ipv6() { EtherType::Ipv6 } else { EtherType::Ipv4 },
    };
    ethernet.emit(frame.first_chunk_mut().unwrap());
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut ip = [0; 20];
            let mut header = Ipv4Header::new(IpProtocol::Tcp, source, destination);
            header.total_len = u16::try_from(20 + transport_len).unwrap();
            header.identification = IDENTIFICATION;
            header.emit(&mut ip);
            frame.extend(ip);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x60, 0, 0, 0]);
            frame.extend(u16::try_from(transport_len).unwrap().to_be_bytes());
            frame.extend([6, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        _ => panic!("mixed families"),
    }
    let tcp_offset = frame.len();
    let header_len = tcp_offset + tcp.header_len();
    frame.resize(header_len, 0);
    tcp.emit(&mut frame[tcp_offset..]).unwrap();
    tcp::write_partial_checksum(&mut frame[tcp_offset..], source, destination, transport_len)
        .unwrap();
    frame.extend(payload);
    let meta = TcpSegmentation {
        tcp_offset: u16::try_from(tcp_offset).unwrap(),
        header_len: u16::try_from(header_len).unwrap(),
        segment_size,
    };
    (frame, meta)
}

/// Whole frames, as they go over the wire.
fn cut(frame: &[u8], meta: TcpSegmentation) -> Vec<Vec<u8>> {
    segments(frame, meta).map(|s| [s.header(), &frame[s.payload()]].concat()).collect()
}

/// A cut frame, verified.
struct Seen {
    identification: Option<u16>,
    sequence: u32,
    flags: TcpFlags,
    options: TcpOptions,
    payload: Vec<u8>,
}

fn read(frame: &[u8]) -> Seen {
    let ethernet = EthernetFrame::parse(frame).unwrap();
    let (ip, identification) = if ethernet.ether_type() == EtherType::Ipv4 {
        let packet = Ipv4Packet::parse(ethernet.payload()).unwrap();
        let ip = TcpPacket::parse_ipv4(ethernet.payload()).unwrap();
        (ip, Some(packet.identification()))
    } else {
        (TcpPacket::parse_ipv6(ethernet.payload()).unwrap(), None)
    };
    assert_eq!(frame.len(), 14 + ip.header_len + ip.transport.len(), "the IP length is exact");
    let whole = ChecksumState::Whole;
    let tcp = TcpSegment::parse(ip.transport, ip.source, ip.destination, whole).unwrap();
    assert_eq!((tcp.source_port(), tcp.destination_port()), (80, 1024));
    assert_eq!((tcp.acknowledgment(), tcp.window()), (77, 4096));
    Seen {
        identification,
        sequence: tcp.sequence(),
        flags: tcp.flags(),
        options: tcp.options(),
        payload: tcp.payload().to_vec(),
    }
}

#[test]
fn identification_and_sequence_number_count_up_and_wrap() {
    let (frame, meta) = super_segment(V4, &HEADER, &[7; 25], 10);
    let seen: Vec<_> = cut(&frame, meta).iter().map(|frame| read(frame)).collect();
    let identifications: Vec<_> = seen.iter().filter_map(|s| s.identification).collect();
    assert_eq!(identifications, [0xfffe, 0xffff, 0]);
    let sequences: Vec<_> = seen.iter().map(|s| s.sequence).collect();
    assert_eq!(sequences, [0xffff_fff0, 0xffff_fffa, 4]);
}

#[test]
fn fin_and_psh_are_on_the_last_frame_and_cwr_on_the_first() {
    let fin_psh = TcpFlags::FIN.with(TcpFlags::PSH);
    let flags = TcpFlags::ACK.with(fin_psh).with(TcpFlags::CWR).with(TcpFlags::ECE);
    let (frame, meta) = super_segment(V4, &TcpHeader { flags, ..HEADER }, &[7; 30], 10);
    let seen: Vec<_> = cut(&frame, meta).iter().map(|frame| read(frame).flags).collect();
    let every = TcpFlags::ACK.with(TcpFlags::ECE);
    assert_eq!(seen, [every.with(TcpFlags::CWR), every, every.with(fin_psh)]);
}

#[test]
fn a_payload_that_fits_makes_one_frame_with_all_flags() {
    let flags = TcpFlags::from_bits(0xff).without(TcpFlags::URG);
    for length in [0, 1, 9, 10] {
        let payload = vec![7; length];
        let (frame, meta) = super_segment(V4, &TcpHeader { flags, ..HEADER }, &payload, 10);
        let cut = cut(&frame, meta);
        assert_eq!(cut.len(), 1, "{length} bytes");
        let seen = read(&cut[0]);
        assert_eq!((seen.flags, seen.payload), (flags, payload));
    }
}

#[test]
fn padding_of_the_frame_belongs_to_no_segment() {
    let (mut frame, meta) = super_segment(V4, &HEADER, &[], 1460);
    frame.resize(60, 0xaa);
    let cut = cut(&frame, meta);
    assert_eq!(cut.len(), 1);
    assert_eq!(cut[0].len(), 54);
    read(&cut[0]);
}

#[test]
fn the_longest_super_segment_is_cut_whole() {
    let payload: Vec<u8> = (0..65_535u32 - 40).map(|i| i.to_le_bytes()[0] ^ 0x5a).collect();
    let (frame, meta) = super_segment(V4, &HEADER, &payload, 1460);
    let seen: Vec<_> = cut(&frame, meta).iter().map(|frame| read(frame).payload).collect();
    assert_eq!(seen.len(), payload.len().div_ceil(1460));
    assert_eq!(seen.concat(), payload);
}

#[test]
fn frames_that_are_not_what_the_metadata_says_yield_nothing() {
    let (frame, meta) = super_segment(V4, &HEADER, &[7; 30], 10);
    for wrong in [
        TcpSegmentation { segment_size: 0, ..meta },
        TcpSegmentation { tcp_offset: 38, ..meta },
        TcpSegmentation { header_len: 58, ..meta },
        TcpSegmentation { header_len: 0, ..meta },
    ] {
        assert_eq!(segments(&frame, wrong).count(), 0, "{wrong:?}");
    }
    for length in 0..frame.len() {
        assert_eq!(segments(&frame[..length], meta).count(), 0, "first {length} bytes");
    }
    for (index, what) in
        [(12, "type"), (14, "version"), (16, "length"), (20, "fragment"), (23, "protocol")]
    {
        let mut frame = frame.clone();
        frame[index] ^= 0x21;
        frame[24..26].fill(0);
        let check = checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&check.to_be_bytes());
        assert_eq!(segments(&frame, meta).count(), 0, "{what}");
    }
    let (frame, meta) = super_segment(V6, &HEADER, &[7; 30], 10);
    assert_eq!(segments(&frame, meta).count(), 3);
    for (index, what) in [(12, "type"), (14, "version"), (18, "length"), (20, "next header")] {
        let mut frame = frame.clone();
        frame[index] ^= 0x21;
        assert_eq!(segments(&frame, meta).count(), 0, "{what}, IPv6");
    }
}

proptest! {
    #[test]
    fn cut_frames_reassemble_to_the_same_bytes_and_verify(
        v6: bool, timestamps: Option<(u32, u32)>, segment_size in 1u16..500,
        payload in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        let options = TcpOptions { timestamps, ..TcpOptions::NONE };
        let tcp = TcpHeader { options: options.clone(), ..HEADER };
        let (frame, meta) = super_segment(if v6 { V6 } else { V4 }, &tcp, &payload, segment_size);
        let seen: Vec<_> = cut(&frame, meta).iter().map(|frame| read(frame)).collect();
        prop_assert_eq!(seen.len(), payload.len().div_ceil(usize::from(segment_size)).max(1));
        let mut joined = Vec::<u8>::new();
        for (nth, segment) in seen.iter().enumerate() {
            let offset = u32::try_from(joined.len()).unwrap();
            prop_assert_eq!(segment.sequence, HEADER.sequence.wrapping_add(offset));
            prop_assert_eq!(&segment.options, &options);
            prop_assert!(nth + 1 == seen.len() || segment.payload.len() == usize::from(segment_size));
            joined.extend(&segment.payload);
        }
        prop_assert_eq!(joined, payload);
    }

    #[test]
    fn damaged_frames_never_panic(
        v6: bool, damage in prop::collection::vec((0usize..80, any::<u8>()), 0..4),
        length in 0usize..120, tcp_offset in 0u16..120, header_len in 0u16..120,
        segment_size in 0u16..40,
    ) {
        let (mut frame, told) = super_segment(if v6 { V6 } else { V4 }, &HEADER, &[7; 30], segment_size);
        for (index, value) in damage {
            frame[index] ^= value;
        }
        frame.truncate(length);
        let _ = cut(&frame, told);
        let _ = cut(&frame, TcpSegmentation { tcp_offset, header_len, ..told });
    }
}
