//! The chip's registers out and in.

use super::loopback::{Fifo, LOOPED_BY_ENCODER, LOOPED_INSIDE};
use super::regs::{Dcr, Isr, Rcr, Rsr, Tcr, Tsr};
use super::rx::{BURST, LOOKS};
use super::tally::Tallies;
use super::tx::{NO_CABLE, SENT};
use super::{ChipKind, CommandState, Dp8390, ReceiveMode, TransmitState, TransmitTiming};

/// Everything that the chip remembers. The names are the datasheet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[expect(missing_docs, reason = "each field is the register of that name")]
pub struct ChipState {
    /// What happens to a frame that does not fit.
    pub receive_mode: ReceiveMode,
    /// When a transmission is complete.
    pub timing: TransmitTiming,
    /// Whether the cable is plugged in.
    pub link_up: bool,
    /// CR without TXP.
    pub command: CommandState,
    /// Without RST, which follows from the rest.
    pub isr: u8,
    pub imr: u8,
    pub dcr: u8,
    pub tcr: u8,
    pub rcr: u8,
    pub tsr: u8,
    pub rsr: u8,
    pub ncr: u8,
    pub pstart: u8,
    pub pstop: u8,
    pub bnry: u8,
    pub curr: u8,
    /// The ring has overflowed, and the chip has not been stopped and started since.
    pub overflowed: bool,
    /// Frames that may still join those for which PRX was raised, 0 to 7; none after an access.
    pub burst_left: u8,
    /// Looks at CURR in an empty ring since the last frame was stored, 0 to 4.
    pub empty_looks: u8,
    pub par: [u8; 6],
    pub mar: [u8; 8],
    pub cntr: [u8; 3],
    pub fifo: [u8; 8],
    /// The byte of the FIFO that is read next, 0 to 7.
    pub fifo_position: u8,
    pub tpsr: u8,
    pub tbcr: u16,
    /// Here `ends_at` is the time that is left, in microseconds.
    pub transmitter: TransmitState,
    pub clda: u16,
    pub crda: u16,
    pub rbcr: u16,
    /// What the data port last carried.
    pub data_latch: u16,
    /// Page 2: the local next-packet pointer.
    pub local_next: u8,
    /// Page 2: the remote next-packet pointer.
    pub remote_next: u8,
    /// Page 2: the address counter.
    pub address_counter: u16,
}

impl Dp8390 {
    /// The state now.
    #[must_use]
    pub const fn state(&self) -> ChipState {
        let Self {
            kind: _,
            receive_mode,
            timing,
            link_up,
            now,
            command,
            isr,
            imr,
            dcr,
            tcr,
            rcr,
            tsr,
            rsr,
            ncr,
            pstart,
            pstop,
            bnry,
            curr,
            overflowed,
            burst_left,
            empty_looks,
            par,
            mar,
            tallies,
            fifo: Fifo { bytes: fifo, position: fifo_position },
            tpsr,
            tbcr,
            transmitter,
            clda,
            crda,
            rbcr,
            data_latch,
            local_next,
            remote_next,
            address_counter,
        } = *self;
        ChipState {
            receive_mode,
            timing,
            link_up,
            command,
            isr: isr.bits(),
            imr: imr.bits(),
            dcr: dcr.bits(),
            tcr: tcr.bits(),
            rcr: rcr.bits(),
            tsr: tsr.bits(),
            rsr: rsr.bits(),
            ncr,
            pstart,
            pstop,
            bnry,
            curr,
            overflowed,
            burst_left,
            empty_looks,
            par,
            mar,
            cntr: tallies.saved(),
            fifo,
            fifo_position,
            tpsr,
            tbcr,
            transmitter: rebase(transmitter, now, 0),
            clda,
            crda,
            rbcr,
            data_latch,
            local_next,
            remote_next,
            address_counter,
        }
    }

    /// The chip that `state` describes, at `now` microseconds, or the name of the field that no
    /// chip can have got by itself.
    pub(crate) fn from_state(
        kind: ChipKind,
        state: &ChipState,
        now: u64,
    ) -> Result<Self, &'static str> {
        let ChipState {
            receive_mode,
            timing,
            link_up,
            command,
            isr,
            imr,
            dcr,
            tcr,
            rcr,
            tsr,
            rsr,
            ncr,
            pstart,
            pstop,
            bnry,
            curr,
            overflowed,
            burst_left,
            empty_looks,
            par,
            mar,
            cntr,
            fifo,
            fifo_position,
            tpsr,
            tbcr,
            transmitter,
            clda,
            crda,
            rbcr,
            data_latch,
            local_next,
            remote_next,
            address_counter,
        } = *state;
        let maskable = Isr::INTERRUPTS.bits();
        require(command.page <= 3, "command.page")?;
        require(command.stopped || command.started, "command.stopped")?;
        require(isr & !maskable == 0, "isr")?;
        require(imr & !maskable == 0, "imr")?;
        require(tsr == 0 || is_result(tsr), "tsr")?;
        require(ncr <= 15, "ncr")?;
        require(burst_left < BURST, "burst_left")?;
        require(empty_looks <= LOOKS, "empty_looks")?;
        require(fifo_position <= 7, "fifo_position")?;
        require(transmitter_possible(transmitter, command), "transmitter")?;
        Ok(Self {
            kind,
            receive_mode,
            timing,
            link_up,
            now,
            command,
            isr: Isr::from_bits(isr),
            imr: Isr::from_bits(imr),
            dcr: Dcr::from_bits(dcr),
            tcr: Tcr::from_bits(tcr),
            rcr: Rcr::from_bits(rcr),
            tsr: Tsr::from_bits(tsr),
            rsr: Rsr::from_bits(rsr),
            ncr,
            pstart,
            pstop,
            bnry,
            curr,
            overflowed,
            burst_left,
            empty_looks,
            par,
            mar,
            tallies: Tallies::from_saved(cntr).ok_or("cntr")?,
            fifo: Fifo { bytes: fifo, position: fifo_position },
            tpsr,
            tbcr,
            transmitter: rebase(transmitter, 0, now),
            clda,
            crda,
            rbcr,
            data_latch,
            local_next,
            remote_next,
            address_counter,
        })
    }

    /// Puts `new` into PAR where `old` is.
    pub(crate) fn replace_station_address(&mut self, old: [u8; 6], new: [u8; 6]) {
        if self.par == old {
            self.par = new;
        }
    }
}

fn require(possible: bool, field: &'static str) -> Result<(), &'static str> {
    if possible { Ok(()) } else { Err(field) }
}

/// A running chip holds no request back, a frame has bytes, and none takes longer than they do.
fn transmitter_possible(transmitter: TransmitState, command: CommandState) -> bool {
    match transmitter {
        TransmitState::Idle => true,
        TransmitState::Held => command.stopped,
        TransmitState::Sending { frame, ends_at, result, .. } => {
            let in_time = ends_at.is_none_or(|left| left <= frame.micros());
            frame.length > 0 && in_time && is_result(result)
        }
    }
}

/// Whether a transmission can end with this in TSR.
fn is_result(tsr: u8) -> bool {
    [SENT, NO_CABLE, LOOPED_INSIDE, LOOPED_BY_ENCODER].contains(&Tsr::from_bits(tsr))
}

/// The same state of the transmitter on another clock.
const fn rebase(transmitter: TransmitState, from: u64, to: u64) -> TransmitState {
    match transmitter {
        TransmitState::Sending { frame, taken, ends_at: Some(at), result } => {
            TransmitState::Sending {
                frame,
                taken,
                ends_at: Some(at.saturating_sub(from).saturating_add(to)),
                result,
            }
        }
        TransmitState::Idle | TransmitState::Held | TransmitState::Sending { .. } => transmitter,
    }
}
