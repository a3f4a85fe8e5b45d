//! Reception into the ring (DP8390D datasheet, section 7, packet reception).

use super::filter::is_group;
use super::regs::{Isr, Rcr, Rsr};
use super::tally::Tally;
use super::{Dp8390, LocalBus, ReceiveMode, crc, page_address};

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a frame that was not stored is the caller's to keep or to count"]
pub enum RxOutcome {
    /// It is in the ring.
    Stored,
    /// It is for somebody else: none of the address filters takes it.
    Filtered,
    /// The ring has no room for it, or overflowed earlier, or its registers describe none. In
    /// back-pressure mode the frame may be offered again.
    NoRoom,
    /// The receiver is off: stopped, never started, or in loopback.
    Stopped,
    /// Checked and counted in monitor mode, which stores nothing.
    Monitored,
    /// Too short for the receive configuration.
    Runt,
    /// Longer than the card takes.
    Oversize,
    /// It arrived damaged and the driver does not keep such frames.
    Damaged,
    /// The cable is unplugged.
    NoLink,
}

/// Damage to a frame on the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The frame check sequence is wrong.
    Check,
    /// The frame does not end on a byte, and its check sequence is wrong as well.
    Alignment,
}

/// Bytes of the header before each frame in the ring.
const HEADER_LEN: usize = 4;
/// Bytes of a frame check sequence.
const FCS_LEN: usize = 4;
/// Less than this, with the check sequence, is a runt (DP83902A datasheet, RCR.AR).
const MIN_LEN: usize = 64;
/// Pages that the longest frame takes: 1518 bytes, check sequence and header.
const PAGES_OF_LONGEST: u8 = 6;
/// Frames that a driver is handed before it has looked: one less than Linux's 8390 driver serves in
/// a call.
pub(super) const BURST: u8 = 8;
/// Looks at CURR in an empty ring by which a driver shows that it polls. One that acknowledges PRX
/// does so after the first.
pub(super) const LOOKS: u8 = 4;

impl Dp8390 {
    /// Offers a frame, without its check sequence, to the receiver.
    pub fn receive(&mut self, bus: &mut impl LocalBus, frame: &[u8]) -> RxOutcome {
        self.receive_from_cable(bus, frame, None)
    }

    /// Offers a frame that was damaged on the cable.
    pub fn receive_damaged(
        &mut self,
        bus: &mut impl LocalBus,
        frame: &[u8],
        error: WireError,
    ) -> RxOutcome {
        self.receive_from_cable(bus, frame, Some(error))
    }

    /// How many frames to offer now; [`Ne2000::receive_room`](crate::Ne2000::receive_room) says why
    /// not only room counts.
    #[must_use]
    pub fn receive_room(&self) -> usize {
        if self.receive_mode == ReceiveMode::Strict {
            return usize::MAX;
        }
        // Embedders ask after each access, and most accesses are those of a driver that fetches a
        // burst: that there is no more of it is found first.
        let burst = self.burst();
        if burst == 0 || !self.receiver_on() || self.rcr.any_of(Rcr::MON) {
            return 0;
        }
        self.frames_that_fit().saturating_sub(self.places_kept()).min(usize::from(burst))
    }

    /// Places of a burst that stay free, unless the ring has but one: a driver may acknowledge PRX
    /// without having served the ring, as Linux did until 2.6 with "Too much work at interrupt".
    /// On a cable the next frame tells it of those before; there must be room for that one.
    fn places_kept(&self) -> usize {
        let only_place = self.is_empty() && self.frames_that_fit() == 1;
        usize::from(!only_place && !self.left_behind())
    }

    /// Frames that the driver is sure to look for after the next one has been stored.
    ///
    /// Of those that it has left behind it will want to fetch each, so they are told of by one more
    /// and not by a whole burst. To a driver that polls CURR and never acknowledges PRX, as iPXE,
    /// the next look is always still to come.
    fn burst(&self) -> u8 {
        if self.left_behind() {
            1
        } else if !self.isr.any_of(Isr::PRX) || self.empty_looks >= LOOKS {
            BURST
        } else {
            self.burst_left
        }
    }

    /// Whether there are frames that the driver has acknowledged but not fetched.
    fn left_behind(&self) -> bool {
        !self.isr.any_of(Isr::PRX) && !self.is_empty()
    }

    /// Whether BNRY is where drivers leave it when they have fetched every frame. A BNRY outside
    /// the ring is that of a driver that has fetched none yet.
    fn is_empty(&self) -> bool {
        let fetched = self.curr == self.bnry || self.curr == self.page_after(self.bnry);
        fetched || !self.in_ring(self.bnry)
    }

    /// The driver looks at CURR.
    pub(super) fn note_look(&mut self) {
        if self.is_empty() {
            self.empty_looks = self.empty_looks.saturating_add(1).min(LOOKS);
        }
    }

    /// An access of the driver's ends the burst: from now on it may have looked at CURR already.
    pub(super) const fn end_burst(&mut self) {
        // Most accesses find it so. To store it nevertheless would delay the next load beside it.
        if self.burst_left > 0 {
            self.burst_left = 0;
        }
    }

    fn receiver_on(&self) -> bool {
        self.link_up && self.running() && !self.in_loopback()
    }

    fn receive_from_cable(
        &mut self,
        bus: &mut impl LocalBus,
        frame: &[u8],
        error: Option<WireError>,
    ) -> RxOutcome {
        if !self.link_up {
            return RxOutcome::NoLink;
        }
        if !self.receiver_on() {
            return RxOutcome::Stopped;
        }
        let on_cable = frame.len().saturating_add(FCS_LEN);
        // With AR still at least 8 bytes with the check sequence (the same), and an address.
        let Some(destination) = frame.first_chunk::<6>() else {
            return RxOutcome::Runt;
        };
        if on_cable < MIN_LEN && !self.rcr.any_of(Rcr::AR) {
            return RxOutcome::Runt;
        }
        if !self.accepts(destination) {
            return RxOutcome::Filtered;
        }
        let address = if is_group(destination) { Rsr::PHY } else { Rsr::default() };
        if self.rcr.any_of(Rcr::MON) {
            self.count(Tally::Missed);
            self.rsr = address.with(Rsr::MPA).with(Rsr::DIS);
            return RxOutcome::Monitored;
        }
        let status = address.with(self.reception_status(error));
        if error.is_some() && !self.rcr.any_of(Rcr::SEP) {
            self.rsr = status;
            self.raise(Isr::RXE);
            return RxOutcome::Damaged;
        }
        self.store_or_overflow(bus, frame, status, error)
    }

    /// The result bits of RSR, with the tally of an error.
    fn reception_status(&mut self, error: Option<WireError>) -> Rsr {
        match error {
            None => Rsr::PRX,
            Some(WireError::Check) => {
                self.count(Tally::Check);
                Rsr::CRC
            }
            Some(WireError::Alignment) => {
                self.count(Tally::Alignment);
                Rsr::FAE.with(Rsr::CRC)
            }
        }
    }

    fn store_or_overflow(
        &mut self,
        bus: &mut impl LocalBus,
        frame: &[u8],
        status: Rsr,
        error: Option<WireError>,
    ) -> RxOutcome {
        if self.overflowed {
            return RxOutcome::NoRoom;
        }
        let Some(next) = self.page_behind(frame.len()) else {
            self.overflow(status);
            return RxOutcome::NoRoom;
        };
        self.store(bus, frame, status, next, error.is_some());
        self.burst_left = self.burst().saturating_sub(1);
        self.empty_looks = 0;
        self.curr = next;
        self.local_next = next;
        self.rsr = status;
        self.raise(if error.is_some() { Isr::RXE } else { Isr::PRX });
        RxOutcome::Stored
    }

    /// Stops reception as the hardware does when the ring is full; CURR stays where it is. In
    /// back-pressure mode, or without any ring, nothing changes.
    fn overflow(&mut self, status: Rsr) {
        if self.receive_mode == ReceiveMode::BackPressure || self.ring_pages().is_none() {
            return;
        }
        self.overflowed = true;
        self.rsr = status.without(Rsr::PRX).with(Rsr::MPA);
        self.count(Tally::Missed);
        self.raise(Isr::OVW.with(Isr::RXE));
    }

    /// Pages in the ring, unless PSTART and PSTOP describe none (CVE-2016-2841).
    fn ring_pages(&self) -> Option<u8> {
        self.pstop.checked_sub(self.pstart).filter(|pages| *pages > 0)
    }

    fn page_after(&self, page: u8) -> u8 {
        let next = page.wrapping_add(1);
        if next == self.pstop { self.pstart } else { next }
    }

    fn in_ring(&self, page: u8) -> bool {
        (self.pstart..self.pstop).contains(&page)
    }

    /// Pages from CURR on that the next frame may take.
    ///
    /// The ring is full when the page behind a frame would be BNRY, so the last page is never used,
    /// and CURR equal to BNRY means empty: what VirtualBox found on hardware, against the ST
    /// datasheet's words. No driver lets the two meet. A BNRY outside the ring stops no frame.
    ///
    /// A CURR outside the ring takes no frame (CVE-2015-5278, CVE-2015-5279).
    fn free_pages(&self) -> u8 {
        let Some(ring) = self.ring_pages().filter(|_| self.in_ring(self.curr)) else {
            return 0;
        };
        let to_boundary = if self.bnry > self.curr && self.in_ring(self.bnry) {
            self.bnry.wrapping_sub(self.curr)
        } else if self.in_ring(self.bnry) {
            ring.wrapping_sub(self.curr.wrapping_sub(self.bnry))
        } else {
            ring
        };
        to_boundary.saturating_sub(1)
    }

    /// The page that follows a frame of `length` bytes at CURR, if it fits.
    fn page_behind(&self, length: usize) -> Option<u8> {
        let bytes = length.saturating_add(HEADER_LEN + FCS_LEN);
        let pages = u8::try_from(bytes.div_ceil(256)).ok()?;
        (pages <= self.free_pages())
            .then(|| (0..pages).fold(self.curr, |page, _| self.page_after(page)))
    }

    /// How many frames of the greatest length fit. A ring too small for one takes one of those that
    /// fit at all, once it is as empty as drivers leave it, with BNRY one page behind CURR.
    fn frames_that_fit(&self) -> usize {
        let Some(ring) = self.ring_pages().filter(|_| !self.overflowed) else {
            return 0;
        };
        let wanted = PAGES_OF_LONGEST.min(ring.saturating_sub(2)).max(1);
        let frames = usize::from(self.free_pages()).checked_div(usize::from(wanted)).unwrap_or(0);
        if frames > 0 && !self.in_ring(self.bnry) { usize::MAX } else { frames }
    }

    /// Writes header, frame and check sequence from CURR on.
    fn store(
        &mut self,
        bus: &mut impl LocalBus,
        frame: &[u8],
        status: Rsr,
        next: u8,
        damaged: bool,
    ) {
        let count = frame.len().saturating_add(FCS_LEN).to_le_bytes();
        let [low, high, ..] = count;
        let mut writer = RingWriter { page: self.curr, offset: 0 };
        writer.put(self, bus, &[status.bits(), next, low, high]);
        writer.put(self, bus, frame);
        let fcs = crc::fcs(frame);
        writer.put(self, bus, &if damaged { fcs.map(|byte| !byte) } else { fcs });
        self.clda = page_address(writer.page) | u16::from(writer.offset);
    }
}

/// Where the next byte of a frame goes.
struct RingWriter {
    page: u8,
    offset: u8,
}

impl RingWriter {
    fn put(&mut self, chip: &Dp8390, bus: &mut impl LocalBus, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = 256_usize.saturating_sub(usize::from(self.offset));
            let (here, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            if let Some(page) = bus.page_mut(self.page) {
                fill(page, self.offset, here);
            }
            let (offset, page_full) = match u8::try_from(here.len()) {
                Ok(len) => self.offset.overflowing_add(len),
                Err(_) => (0, true),
            };
            self.offset = offset;
            if page_full {
                self.page = chip.page_after(self.page);
            }
            bytes = rest;
        }
    }
}

/// Copies `bytes` to `offset`, as far as the page reaches.
fn fill(page: &mut [u8; 256], offset: u8, bytes: &[u8]) {
    let to = page.get_mut(usize::from(offset)..).and_then(|tail| tail.get_mut(..bytes.len()));
    if let Some(to) = to
        && to.len() == bytes.len()
    {
        to.copy_from_slice(bytes);
    }
}
