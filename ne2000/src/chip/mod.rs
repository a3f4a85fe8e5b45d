//! The DP8390 itself: its registers, and what it does with the card's local memory.

mod command;
pub mod crc;
mod filter;
mod loopback;
mod page0;
mod page1;
mod page2;
pub mod regs;
mod remote_dma;
mod rx;
mod state;
mod tally;
mod tx;

pub use command::CommandState;
pub use remote_dma::RemoteDma;
pub use rx::{RxOutcome, WireError};
pub use state::ChipState;
pub use tx::{TransmitState, TxRange};

use loopback::Fifo;
use regs::{Dcr, Isr, Rcr, Rsr, Tcr, Tsr};
use tally::Tallies;

/// What a register without a reader answers: nothing drives the bus.
const OPEN_REGISTER: u8 = 0xFF;

/// The memory on the card, as the chip addresses it: 64 KiB, whatever of them is there.
pub trait LocalBus {
    /// The byte at `address`.
    fn byte(&self, address: u16) -> u8;
    /// Stores a byte, if `address` is in RAM.
    fn set_byte(&mut self, address: u16, value: u8);
    /// The bytes at `even` and behind it.
    fn word(&self, even: u16) -> [u8; 2] {
        [self.byte(even), self.byte(even | 1)]
    }
    /// Stores two bytes at `even` and behind it, where there is RAM.
    fn set_word(&mut self, even: u16, [first, second]: [u8; 2]) {
        self.set_byte(even, first);
        self.set_byte(even | 1, second);
    }
    /// The RAM behind `page`, if there is some.
    fn page_mut(&mut self, page: u8) -> Option<&mut [u8; 256]>;
    /// The bytes from `address` on that lie in one piece: at least one.
    fn piece(&self, address: u16) -> &[u8];
}

/// Which chip answers where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ChipKind {
    /// National Semiconductor's, and those that do as it does.
    Dp8390,
    /// Realtek's RTL8029AS.
    Rtl8029As,
}

/// What happens to a frame that does not fit into the receive ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ReceiveMode {
    /// It is refused and nothing changes: who offered it keeps it and tries again.
    #[default]
    BackPressure,
    /// As the hardware does: the frame is lost, ISR.OVW is set, and nothing more is received until
    /// the driver has stopped and started the chip.
    Strict,
}

/// When a transmission is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TransmitTiming {
    /// After the time that the frame's bits take at 10 Mbit/s. Some drivers lose received frames
    /// if ISR.PTX comes together with ISR.PRX (DOSBox Staging #4972).
    #[default]
    BitTime,
    /// As soon as the frame has been taken from the card.
    Instant,
}

/// The chip: a state machine without clock, bus or callbacks.
#[derive(Clone, Debug)]
pub struct Dp8390 {
    kind: ChipKind,
    receive_mode: ReceiveMode,
    timing: TransmitTiming,
    link_up: bool,
    /// The latest time that [`Dp8390::advance`] was told, in microseconds.
    now: u64,

    command: CommandState,
    /// Without RST, which [`Dp8390::isr`] derives.
    isr: Isr,
    imr: Isr,
    dcr: Dcr,
    tcr: Tcr,
    rcr: Rcr,
    tsr: Tsr,
    rsr: Rsr,
    ncr: u8,
    pstart: u8,
    pstop: u8,
    bnry: u8,
    curr: u8,
    /// The ring has overflowed, and the chip has not been stopped and started since.
    overflowed: bool,
    /// Frames that may still join those for which PRX was raised; none after an access.
    burst_left: u8,
    /// Looks at CURR since the last frame was stored that found the ring empty, up to
    /// [`rx::LOOKS`].
    empty_looks: u8,
    par: [u8; 6],
    mar: [u8; 8],
    tallies: Tallies,
    fifo: Fifo,

    tpsr: u8,
    tbcr: u16,
    transmitter: TransmitState,

    clda: u16,
    crda: u16,
    rbcr: u16,
    /// What the data port last carried; read again where nothing drives it.
    data_latch: u16,
    local_next: u8,
    remote_next: u8,
    address_counter: u16,
}

impl Dp8390 {
    /// A chip after power-on.
    pub const fn new(kind: ChipKind) -> Self {
        Self {
            kind,
            receive_mode: ReceiveMode::BackPressure,
            timing: TransmitTiming::BitTime,
            link_up: true,
            now: 0,
            command: CommandState::new(),
            isr: Isr::from_bits(0),
            imr: Isr::from_bits(0),
            // DP8390D datasheet, section 11.0, and NetBSD and MAME: a reset sets LAS.
            dcr: Dcr::LAS,
            tcr: Tcr::from_bits(0),
            rcr: Rcr::from_bits(0),
            tsr: Tsr::from_bits(0),
            rsr: Rsr::from_bits(0),
            ncr: 0,
            pstart: 0,
            pstop: 0,
            bnry: 0,
            curr: 0,
            overflowed: false,
            burst_left: 0,
            empty_looks: 0,
            par: [0; 6],
            mar: [0; 8],
            tallies: Tallies::new(),
            fifo: Fifo::new(),
            tpsr: 0,
            tbcr: 0,
            transmitter: TransmitState::Idle,
            clda: 0,
            crda: 0,
            rbcr: 0,
            data_latch: 0,
            local_next: 0,
            remote_next: 0,
            address_counter: 0,
        }
    }

    /// This chip after a power failure: its options, its cable and its clock are as before.
    pub(crate) const fn powered_on(&self) -> Self {
        let mut chip = Self::new(self.kind);
        chip.receive_mode = self.receive_mode;
        chip.timing = self.timing;
        chip.link_up = self.link_up;
        chip.now = self.now;
        chip
    }

    /// Chooses what happens to a frame that does not fit.
    pub const fn set_receive_mode(&mut self, mode: ReceiveMode) {
        self.receive_mode = mode;
    }

    /// Chooses when a transmission is complete.
    pub const fn set_timing(&mut self, timing: TransmitTiming) {
        self.timing = timing;
    }

    /// Plugs or unplugs the cable. Without one, nothing is received and every transmission ends
    /// with an error, as on a coaxial cable without its terminator (VirtualBox does the same).
    pub const fn set_link(&mut self, up: bool) {
        self.link_up = up;
    }

    /// Pulls the RESET pin (DP8390D datasheet, section 11.0): the chip stops, and every register
    /// that the datasheet does not name keeps its value.
    pub const fn reset(&mut self) {
        self.end_burst();
        self.command = CommandState::new();
        self.overflowed = false;
        self.transmitter = TransmitState::Idle;
        self.imr = Isr::from_bits(0);
        self.dcr = self.dcr.with(Dcr::LAS);
        self.tcr = self.tcr.without(Tcr::LB);
    }

    /// Reads the register at `offset`, 0 to 15, of the selected page.
    pub fn read(&mut self, offset: u8) -> u8 {
        self.end_burst();
        if offset == regs::CR {
            return self.read_command().bits();
        }
        match self.page() {
            0 => self.read_page0(offset),
            1 => self.read_page1(offset),
            2 => self.read_page2(offset),
            // No DP8390 has a page 3; VirtualBox and QEMU's ISA card read 0.
            _ => 0,
        }
    }

    /// Writes the register at `offset`, 0 to 15, of the selected page.
    pub fn write(&mut self, bus: &impl LocalBus, offset: u8, value: u8) {
        self.end_burst();
        if offset == regs::CR {
            return self.write_command(bus, regs::Cr::from_bits(value));
        }
        match self.page() {
            0 => self.write_page0(offset, value),
            1 => self.write_page1(offset, value),
            2 => self.write_page2(offset, value),
            _ => {}
        }
    }

    /// The register page that CR selects, 0 to 3.
    pub const fn page(&self) -> u8 {
        self.command.page
    }

    /// Whether the data port is two bytes wide (DCR.WTS).
    pub const fn word_mode(&self) -> bool {
        self.dcr.any_of(Dcr::WTS)
    }

    /// The interrupt status register.
    ///
    /// RST is set exactly while the chip is stopped, and from an overflow until the chip is started
    /// anew. A frame on its way out delays the stop (DP8390D datasheet, section 9).
    pub const fn isr(&self) -> Isr {
        let sending = matches!(self.transmitter, TransmitState::Sending { .. });
        if (self.command.stopped && !sending) || self.overflowed {
            self.isr.with(Isr::RST)
        } else {
            self.isr
        }
    }

    /// The level of the interrupt line: some bit of ISR is set that IMR lets through. RST never
    /// drives it.
    pub const fn irq_level(&self) -> bool {
        self.isr.any_of(self.imr)
    }

    /// Sets bits of ISR.
    const fn raise(&mut self, bits: Isr) {
        self.isr = self.isr.with(bits);
    }

    /// Clears bits of ISR, RST excepted, which is not stored.
    const fn acknowledge(&mut self, bits: Isr) {
        self.isr = self.isr.without(bits);
    }

    /// Whether the receiver and the transmitter run.
    const fn running(&self) -> bool {
        self.command.started && !self.command.stopped
    }

    /// Whether TCR parts the chip from the network. DCR.LS has no say: drivers leave it at normal
    /// operation and set a loopback mode only to be off the network while they recover from an
    /// overflow (Linux, NetBSD, ELKS, iPXE).
    const fn in_loopback(&self) -> bool {
        self.tcr.any_of(Tcr::LB)
    }
}

/// `word` with another low byte.
const fn with_low(word: u16, low: u8) -> u16 {
    let [_, high] = word.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// `word` with another high byte.
const fn with_high(word: u16, high: u8) -> u16 {
    let [low, _] = word.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// The first address of `page`.
const fn page_address(page: u8) -> u16 {
    u16::from_le_bytes([0, page])
}
