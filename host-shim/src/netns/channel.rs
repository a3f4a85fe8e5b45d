//! What the program and its helper process say to each other: one socket pair, one message a
//! packet, and the tap's descriptor beside one of them (unix(7), SCM_RIGHTS).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use host_shim::link::tap::TapLink;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};

use super::Error;

/// Longest message, in bytes; a longer text is cut.
const MESSAGE_LEN: usize = 1024;

/// What the helper process says.
#[derive(Debug)]
pub(crate) enum Report {
    /// It has a user namespace of its own that waits for its maps.
    UserNamespace,
    /// The tap is ready.
    Tap(Tap),
    /// Something failed, and it has ended; the line says what.
    Failed(String),
}

/// A tap that the helper passed.
#[derive(Debug)]
pub(crate) struct Tap {
    /// The tap's descriptor.
    pub(crate) fd: OwnedFd,
    /// Largest IP packet of the interface, in bytes.
    pub(crate) mtu: u16,
    /// Frames that it queues.
    pub(crate) queue_frames: u16,
}

impl Tap {
    /// The tap as a link.
    ///
    /// # Errors
    /// What `fcntl` reports.
    pub(crate) fn into_link(self) -> Result<TapLink, Error> {
        TapLink::new(self.fd, self.queue_frames.into())
            .map_err(|cause| Error::new("cannot use the tap", cause))
    }
}

/// One end of the conversation.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

impl Channel {
    /// Both ends.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub(crate) fn pair() -> Result<(Self, Self), Error> {
        let flags = SockFlag::SOCK_CLOEXEC;
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
            .map(|(ours, theirs)| (Self(ours), Self(theirs)))
            .map_err(|errno| Error::new("cannot make a socket pair", errno))
    }

    /// Sends a report.
    ///
    /// # Errors
    /// If the other end is gone.
    pub(crate) fn report(&self, report: &Report) -> io::Result<()> {
        match report {
            Report::UserNamespace => self.send(b"U", None),
            Report::Tap(tap) => {
                let mut message = vec![b'T'];
                message.extend(tap.mtu.to_ne_bytes());
                message.extend(tap.queue_frames.to_ne_bytes());
                self.send(&message, Some(tap.fd.as_raw_fd()))
            }
            Report::Failed(line) => {
                let mut message = vec![b'E'];
                message.extend(line.bytes().take(MESSAGE_LEN - 1));
                self.send(&message, None)
            }
        }
    }

    /// Waits for the next report.
    ///
    /// # Errors
    /// If the helper ended without a word.
    pub(crate) fn next_report(&self) -> Result<Report, Error> {
        let lost = |cause: io::Error| Error::new("the helper process ended unexpectedly", cause);
        let (message, fd) = self.receive().map_err(lost)?;
        match (message.split_first(), fd) {
            (Some((b'U', [])), None) => Ok(Report::UserNamespace),
            (Some((b'T', &[mtu_0, mtu_1, queue_0, queue_1])), Some(fd)) => Ok(Report::Tap(Tap {
                fd,
                mtu: u16::from_ne_bytes([mtu_0, mtu_1]),
                queue_frames: u16::from_ne_bytes([queue_0, queue_1]),
            })),
            (Some((b'E', line)), None) => {
                Ok(Report::Failed(String::from_utf8_lossy(line).into_owned()))
            }
            _ => Err(lost(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Tells the other end to go on.
    ///
    /// # Errors
    /// If the other end is gone.
    pub(crate) fn proceed(&self) -> io::Result<()> {
        self.send(b"G", None)
    }

    /// Waits until the other end says to go on.
    ///
    /// # Errors
    /// If the other end is gone instead.
    pub(crate) fn wait(&self) -> io::Result<()> {
        match self.receive()? {
            (message, None) if message == b"G" => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn send(&self, message: &[u8], fd: Option<RawFd>) -> io::Result<()> {
        let fds: Vec<RawFd> = fd.into_iter().collect();
        let rights = [ControlMessage::ScmRights(&fds)];
        let control = if fds.is_empty() { &[][..] } else { &rights[..] };
        let flags = MsgFlags::MSG_NOSIGNAL;
        let data = [IoSlice::new(message)];
        sendmsg::<()>(self.0.as_raw_fd(), &data, control, flags, None)?;
        Ok(())
    }

    fn receive(&self) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
        let mut message = vec![0; MESSAGE_LEN];
        let mut control = nix::cmsg_space!(RawFd);
        let (len, fd) = loop {
            let mut data = [IoSliceMut::new(&mut message)];
            let flags = MsgFlags::MSG_CMSG_CLOEXEC;
            match recvmsg::<()>(self.0.as_raw_fd(), &mut data, Some(&mut control), flags) {
                Ok(received) => break (received.bytes, passed_fd(received.cmsgs()?)),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        };
        message.truncate(len);
        Ok((message, fd))
    }
}

/// The descriptor among `messages`.
fn passed_fd(messages: impl Iterator<Item = ControlMessageOwned>) -> Option<OwnedFd> {
    messages
        .filter_map(|message| match message {
            ControlMessageOwned::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
        .last()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    #[test]
    fn a_tap_report_carries_the_descriptor_itself() {
        let (ours, theirs) = Channel::pair().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let tap = Tap { fd: reader.into(), mtu: 65520, queue_frames: 4096 };
        theirs.report(&Report::Tap(tap)).unwrap();
        drop(writer);
        let Report::Tap(tap) = ours.next_report().unwrap() else { panic!("another report") };
        assert_eq!((tap.mtu, tap.queue_frames), (65520, 4096));
        assert_eq!(File::from(tap.fd).read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn reports_keep_their_borders() {
        let (ours, theirs) = Channel::pair().unwrap();
        theirs.report(&Report::UserNamespace).unwrap();
        theirs.report(&Report::Failed("no tap".into())).unwrap();
        assert!(matches!(ours.next_report(), Ok(Report::UserNamespace)));
        assert!(matches!(ours.next_report(), Ok(Report::Failed(line)) if line == "no tap"));
    }

    #[test]
    fn an_end_that_is_gone_is_an_error_both_ways() {
        let (ours, theirs) = Channel::pair().unwrap();
        drop(theirs);
        assert!(ours.next_report().is_err());
        assert!(ours.wait().is_err());
        assert!(ours.proceed().is_err());
    }
}
