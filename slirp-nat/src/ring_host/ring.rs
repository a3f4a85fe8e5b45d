//! Ring arithmetic over memory that somebody else holds.

/// Where the bytes of a ring lie in its memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    capacity: usize,
    /// Index of the first byte, less than `capacity`.
    head: usize,
    len: usize,
}

impl Ring {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, head: 0, len: 0 }
    }

    /// Bytes held.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn free_len(&self) -> usize {
        self.capacity.saturating_sub(self.len)
    }

    pub(super) const fn is_full(&self) -> bool {
        self.free_len() == 0
    }

    /// The index in memory that lies `offset` bytes beyond the first byte; `offset` is at most
    /// the capacity.
    const fn wrap(&self, offset: usize) -> usize {
        let index = self.head.wrapping_add(offset);
        if index >= self.capacity { index.wrapping_sub(self.capacity) } else { index }
    }

    /// The first contiguous piece of free space.
    pub(super) fn free_mut<'m>(&self, memory: &'m mut [u8]) -> &'m mut [u8] {
        let start = self.wrap(self.len);
        let end = start.saturating_add(self.free_len()).min(self.capacity);
        memory.get_mut(start..end).unwrap_or_default()
    }

    /// `count` bytes were written to [`Ring::free_mut`].
    pub(super) fn produced(&mut self, count: usize) {
        self.len = self.len.saturating_add(count).min(self.capacity);
    }

    /// Forgets the first `count` bytes.
    pub(super) fn consumed(&mut self, count: usize) {
        let count = count.min(self.len);
        self.head = self.wrap(count);
        self.len = self.len.saturating_sub(count);
    }

    /// Copies the bytes from `offset` on into `buffer` and returns how many there were.
    pub(super) fn copy_out(&self, memory: &[u8], offset: usize, buffer: &mut [u8]) -> usize {
        let count = self.len.saturating_sub(offset).min(buffer.len());
        let start = self.wrap(offset.min(self.len));
        let first_len = count.min(self.capacity.saturating_sub(start));
        let first = memory.get(start..start.saturating_add(first_len)).unwrap_or_default();
        let rest = memory.get(..count.saturating_sub(first_len)).unwrap_or_default();
        let (head, tail) = buffer.split_at_mut_checked(first_len).unwrap_or_default();
        copy(head, first);
        copy(tail, rest);
        count
    }
}

/// Copies as many bytes as both sides have.
fn copy(to: &mut [u8], from: &[u8]) {
    let len = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
}
