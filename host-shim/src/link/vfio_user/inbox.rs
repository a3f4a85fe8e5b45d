//! Bytes and descriptors from the client, cut into messages.

use core::mem::MaybeUninit;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::wire::{HEADER_LEN, Header, MAX_MESSAGE_LEN};
use crate::link::LinkError;

/// Descriptors held for messages that have not been served, at most. More are closed as they come.
pub(super) const MAX_FDS: usize = 8;

/// Bytes read at a time, at most.
const CAPACITY: usize = 4 * MAX_MESSAGE_LEN;

/// A message from the client.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) header: Header,
    /// What comes behind the header.
    pub(super) payload: &'a [u8],
    /// Descriptors that came with it; those that nobody wants close by themselves.
    pub(super) fds: Vec<OwnedFd>,
}

/// What has been read and not been served.
#[derive(Debug)]
pub(super) struct Inbox {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Each descriptor with the [`Self::end`] after the read that it came by. The kernel ends a
    /// read behind the bytes that were sent with descriptors, so it belongs to the message in which
    /// that read ended.
    fds: Vec<(usize, OwnedFd)>,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; CAPACITY].into(), start: 0, end: 0, fds: Vec::new() }
    }

    /// Whether [`Inbox::next`] has something to tell.
    pub(super) fn has_message(&self) -> bool {
        let unread = self.unread();
        let header = unread.first_chunk().map(Header::parse);
        // A length that no message has is told, too.
        header
            .is_some_and(|header| header.message_len().is_none_or(|length| unread.len() >= length))
    }

    /// Descriptors that belong to messages not served yet.
    #[cfg(test)]
    pub(super) const fn held_fds(&self) -> usize {
        self.fds.len()
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// The next message, once all of it has come.
    ///
    /// # Errors
    /// The client does not speak the protocol, so where the next message begins is unknown.
    pub(super) fn next(&mut self) -> Result<Option<Message<'_>>, LinkError> {
        let Self { buffer, start, end, fds } = self;
        let unread = buffer.get(*start..*end).unwrap_or_default();
        let Some((header, _)) = unread.split_first_chunk() else { return Ok(None) };
        let header = Header::parse(header);
        let Some(length) = header.message_len() else {
            return Err(LinkError::Protocol(
                "a message that is shorter than its header, or too long",
            ));
        };
        let Some(message) = unread.get(..length) else { return Ok(None) };
        if !header.is_command() {
            return Err(LinkError::Protocol("a reply to no command"));
        }
        *start += length;
        let mine = |fd: &mut (usize, OwnedFd)| fd.0 <= *start;
        let fds = fds.extract_if(.., mine).map(|(_, fd)| fd).collect();
        Ok(Some(Message { header, payload: message.get(HEADER_LEN..).unwrap_or_default(), fds }))
    }

    /// Reads what is there, as far as it fits. Returns false if nothing was.
    ///
    /// # Errors
    /// The client has gone, or the socket failed.
    pub(super) fn read(&mut self, socket: impl AsFd) -> Result<bool, LinkError> {
        self.make_room();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        let mut free = [IoSliceMut::new(free)];
        match recvmsg(socket, &mut free, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.bytes == 0 => return Err(LinkError::Closed),
            Ok(received) => self.end += received.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(Errno::CONNRESET) => return Err(LinkError::Closed),
            Err(error) => return Err(error.into()),
        }
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        for fd in rights.flatten() {
            if self.fds.len() < MAX_FDS {
                self.fds.push((self.end, fd));
            }
        }
        Ok(true)
    }

    /// Moves what is left to the front. Less than a message is left, or more than one message fits
    /// behind it.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        for (end, _) in &mut self.fds {
            *end = end.saturating_sub(self.start);
        }
        (self.start, self.end) = (0, self.end - self.start);
    }
}
