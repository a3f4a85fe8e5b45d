//! What every frame for the guest must satisfy (openvmm #2794: bad checksums reached the guest).

use crate::packet::{Ip, parse_ip_header};
use crate::sum;

/// The least length of an Ethernet frame without FCS (IEEE 802.3 3.2.8).
pub const MIN_FRAME: usize = 60;

/// Panics unless `frame` has right lengths, padding and checksums and fits `mtu`.
pub fn frame(frame: &[u8], mtu: usize) {
    assert!(frame.len() >= MIN_FRAME, "a frame of {} bytes", frame.len());
    let longest = (mtu + 14).max(MIN_FRAME);
    assert!(frame.len() <= longest, "a frame of {} bytes at MTU {mtu}", frame.len());
    assert_eq!(frame[6] & 1, 0, "a group address as the source");
    match u16::from_be_bytes([frame[12], frame[13]]) {
        0x0806 => {
            assert_eq!(frame[14..20], [0, 1, 8, 0, 6, 4], "ARP kinds and lengths");
            padding(frame, 14 + 28);
        }
        0x0800 => ipv4(frame),
        other => panic!("a frame of type {other:#06x}"),
    }
}

fn ipv4(frame: &[u8]) {
    let packet = &frame[14..];
    assert_eq!(packet[0] >> 4, 4, "IP version");
    let header_len = usize::from(packet[0] & 15) * 4;
    assert!(header_len >= 20, "IP header of {header_len} bytes");
    assert_eq!(sum::checksum(&packet[..header_len]), 0, "IP header checksum");
    let ip = parse_ip_header(packet);
    assert!(ip.total_len >= header_len, "IP total length {}", ip.total_len);
    assert!(ip.total_len <= packet.len(), "IP total length beyond the frame");
    assert!(ip.ttl > 0, "TTL 0");
    padding(frame, 14 + ip.total_len);
    let payload = &packet[header_len..ip.total_len];
    if ip.more {
        assert_eq!(payload.len() % 8, 0, "a fragment but the last has a multiple of 8 bytes");
    }
    if !ip.more && ip.offset == 0 {
        transport(&ip, payload);
    }
}

/// Panics unless the whole transport segment `payload` of `ip` has right lengths and checksum.
pub fn transport(ip: &Ip, payload: &[u8]) {
    let pseudo = sum::pseudo_sum(ip.src, ip.dst, ip.protocol, payload.len());
    match ip.protocol {
        1 => {
            assert!(payload.len() >= 8, "ICMP message of {} bytes", payload.len());
            assert_eq!(sum::checksum(payload), 0, "ICMP checksum");
        }
        6 => {
            let header_len = usize::from(payload[12] >> 4) * 4;
            assert!((20..=payload.len()).contains(&header_len), "TCP header of {header_len} bytes");
            assert_eq!(sum::ones_sum(payload, pseudo), 0xffff, "TCP checksum");
        }
        17 => {
            let len = usize::from(u16::from_be_bytes([payload[4], payload[5]]));
            assert_eq!(len, payload.len(), "UDP length");
            assert_ne!(payload[6..8], [0, 0], "UDP checksum left out");
            assert_eq!(sum::ones_sum(payload, pseudo), 0xffff, "UDP checksum");
        }
        other => panic!("a packet of protocol {other}"),
    }
}

/// Beyond its contents a frame has zeros only, and no more of them than the minimum asks for
/// (libslirp 4.9.4: stale memory behind fragments).
fn padding(frame: &[u8], end: usize) {
    assert_eq!(frame.len(), end.max(MIN_FRAME), "bytes behind the packet");
    assert!(frame[end..].iter().all(|byte| *byte == 0), "padding that is not zero");
}
