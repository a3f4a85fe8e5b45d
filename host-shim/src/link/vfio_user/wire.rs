//! Messages as they are on the socket: a header, then fields in the byte order of the host
//! (vfio-user specification, "Header" and "Message sizes").

use rustix::io::Errno;

/// Bytes of the header before each message.
pub(super) const HEADER_LEN: usize = 16;

/// The longest message taken, with its header. The longest that a client needs is VERSION, whose
/// capabilities are a few hundred bytes of JSON.
pub(super) const MAX_MESSAGE_LEN: usize = 4096;

/// Most data in one access to a region: what fits behind the header and the fields of the access.
pub(super) const MAX_TRANSFER_LEN: usize = MAX_MESSAGE_LEN - HEADER_LEN - 16;

/// What a client may ask for. What is not here is refused: DMA the other way, which the card has
/// not; descriptors to access regions by, since the card has none; REGION_WRITE_MULTI, which is
/// not offered, since QEMU waits for each write to a port anyway.
pub(super) mod command {
    pub(crate) const VERSION: u16 = 1;
    pub(crate) const DMA_MAP: u16 = 2;
    pub(crate) const DMA_UNMAP: u16 = 3;
    pub(crate) const DEVICE_GET_INFO: u16 = 4;
    pub(crate) const DEVICE_GET_REGION_INFO: u16 = 5;
    pub(crate) const DEVICE_GET_IRQ_INFO: u16 = 7;
    pub(crate) const DEVICE_SET_IRQS: u16 = 8;
    pub(crate) const REGION_READ: u16 = 9;
    pub(crate) const REGION_WRITE: u16 = 10;
    pub(crate) const DEVICE_RESET: u16 = 13;
}

const TYPE_MASK: u32 = 0x0F;
const TYPE_COMMAND: u32 = 0;
const TYPE_REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// The header of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// The client's number for the message, returned in the reply.
    id: u16,
    /// One of [`command`], or another.
    pub(super) command: u16,
    /// Bytes of the message, with this header.
    size: u32,
    flags: u32,
}

impl Header {
    pub(super) fn parse(bytes: &[u8; HEADER_LEN]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *bytes;
        Self {
            id: u16::from_ne_bytes([a, b]),
            command: u16::from_ne_bytes([c, d]),
            size: u32::from_ne_bytes([e, f, g, h]),
            flags: u32::from_ne_bytes([i, j, k, l]),
        }
    }

    /// Bytes of the message, if a message may have so many.
    pub(super) fn message_len(&self) -> Option<usize> {
        let length = self.size as usize;
        (HEADER_LEN..=MAX_MESSAGE_LEN).contains(&length).then_some(length)
    }

    /// Whether it is no reply: the server asks for nothing.
    pub(super) const fn is_command(&self) -> bool {
        self.flags & TYPE_MASK == TYPE_COMMAND
    }
}

/// The fields of a message, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Errno::INVAL)?;
        self.0 = rest;
        Ok(*field)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Errno> {
        self.take().map(u16::from_ne_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Errno> {
        self.take().map(u32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Errno> {
        self.take().map(u64::from_ne_bytes)
    }

    /// What comes behind the fields.
    pub(super) const fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Replies that wait for the socket.
#[derive(Debug, Default)]
pub(super) struct Replies {
    buffer: Vec<u8>,
}

impl Replies {
    /// Replies that wait, in bytes, before no more requests are served. A client that waits for
    /// its replies, as QEMU does, never comes near it.
    const LIMIT: usize = 16 << 10;

    /// Whether requests have to wait until the client has read some replies.
    pub(super) const fn is_full(&self) -> bool {
        self.buffer.len() >= Self::LIMIT
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Forgets the first `count` bytes.
    pub(super) fn advance(&mut self, count: usize) {
        self.buffer.drain(..count.min(self.buffer.len()));
    }

    /// Replies to `request` by what `fill` appends or, if it fails, by its error and nothing else,
    /// unless the client wants no reply.
    pub(super) fn answer(
        &mut self,
        request: &Header,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), Errno>,
    ) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER_LEN]);
        let outcome = fill(&mut self.buffer);
        if request.flags & NO_REPLY != 0 {
            return self.buffer.truncate(start);
        }
        let mut flags = TYPE_REPLY;
        let mut error = 0;
        if let Err(errno) = outcome {
            self.buffer.truncate(start.saturating_add(HEADER_LEN));
            flags |= ERROR;
            error = errno.raw_os_error().unsigned_abs();
        }
        let size = u32::try_from(self.buffer.len().saturating_sub(start)).unwrap_or(u32::MAX);
        let header = [
            &request.id.to_ne_bytes()[..],
            &request.command.to_ne_bytes(),
            &size.to_ne_bytes(),
            &flags.to_ne_bytes(),
            &error.to_ne_bytes(),
        ];
        let header = header.into_iter().flatten();
        self.buffer.iter_mut().skip(start).zip(header).for_each(|(to, from)| *to = *from);
    }
}
