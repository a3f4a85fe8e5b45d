//! Frames for the guest that wait for a socket, each behind its length: QEMU's stream format.

use slirp_nat::link::{Pieces, Room, TxMeta, for_each_frame};

use super::{LinkCounters, MAX_FRAME_LEN};

/// Bytes of the length before each frame.
pub(super) const LENGTH_BYTES: usize = 4;

/// Bytes that wait, at most. Holds a whole window of most guests.
const CAPACITY: usize = 512 << 10;

/// Set aside for each frame of [`Room`]: its length field, and padding up to the shortest frame.
const RESERVED_PER_FRAME: usize = 64;

/// A bounded queue of bytes, always contiguous.
#[derive(Debug)]
pub(super) struct Outbox {
    scratch: Vec<u8>,
    buffer: Vec<u8>,
    head: usize,
    tail: usize,
    /// Room has been asked for while there was not much.
    short: bool,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self {
            scratch: vec![0; MAX_FRAME_LEN],
            buffer: vec![0; CAPACITY],
            head: 0,
            tail: 0,
            short: false,
        }
    }

    const fn free(&self) -> usize {
        CAPACITY.saturating_sub(self.tail.saturating_sub(self.head))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// What surely fits, whatever the size of the frames.
    pub(super) fn room(&mut self) -> Room {
        let free = self.free();
        self.short |= free < CAPACITY / 2;
        let frames = free / (2 * RESERVED_PER_FRAME);
        let bytes = free.saturating_sub(frames.saturating_mul(RESERVED_PER_FRAME));
        Room { frames, bytes }
    }

    pub(super) fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        let length = wanted.min(self.scratch.len());
        self.scratch.get_mut(..length)
    }

    pub(super) fn commit(&mut self, length: usize, meta: &TxMeta, counters: &mut LinkCounters) {
        let scratch = core::mem::take(&mut self.scratch);
        for_each_frame(scratch.get(..length).unwrap_or_default(), meta, |pieces| {
            if self.push(&pieces) {
                counters.frames_out += 1;
            } else {
                self.short = true;
                counters.overrun += 1;
            }
        });
        self.scratch = scratch;
    }

    /// Whether the frame fitted.
    fn push(&mut self, pieces: &Pieces<'_>) -> bool {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let needed = length.saturating_add(LENGTH_BYTES);
        if self.free() < needed {
            return false;
        }
        if CAPACITY - self.tail < needed {
            self.buffer.copy_within(self.head..self.tail, 0);
            (self.head, self.tail) = (0, self.tail - self.head);
        }
        let Ok(prefix) = u32::try_from(length) else { return false };
        for piece in [&prefix.to_be_bytes()[..]].iter().chain(pieces) {
            let end = self.tail + piece.len();
            self.buffer[self.tail..end].copy_from_slice(piece);
            self.tail = end;
        }
        true
    }

    /// All that waits.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.head..self.tail]
    }

    /// The frame that waits longest, without its length.
    pub(super) fn first_frame(&self) -> Option<&[u8]> {
        let (prefix, rest) = self.bytes().split_first_chunk()?;
        rest.get(..u32::from_be_bytes(*prefix) as usize)
    }

    /// Forgets the first `count` bytes.
    pub(super) fn advance(&mut self, count: usize) {
        self.head = self.head.saturating_add(count).min(self.tail);
        if self.is_empty() {
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Whether a shortage has ended since this was last asked.
    pub(super) fn shortage_ended(&mut self) -> bool {
        let ended = self.short && self.free() >= CAPACITY / 2;
        self.short &= !ended;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_room_promises_fits_at_any_frame_size() {
        for size in [1, 59, 60, 61, 1514, 65_549] {
            let (mut outbox, mut counters) = (Outbox::new(), LinkCounters::default());
            let room = outbox.room();
            let count = room.frames.min(room.bytes / size);
            for _ in 0..count {
                outbox.commit(size, &TxMeta::default(), &mut counters);
            }
            assert_eq!((counters.frames_out, counters.overrun), (count as u64, 0), "size {size}");
        }
    }

    #[test]
    fn a_frame_without_room_is_counted_and_the_rest_stays_whole() {
        let (mut outbox, mut counters) = (Outbox::new(), LinkCounters::default());
        for _ in 0..9 {
            outbox.commit(MAX_FRAME_LEN, &TxMeta::default(), &mut counters);
        }
        assert_eq!((counters.frames_out, counters.overrun), (7, 2));
        assert_eq!(outbox.bytes().len(), 7 * (MAX_FRAME_LEN + LENGTH_BYTES));
    }

    #[test]
    fn a_shortage_is_reported_once_it_has_ended() {
        let (mut outbox, mut counters) = (Outbox::new(), LinkCounters::default());
        for _ in 0..5 {
            outbox.commit(MAX_FRAME_LEN, &TxMeta::default(), &mut counters);
        }
        assert!(outbox.room().bytes < CAPACITY / 2);
        outbox.advance(1);
        assert!(!outbox.shortage_ended());
        outbox.advance(CAPACITY);
        assert!(outbox.shortage_ended());
        assert!(!outbox.shortage_ended());
    }
}
