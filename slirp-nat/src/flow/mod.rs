//! One guest flow and its host socket.

/// One flow.
#[derive(Clone, Copy, Debug)]
pub struct Flow {}

impl Flow {
    /// An unused slot.
    pub const EMPTY: Self = Self {};
}

/// One permitted UDP remote.
#[derive(Clone, Copy, Debug)]
pub struct Permit {}

impl Permit {
    /// An unused entry.
    pub const EMPTY: Self = Self {};
}
