//! The DHCP server.

/// One lease.
#[derive(Clone, Copy, Debug)]
pub struct Lease {}

impl Lease {
    /// An unused entry.
    pub const EMPTY: Self = Self {};
}
