//! Copying between slices of different lengths without a panic path.

/// Copies as much of `from` to the front of `to` as fits, and returns how much that was.
pub(crate) fn copy_front(to: &mut [u8], from: &[u8]) -> usize {
    let len = to.len().min(from.len());
    if let (Some((to, _)), Some((from, _))) =
        (to.split_at_mut_checked(len), from.split_at_checked(len))
    {
        to.copy_from_slice(from);
    }
    len
}
