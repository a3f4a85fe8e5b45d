//! TCP segments for the guest: their headers, and how they are sent without data.

use core::net::IpAddr;

use ipstack::tcp::{MAX_SACK_BLOCKS, SegmentOut};
use ipstack::wire::TcpOptions;
use ipstack::wire::ethernet::{MIN_FRAME_LEN, MacAddr};
use ipstack::wire::ipv4::{self, IpProtocol, Ipv4Header};
use ipstack::wire::tcp::{self, TcpHeader};

use super::{Egress, IP_PAYLOAD, commit, has_room, write_ip_headers};
use crate::config::Config;
use crate::flow::FlowKey;
use crate::link::{Link, TcpSegmentation, TxMeta};
use crate::service::arp::router_mac;
use crate::stats::{DropReason, Stats};

/// Bytes of all headers of a TCP segment with data.
pub(crate) const TCP_PAYLOAD: usize = IP_PAYLOAD + tcp::HEADER_LEN;

/// Room for the headers of a TCP segment with options: those of a SYN, which are MSS, window scale
/// and SACK-permitted, or three SACK blocks, which take more.
const SEGMENT_FRAME: usize = TCP_PAYLOAD + 4 + 8 * MAX_SACK_BLOCKS;

impl Egress<'_> {
    /// Sends a reset that belongs to no flow, or to one that is over.
    pub(crate) fn reply_reset<L: Link + ?Sized>(
        &mut self,
        config: &Config,
        stats: &mut Stats,
        link: &mut L,
        key: &FlowKey,
        reset: &SegmentOut,
    ) {
        let (source, destination) = (key.remote.ipv4(), key.guest.ipv4());
        let header = Ipv4Header {
            dont_fragment: true,
            ..Ipv4Header::new(IpProtocol::Tcp, source, destination)
        };
        let tcp = tcp_header(key, reset);
        let length = tcp.header_len();
        let sent = self.reply_ip(config, stats, link, (header, None), length, |payload| {
            if tcp.emit(payload).is_some() {
                let _ = tcp::write_checksum(payload, IpAddr::V4(source), IpAddr::V4(destination));
            }
        });
        stats.counters.tcp_resets_out += u64::from(sent);
    }

    /// Whether a TCP segment without data can be sent now. Room is no promise of a buffer, and what
    /// the connection has made of itself cannot be taken back.
    pub(crate) fn can_send_segment<L: Link + ?Sized>(link: &mut L) -> bool {
        has_room(link, SEGMENT_FRAME.max(MIN_FRAME_LEN)) && link.reserve(SEGMENT_FRAME).is_some()
    }

    /// Sends a TCP segment without data.
    pub(crate) fn send_segment<L: Link + ?Sized>(
        &mut self,
        config: &Config,
        stats: &mut Stats,
        link: &mut L,
        (key, mac, mss): (&FlowKey, MacAddr, u16),
        segment: &SegmentOut,
    ) {
        let source = router_mac(config.gateway);
        let identification = self.identification(key.remote.ipv4(), key.guest.ipv4());
        let Some(frame) = link.reserve(SEGMENT_FRAME) else {
            return stats.drop(DropReason::ReplyQueueFull);
        };
        let headers = TcpFrame { key, destination: mac, source, identification };
        stats.counters.tcp_duplicate_acks_out += u64::from(segment.duplicate);
        if let Some(header_len) = headers.write(frame, segment, 0) {
            commit(stats, link, header_len, &segmentation(header_len, mss));
        }
    }
}

/// How a TCP segment with `header_len` bytes of headers is to be finished.
pub(crate) fn segmentation(header_len: usize, segment_size: u16) -> TxMeta {
    #[expect(clippy::cast_possible_truncation, reason = "headers have at most 114 bytes")]
    let segment = TcpSegmentation {
        tcp_offset: IP_PAYLOAD as u16,
        header_len: header_len as u16,
        segment_size: segment_size.max(1),
    };
    TxMeta { segment: Some(segment) }
}

/// What the headers of a TCP frame are made of.
pub(crate) struct TcpFrame<'k> {
    pub(crate) key: &'k FlowKey,
    pub(crate) destination: MacAddr,
    pub(crate) source: MacAddr,
    pub(crate) identification: u16,
}

impl TcpFrame<'_> {
    /// Writes all headers of `segment` with `payload_len` bytes of data behind them and returns
    /// their length. The checksum field holds the folded sum of the pseudo-header.
    pub(crate) fn write(
        &self,
        frame: &mut [u8],
        segment: &SegmentOut,
        payload_len: usize,
    ) -> Option<usize> {
        let tcp = tcp_header(self.key, segment);
        let (source, destination) = (self.key.remote.ipv4(), self.key.guest.ipv4());
        let tcp_len = tcp.header_len().checked_add(payload_len)?;
        let header = Ipv4Header {
            total_len: u16::try_from(tcp_len.checked_add(ipv4::HEADER_LEN)?).ok()?,
            identification: self.identification,
            dont_fragment: true,
            ..Ipv4Header::new(IpProtocol::Tcp, source, destination)
        };
        let payload = write_ip_headers(frame, self.destination, self.source, &header)?;
        let header_len = tcp.emit(payload)?;
        let (source, destination) = (IpAddr::V4(source), IpAddr::V4(destination));
        tcp::write_partial_checksum(payload, source, destination, tcp_len)?;
        header_len.checked_add(IP_PAYLOAD)
    }
}

fn tcp_header(key: &FlowKey, segment: &SegmentOut) -> TcpHeader {
    TcpHeader {
        source_port: key.remote.port,
        destination_port: key.guest.port,
        sequence: segment.sequence.0,
        acknowledgment: segment.acknowledgment.0,
        flags: segment.flags,
        window: segment.window,
        options: TcpOptions {
            mss: segment.mss,
            window_scale: segment.window_scale,
            sack_permitted: segment.sack_permitted,
            ..segment.sack.to_options()
        },
    }
}
