//! Frames that owe nothing to any flow, waiting for room on the link.

use managed::ManagedSlice;

/// Bytes of length before each frame.
const PREFIX: usize = 2;

/// A queue of whole frames in lent memory. Its memory is used from the front and begins anew
/// whenever the queue is empty, which it is as often as the link has room.
#[derive(Debug)]
pub(crate) struct ReplyQueue<'a> {
    memory: ManagedSlice<'a, u8>,
    head: usize,
    tail: usize,
}

impl<'a> ReplyQueue<'a> {
    pub(crate) const fn new(memory: ManagedSlice<'a, u8>) -> Self {
        Self { memory, head: 0, tail: 0 }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Room for a frame of `length` bytes at the end of the queue, filled with zeros.
    pub(crate) fn push(&mut self, length: usize) -> Option<&mut [u8]> {
        let prefix = u16::try_from(length).ok()?;
        let end = self.tail.checked_add(PREFIX)?.checked_add(length)?;
        let (before, frame) =
            self.memory.get_mut(self.tail..end)?.split_first_chunk_mut::<PREFIX>()?;
        *before = prefix.to_ne_bytes();
        self.tail = end;
        frame.fill(0);
        Some(frame)
    }

    /// The frame at the front.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        let rest = self.memory.get(self.head..self.tail)?;
        let (prefix, rest) = rest.split_first_chunk::<PREFIX>()?;
        rest.get(..usize::from(u16::from_ne_bytes(*prefix)))
    }

    /// Drops the frame at the front.
    pub(crate) fn pop(&mut self) {
        let length = self.first().map_or(0, <[u8]>::len);
        self.head = self.head.saturating_add(PREFIX).saturating_add(length);
        if self.head >= self.tail {
            self.head = 0;
            self.tail = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Frames of the given lengths are pushed, a length of 0 stands for a pop. What is refused
        /// leaves the others alone, and an empty queue takes whatever fits its memory.
        #[test]
        fn it_is_a_queue(lengths in prop::collection::vec(0usize..40, 1..60)) {
            let mut memory = [0xff; 100];
            let mut queue = ReplyQueue::new(ManagedSlice::Borrowed(&mut memory));
            let mut model: VecDeque<Vec<u8>> = VecDeque::new();
            for (number, length) in (1u8..).zip(lengths) {
                if length == 0 {
                    queue.pop();
                    model.pop_front();
                } else if let Some(frame) = queue.push(length) {
                    prop_assert!(frame.iter().all(|byte| *byte == 0), "bytes of another frame");
                    frame.fill(number);
                    model.push_back(vec![number; length]);
                } else {
                    prop_assert!(!model.is_empty());
                }
                prop_assert_eq!(queue.first(), model.front().map(Vec::as_slice));
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn frames_come_out_in_order_and_a_full_queue_refuses() {
        let mut memory = [0; 20];
        let mut queue = ReplyQueue::new(ManagedSlice::Borrowed(&mut memory));
        queue.push(5).unwrap().copy_from_slice(b"first");
        queue.push(6).unwrap().copy_from_slice(b"second");
        assert!(queue.push(4).is_none(), "only three bytes are left for a frame");
        assert_eq!(queue.first(), Some(&b"first"[..]));
        queue.pop();
        assert_eq!(queue.first(), Some(&b"second"[..]));
        queue.pop();
        assert!(queue.is_empty());
        assert!(queue.push(18).is_some(), "an empty queue has all its memory again");
    }
}
