//! Transmission (DP8390D datasheet, section 7, packet transmission).

use super::regs::{Isr, Tsr};
use super::{Dp8390, LocalBus, TransmitTiming, page_address};

/// Bits on the cable besides a frame's bytes: preamble, frame check sequence, gap.
const OVERHEAD_BITS: u64 = 64 + 32 + 96;
/// Bits in a microsecond at 10 Mbit/s.
const BITS_PER_MICRO: u64 = 10;

/// How a transmission ends on the cable.
pub(super) const SENT: Tsr = Tsr::PTX;
/// And without a cable: as with a coaxial one that lacks its terminator.
pub(super) const NO_CABLE: Tsr = Tsr::COL.with(Tsr::ABT);

/// What the transmitter does; CR.TXP reads 1 unless it is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TransmitState {
    /// Nothing.
    Idle,
    /// It waits for the chip to be started. The datasheet does not say what TXP does while the chip
    /// is stopped; no frame that a driver asked for is lost this way.
    Held,
    /// A frame is on its way.
    Sending {
        /// What is sent. The chip has taken TPSR and TBCR over; the driver may write them anew.
        frame: TxRange,
        /// Nobody waits for it any more: it was taken, or it does not go to the network.
        taken: bool,
        /// When its last bit has left, in microseconds; unknown until the next call of `advance`.
        ends_at: Option<u64>,
        /// TSR when it has left.
        result: u8,
    },
}

/// The frame to send, in the chip's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TxRange {
    /// Where it begins; the address wraps after FFFFh.
    pub address: u16,
    /// Its bytes, without frame check sequence: at least one.
    pub length: u16,
}

impl TxRange {
    /// The time on the cable, in microseconds.
    pub(super) fn micros(self) -> u64 {
        let bits = u64::from(self.length).wrapping_mul(8).wrapping_add(OVERHEAD_BITS);
        bits.div_ceil(BITS_PER_MICRO)
    }
}

impl Dp8390 {
    /// TXP was written as 1. A second request while a frame is under way is ignored: the first one
    /// must not be lost (ELKS #773).
    pub(super) fn request_transmission(&mut self, bus: &impl LocalBus) {
        if self.transmitter != TransmitState::Idle {
            return;
        }
        if self.running() {
            self.begin_transmission(bus);
        } else {
            self.transmitter = TransmitState::Held;
        }
    }

    pub(super) fn start_held_transmission(&mut self, bus: &impl LocalBus) {
        if self.transmitter == TransmitState::Held {
            self.begin_transmission(bus);
        }
    }

    fn begin_transmission(&mut self, bus: &impl LocalBus) {
        self.tsr = Tsr::from_bits(0);
        self.ncr = 0;
        self.clda = page_address(self.tpsr);
        if self.tbcr == 0 {
            // NE2000.DOS of Windows for Workgroups and a probe of Solaris 9 send no bytes at all and
            // wait for the end of it (DOSBox-X #6397).
            return self.end_transmission(SENT);
        }
        let (taken, result) = if self.in_loopback() {
            (true, self.loop_back(bus))
        } else if self.link_up {
            (false, SENT)
        } else {
            (true, NO_CABLE)
        };
        let frame = TxRange { address: page_address(self.tpsr), length: self.tbcr };
        self.transmitter =
            TransmitState::Sending { frame, taken, ends_at: None, result: result.bits() };
        self.end_if_due();
    }

    /// Whether [`Dp8390::take_transmission`] has a frame to give.
    #[must_use]
    pub const fn transmission_pending(&self) -> bool {
        matches!(self.transmitter, TransmitState::Sending { taken: false, .. })
    }

    /// The frame that goes to the network now, once. The transmission ends when its time is over,
    /// and not before the frame has been taken.
    #[must_use]
    pub fn take_transmission(&mut self) -> Option<TxRange> {
        let TransmitState::Sending { frame, taken, .. } = &mut self.transmitter else {
            return None;
        };
        if core::mem::replace(taken, true) {
            return None;
        }
        let frame = *frame;
        self.clda = frame.address.wrapping_add(frame.length);
        self.end_if_due();
        Some(frame)
    }

    /// Tells the time, in microseconds from any start. A time before the latest one is taken for
    /// the latest one.
    pub fn advance(&mut self, now_micros: u64) {
        self.now = self.now.max(now_micros);
        if let TransmitState::Sending { frame, ends_at, .. } = &mut self.transmitter
            && ends_at.is_none()
        {
            *ends_at = Some(self.now.saturating_add(frame.micros()));
        }
        self.end_if_due();
    }

    /// When to call [`Dp8390::advance`] next, in microseconds. Changes with each write, with
    /// [`Dp8390::take_transmission`] and with `advance`.
    #[must_use]
    pub fn poll_at(&self) -> Option<u64> {
        let TransmitState::Sending { taken, ends_at, .. } = self.transmitter else {
            return None;
        };
        match self.timing {
            TransmitTiming::BitTime if taken || ends_at.is_none() => ends_at.or(Some(self.now)),
            // Taken while it had time left, which was forgone since then.
            TransmitTiming::Instant if taken => Some(self.now),
            TransmitTiming::BitTime | TransmitTiming::Instant => None,
        }
    }

    fn end_if_due(&mut self) {
        let TransmitState::Sending { taken: true, ends_at, result, .. } = self.transmitter else {
            return;
        };
        let due = match self.timing {
            TransmitTiming::Instant => true,
            TransmitTiming::BitTime => ends_at.is_some_and(|at| at <= self.now),
        };
        if due {
            self.end_transmission(Tsr::from_bits(result));
        }
    }

    fn end_transmission(&mut self, result: Tsr) {
        self.transmitter = TransmitState::Idle;
        self.tsr = result;
        self.raise(if result.any_of(Tsr::PTX) { Isr::PTX } else { Isr::TXE });
    }
}
