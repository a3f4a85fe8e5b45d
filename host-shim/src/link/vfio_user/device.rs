//! The card as a client sees it: what each request does.

use ipstack::Instant;
use ne2000::rtl8029::Rtl8029As;
use ne2000::{Options, TransmitTiming};
use rustix::io::Errno;

use super::inbox::{MAX_FDS, Message};
use super::interrupts::{self, Intx};
use super::regions;
use super::wire::{Fields, MAX_TRANSFER_LEN, Replies, command};

/// The protocol's major version; of its minor versions none changes what is used here.
const MAJOR: u16 = 0;
const MINOR: u16 = 0;

const FLAG_RESET: u32 = 1;
const FLAG_PCI: u32 = 1 << 1;

/// Bytes of `struct vfio_device_info`.
const INFO_LEN: u32 = 16;

/// Bytes of a DMA_UNMAP.
const UNMAP_LEN: usize = 24;

/// An RTL8029AS for clients, which come and go while it keeps its state.
#[derive(Debug)]
pub struct Device {
    pub(super) card: Rtl8029As,
    pub(super) intx: Intx,
    accesses: u64,
}

/// What a [`Device`] did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeviceCounters {
    /// Accesses of guests to the card's ports.
    pub accesses: u64,
    /// Interrupts that clients were told of.
    pub interrupts: u64,
    /// What became of frames.
    pub card: ne2000::Stats,
}

impl DeviceCounters {
    /// Every counter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let card = self.card;
        [
            ("accesses", self.accesses),
            ("interrupts", self.interrupts),
            ("transmitted", card.transmitted),
            ("stored", card.stored),
            ("filtered", card.filtered),
            ("no_room", card.no_room),
            ("stopped", card.stopped),
            ("monitored", card.monitored),
            ("runts", card.runts),
            ("oversize", card.oversize),
            ("damaged", card.damaged),
            ("no_link", card.no_link),
        ]
        .into_iter()
    }
}

impl Device {
    /// A card after power-on, with `mac` in its PROM. It sends without the time that a cable takes.
    #[must_use]
    pub fn new(mac: [u8; 6]) -> Self {
        let options = Options { timing: TransmitTiming::Instant, ..Options::DEFAULT };
        Self { card: Rtl8029As::new(mac, options), intx: Intx::default(), accesses: 0 }
    }

    /// What it did so far.
    #[must_use]
    pub const fn counters(&self) -> DeviceCounters {
        DeviceCounters {
            accesses: self.accesses,
            interrupts: self.intx.signals(),
            card: *self.card.card().stats(),
        }
    }

    /// Does what `message` asks for.
    pub(super) fn serve(&mut self, now: Instant, message: Message<'_>, replies: &mut Replies) {
        let Message { header, payload, fds } = message;
        replies.answer(&header, |reply| match header.command {
            command::VERSION => agree(payload, reply),
            // The card masters no bus.
            command::DMA_MAP => Ok(()),
            command::DMA_UNMAP => {
                reply.extend_from_slice(payload.get(..UNMAP_LEN).ok_or(Errno::INVAL)?);
                Ok(())
            }
            command::DEVICE_GET_INFO => describe(payload, reply),
            command::DEVICE_GET_REGION_INFO => regions::describe(payload, reply),
            command::DEVICE_GET_IRQ_INFO => interrupts::describe(payload, reply),
            command::DEVICE_SET_IRQS => self.intx.set(payload, fds),
            command::REGION_READ => {
                let accesses = regions::read(&mut self.card, payload, reply)?;
                self.on_accesses(now, accesses);
                Ok(())
            }
            command::REGION_WRITE => {
                let accesses = regions::write(&mut self.card, payload, reply)?;
                self.on_accesses(now, accesses);
                Ok(())
            }
            command::DEVICE_RESET => {
                self.card.reset();
                Ok(())
            }
            _ => Err(Errno::OPNOTSUPP),
        });
        self.note_level();
    }

    fn on_accesses(&mut self, now: Instant, accesses: u64) {
        if accesses > 0 {
            self.accesses += accesses;
            self.intx.on_access(now);
        }
    }

    /// Looks at the interrupt line; to be done after each input of the card's.
    pub(super) const fn note_level(&mut self) {
        self.intx.set_level(self.card.card().irq_level());
    }
}

/// VERSION. Of all that a client may be capable of nothing matters here: it is sent no descriptors
/// and no more data than it asked for. So its JSON is not looked at.
fn agree(request: &[u8], reply: &mut Vec<u8>) -> Result<(), Errno> {
    let mut fields = Fields(request);
    let (major, _minor) = (fields.u16()?, fields.u16()?);
    if major != MAJOR {
        return Err(Errno::OPNOTSUPP);
    }
    reply.extend_from_slice(&MAJOR.to_ne_bytes());
    reply.extend_from_slice(&MINOR.to_ne_bytes());
    let ours = format!(
        "{{\"capabilities\":{{\"max_msg_fds\":{MAX_FDS},\"max_data_xfer_size\":{MAX_TRANSFER_LEN}}}}}\0"
    );
    reply.extend_from_slice(ours.as_bytes());
    Ok(())
}

/// DEVICE_GET_INFO.
fn describe(request: &[u8], reply: &mut Vec<u8>) -> Result<(), Errno> {
    if Fields(request).u32()? < INFO_LEN {
        return Err(Errno::INVAL);
    }
    for field in [INFO_LEN, FLAG_RESET | FLAG_PCI, regions::COUNT, interrupts::COUNT] {
        reply.extend_from_slice(&field.to_ne_bytes());
    }
    Ok(())
}
