//! The bytes that go either way, known to both ends by their place in the stream.

/// Bytes from the guest.
pub const UPLOAD_LEN: u32 = 1 << 20;

/// Bytes for the guest, but for the receipt.
pub const DOWNLOAD_LEN: u32 = 1 << 20;

/// Bytes of the receipt, which the server sends behind the download once the guest has ended its
/// stream: how many bytes of the upload were right, the high byte first.
pub const RECEIPT_LEN: u32 = 4;

/// The byte at `place` of the download.
#[must_use]
pub const fn download(place: u32) -> u8 {
    let [.., high] = place.wrapping_mul(0x9e37_79b1).to_le_bytes();
    high
}

/// The byte at `place` of the upload.
#[must_use]
pub const fn upload(place: u32) -> u8 {
    !download(place)
}

/// The byte at `place` of the download with the receipt behind it, if `right` bytes of the upload
/// were right.
#[must_use]
pub const fn download_and_receipt(place: u32, right: u32) -> u8 {
    match place.checked_sub(DOWNLOAD_LEN) {
        None => download(place),
        Some(index) => right.rotate_left(index.wrapping_add(1).wrapping_mul(8)).to_le_bytes()[0],
    }
}

/// A stream on its way in: how far it was right.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    pattern: fn(u32) -> u8,
    right: u32,
    is_wrong: bool,
}

impl Check {
    /// A stream that has not begun.
    #[must_use]
    pub const fn new(pattern: fn(u32) -> u8) -> Self {
        Self { pattern, right: 0, is_wrong: false }
    }

    /// Takes the next bytes of the stream. Nothing behind a wrong byte is right.
    pub fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.is_wrong |= *byte != (self.pattern)(self.right);
            self.right += u32::from(!self.is_wrong);
        }
    }

    /// How many bytes were right.
    #[must_use]
    pub const fn right(&self) -> u32 {
        self.right
    }

    /// Whether a byte was wrong.
    #[must_use]
    pub const fn is_wrong(&self) -> bool {
        self.is_wrong
    }
}

/// Fills as much of `buffer` as the stream has from `place` up to `end`, moves `place` there, and
/// says how many bytes that were.
pub fn fill(buffer: &mut [u8], place: &mut u32, end: u32, pattern: impl Fn(u32) -> u8) -> usize {
    let mut count = 0;
    for to in buffer {
        if *place >= end {
            break;
        }
        *to = pattern(*place);
        *place += 1;
        count += 1;
    }
    count
}
