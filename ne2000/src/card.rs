//! The card: a DP8390, its memory and its ports.

use crate::chip::{
    ChipKind, Dp8390, LocalBus, ReceiveMode, RxOutcome, TransmitTiming, TxRange, WireError,
};
use crate::memory::{Memory, Model, PROM_LEN};
use crate::ports::Port;
use crate::rtl8029::Page3;
use crate::stats::Stats;

/// The shortest frame on Ethernet, in bytes without its check sequence.
pub const MIN_FRAME_LEN: usize = 60;

/// The longest frame that a card takes, in bytes without its check sequence: 1,514 and a VLAN tag.
pub const MAX_FRAME_LEN: usize = 1518;

/// The width of an access to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    Byte,
    /// Two bytes.
    Word,
    /// Four bytes.
    Dword,
}

impl Width {
    /// Its bytes.
    pub const fn bytes(self) -> u8 {
        match self {
            Self::Byte => 1,
            Self::Word => 2,
            Self::Dword => 4,
        }
    }
}

/// Which reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// The machine was switched on, or reset: registers and RAM are as in a new card. The link, the
    /// options, the clock and the statistics stay.
    PowerOn,
    /// The reset port was accessed: the chip's RESET pin. RAM and most registers keep their values.
    Port,
}

/// The choices that no driver can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Options {
    /// What happens to a received frame for which there is no room.
    pub receive_mode: ReceiveMode,
    /// When a transmission is complete.
    pub timing: TransmitTiming,
    /// Received frames of less than [`MIN_FRAME_LEN`] are filled up with zeros first. Whoever makes
    /// frames without a cable seldom does so, and the chip drops what is shorter.
    pub pad_received: bool,
}

impl Options {
    /// Back-pressure, bit time, padding.
    pub const DEFAULT: Self = Self {
        receive_mode: ReceiveMode::BackPressure,
        timing: TransmitTiming::BitTime,
        pad_received: true,
    };
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A card.
///
/// - Inputs: [`read`](Self::read), [`write`](Self::write), [`receive`](Self::receive),
///   [`advance`](Self::advance).
/// - Outputs, to look at after each input: [`transmit`](Self::transmit),
///   [`irq_level`](Self::irq_level), [`poll_at`](Self::poll_at),
///   [`receive_room`](Self::receive_room).
/// - Commands: [`set_link`](Self::set_link), [`set_options`](Self::set_options),
///   [`reset`](Self::reset).
///
/// ```
/// use ne2000::{Model, Ne2000, Width};
///
/// static CARD: Ne2000 = Ne2000::new(Model::Ne2000, [0x52, 0x54, 0, 0x12, 0x34, 0x56]);
///
/// let mut card = CARD.clone();
/// assert_eq!(card.read(0x00, Width::Byte), 0x21, "stopped, no DMA, page 0");
/// card.write(0x00, Width::Byte, 0x22);
/// assert!(!card.irq_level());
/// assert!(card.transmit().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Ne2000 {
    pub(crate) model: Model,
    pub(crate) mac: [u8; 6],
    pub(crate) pad_received: bool,
    pub(crate) chip: Dp8390,
    pub(crate) memory: Memory,
    pub(crate) page3: Page3,
    pub(crate) stats: Stats,
}

impl Ne2000 {
    /// A card after power-on, with `mac` in its PROM.
    pub const fn new(model: Model, mac: [u8; 6]) -> Self {
        Self::with_options(model, mac, Options::DEFAULT)
    }

    /// The same with other options.
    pub const fn with_options(model: Model, mac: [u8; 6], options: Options) -> Self {
        let mut card = Self {
            model,
            mac,
            pad_received: options.pad_received,
            chip: Dp8390::new(chip_kind(model)),
            memory: Memory::new(model, mac),
            page3: Page3::new(mac),
            stats: Stats::new(),
        };
        card.set_options(options);
        card
    }

    /// Which card this is.
    pub const fn model(&self) -> Model {
        self.model
    }

    /// The station address in the PROM. A driver may have put another one into PAR.
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The PROM's contents.
    pub const fn prom(&self) -> &[u8; PROM_LEN] {
        self.memory.prom()
    }

    /// The packet RAM, from its first address on: 8 or 16 KiB.
    pub fn ram(&self) -> &[u8] {
        self.memory.ram()
    }

    /// What became of the frames so far.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Chooses anew; takes effect with the next frame.
    pub const fn set_options(&mut self, options: Options) {
        self.pad_received = options.pad_received;
        self.chip.set_receive_mode(options.receive_mode);
        self.chip.set_timing(options.timing);
    }

    /// Plugs or unplugs the cable; it is plugged in at first.
    pub const fn set_link(&mut self, up: bool) {
        self.chip.set_link(up);
    }

    /// Resets the card.
    pub fn reset(&mut self, reset: Reset) {
        match reset {
            Reset::Port => self.chip.reset(),
            Reset::PowerOn => {
                self.chip = self.chip.powered_on();
                self.page3.power_on();
                self.memory.clear_ram();
            }
        }
    }

    /// An access of the driver's to port `offset` from the card's base. Registers are a byte wide,
    /// and a wider access is one to each; what nothing answers reads as ones.
    pub fn read(&mut self, offset: u8, width: Width) -> u32 {
        let mut value = 0;
        let mut done = 0;
        while done < width.bytes() {
            let port = offset.saturating_add(done);
            let (part, len) = self.read_cycle(port, width.bytes().wrapping_sub(done));
            value |= u32::from(part).wrapping_shl(u32::from(done).wrapping_mul(8));
            done = done.wrapping_add(len);
        }
        value
    }

    /// An access of the driver's to port `offset` from the card's base.
    pub fn write(&mut self, offset: u8, width: Width, value: u32) {
        let mut done = 0;
        while done < width.bytes() {
            let port = offset.saturating_add(done);
            let [low, high, ..] = value.wrapping_shr(u32::from(done).wrapping_mul(8)).to_le_bytes();
            let len = self.write_cycle(port, width.bytes().wrapping_sub(done), [low, high]);
            done = done.wrapping_add(len);
        }
    }

    /// One bus cycle, of up to `left` bytes: what was read, and how many bytes it was.
    fn read_cycle(&mut self, offset: u8, left: u8) -> (u16, u8) {
        match Port::at(self.model, offset) {
            Port::Register(register) => (u16::from(self.read_register(register)), 1),
            Port::Data => {
                let word = self.chip.remote_read(&self.memory);
                if left >= 2 && self.word_port(offset) { (word, 2) } else { (word & 0xFF, 1) }
            }
            Port::Reset => {
                self.chip.reset();
                (0, 1)
            }
            Port::Open => (0xFF, 1),
        }
    }

    fn write_cycle(&mut self, offset: u8, left: u8, [low, high]: [u8; 2]) -> u8 {
        match Port::at(self.model, offset) {
            Port::Register(register) => self.write_register(register, low),
            Port::Data if left >= 2 && self.word_port(offset) => {
                self.chip.remote_write(&mut self.memory, u16::from_le_bytes([low, high]));
                return 2;
            }
            Port::Data => self.chip.remote_write(&mut self.memory, u16::from(low)),
            Port::Reset => self.chip.reset(),
            Port::Open => {}
        }
        1
    }

    /// Whether the data port at `offset` takes two bytes in a cycle. In byte mode the card does not
    /// claim a wide cycle, and the bus makes two of it, as it does at odd addresses.
    const fn word_port(&self, offset: u8) -> bool {
        self.model.wide_slot() && self.chip.word_mode() && offset & 1 == 0
    }

    fn read_register(&mut self, register: u8) -> u8 {
        if self.on_page3(register) { self.page3.read(register) } else { self.chip.read(register) }
    }

    fn write_register(&mut self, register: u8, value: u8) {
        if self.on_page3(register) {
            self.page3.write(register, value);
        } else {
            self.chip.write(&self.memory, register, value);
        }
    }

    fn on_page3(&self, register: u8) -> bool {
        self.model == Model::Rtl8029As && self.chip.page() == 3 && register != crate::regs::CR
    }

    /// Offers the card a frame from the network, without its check sequence.
    pub fn receive(&mut self, frame: &[u8]) -> RxOutcome {
        let mut padded = [0; MIN_FRAME_LEN];
        let outcome = if frame.len() > MAX_FRAME_LEN {
            // The chip itself would take more, as long as the ring has room; no driver does.
            RxOutcome::Oversize
        } else if self.pad_received && frame.len() < MIN_FRAME_LEN {
            padded.iter_mut().zip(frame).for_each(|(to, byte)| *to = *byte);
            self.chip.receive(&mut self.memory, &padded)
        } else {
            self.chip.receive(&mut self.memory, frame)
        };
        self.stats.count(outcome);
        outcome
    }

    /// Offers the card a frame that was damaged on the cable, as it is.
    pub fn receive_damaged(&mut self, frame: &[u8], error: WireError) -> RxOutcome {
        let outcome = if frame.len() > MAX_FRAME_LEN {
            RxOutcome::Oversize
        } else {
            self.chip.receive_damaged(&mut self.memory, frame, error)
        };
        self.stats.count(outcome);
        outcome
    }

    /// How many frames, of any length each, may be offered before the driver's next access without
    /// one being refused for lack of room. In strict mode any number: a cable waits for nobody.
    ///
    /// In back-pressure mode, while the receiver is on, that is what the ring has pages for, and at
    /// most a burst of eight frames: while ISR.PRX is clear, and, once the first of them has set
    /// it, until the driver's next access. From then on it is none until the driver has
    /// acknowledged PRX. Linux's 8390 driver serves at most nine frames a call and acknowledges PRX
    /// behind them without another look: a frame beyond those, or one stored between its last look
    /// at CURR and its acknowledgment, would lie in the ring until yet another one arrives. For a
    /// driver that acknowledges frames that it has not fetched, a burst leaves room for that one,
    /// and it comes alone.
    ///
    /// A driver that polls, as iPXE, acknowledges nothing. A new burst begins for it once it has
    /// looked at CURR in an empty ring four times.
    ///
    /// A ring of less than eight pages has no room for the longest frame; there, what is promised is
    /// that a frame fits that the ring takes at all. Changes with each access and with
    /// [`receive`](Self::receive).
    #[must_use]
    pub fn receive_room(&self) -> usize {
        self.chip.receive_room()
    }

    /// Whether to offer a frame now: whether [`receive_room`](Self::receive_room) is not 0.
    #[must_use]
    pub fn can_receive(&self) -> bool {
        self.receive_room() > 0
    }

    /// Whether [`transmit`](Self::transmit) has a frame to give.
    #[must_use]
    pub const fn transmit_pending(&self) -> bool {
        self.chip.transmission_pending()
    }

    /// Takes the frame that the card sends, once for each transmission. Changes with each write.
    #[must_use]
    pub fn transmit(&mut self) -> Option<TxFrame<'_>> {
        let range = self.begin_transmit()?;
        Some(self.frame(range))
    }

    pub(crate) fn begin_transmit(&mut self) -> Option<TxRange> {
        let range = self.chip.take_transmission()?;
        self.stats.transmitted = self.stats.transmitted.saturating_add(1);
        Some(range)
    }

    pub(crate) const fn frame(&self, range: TxRange) -> TxFrame<'_> {
        TxFrame { memory: &self.memory, range }
    }

    /// The level of the interrupt line. Changes with every input.
    #[must_use]
    pub const fn irq_level(&self) -> bool {
        self.chip.irq_level()
    }

    /// Tells the time, in microseconds from any start; a step back counts as none.
    pub fn advance(&mut self, now_micros: u64) {
        self.chip.advance(now_micros);
    }

    /// When to call [`advance`](Self::advance) next, in microseconds; `None` if nothing waits for
    /// the time. A transmission begins at the first call of `advance` after the driver asked for
    /// it. Changes with each write, with `advance` and with [`transmit`](Self::transmit).
    #[must_use]
    pub fn poll_at(&self) -> Option<u64> {
        self.chip.poll_at()
    }
}

pub(crate) const fn chip_kind(model: Model) -> ChipKind {
    match model {
        Model::Ne1000 | Model::Ne2000 | Model::Ne2000EightBit => ChipKind::Dp8390,
        Model::Rtl8029As => ChipKind::Rtl8029As,
    }
}

/// A frame on its way to the network, where it lies in the card's memory. It has as many bytes as
/// the driver said, possibly less than the 60 that a cable wants and possibly far more than 1,514.
#[derive(Clone, Copy, Debug)]
pub struct TxFrame<'a> {
    memory: &'a Memory,
    range: TxRange,
}

impl<'a> TxFrame<'a> {
    /// Bytes of the frame: at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    pub const fn len(&self) -> usize {
        self.range.length as usize
    }

    /// The pieces it lies in: one for every frame within the RAM, and more where the chip's
    /// addresses leave the RAM and come to the PROM or back to the RAM's alias.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let memory = self.memory;
        let TxRange { mut address, mut length } = self.range;
        core::iter::from_fn(move || {
            if length == 0 {
                return None;
            }
            let piece = memory.piece(address);
            let piece = piece.get(..usize::from(length)).unwrap_or(piece);
            // No piece is longer than `length` or the RAM, so this loses nothing.
            let step = u16::try_from(piece.len()).unwrap_or(u16::MAX);
            address = address.wrapping_add(step);
            length = length.saturating_sub(step);
            Some(piece)
        })
    }

    /// The frame in one piece, unless it leaves the RAM.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'a [u8]> {
        self.memory.piece(self.range.address).get(..self.len())
    }

    /// Copies as much of the frame as `buffer` takes, and says how much that is.
    pub fn copy_to(&self, buffer: &mut [u8]) -> usize {
        let bytes = self.pieces().flatten();
        buffer.iter_mut().zip(bytes).map(|(to, byte)| *to = *byte).count()
    }
}
