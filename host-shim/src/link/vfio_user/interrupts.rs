//! The card's one interrupt, INTx, by an eventfd of the client's (`linux/vfio.h`, struct
//! `vfio_irq_set`).
//!
//! The line has a level, an eventfd has edges. In between stands the mask that VFIO calls
//! "automasked": a signal masks the interrupt, and the client unmasks it when it takes the level
//! back in the guest, whereupon a line that is still high has to be signalled again. But QEMU
//! cannot see the guest acknowledge an interrupt. It takes the level back at the guest's next access
//! to the card, the first one of the guest's interrupt handler, so the line would be signalled anew
//! at each access until the handler is through. Therefore:
//!
//! - a line that rises is signalled at once;
//! - a line that is found high at an unmask is signalled when the guest has left the card alone for
//!   a while ([`QUIET`]), since only then may nobody be about to look at the card. A guest that
//!   never leaves it alone is told now and then ([`PATIENCE`]).

use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use ipstack::Instant;
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::wire::Fields;
use crate::link::set_nonblocking;

/// The kinds of interrupts of a PCI device: INTx, MSI, MSI-X, error, request.
pub(super) const COUNT: u32 = 5;

/// The only one that the card has.
const INTX: u32 = 0;

const INFO_EVENTFD: u32 = 1;
const INFO_MASKABLE: u32 = 1 << 1;
const INFO_AUTOMASKED: u32 = 1 << 2;

/// Bytes of `struct vfio_irq_info`.
const INFO_LEN: u32 = 16;

const DATA_NONE: u32 = 1;
const DATA_BOOL: u32 = 1 << 1;
const DATA_EVENTFD: u32 = 1 << 2;
const ACTION_MASK: u32 = 1 << 3;
const ACTION_UNMASK: u32 = 1 << 4;
const ACTION_TRIGGER: u32 = 1 << 5;

/// A guest that works at the card accesses it again within this time: an access takes some 20 to
/// 100 microseconds over the socket.
const QUIET: Duration = Duration::from_millis(1);

/// How long a high line is not signalled because the guest works at the card. Fetching a frame
/// takes about 8 ms.
const PATIENCE: Duration = Duration::from_millis(20);

/// DEVICE_GET_IRQ_INFO.
pub(super) fn describe(request: &[u8], reply: &mut Vec<u8>) -> Result<(), Errno> {
    let mut fields = Fields(request);
    let (argsz, _flags, index) = (fields.u32()?, fields.u32()?, fields.u32()?);
    if index >= COUNT || argsz < INFO_LEN {
        return Err(Errno::INVAL);
    }
    let (flags, count) = match index {
        INTX => (INFO_EVENTFD | INFO_MASKABLE | INFO_AUTOMASKED, 1),
        _ => (0, 0),
    };
    for field in [INFO_LEN, flags, index, count] {
        reply.extend_from_slice(&field.to_ne_bytes());
    }
    Ok(())
}

/// The interrupt between the card's line and the client.
#[derive(Debug, Default)]
pub(super) struct Intx {
    eventfd: Option<OwnedFd>,
    masked: bool,
    /// The line's level.
    level: bool,
    /// The line has risen, and nobody was told.
    risen: bool,
    /// Since when the line waits to be signalled again.
    waits_since: Option<Instant>,
    last_access: Instant,
    signals: u64,
}

impl Intx {
    /// DEVICE_SET_IRQS.
    pub(super) fn set(&mut self, request: &[u8], fds: Vec<OwnedFd>) -> Result<(), Errno> {
        let mut fields = Fields(request);
        let (_argsz, flags, index) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let (start, count) = (fields.u32()?, fields.u32()?);
        if flags == DATA_NONE | ACTION_TRIGGER && (start, count) == (0, 0) && index < COUNT {
            if index == INTX {
                self.disconnect();
            }
            return Ok(());
        }
        if (index, start, count) != (INTX, 0, 1) {
            return Err(Errno::INVAL);
        }
        if flags == DATA_EVENTFD | ACTION_TRIGGER {
            return self.connect(fds);
        }
        let (action, wanted) = if flags & DATA_BOOL != 0 {
            (flags ^ DATA_BOOL, fields.rest().first().ok_or(Errno::INVAL)? != &0)
        } else {
            (flags ^ DATA_NONE, true)
        };
        match action {
            ACTION_MASK => self.masked |= wanted,
            ACTION_UNMASK => self.masked &= !wanted,
            ACTION_TRIGGER if wanted => self.signal(),
            ACTION_TRIGGER => {}
            // Among them a descriptor by which the client would be told of the mask, or tell it.
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }

    /// Signals from now on by what came with the request; nothing takes the eventfd away.
    fn connect(&mut self, fds: Vec<OwnedFd>) -> Result<(), Errno> {
        let mut fds = fds.into_iter();
        let (first, second) = (fds.next(), fds.next());
        if second.is_some() {
            return Err(Errno::INVAL);
        }
        if let Some(fd) = &first {
            check(fd)?;
        }
        self.disconnect();
        self.eventfd = first;
        Ok(())
    }

    /// The client has gone, or wants no more signals.
    pub(super) fn disconnect(&mut self) {
        self.eventfd = None;
        self.masked = false;
    }

    /// The guest has accessed the card.
    pub(super) const fn on_access(&mut self, now: Instant) {
        self.last_access = now;
    }

    /// The card's line has this level.
    pub(super) const fn set_level(&mut self, level: bool) {
        self.risen = level && (self.risen || !self.level);
        self.level = level;
    }

    /// Signals if it is time to.
    pub(super) fn signal_if_due(&mut self, now: Instant) {
        let waits = self.level && !self.masked && self.eventfd.is_some();
        self.waits_since = waits.then(|| self.waits_since.unwrap_or(now));
        if self.due_at().is_some_and(|due| due <= now) {
            self.waits_since = None;
            self.risen = false;
            self.masked = true;
            self.signal();
        }
    }

    /// When to call [`Intx::signal_if_due`] again even if nothing happens until then.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let since = self.waits_since?;
        if self.risen {
            return Some(since);
        }
        Some(self.last_access.after(QUIET).min(since.after(PATIENCE)))
    }

    fn signal(&mut self) {
        let Some(eventfd) = &self.eventfd else { return };
        self.signals += 1;
        if let Err(error) = write_to(eventfd) {
            log::warn!("the guest gets no more interrupts: {error}");
            self.eventfd = None;
        }
    }

    /// How often the client was signalled.
    pub(super) const fn signals(&self) -> u64 {
        self.signals
    }
}

/// Refuses what a write may do more to than to an eventfd. What comes from the client may be
/// anything; but files, pipes and sockets have a type, and an eventfd has none.
fn check(fd: &OwnedFd) -> Result<(), Errno> {
    match FileType::from_raw_mode(fstat(fd)?.st_mode) {
        FileType::Unknown => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

/// Adds one to an eventfd of the client's, and does not wait if it is full. Whether a write waits is
/// a flag that the client shares and may clear at any time, so it is set before each. A client that
/// clears it in between stops the server, which serves nobody else.
fn write_to(eventfd: impl AsFd) -> io::Result<()> {
    set_nonblocking(&eventfd)?;
    match rustix::io::write(&eventfd, &1_u64.to_ne_bytes()) {
        // Full: there are signals that the client has not taken.
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::*;

    const UNMASK: u32 = DATA_NONE | ACTION_UNMASK;

    fn request(flags: u32, index: u32, start: u32, count: u32) -> Vec<u8> {
        [20, flags, index, start, count].into_iter().flat_map(u32::to_ne_bytes).collect()
    }

    fn set(intx: &mut Intx, flags: u32) {
        intx.set(&request(flags, INTX, 0, 1), Vec::new()).unwrap();
    }

    /// An interrupt with the client's end of its eventfd, which blocks nobody.
    fn armed() -> (Intx, OwnedFd) {
        let client = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let mut intx = Intx::default();
        let ours = client.try_clone().unwrap();
        intx.set(&request(DATA_EVENTFD | ACTION_TRIGGER, INTX, 0, 1), vec![ours]).unwrap();
        (intx, client)
    }

    /// Signals that the client has not taken.
    fn signals(client: &OwnedFd) -> u64 {
        let mut count = [0; 8];
        match rustix::io::read(client, &mut count) {
            Ok(_) => u64::from_ne_bytes(count),
            Err(_) => 0,
        }
    }

    fn at(micros: u64) -> Instant {
        Instant::from_micros(1_000_000 + micros)
    }

    /// Takes the line to `level`, and says how often the client was signalled.
    fn step(intx: &mut Intx, client: &OwnedFd, micros: u64, level: bool) -> u64 {
        intx.set_level(level);
        intx.signal_if_due(at(micros));
        signals(client)
    }

    #[test]
    fn a_line_that_rises_is_signalled_once_and_at_once() {
        let (mut intx, client) = armed();
        intx.on_access(at(0));
        assert_eq!(step(&mut intx, &client, 0, true), 1);
        assert_eq!(intx.due_at(), None, "masked until the client says otherwise");
        assert_eq!(step(&mut intx, &client, 1_000_000, true), 0);
        set(&mut intx, UNMASK);
        assert_eq!(step(&mut intx, &client, 1_000_000, false), 0);
        assert_eq!(step(&mut intx, &client, 1_000_000, true), 1);
        assert_eq!(intx.signals(), 2);
    }

    #[test]
    fn a_handler_at_work_is_not_signalled_again() {
        let (mut intx, client) = armed();
        assert_eq!(step(&mut intx, &client, 0, true), 1);
        for access in 1..100 {
            intx.on_access(at(access * 100));
            set(&mut intx, UNMASK);
            assert_eq!(step(&mut intx, &client, access * 100, true), 0);
        }
        // The handler has acknowledged all, and something new comes up.
        assert_eq!(step(&mut intx, &client, 9_950, false), 0);
        assert_eq!(step(&mut intx, &client, 9_950, true), 1);
    }

    #[test]
    fn a_line_that_was_left_high_is_signalled_again_after_a_while() {
        let (mut intx, client) = armed();
        assert_eq!(step(&mut intx, &client, 0, true), 1);
        intx.on_access(at(10));
        set(&mut intx, UNMASK);
        assert_eq!(step(&mut intx, &client, 20, true), 0);
        assert_eq!(intx.due_at(), Some(at(1_010)));
        assert_eq!(step(&mut intx, &client, 1_009, true), 0);
        assert_eq!(step(&mut intx, &client, 1_010, true), 1);
        assert_eq!(intx.due_at(), None);
    }

    #[test]
    fn a_guest_that_never_rests_is_told_now_and_then() {
        let (mut intx, client) = armed();
        let mut told = 0;
        for access in 0..1000 {
            intx.on_access(at(access * 100));
            set(&mut intx, UNMASK);
            told += step(&mut intx, &client, access * 100, true);
        }
        assert_eq!(told, 5, "in a tenth of a second");
    }

    #[test]
    fn a_line_that_rose_while_masked_is_signalled_at_the_unmask() {
        let (mut intx, client) = armed();
        set(&mut intx, DATA_NONE | ACTION_MASK);
        intx.on_access(at(0));
        assert_eq!(step(&mut intx, &client, 0, true), 0);
        set(&mut intx, UNMASK);
        assert_eq!(step(&mut intx, &client, 1, true), 1);
    }

    #[test]
    fn the_client_may_trigger_and_let_go() {
        let (mut intx, client) = armed();
        set(&mut intx, DATA_NONE | ACTION_TRIGGER);
        assert_eq!(signals(&client), 1);
        let mut with_byte = request(DATA_BOOL | ACTION_TRIGGER, INTX, 0, 1);
        assert_eq!(intx.set(&with_byte, Vec::new()), Err(Errno::INVAL), "no byte");
        with_byte.push(0);
        intx.set(&with_byte, Vec::new()).unwrap();
        assert_eq!(signals(&client), 0);
        intx.set(&request(DATA_NONE | ACTION_TRIGGER, INTX, 0, 0), Vec::new()).unwrap();
        assert_eq!(step(&mut intx, &client, 0, true), 0);
        assert_eq!(intx.due_at(), None);
    }

    #[test]
    fn what_the_card_has_not_is_refused() {
        let (mut intx, client) = armed();
        let eventfd_trigger = DATA_EVENTFD | ACTION_TRIGGER;
        for (flags, index, start, count) in [
            (0, INTX, 0, 1),
            (DATA_NONE, INTX, 0, 1),
            (ACTION_UNMASK, INTX, 0, 1),
            (DATA_EVENTFD | ACTION_UNMASK, INTX, 0, 1),
            (DATA_EVENTFD | ACTION_MASK, INTX, 0, 1),
            (DATA_NONE | ACTION_MASK | ACTION_UNMASK, INTX, 0, 1),
            (UNMASK | 1 << 31, INTX, 0, 1),
            (UNMASK, INTX, 1, 1),
            (UNMASK, INTX, 0, 2),
            (UNMASK, INTX, 0, u32::MAX),
            (UNMASK, 1, 0, 1),
            (DATA_NONE | ACTION_TRIGGER, COUNT, 0, 0),
            (eventfd_trigger, u32::MAX, 0, 1),
        ] {
            let outcome = intx.set(&request(flags, index, start, count), Vec::new());
            assert_eq!(outcome, Err(Errno::INVAL), "{flags:#x} {index} {start} {count}");
        }
        let short = &request(UNMASK, INTX, 0, 1)[..19];
        assert_eq!(intx.set(short, Vec::new()), Err(Errno::INVAL));
        let two = vec![client.try_clone().unwrap(), client.try_clone().unwrap()];
        assert_eq!(intx.set(&request(eventfd_trigger, INTX, 0, 1), two), Err(Errno::INVAL));
        assert_eq!(step(&mut intx, &client, 0, true), 1, "it still has its eventfd");
    }

    #[test]
    fn only_a_file_without_a_type_is_written_to() {
        let mut intx = Intx::default();
        let request = request(DATA_EVENTFD | ACTION_TRIGGER, INTX, 0, 1);
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(intx.set(&request, vec![file.into()]), Err(Errno::INVAL));
        let (_reader, writer) = io::pipe().unwrap();
        assert_eq!(intx.set(&request, vec![writer.into()]), Err(Errno::INVAL));
    }

    #[test]
    fn an_eventfd_that_is_full_or_blocks_holds_nobody_up() {
        let client = eventfd(0, EventfdFlags::empty()).unwrap();
        rustix::io::write(&client, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        let mut intx = Intx::default();
        let ours = client.try_clone().unwrap();
        intx.set(&request(DATA_EVENTFD | ACTION_TRIGGER, INTX, 0, 1), vec![ours]).unwrap();
        assert_eq!(step(&mut intx, &client, 0, true), u64::MAX - 1);
        assert_eq!(intx.signals(), 1);
    }

    /// With a full one that blocks, this would not fail but wait: so the flag is looked at.
    #[test]
    fn an_eventfd_that_was_made_to_block_again_holds_nobody_up() {
        let (mut intx, client) = armed();
        fcntl_setfl(&client, fcntl_getfl(&client).unwrap() - OFlags::NONBLOCK).unwrap();
        intx.set_level(true);
        intx.signal_if_due(at(0));
        assert!(fcntl_getfl(&client).unwrap().contains(OFlags::NONBLOCK));
        assert_eq!(signals(&client), 1);
    }
}
