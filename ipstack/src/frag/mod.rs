//! The IPv4 fragment queue (RFC 791, RFC 815) and the resumable fragmenter.

/// One datagram in reassembly.
#[derive(Clone, Copy, Debug)]
pub struct FragmentSlot {}

impl FragmentSlot {
    /// An unused slot.
    pub const EMPTY: Self = Self {};
}
