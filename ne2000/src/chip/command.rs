//! The command register (DP8390D datasheet, section 10.3, CR).

use super::regs::{Cr, Isr};
use super::tx::TransmitState;
use super::{Dp8390, LocalBus, RemoteDma};

/// What CR holds besides TXP, which the transmitter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CommandState {
    /// STP: set until the next start.
    pub stopped: bool,
    /// STA: once set it stays so until a reset, also while the chip is stopped. VirtualBox found it
    /// so on hardware, ELKS and ReactOS accept both, and NetBSD asks for 0 only after a reset.
    pub started: bool,
    /// The remote DMA command.
    pub remote: RemoteDma,
    /// The register page, 0 to 3.
    pub page: u8,
}

impl CommandState {
    pub(super) const fn new() -> Self {
        Self { stopped: true, started: false, remote: RemoteDma::Idle, page: 0 }
    }
}

impl Dp8390 {
    pub(super) const fn read_command(&self) -> Cr {
        let mut cr = self.command.remote.bits().with(Cr::from_bits(self.command.page << 6));
        if self.command.stopped {
            cr = cr.with(Cr::STP);
        }
        if self.command.started {
            cr = cr.with(Cr::STA);
        }
        if !matches!(self.transmitter, TransmitState::Idle) {
            cr = cr.with(Cr::TXP);
        }
        cr
    }

    pub(super) fn write_command(&mut self, bus: &impl LocalBus, cr: Cr) {
        self.command.page = cr.bits() >> 6;
        if cr.any_of(Cr::STA) {
            self.command.started = true;
        }
        if cr.any_of(Cr::STP) {
            self.command.stopped = true;
        } else if cr.any_of(Cr::STA) {
            self.start(bus);
        }
        // With neither bit the write only selects a page or a DMA command: Linux writes 20h and
        // iPXE 00h, 40h and 60h to a running card, which must go on.
        self.command_remote_dma(bus, cr);
        if cr.any_of(Cr::TXP) {
            self.request_transmission(bus);
        }
    }

    /// Leaves the stopped state. Only a start out of it ends an overflow: the datasheet's recovery
    /// stops the chip first, and drivers write 22h at any time to end a remote DMA.
    fn start(&mut self, bus: &impl LocalBus) {
        if !self.command.stopped {
            return;
        }
        self.command.stopped = false;
        self.overflowed = false;
        self.start_held_transmission(bus);
    }

    fn command_remote_dma(&mut self, bus: &impl LocalBus, cr: Cr) {
        self.command.remote = RemoteDma::from_command(cr);
        match self.command.remote {
            RemoteDma::Idle => {}
            // Linux's `ne` finds its interrupt by a read of no bytes, so that one completes too.
            RemoteDma::Read | RemoteDma::Write if self.rbcr == 0 => self.raise(Isr::RDC),
            RemoteDma::Read | RemoteDma::Write => {}
            RemoteDma::SendPacket => self.load_packet(bus),
        }
    }
}
