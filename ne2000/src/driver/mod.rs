//! A driver for the card, as a guest would have one: by accesses to its ports and nothing else.
//!
//! For demonstrations, benches, tests and embedders' self tests. Its accesses are those of Linux's
//! 8390 drivers, in our own words: reset, station PROM, one remote read for a frame's header and
//! one for the frame, BNRY one page behind, and the datasheet's recovery from an overflow. It has
//! no clock: what takes time is looked at again in the next call.
//!
//! ```
//! use ne2000::driver::Driver;
//! use ne2000::{Model, Ne2000, Options, TransmitTiming, Width};
//!
//! let mac = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
//! let options = Options { timing: TransmitTiming::Instant, ..Options::DEFAULT };
//! let mut card = Ne2000::with_options(Model::Rtl8029As, mac, options);
//! let mut driver = Driver::start(&mut card, Width::Dword).expect("a card");
//! assert_eq!(driver.mac(), mac);
//!
//! assert!(driver.send(&mut card, &[0xFF; 60]));
//! assert_eq!(card.transmit().expect("a frame").as_slice(), Some(&[0xFF; 60][..]));
//!
//! let _ = card.receive(&[0xFF; 60]);
//! let mut buffer = [0; 1518];
//! assert_eq!(driver.receive(&mut card, &mut buffer), Some(60));
//! assert_eq!(driver.receive(&mut card, &mut buffer), None);
//! assert!(!card.irq_level());
//! ```

mod data_port;
mod probe;
mod ring;

pub use data_port::Ports;
pub use probe::DriverError;

use crate::card::{MAX_FRAME_LEN, MIN_FRAME_LEN, Width};
use crate::chip::regs::page0_read as r;
use crate::chip::regs::page0_write as w;
use crate::chip::regs::page1::{CURR, PAR0};
use crate::chip::regs::{CR, Cr, Dcr, Isr, Rcr, Rsr, Tcr};
use data_port::{DataPort, get, set};
use ring::Ring;

/// Pages of the transmit buffer, which holds the longest frame.
const TRANSMIT_PAGES: u8 = 6;
/// Bytes of the header before each frame in the ring.
const HEADER_LEN: u16 = 4;
/// Bytes of a frame check sequence.
const FCS_LEN: usize = 4;
/// Calls that wait for the end of a transmission before it is taken for lost.
const LOOKS: u16 = 1_000;

/// The running card: no remote DMA, page 0.
const RUN: Cr = Cr::STA.with(Cr::NO_DMA);
/// The stopped card: no remote DMA, page 0.
const STOP: Cr = Cr::STP.with(Cr::NO_DMA);
/// Normal operation by bytes, with a FIFO threshold of 8 bytes as every driver has it.
const BYTE_MODE: Dcr = Dcr::LS.with(Dcr::from_bits(0x40));
/// What the driver wants to be interrupted for.
const INTERRUPTS: Isr = Isr::PRX.with(Isr::PTX).with(Isr::RXE).with(Isr::TXE).with(Isr::OVW);
/// Both ends of a transmission.
const SENT: Isr = Isr::PTX.with(Isr::TXE);
/// Both kinds of reception.
const RECEIVED: Isr = Isr::PRX.with(Isr::RXE);

/// What a driver has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverStats {
    /// Frames handed to the card.
    pub sent: u64,
    /// Frames out of the ring.
    pub received: u64,
    /// Frames that were longer than the buffer for them.
    pub too_long: u64,
    /// Times that the ring overflowed.
    pub overflows: u64,
    /// Times that the ring held no frame where one had to begin, and all of it was given up.
    pub bogus: u64,
    /// Most pages of the ring in use at any look.
    pub ring_high_water: u8,
}

/// How far the recovery from an overflow has come (DP8390D datasheet, section 9).
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// There is none.
    Running,
    /// The card is stopped, and a frame may be on its way still.
    Stopping { looks_left: u16 },
    /// The card is in loopback until the ring is empty.
    Draining { resend: bool },
}

/// A driver and what it knows of its card.
#[derive(Clone, Debug)]
pub struct Driver {
    data: DataPort,
    ring: Ring,
    /// The first page of the transmit buffer.
    transmit_page: u8,
    mac: [u8; 6],
    /// The page of the frame that is read next.
    next: u8,
    phase: Phase,
    stats: DriverStats,
}

impl Driver {
    /// Resets the card, reads its station address and starts it: own address and broadcasts,
    /// interrupts for both directions. The data port is accessed by `width`, whatever the card's
    /// slot; a bus makes narrower accesses of wide ones.
    ///
    /// # Errors
    ///
    /// There is no card, or none of this family.
    pub fn start(ports: &mut impl Ports, width: Width) -> Result<Self, DriverError> {
        let found = probe::probe(ports)?;
        let data = DataPort { width, words: found.wide_slot && width != Width::Byte };
        let ring = Ring {
            start: found.first_page.wrapping_add(TRANSMIT_PAGES),
            stop: found.last_page.wrapping_add(1),
        };
        let driver = Self {
            data,
            ring,
            transmit_page: found.first_page,
            mac: found.mac,
            next: ring.start,
            phase: Phase::Running,
            stats: DriverStats::default(),
        };
        driver.initialize(ports);
        Ok(driver)
    }

    /// The datasheet's initialization (DP8390D datasheet, section 9).
    fn initialize(&self, ports: &mut impl Ports) {
        let dcr = if self.data.words { BYTE_MODE.with(Dcr::WTS) } else { BYTE_MODE };
        for (offset, value) in [
            (CR, STOP.bits()),
            (w::DCR, dcr.bits()),
            (w::RBCR0, 0),
            (w::RBCR1, 0),
            (w::RCR, Rcr::MON.bits()),
            (w::TCR, Tcr::LB_INTERNAL.bits()),
            (w::PSTART, self.ring.start),
            (w::PSTOP, self.ring.stop),
            (w::BNRY, self.ring.before(self.ring.start)),
            (w::ISR, 0xFF),
            (w::IMR, INTERRUPTS.bits()),
            (CR, STOP.with(Cr::PAGE1).bits()),
        ] {
            set(ports, offset, value);
        }
        for (offset, byte) in (PAR0..).zip(self.mac) {
            set(ports, offset, byte);
        }
        for (offset, value) in
            [(CURR, self.ring.start), (CR, RUN.bits()), (w::TCR, 0), (w::RCR, Rcr::AB.bits())]
        {
            set(ports, offset, value);
        }
    }

    /// The station address.
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// What happened so far.
    pub const fn stats(&self) -> &DriverStats {
        &self.stats
    }

    /// Pages in the receive ring.
    pub const fn ring_pages(&self) -> u8 {
        self.ring.pages()
    }

    /// Whether [`send`](Self::send) would take a frame.
    pub fn can_send(&self, ports: &mut impl Ports) -> bool {
        matches!(self.phase, Phase::Running) && !Cr::from_bits(get(ports, CR)).any_of(Cr::TXP)
    }

    /// Sends a frame, filled up to [`MIN_FRAME_LEN`] bytes with zeros. Says no, and does nothing,
    /// while the transmitter is busy or the ring is recovering from an overflow, and to frames of
    /// no bytes and of more than [`MAX_FRAME_LEN`].
    #[must_use]
    pub fn send(&mut self, ports: &mut impl Ports, frame: &[u8]) -> bool {
        if frame.is_empty() || frame.len() > MAX_FRAME_LEN || !self.can_send(ports) {
            return false;
        }
        let mut padded = [0; MIN_FRAME_LEN];
        let frame = match padded.get_mut(..frame.len()) {
            Some(start) => {
                start.copy_from_slice(frame);
                &padded
            }
            None => frame,
        };
        self.data.output(ports, page_address(self.transmit_page), frame);
        let [low, high, ..] = frame.len().to_le_bytes();
        set(ports, w::TBCR0, low);
        set(ports, w::TBCR1, high);
        set(ports, w::TPSR, self.transmit_page);
        set(ports, CR, RUN.with(Cr::TXP).bits());
        self.stats.sent = self.stats.sent.saturating_add(1);
        true
    }

    /// Moves the next frame from the ring to `buffer`, without its check sequence, and gives its
    /// length. `None` if there is none: the interrupts seen have been acknowledged, unless there is
    /// more to do, and then the interrupt line is still high.
    pub fn receive(&mut self, ports: &mut impl Ports, buffer: &mut [u8]) -> Option<usize> {
        if !self.attend(ports) {
            return None;
        }
        let mut behind = curr(ports);
        if behind == self.next {
            set(ports, w::ISR, RECEIVED.bits());
            // A frame that came between the look and the acknowledgment interrupts no more.
            behind = curr(ports);
        }
        if behind == self.next {
            self.end_recovery(ports);
            return None;
        }
        let used = self.ring.distance(self.next, behind);
        self.stats.ring_high_water = self.stats.ring_high_water.max(used);
        self.take_frame(ports, behind, buffer)
    }

    /// Acknowledges the end of a transmission and goes on with the recovery from an overflow.
    /// Whether to look into the ring.
    fn attend(&mut self, ports: &mut impl Ports) -> bool {
        let isr = Isr::from_bits(get(ports, r::ISR));
        if isr.any_of(SENT) {
            set(ports, w::ISR, SENT.bits());
        }
        match self.phase {
            Phase::Running if isr.any_of(Isr::OVW) => self.begin_recovery(ports),
            Phase::Running => return isr.any_of(RECEIVED),
            Phase::Stopping { .. } if isr.any_of(SENT) => self.drain(ports, false),
            Phase::Stopping { looks_left: 0 } => self.drain(ports, true),
            Phase::Stopping { looks_left } => {
                self.phase = Phase::Stopping { looks_left: looks_left.saturating_sub(1) };
            }
            Phase::Draining { .. } => {}
        }
        matches!(self.phase, Phase::Draining { .. })
    }

    /// Stops the card, which finishes a frame that is on its way first.
    fn begin_recovery(&mut self, ports: &mut impl Ports) {
        self.stats.overflows = self.stats.overflows.saturating_add(1);
        let sending = Cr::from_bits(get(ports, CR)).any_of(Cr::TXP);
        set(ports, CR, STOP.bits());
        set(ports, w::RBCR0, 0);
        set(ports, w::RBCR1, 0);
        if sending {
            self.phase = Phase::Stopping { looks_left: LOOKS };
        } else {
            self.drain(ports, false);
        }
    }

    /// Starts the card, off the network, for what it has in the ring.
    fn drain(&mut self, ports: &mut impl Ports, resend: bool) {
        set(ports, w::TCR, Tcr::LB_INTERNAL.bits());
        set(ports, CR, RUN.bits());
        self.phase = Phase::Draining { resend };
    }

    /// Goes back to the network if the ring was emptied for that.
    fn end_recovery(&mut self, ports: &mut impl Ports) {
        if let Phase::Draining { resend } = self.phase {
            set(ports, w::ISR, Isr::OVW.bits());
            set(ports, w::TCR, 0);
            if resend {
                set(ports, CR, RUN.with(Cr::TXP).bits());
            }
            self.phase = Phase::Running;
        }
    }

    /// Reads the frame at `next` and frees its pages.
    fn take_frame(
        &mut self,
        ports: &mut impl Ports,
        behind: u8,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let address = page_address(self.next);
        let mut header = [0; HEADER_LEN as usize];
        self.data.input(ports, address, &mut header);
        let Some((following, length)) = self.check(header) else {
            self.stats.bogus = self.stats.bogus.saturating_add(1);
            self.free_up_to(ports, behind);
            return None;
        };
        let frame = buffer.get_mut(..length);
        let fits = frame.is_some();
        if let Some(frame) = frame {
            self.data.input(ports, address | HEADER_LEN, frame);
        }
        self.free_up_to(ports, following);
        let counter = if fits { &mut self.stats.received } else { &mut self.stats.too_long };
        *counter = counter.saturating_add(1);
        fits.then_some(length)
    }

    /// The page after the frame and its length without check sequence, if `header` is one that the
    /// card can have written at `next`.
    fn check(&self, header: [u8; HEADER_LEN as usize]) -> Option<(u8, usize)> {
        let [status, following, low, high] = header;
        let count = usize::from(u16::from_le_bytes([low, high]));
        let length = count.checked_sub(FCS_LEN)?;
        let pages =
            u8::try_from(count.saturating_add(usize::from(HEADER_LEN)).div_ceil(256)).ok()?;
        let errors = Rsr::CRC.with(Rsr::FAE).with(Rsr::FO);
        let status = Rsr::from_bits(status);
        (status.any_of(Rsr::PRX)
            && !status.any_of(errors)
            && (MIN_FRAME_LEN..=MAX_FRAME_LEN).contains(&length)
            && following == self.ring.after(self.next, pages))
        .then_some((following, length))
    }

    /// Gives the pages before `page` back to the card.
    fn free_up_to(&mut self, ports: &mut impl Ports, page: u8) {
        self.next = page;
        set(ports, w::BNRY, self.ring.before(page));
    }
}

/// The page that takes the next frame.
fn curr(ports: &mut impl Ports) -> u8 {
    set(ports, CR, RUN.with(Cr::PAGE1).bits());
    let curr = get(ports, CURR);
    set(ports, CR, RUN.bits());
    curr
}

/// The first address of `page`.
const fn page_address(page: u8) -> u16 {
    u16::from_le_bytes([0, page])
}
