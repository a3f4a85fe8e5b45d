//! Cuts a TCP super-segment into frames, for links without offload.

use core::net::{IpAddr, Ipv6Addr};
use core::ops::Range;

use byteorder::{ByteOrder, NetworkEndian};
use ipstack::checksum::{ChecksumState, PseudoHeader, checksum};
use ipstack::wire::{
    EtherType, EthernetFrame, IpProtocol, Ipv4Packet, TcpFlags, TcpSegment, ethernet, ipv4, tcp,
};

use super::TcpSegmentation;

/// Largest header that [`segments`] cuts: Ethernet 14, IPv6 40, TCP 60.
pub const MAX_HEADER_LEN: usize = ethernet::HEADER_LEN + IPV6_HEADER_LEN + tcp::MAX_HEADER_LEN;

const IPV6_HEADER_LEN: usize = 40;

/// Flags that only the first frame of a super-segment has: the reduction of one congestion window
/// is told once (RFC 3168 6.1.2).
const FIRST_ONLY: TcpFlags = TcpFlags::CWR;

/// Flags that only the last frame of a super-segment has.
const LAST_ONLY: TcpFlags = TcpFlags::FIN.with(TcpFlags::PSH);

/// One frame cut from a super-segment: its own header, and where its payload lies.
#[derive(Clone, Debug)]
pub struct Segment {
    header: [u8; MAX_HEADER_LEN],
    header_len: usize,
    payload: Range<usize>,
}

impl Segment {
    /// Ethernet, IP and TCP header with lengths, flags, sequence number and checksums done.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        self.header.get(..self.header_len).unwrap_or_default()
    }

    /// Range of the payload in the super-segment that was cut.
    #[must_use]
    pub fn payload(&self) -> Range<usize> {
        self.payload.clone()
    }
}

/// Cuts `frame`, an Ethernet frame with a TCP segment over IPv4 without options or IPv6 without
/// extension headers, into frames of [`TcpSegmentation::segment_size`] payload bytes. If the
/// payload fits into one, or there is none, that is one frame with its checksums done.
///
/// Each has its own IP length, IPv4 identification (counted up), sequence number and checksums;
/// FIN and PSH are on the last only, CWR is on the first only. The TCP checksum field of `frame` is
/// not looked at, and bytes beyond its IP length are padding that belongs to no segment: a link
/// that needs frames of 60 bytes pads what it sends. A frame that is not what `tcp` says yields
/// nothing.
#[must_use]
pub fn segments(frame: &[u8], tcp: TcpSegmentation) -> Segments<'_> {
    Segments { rest: SuperSegment::parse(frame, tcp) }
}

/// The frames cut from one super-segment, in order of their sequence numbers.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    /// What is still to be cut; `None` once that is nothing.
    rest: Option<SuperSegment<'a>>,
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let mut rest = self.rest.take()?;
        let segment = rest.cut()?;
        self.rest = (!rest.payload.is_empty()).then_some(rest);
        Some(segment)
    }
}

/// A super-segment, less the frames cut from it.
#[derive(Clone, Debug)]
struct SuperSegment<'a> {
    /// All headers as they came.
    header: [u8; MAX_HEADER_LEN],
    header_len: usize,
    tcp_offset: usize,
    source: IpAddr,
    destination: IpAddr,
    segment_size: usize,
    payload: &'a [u8],
    /// Payload bytes cut off before [`SuperSegment::payload`].
    offset: usize,
    /// Frames cut off.
    frames: u16,
}

impl<'a> SuperSegment<'a> {
    fn parse(frame: &'a [u8], meta: TcpSegmentation) -> Option<Self> {
        let ethernet = EthernetFrame::parse(frame).ok()?;
        let ip = match ethernet.ether_type() {
            EtherType::Ipv4 => TcpPacket::parse_ipv4(ethernet.payload())?,
            EtherType::Ipv6 => TcpPacket::parse_ipv6(ethernet.payload())?,
            EtherType::Arp | EtherType::Other(_) => return None,
        };
        let partial = ChecksumState::Partial;
        let tcp = TcpSegment::parse(ip.transport, ip.source, ip.destination, partial).ok()?;
        let tcp_offset = ethernet::HEADER_LEN + ip.header_len;
        let tcp_header_len = ip.transport.len().checked_sub(tcp.payload().len())?;
        let header_len = tcp_offset.checked_add(tcp_header_len)?;
        let as_told = usize::from(meta.tcp_offset) == tcp_offset
            && usize::from(meta.header_len) == header_len
            && meta.segment_size > 0;
        if !as_told {
            return None;
        }
        let mut header = [0; MAX_HEADER_LEN];
        for (to, from) in header.iter_mut().zip(frame.get(..header_len)?) {
            *to = *from;
        }
        Some(Self {
            header,
            header_len,
            tcp_offset,
            source: ip.source,
            destination: ip.destination,
            segment_size: usize::from(meta.segment_size),
            payload: tcp.payload(),
            offset: 0,
            frames: 0,
        })
    }

    fn cut(&mut self) -> Option<Segment> {
        let length = self.segment_size.min(self.payload.len());
        let (payload, rest) = self.payload.split_at_checked(length)?;
        let mut header = self.header;
        let headers = header.get_mut(..self.header_len)?;
        let (before, tcp) = headers.split_at_mut_checked(self.tcp_offset)?;
        let (_, ip) = before.split_first_chunk_mut::<{ ethernet::HEADER_LEN }>()?;
        self.finish_ip(ip, tcp.len().checked_add(length)?)?;
        self.finish_tcp(tcp, payload, rest.is_empty())?;

        let start = self.header_len.checked_add(self.offset)?;
        let end = start.checked_add(length)?;
        self.payload = rest;
        self.offset = self.offset.checked_add(length)?;
        self.frames = self.frames.wrapping_add(1);
        Some(Segment { header, header_len: self.header_len, payload: start..end })
    }

    fn finish_ip(&self, ip: &mut [u8], transport_len: usize) -> Option<()> {
        let transport_len = u16::try_from(transport_len).ok()?;
        if self.source.is_ipv6() {
            let header: &mut [u8; IPV6_HEADER_LEN] = ip.first_chunk_mut()?;
            NetworkEndian::write_u16(&mut header[4..6], transport_len);
            return Some(());
        }
        let header: &mut [u8; ipv4::HEADER_LEN] = ip.first_chunk_mut()?;
        let total_len = transport_len.checked_add(20)?;
        let identification = NetworkEndian::read_u16(&header[4..6]).wrapping_add(self.frames);
        NetworkEndian::write_u16(&mut header[2..4], total_len);
        NetworkEndian::write_u16(&mut header[4..6], identification);
        NetworkEndian::write_u16(&mut header[10..12], 0);
        let check = checksum(header);
        NetworkEndian::write_u16(&mut header[10..12], check);
        Some(())
    }

    fn finish_tcp(&self, tcp: &mut [u8], payload: &[u8], is_last: bool) -> Option<()> {
        let transport_len = tcp.len().checked_add(payload.len())?;
        let header: &mut [u8; tcp::HEADER_LEN] = tcp.first_chunk_mut()?;
        let offset = u32::try_from(self.offset).ok()?;
        let sequence = NetworkEndian::read_u32(&header[4..8]).wrapping_add(offset);
        NetworkEndian::write_u32(&mut header[4..8], sequence);
        let mut cleared = TcpFlags::NONE;
        if self.frames > 0 {
            cleared = cleared.with(FIRST_ONLY);
        }
        if !is_last {
            cleared = cleared.with(LAST_ONLY);
        }
        let offset_and_flags = NetworkEndian::read_u16(&header[12..14]) & !cleared.bits();
        NetworkEndian::write_u16(&mut header[12..14], offset_and_flags);
        NetworkEndian::write_u16(&mut header[16..18], 0);
        let protocol = IpProtocol::Tcp.into();
        let pseudo = PseudoHeader::new(self.source, self.destination, protocol, transport_len);
        let check = pseudo.sum().add_bytes(tcp).add_bytes(payload).finish();
        let header: &mut [u8; tcp::HEADER_LEN] = tcp.first_chunk_mut()?;
        NetworkEndian::write_u16(&mut header[16..18], check);
        Some(())
    }
}

/// What is to be known of an IP packet that carries TCP.
struct TcpPacket<'a> {
    header_len: usize,
    source: IpAddr,
    destination: IpAddr,
    transport: &'a [u8],
}

impl<'a> TcpPacket<'a> {
    fn parse_ipv4(bytes: &'a [u8]) -> Option<Self> {
        let packet = Ipv4Packet::parse(bytes).ok()?;
        if packet.protocol() != IpProtocol::Tcp
            || packet.is_fragment()
            || !packet.options().is_empty()
        {
            return None;
        }
        Some(Self {
            header_len: ipv4::HEADER_LEN,
            source: packet.source().into(),
            destination: packet.destination().into(),
            transport: packet.payload(),
        })
    }

    /// RFC 8200 3, with TCP as the next header.
    fn parse_ipv6(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<IPV6_HEADER_LEN>()?;
        if header[0] >> 4 != 6 || header[6] != u8::from(IpProtocol::Tcp) {
            return None;
        }
        let payload_len = usize::from(NetworkEndian::read_u16(&header[4..6]));
        Some(Self {
            header_len: IPV6_HEADER_LEN,
            source: Ipv6Addr::from_bits(NetworkEndian::read_u128(&header[8..24])).into(),
            destination: Ipv6Addr::from_bits(NetworkEndian::read_u128(&header[24..40])).into(),
            transport: rest.get(..payload_len)?,
        })
    }
}

#[cfg(test)]
mod tests;
