//! Frames from the guest, read together.

use core::ops::Range;

use slirp_nat::Frame;

use super::MAX_FRAME_LEN;

/// Frames handed to the NAT at a time.
pub const FRAMES_PER_BATCH: usize = 64;

/// Bytes read at a time.
pub(super) const BYTES_PER_BATCH: usize = 256 << 10;

/// Frames from the guest in one buffer.
#[derive(Debug)]
pub struct Batch {
    buffer: Vec<u8>,
    used: usize,
    frames: Vec<Range<usize>>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty one, with all the memory it will need for full-size frames.
    #[must_use]
    pub fn new() -> Self {
        Self {
            buffer: vec![0; BYTES_PER_BATCH + MAX_FRAME_LEN],
            used: 0,
            frames: Vec::with_capacity(FRAMES_PER_BATCH),
        }
    }

    /// How many frames it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The bytes of every frame.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().filter_map(|range| self.buffer.get(range.clone()))
    }

    /// Hands the frames to `take`, [`FRAMES_PER_BATCH`] at a time.
    pub fn for_each_chunk(&self, mut take: impl FnMut(&[Frame<'_>])) {
        for ranges in self.frames.chunks(FRAMES_PER_BATCH) {
            let mut frames = [Frame::new(&[]); FRAMES_PER_BATCH];
            for (frame, range) in frames.iter_mut().zip(ranges) {
                *frame = Frame::new(self.buffer.get(range.clone()).unwrap_or_default());
            }
            take(frames.get(..ranges.len()).unwrap_or_default());
        }
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.frames.clear();
    }

    /// Whether a reader of single frames has read enough.
    pub(super) fn is_full(&self) -> bool {
        self.frames.len() >= FRAMES_PER_BATCH || self.used >= BYTES_PER_BATCH
    }

    /// Where the next bytes go.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.used..).unwrap_or_default()
    }

    /// Takes the next `length` bytes of [`Batch::space`] as one frame.
    pub(super) fn push(&mut self, length: usize) {
        let end = self.used.saturating_add(length).min(self.buffer.len());
        self.frames.push(self.used..end);
        self.used = end;
    }

    /// Takes the next `length` bytes of [`Batch::space`] as no frame.
    pub(super) fn skip(&mut self, length: usize) {
        self.used = self.used.saturating_add(length).min(self.buffer.len());
    }
}
