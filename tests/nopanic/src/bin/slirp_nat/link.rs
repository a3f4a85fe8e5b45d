//! A link that has any room and lends a buffer of any length, as wrong as that may be.

use slirp_nat::link::{Link, Room, TcpSegmentation, TxMeta, for_each_frame, segments};
use slirpkit_nopanic::{any, any_bytes, hidden, keep};

pub(crate) struct AnyLink(pub(crate) [u8; 2048]);

impl Link for AnyLink {
    fn room(&mut self) -> Room {
        Room { frames: any(), bytes: any() }
    }

    fn guest_queue_frames(&self) -> usize {
        any()
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        keep(wanted);
        if any() { Some(hidden(self.0.as_mut_slice())) } else { None }
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        keep((length, *meta));
    }
}

pub(crate) fn cut() {
    let tcp = TcpSegmentation { tcp_offset: any(), header_len: any(), segment_size: any() };
    for segment in segments(any_bytes(), tcp) {
        keep((segment.header(), segment.payload()));
    }
    for_each_frame(any_bytes(), &TxMeta { segment: Some(tcp) }, |pieces| keep(pieces));
}
