//! A vfio-user client that takes the place of QEMU: it speaks the protocol, and takes interrupts
//! the way QEMU does.

use std::io::{IoSlice, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use ne2000::Width;
use ne2000::driver::Ports;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use rustix::event::{EventfdFlags, eventfd};

pub(crate) const VERSION: u16 = 1;
pub(crate) const DMA_MAP: u16 = 2;
pub(crate) const SET_IRQS: u16 = 8;
pub(crate) const REGION_READ: u16 = 9;
pub(crate) const REGION_WRITE: u16 = 10;
pub(crate) const RESET: u16 = 13;

pub(crate) const BAR0: u32 = 0;
pub(crate) const CONFIG: u32 = 7;

/// An eventfd as trigger of the one INTx.
pub(crate) const TRIGGER_BY_EVENTFD: [u32; 5] = [20, 0x24, 0, 0, 1];
const UNMASK: [u32; 5] = [20, 0x11, 0, 0, 1];

/// Longest wait, in milliseconds, for what has to come.
const PATIENCE: u16 = 20_000;

/// A connected client.
pub(crate) struct Client {
    socket: UnixStream,
    interrupt: std::fs::File,
    /// The interrupt is high in the guest, until it accesses the card.
    is_high: bool,
    /// Accesses to the card's ports.
    pub(crate) accesses: u64,
    /// Interrupts taken.
    pub(crate) interrupts: u64,
}

/// The 32-bit words as they are on the wire.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A command with what comes behind its header.
pub(crate) fn message(command: u16, payload: &[u8]) -> Vec<u8> {
    let size = u32::try_from(16 + payload.len()).unwrap();
    let header = [&[1, 0][..], &command.to_ne_bytes(), &size.to_ne_bytes(), &[0; 8]].concat();
    [&header[..], payload].concat()
}

/// The fields of an access.
pub(crate) fn access(region: u32, offset: u64, count: u32) -> Vec<u8> {
    [&offset.to_ne_bytes()[..], &words(&[region, count])].concat()
}

impl Client {
    /// Connects.
    pub(crate) fn connect_raw(path: &Path) -> Self {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        Self {
            socket: UnixStream::connect(path).unwrap(),
            interrupt: eventfd.into(),
            is_high: false,
            accesses: 0,
            interrupts: 0,
        }
    }

    /// Connects, and agrees on the version.
    pub(crate) fn connect(path: &Path) -> Self {
        let mut client = Self::connect_raw(path);
        let version = [&[0; 4][..], b"{\"capabilities\":{\"max_msg_fds\":8}}\0"].concat();
        let agreed = client.ask(VERSION, &version).unwrap();
        assert_eq!(agreed[..4], [0; 4]);
        client
    }

    /// Connects, and takes interrupts.
    pub(crate) fn with_interrupt(path: &Path) -> Self {
        let mut client = Self::connect(path);
        let fd = client.interrupt.as_raw_fd();
        client.send(&message(SET_IRQS, &words(&TRIGGER_BY_EVENTFD)), &[fd]);
        assert_eq!(client.reply(), Ok(Vec::new()));
        client
    }

    /// Sends bytes, which may be anything, with descriptors.
    pub(crate) fn send(&mut self, bytes: &[u8], fds: &[RawFd]) {
        if fds.is_empty() {
            return self.socket.write_all(bytes).unwrap();
        }
        let bytes = [IoSlice::new(bytes)];
        let rights = [ControlMessage::ScmRights(fds)];
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
        sendmsg::<()>(socket, &bytes, &rights, flags, None).unwrap();
    }

    /// The next reply, or its error. The server cuts the client off: an error of 0.
    pub(crate) fn reply(&mut self) -> Result<Vec<u8>, u32> {
        let mut header = [0; 16];
        self.socket.read_exact(&mut header).map_err(|_| 0_u32)?;
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
        let mut payload = vec![0; word(4) as usize - 16];
        self.socket.read_exact(&mut payload).unwrap();
        let flags = word(8);
        assert!(flags == 1 || flags == 0x21, "a reply with flags {flags:#x}");
        if flags == 1 { Ok(payload) } else { Err(word(12)) }
    }

    /// Asks for something.
    pub(crate) fn ask(&mut self, command: u16, payload: &[u8]) -> Result<Vec<u8>, u32> {
        self.send(&message(command, payload), &[]);
        self.reply()
    }

    /// Reads a region.
    pub(crate) fn read_region(&mut self, region: u32, offset: u64, count: u32) -> Vec<u8> {
        let mut reply = self.ask(REGION_READ, &access(region, offset, count)).unwrap();
        assert_eq!(reply.len(), 16 + count as usize);
        self.on_access(region);
        reply.split_off(16)
    }

    /// Writes to a region.
    pub(crate) fn write_region(&mut self, region: u32, offset: u64, data: &[u8]) {
        let fields = access(region, offset, u32::try_from(data.len()).unwrap());
        let reply = self.ask(REGION_WRITE, &[&fields[..], data].concat());
        assert_eq!(reply, Ok(fields));
        self.on_access(region);
    }

    /// QEMU takes the interrupt back in the guest when the guest accesses the card.
    fn on_access(&mut self, region: u32) {
        if region == BAR0 {
            self.accesses += 1;
            if core::mem::take(&mut self.is_high) {
                self.unmask();
            }
        }
    }

    /// Lets the server signal again.
    pub(crate) fn unmask(&mut self) {
        assert_eq!(self.ask(SET_IRQS, &words(&UNMASK)), Ok(Vec::new()));
    }

    /// Waits for the interrupt, which has to come.
    pub(crate) fn wait_for_interrupt(&mut self) {
        assert!(self.is_interrupted_within(PATIENCE), "no interrupt came");
    }

    /// Waits for the interrupt, so many milliseconds at most. Whether it came.
    pub(crate) fn is_interrupted_within(&mut self, millis: u16) -> bool {
        let mut fds = [PollFd::new(self.interrupt.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(millis)).unwrap() == 0 {
            return false;
        }
        let mut count = [0; 8];
        self.interrupt.read_exact(&mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
        self.interrupts += 1;
        self.is_high = true;
        true
    }

    /// Interrupts that have come and were not waited for.
    pub(crate) fn untaken(&mut self) -> u64 {
        let mut count = [0; 8];
        self.interrupt.read_exact(&mut count).map_or(0, |()| u64::from_ne_bytes(count))
    }

    /// A descriptor to send along.
    pub(crate) fn eventfd(&self) -> BorrowedFd<'_> {
        self.interrupt.as_fd()
    }
}

impl Ports for Client {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        let bytes = self.read_region(BAR0, offset.into(), width.bytes().into());
        let mut value = [0; 4];
        value[..bytes.len()].copy_from_slice(&bytes);
        u32::from_le_bytes(value)
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        let bytes = value.to_le_bytes();
        self.write_region(BAR0, offset.into(), &bytes[..usize::from(width.bytes())]);
    }
}
