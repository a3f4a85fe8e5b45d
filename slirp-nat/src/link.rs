//! Where frames for the guest go, and what comes with frames from it.
//!
//! The embedder implements [`Link`]. The NAT asks for [`Link::room`] *before* it peeks at a host
//! socket, so a link without room holds data back at its source and loses nothing. When room is
//! back the embedder calls [`Nat::on_link_ready`](crate::Nat::on_link_ready).

mod finished;
mod segments;

pub use finished::{Pieces, for_each_frame};
pub use segments::{MAX_HEADER_LEN, Segment, Segments, segments};

/// Room of a link at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Frames, counted after a super-segment has been cut.
    pub frames: usize,
    /// Bytes in those frames.
    pub bytes: usize,
}

/// What a frame from the guest carries besides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// The guest left the TCP or UDP checksum to whoever transmits the frame, so the field holds
    /// the pseudo-header sum only and is not to be checked.
    pub checksum_partial: bool,
    /// The frame is a super-segment, to be cut into segments of this many payload bytes; 0 if not.
    pub segment_size: u16,
}

/// An Ethernet frame from the guest, without FCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Destination address, source address, type, payload.
    pub bytes: &'a [u8],
    /// Work that the guest left undone.
    pub offload: Offload,
}

impl<'a> Frame<'a> {
    /// A frame with nothing left undone.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offload: Offload { checksum_partial: false, segment_size: 0 } }
    }
}

/// Where frames for the guest go.
pub trait Link {
    /// How much the link takes now without loss.
    fn room(&mut self) -> Room;

    /// How many full-size frames from the guest the link queues while nobody reads it. The sum of
    /// all windows offered to the guest stays below it. `usize::MAX` if the guest waits instead of
    /// losing frames.
    fn guest_queue_frames(&self) -> usize;

    /// Lends one contiguous buffer for the next frame or super-segment of at most `wanted` bytes.
    /// Its length is `wanted` or the link's capacity, whichever is less; the capacity is at least
    /// one MTU plus 14 bytes. `None` if there is no buffer now.
    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]>;

    /// Sends the first `length` bytes of the buffer reserved last. With [`TxMeta::segment`] set
    /// they are a super-segment: a link without offload cuts it by [`segments`].
    fn commit(&mut self, length: usize, meta: &TxMeta);
}

/// How a frame for the guest is to be finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxMeta {
    /// Set for TCP segments: the frame may exceed the MTU and its TCP checksum field holds the
    /// folded pseudo-header sum, not complemented. `None`: the frame is complete as it is.
    pub segment: Option<TcpSegmentation>,
}

/// What it takes to cut a TCP super-segment, or to finish a single segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpSegmentation {
    /// Bytes of Ethernet and IP header.
    pub tcp_offset: u16,
    /// Bytes of all headers, Ethernet to TCP.
    pub header_len: u16,
    /// Payload bytes of each frame, but for the last; never 0.
    pub segment_size: u16,
}
