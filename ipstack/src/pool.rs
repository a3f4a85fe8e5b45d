//! A bounded pool that parks bytes which a short write left over.
//!
//! Many queues share blocks of [`BLOCK_LEN`] bytes in memory that the caller lends. A queue is a
//! [`Parked`] handle of 16 bytes that lives wherever its owner does; an empty one costs nothing
//! here. Blocks are initialised when they are first used, so a large pool costs nothing unused.
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

/// Size of a block in bytes, with the link to the next one.
pub const BLOCK_LEN: usize = 2048;

/// How many bytes a block parks.
pub const BLOCK_DATA_LEN: usize = BLOCK_LEN - LINK_LEN;

/// Most slices that [`Pool::slices`] returns.
pub const MAX_SLICES: usize = 16;

const LINK_LEN: usize = size_of::<u32>();

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
    /// Bytes parked.
    len: u32,
    /// Bytes of the first block that are no longer parked.
    offset: u16,
}

impl Parked {
    /// Nothing parked.
    pub const EMPTY: Self = Self { head: 0, tail: 0, len: 0, offset: 0 };

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

    /// Bytes still free in the last block.
    const fn tail_room(&self) -> usize {
        let end = (self.offset as usize).saturating_add(self.len as usize);
        match end % BLOCK_DATA_LEN {
            0 => 0,
            used => BLOCK_DATA_LEN - used,
        }
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
        let (mut block, mut offset, mut left) =
            (parked.head, usize::from(parked.offset), parked.len());
        while left > 0 {
            let Some((next, data)) = self.taken_block(block) else { break };
            let Some(data) = data.get(offset..).filter(|data| !data.is_empty()) else { break };
            let data = data.get(..left).unwrap_or(data);
            if slices.push(data).is_err() {
                break;
            }
            (block, offset, left) = (next, 0, left.saturating_sub(data.len()));
        }
        slices
    }

    /// Drops `count` bytes from the front of `parked`, or all if there are fewer.
    pub fn advance(&mut self, parked: &mut Parked, count: usize) {
        let Some(len) = parked.len().checked_sub(count).filter(|len| *len > 0) else {
            return self.release(parked);
        };
        let mut offset = usize::from(parked.offset).saturating_add(count);
        while offset >= BLOCK_DATA_LEN {
            let Some(next) = self.give_back(parked.head) else { break };
            parked.head = next;
            offset = offset.saturating_sub(BLOCK_DATA_LEN);
        }
        match (u32::try_from(len), u16::try_from(offset)) {
            (Ok(len), Ok(offset)) if usize::from(offset) < BLOCK_DATA_LEN => {
                parked.len = len;
                parked.offset = offset;
            }
            // The handle promised more blocks than it has.
            _ => self.release(parked),
        }
    }

    /// Drops all that is parked in `parked`.
    pub fn release(&mut self, parked: &mut Parked) {
        // Ends: each turn frees a block that was not free before.
        while let Some(next) = self.give_back(parked.head) {
            parked.head = next;
        }
        *parked = Parked::EMPTY;
    }

    /// Appends as much of `bytes` as fits, and returns how much that was.
    fn append(&mut self, parked: &mut Parked, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = parked.tail_room();
            if (room == 0 || parked.is_empty()) && self.extend(parked).is_none() {
                break;
            }
            let stored = self.fill_tail(parked, rest);
            let len = u32::try_from(stored).ok().and_then(|stored| parked.len.checked_add(stored));
            let Some(len) = len.filter(|_| stored > 0) else { break };
            parked.len = len;
            rest = rest.get(stored..).unwrap_or_default();
        }
        bytes.len().saturating_sub(rest.len())
    }

    /// Copies to the last block, behind what is parked there.
    fn fill_tail(&mut self, parked: &Parked, bytes: &[u8]) -> usize {
        let room = match parked.tail_room() {
            0 => BLOCK_DATA_LEN,
            room => room,
        };
        match self.block_mut(parked.tail) {
            Some((link, data)) if !is_free(*link) => {
                let free = data.get_mut(BLOCK_DATA_LEN.saturating_sub(room)..).unwrap_or_default();
                copy_front(free, bytes)
            }
            _ => 0,
        }
    }

    /// Adds an empty block to the end of `parked`. `None` if there is none, or the handle lies.
    fn extend(&mut self, parked: &mut Parked) -> Option<()> {
        if parked.is_empty() {
            let block = self.take()?;
            *parked = Parked { head: block, tail: block, ..Parked::EMPTY };
            return Some(());
        }
        // Looked at first: the block taken next may be this very one if it is free.
        self.taken_block(parked.tail)?;
        let block = self.take()?;
        let (link, _) = self.block_mut(parked.tail)?;
        *link = block.to_le_bytes();
        parked.tail = block;
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
        let (link, _) = self.block_mut(block)?;
        let next = u32::from_le_bytes(core::mem::take(link)) & !FREE;
        if recycled {
            self.free = next;
        }
        self.in_use = self.in_use.saturating_add(1);
        Some(block)
    }

    /// Puts a block on the free list and returns the one that followed it, 0 if none. `None` if
    /// there is no such block in use.
    fn give_back(&mut self, block: u32) -> Option<u32> {
        let first_free = self.free;
        let (link, _) = self.block_mut(block).filter(|(link, _)| !is_free(**link))?;
        let next = u32::from_le_bytes(*link);
        *link = (first_free | FREE).to_le_bytes();
        self.free = block;
        self.in_use = self.in_use.saturating_sub(1);
        Some(next)
    }

    /// The block after `block`, and the data of `block`, if it is in use.
    fn taken_block(&self, block: u32) -> Option<(u32, &[u8])> {
        let bytes = self.memory.get(self.start_of(block)?..)?.first_chunk::<BLOCK_LEN>()?;
        let (link, data) = bytes.split_first_chunk()?;
        (!is_free(*link)).then_some((u32::from_le_bytes(*link), data))
    }

    /// Link and data of a block.
    fn block_mut(&mut self, block: u32) -> Option<(&mut [u8; LINK_LEN], &mut [u8])> {
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

/// Whether a block with this link is on the free list.
const fn is_free(link: [u8; LINK_LEN]) -> bool {
    u32::from_le_bytes(link) & FREE != 0
}

#[cfg(test)]
mod tests;
