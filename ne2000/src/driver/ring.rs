//! Pages of the receive ring.

/// The ring from `start` on, before `stop`; never empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub(super) start: u8,
    pub(super) stop: u8,
}

impl Ring {
    pub(super) const fn pages(self) -> u8 {
        self.stop.wrapping_sub(self.start)
    }

    /// The page before `page`.
    pub(super) const fn before(self, page: u8) -> u8 {
        if page == self.start { self.stop.wrapping_sub(1) } else { page.wrapping_sub(1) }
    }

    /// The page `count` pages behind `page`; `count` is less than all.
    pub(super) const fn after(self, page: u8, count: u8) -> u8 {
        let left = self.stop.wrapping_sub(page);
        if count < left {
            page.wrapping_add(count)
        } else {
            self.start.wrapping_add(count.wrapping_sub(left))
        }
    }

    /// Pages from `from` to `to`.
    pub(super) const fn distance(self, from: u8, to: u8) -> u8 {
        let ahead = to.wrapping_sub(from);
        if to < from { ahead.wrapping_add(self.pages()) } else { ahead }
    }
}
