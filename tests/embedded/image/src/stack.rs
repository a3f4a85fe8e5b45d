//! How much of the stack was ever used: it begins as zeros.

unsafe extern "C" {
    /// The lowest byte of the stack, in `boot.s`.
    #[link_name = "stack_bottom"]
    static BOTTOM: [u8; LEN];
}

/// Its bytes.
pub(crate) const LEN: usize = 32 * 1024;

/// Bytes from the top down to the lowest one that is not zero.
pub(crate) fn used() -> usize {
    let bottom = &raw const BOTTOM;
    let is_unused = |offset: &usize| {
        // SAFETY: within the stack, which is there for ever. Volatile, since the part in use
        // changes under way; no reference is made to any of it.
        unsafe { bottom.cast::<u8>().add(*offset).read_volatile() == 0 }
    };
    LEN - (0..LEN).take_while(is_unused).count()
}
