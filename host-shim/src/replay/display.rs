//! A divergence for human eyes.

use core::fmt;
use core::net::IpAddr;

use ipstack::checksum::ChecksumState;
use ipstack::wire::arp::ArpPacket;
use ipstack::wire::ethernet::{EtherType, EthernetFrame};
use ipstack::wire::ipv4::{IpProtocol, Ipv4Packet};
use ipstack::wire::tcp::{TcpFlags, TcpSegment};

use super::error::{Act, Divergence};

/// Bytes in a row of a dump.
const ROW: usize = 16;

/// Characters of a call that are shown.
const MAX_CALL_LEN: usize = 240;

const FLAGS: [(TcpFlags, &str); 6] = [
    (TcpFlags::SYN, "SYN"),
    (TcpFlags::FIN, "FIN"),
    (TcpFlags::RST, "RST"),
    (TcpFlags::PSH, "PSH"),
    (TcpFlags::ACK, "ACK"),
    (TcpFlags::URG, "URG"),
];

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, input, at, recorded, replayed } = self;
        let (seconds, micros) = (at.micros() / 1_000_000, at.micros() % 1_000_000);
        writeln!(f, "input {input}, at {seconds}.{micros:06} s, line {line}:")?;
        write!(f, "- {recorded}\n+ {replayed}")?;
        match (recorded, replayed) {
            (Act::Frame { head: left, .. }, Act::Frame { head: right, .. }) => {
                write_difference(f, left, right)
            }
            (Act::Frame { head, .. }, Act::Other(_)) => write_difference(f, head, &[]),
            (Act::Other(_), Act::Frame { head, .. }) => write_difference(f, &[], head),
            (Act::Other(_), Act::Other(_)) => Ok(()),
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame { len, segment_size, head, digest } => {
                write!(f, "frame of {len} bytes: ")?;
                write_headers(f, head)?;
                segment_size.map_or(Ok(()), |size| write!(f, ", segments of {size}"))?;
                write!(f, ", digest {digest}")
            }
            Self::Other(text) => match text.char_indices().nth(MAX_CALL_LEN) {
                Some((end, _)) => write!(f, "{}...", text.get(..end).unwrap_or_default()),
                None => f.write_str(text),
            },
        }
    }
}

/// Rows of both, those that differ one above the other.
fn write_difference(f: &mut fmt::Formatter<'_>, left: &[u8], right: &[u8]) -> fmt::Result {
    let rows = left.len().max(right.len()).div_ceil(ROW);
    let (mut lefts, mut rights) = (left.chunks(ROW), right.chunks(ROW));
    for row in 0..rows {
        let (left, right) = (lefts.next().unwrap_or_default(), rights.next().unwrap_or_default());
        if left == right {
            write_row(f, ' ', row, left)?;
        } else {
            write_row(f, '-', row, left)?;
            write_row(f, '+', row, right)?;
        }
    }
    if left == right {
        f.write_str("\n  the bytes shown are the same: others, or the segments, differ")?;
    }
    Ok(())
}

fn write_row(f: &mut fmt::Formatter<'_>, sign: char, row: usize, bytes: &[u8]) -> fmt::Result {
    if bytes.is_empty() {
        return Ok(());
    }
    write!(f, "\n{sign} {:04x} ", row * ROW)?;
    bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
}

/// What the headers say, as far as they can be read.
fn write_headers(f: &mut fmt::Formatter<'_>, frame: &[u8]) -> fmt::Result {
    let Ok(frame) = EthernetFrame::parse(frame) else { return f.write_str("no Ethernet") };
    match frame.ether_type() {
        EtherType::Ipv4 => match Ipv4Packet::parse_quoted(frame.payload()) {
            Ok(packet) => write_packet(f, &packet),
            Err(error) => write!(f, "IPv4: {error}"),
        },
        EtherType::Arp => match ArpPacket::parse(frame.payload()) {
            Ok(ArpPacket { operation, sender_ip, target_ip, .. }) => {
                write!(f, "ARP {operation:?} {sender_ip} > {target_ip}")
            }
            Err(error) => write!(f, "ARP: {error}"),
        },
        other => write!(f, "{other:?}"),
    }
}

fn write_packet(f: &mut fmt::Formatter<'_>, packet: &Ipv4Packet<'_>) -> fmt::Result {
    let (source, destination) = (packet.source(), packet.destination());
    if packet.fragment_offset() > 0 {
        return write!(f, "{source} > {destination}, fragment at {}", packet.fragment_offset());
    }
    match (packet.protocol(), packet.payload()) {
        (IpProtocol::Tcp, payload) => {
            let (from, to) = (IpAddr::V4(source), IpAddr::V4(destination));
            match TcpSegment::parse(payload, from, to, ChecksumState::Partial) {
                Ok(segment) => write_segment(f, packet, &segment),
                Err(error) => write!(f, "TCP {source} > {destination}: {error}"),
            }
        }
        (IpProtocol::Udp, &[a, b, c, d, ..]) => {
            let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            write!(f, "UDP {source}:{from} > {destination}:{to}")
        }
        (protocol, _) => write!(f, "{protocol:?} {source} > {destination}"),
    }
}

fn write_segment(
    f: &mut fmt::Formatter<'_>,
    packet: &Ipv4Packet<'_>,
    segment: &TcpSegment<'_>,
) -> fmt::Result {
    let (from, to) = (segment.source_port(), segment.destination_port());
    write!(f, "TCP {}:{from} > {}:{to}", packet.source(), packet.destination())?;
    for (_, name) in FLAGS.iter().filter(|(flag, _)| segment.flags().contains(*flag)) {
        write!(f, " {name}")?;
    }
    let (seq, ack) = (segment.sequence(), segment.acknowledgment());
    write!(f, " seq {seq} ack {ack} window {}", segment.window())
}
