//! A bounded pool that parks bytes which a short write left over, or which came out of order.
//!
//! Many queues share blocks of [`BLOCK_LEN`] bytes in memory that the caller lends. A queue is a
//! [`Parked`] handle of 16 bytes that lives wherever its owner does; an empty one costs nothing
//! here. Blocks are initialised when they are first used, so a large pool costs nothing unused.
//! Each block knows which of its bytes are parked, so that two queues are joined without a copy.
//!
//! A handle belongs to one pool and is worth what its blocks are worth: a copy of it that is used
//! after the original moved on, or one restored from somewhere hostile, gives wrong bytes or fewer
//! of them, and may spoil other queues. It never panics or loops, and no block is freed twice.
//!
//! ```
//! use ipstack::pool::{BLOCK_LEN, Parked, Pool};
//!
//! let mut memory = [0; 4 * BLOCK_LEN];
//! let mut pool = Pool::new(&mut memory[..]);
//! let mut rest = Parked::EMPTY;
//!
//! // The host took 3 of these 10 bytes.
//! assert_eq!(pool.park(&mut rest, &[b"hello", b"world"], 3), 7);
//! assert_eq!(pool.slices(&rest), [b"loworld"]);
//!
//! // Later it takes 5 more.
//! pool.advance(&mut rest, 5);
//! assert_eq!(pool.slices(&rest), [b"ld"]);
//! pool.release(&mut rest);
//! assert_eq!((rest, pool.in_use()), (Parked::EMPTY, 0));
//! ```

use heapless::Vec;
use managed::ManagedSlice;

use crate::bytes::copy_front;

/// Size of a block in bytes, with its head.
pub const BLOCK_LEN: usize = 2048;

/// How many bytes a block parks.
pub const BLOCK_DATA_LEN: usize = BLOCK_LEN - HEAD_LEN;

/// Most slices that [`Pool::slices`] returns.
pub const MAX_SLICES: usize = 16;

/// Link to the next block, and where the parked bytes of this one begin and end.
const HEAD_LEN: usize = size_of::<u32>() + 2 * size_of::<u16>();

/// So many that the length of any queue fits its 32 bits, and block numbers stay clear of [`FREE`].
const MAX_BLOCKS: u32 = u32::MAX >> BLOCK_LEN.ilog2();

/// Set in the link of a block that is on the free list.
const FREE: u32 = 1 << 31;

/// One queue of parked bytes: plain data, all zero when empty.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Parked {
    /// First and last block, counted from 1; 0 for none.
    head: u32,
    tail: u32,
    /// Bytes parked, and the blocks they take.
    len: u32,
    blocks: u32,
}

impl Parked {
    /// Nothing parked.
    pub const EMPTY: Self = Self { head: 0, tail: 0, len: 0, blocks: 0 };

    /// Bytes parked.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nothing is parked.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many blocks they take.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks as usize
    }
}

/// What a block begins with.
#[derive(Clone, Copy)]
struct Head {
    /// The next block, counted from 1, or 0; with [`FREE`] if this one is on the free list.
    link: u32,
    start: u16,
    end: u16,
}

impl Head {
    const EMPTY: Self = Self { link: 0, start: 0, end: 0 };

    fn read(bytes: [u8; HEAD_LEN]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self {
            link: u32::from_le_bytes([a, b, c, d]),
            start: u16::from_le_bytes([e, f]),
            end: u16::from_le_bytes([g, h]),
        }
    }

    fn bytes(self) -> [u8; HEAD_LEN] {
        let ([a, b, c, d], [e, f], [g, h]) =
            (self.link.to_le_bytes(), self.start.to_le_bytes(), self.end.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }

    const fn is_free(self) -> bool {
        self.link & FREE != 0
    }

    /// The part of a block's data that is parked.
    fn parked(self, data: &[u8]) -> &[u8] {
        data.get(usize::from(self.start)..usize::from(self.end)).unwrap_or_default()
    }
}

/// Blocks for parked bytes, in memory that the caller lends.
#[derive(Debug)]
pub struct Pool<'a> {
    memory: ManagedSlice<'a, u8>,
    /// Number of blocks in `memory`.
    blocks: u32,
    /// Blocks that were ever used; those after them are not initialised.
    touched: u32,
    /// First block of the free list, counted from 1; 0 for none.
    free: u32,
    in_use: u32,
}

impl<'a> Pool<'a> {
    /// A pool of as many whole blocks as `memory` holds, up to 4 GiB; none is allowed. What the
    /// memory contains does not matter.
    pub fn new(memory: impl Into<ManagedSlice<'a, u8>>) -> Self {
        let memory = memory.into();
        let blocks = u32::try_from(memory.len() / BLOCK_LEN).unwrap_or(u32::MAX).min(MAX_BLOCKS);
        Self { memory, blocks, touched: 0, free: 0, in_use: 0 }
    }

    /// Bytes that a queue can certainly park now. Queues share them.
    #[must_use]
    pub const fn room(&self) -> usize {
        (self.blocks.saturating_sub(self.in_use) as usize).saturating_mul(BLOCK_DATA_LEN)
    }

    /// Blocks in all.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks as usize
    }

    /// Blocks that hold parked bytes.
    #[must_use]
    pub const fn in_use(&self) -> usize {
        self.in_use as usize
    }

    /// Appends to `parked` what follows the first `skip` bytes of the concatenation of `parts`, and
    /// returns how many bytes were taken: all of them unless the pool is full.
    pub fn park(&mut self, parked: &mut Parked, parts: &[&[u8]], skip: usize) -> usize {
        let (mut taken, mut skip) = (0_usize, skip);
        for part in parts {
            let rest = part.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(part.len());
            let stored = self.append(parked, rest);
            taken = taken.saturating_add(stored);
            if stored < rest.len() {
                break;
            }
        }
        taken
    }

    /// The parked bytes from the front, as slices for one gathered write: all of them, or as many
    /// as [`MAX_SLICES`] blocks hold.
    #[must_use]
    pub fn slices(&self, parked: &Parked) -> Vec<&[u8], MAX_SLICES> {
        let mut slices = Vec::new();
        let (mut block, mut left) = (parked.head, parked.len());
        while left > 0 {
            let Some((head, data)) = self.taken_block(block) else { break };
            let data = head.parked(data);
            let data = data.get(..left).unwrap_or(data);
            if data.is_empty() || slices.push(data).is_err() {
                break;
            }
            (block, left) = (head.link, left.saturating_sub(data.len()));
        }
        slices
    }

    /// Drops `count` bytes from the front of `parked`, or all if there are fewer.
    pub fn advance(&mut self, parked: &mut Parked, count: usize) {
        let Some(len) = parked.len().checked_sub(count).filter(|len| *len > 0) else {
            return self.release(parked);
        };
        let mut rest = count;
        while let Some((head, data)) = self.taken_block(parked.head) {
            let here = head.parked(data).len();
            if rest < here {
                let start = u16::try_from(usize::from(head.start).saturating_add(rest));
                let start = start.unwrap_or(head.end);
                self.set_head(parked.head, Head { start, ..head });
                parked.len = u32::try_from(len).unwrap_or(u32::MAX);
                return;
            }
            rest = rest.saturating_sub(here);
            self.drop_first(parked);
        }
        // The handle promised more blocks than it has.
        self.release(parked);
    }

    /// Drops all that is parked in `parked`.
    pub fn release(&mut self, parked: &mut Parked) {
        // Ends: each turn frees a block that was not free before.
        while self.drop_first(parked).is_some() {}
        *parked = Parked::EMPTY;
    }

    /// Appends all that is parked in `rest`, which is empty then, to `parked`.
    pub fn join(&mut self, parked: &mut Parked, rest: &mut Parked) {
        let joined = if parked.is_empty() {
            Some(*rest)
        } else if rest.is_empty() {
            Some(*parked)
        } else {
            self.joined(*parked, *rest)
        };
        match joined {
            Some(joined) => *parked = joined,
            None => self.release(rest),
        }
        *rest = Parked::EMPTY;
    }

    /// `None` if a handle lies.
    fn joined(&mut self, front: Parked, rest: Parked) -> Option<Parked> {
        let len = front.len.checked_add(rest.len)?;
        let (head, _) = self.taken_block(front.tail)?;
        self.taken_block(rest.head)?;
        self.set_head(front.tail, Head { link: rest.head, ..head });
        let blocks = front.blocks.saturating_add(rest.blocks);
        Some(Parked { head: front.head, tail: rest.tail, len, blocks })
    }

    /// Appends as much of `bytes` as fits, and returns how much that was.
    fn append(&mut self, parked: &mut Parked, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut stored = if parked.is_empty() { 0 } else { self.fill_tail(parked, rest) };
            if stored == 0 && self.extend(parked).is_some() {
                stored = self.fill_tail(parked, rest);
            }
            let len = u32::try_from(stored).ok().and_then(|stored| parked.len.checked_add(stored));
            let Some(len) = len.filter(|_| stored > 0) else { break };
            parked.len = len;
            rest = rest.get(stored..).unwrap_or_default();
        }
        bytes.len().saturating_sub(rest.len())
    }

    /// Copies to the last block, behind what is parked there.
    fn fill_tail(&mut self, parked: &Parked, bytes: &[u8]) -> usize {
        let Some((head, data)) = self.block_mut(parked.tail) else { return 0 };
        let state = Head::read(*head);
        if state.is_free() {
            return 0;
        }
        let free = data.get_mut(usize::from(state.end)..).unwrap_or_default();
        let stored = copy_front(free, bytes);
        let end = usize::from(state.end).saturating_add(stored);
        *head = Head { end: u16::try_from(end).unwrap_or(state.end), ..state }.bytes();
        stored
    }

    /// Adds an empty block to the end of `parked`. `None` if there is none, or the handle lies.
    fn extend(&mut self, parked: &mut Parked) -> Option<()> {
        if parked.is_empty() {
            let block = self.take()?;
            *parked = Parked { head: block, tail: block, len: 0, blocks: 1 };
            return Some(());
        }
        // Looked at first: the block taken next may be this very one if it is free.
        let (head, _) = self.taken_block(parked.tail)?;
        let block = self.take()?;
        self.set_head(parked.tail, Head { link: block, ..head });
        parked.tail = block;
        parked.blocks = parked.blocks.saturating_add(1);
        Some(())
    }

    /// Takes a block off the free list, or one never used.
    fn take(&mut self) -> Option<u32> {
        let block = if self.free != 0 {
            self.free
        } else if self.touched < self.blocks {
            self.touched = self.touched.wrapping_add(1);
            self.touched
        } else {
            return None;
        };
        let recycled = self.free != 0;
        let (head, _) = self.block_mut(block)?;
        let next = Head::read(*head).link & !FREE;
        *head = Head::EMPTY.bytes();
        if recycled {
            self.free = next;
        }
        self.in_use = self.in_use.saturating_add(1);
        Some(block)
    }

    /// Puts the first block of `parked` on the free list; what it held is still counted. `None` if
    /// there is no such block in use.
    fn drop_first(&mut self, parked: &mut Parked) -> Option<()> {
        let (head, _) = self.taken_block(parked.head)?;
        self.set_head(parked.head, Head { link: self.free | FREE, ..Head::EMPTY });
        self.free = parked.head;
        self.in_use = self.in_use.saturating_sub(1);
        parked.head = head.link;
        parked.blocks = parked.blocks.saturating_sub(1);
        Some(())
    }

    /// Head and data of a block that is in use.
    fn taken_block(&self, block: u32) -> Option<(Head, &[u8])> {
        let bytes = self.memory.get(self.start_of(block)?..)?.first_chunk::<BLOCK_LEN>()?;
        let (head, data) = bytes.split_first_chunk()?;
        let head = Head::read(*head);
        (!head.is_free()).then_some((head, data))
    }

    fn set_head(&mut self, block: u32, head: Head) {
        if let Some((bytes, _)) = self.block_mut(block) {
            *bytes = head.bytes();
        }
    }

    /// Head and data of a block.
    fn block_mut(&mut self, block: u32) -> Option<(&mut [u8; HEAD_LEN], &mut [u8])> {
        let start = self.start_of(block)?;
        self.memory.get_mut(start..)?.first_chunk_mut::<BLOCK_LEN>()?.split_first_chunk_mut()
    }

    /// Where a block that was ever used begins.
    fn start_of(&self, block: u32) -> Option<usize> {
        if block > self.touched {
            return None;
        }
        usize::try_from(block).ok()?.checked_sub(1)?.checked_mul(BLOCK_LEN)
    }
}

#[cfg(test)]
mod tests;
