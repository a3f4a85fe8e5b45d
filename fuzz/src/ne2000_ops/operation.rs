//! What can happen to a card, with the values that broke other models among all values.

use arbitrary::{Arbitrary, Result, Unstructured};
use ne2000::{Model, Reset, Width, WireError};

use super::Choices;

/// One thing that happens.
#[derive(Arbitrary, Clone, Debug)]
pub enum Operation {
    /// An access of the driver's, in or past the card's window.
    Read(Port, AnyWidth),
    /// An access of the driver's, in or past the card's window.
    Write(Port, AnyWidth, u32),
    /// A write to a register of a page, which is selected first and disturbs nothing else.
    Register(Register),
    /// A write to the command register.
    Command(u8),
    /// The registers of the ring.
    Ring {
        /// PSTART.
        start: Page,
        /// PSTOP.
        stop: Page,
        /// BNRY.
        boundary: Page,
        /// CURR.
        current: Page,
    },
    /// A request to send.
    Send {
        /// TPSR.
        page: Page,
        /// TBCR.
        count: Count,
    },
    /// A remote DMA command.
    Remote(Direction, MemoryAddress, Count),
    /// Accesses to the data port.
    Data {
        /// In which direction.
        write: bool,
        /// How wide.
        width: AnyWidth,
        /// How many.
        accesses: u8,
    },
    /// A driver starts, and goes on from here.
    DriverStart(AnyWidth),
    /// It receives.
    DriverReceive,
    /// It sends this many bytes.
    DriverSend(u16),
    /// The network offers a frame.
    Receive(Frame),
    /// The network offers a damaged frame.
    ReceiveDamaged(Frame, AnyError),
    /// The network offers as many of these frames as there is room for.
    Burst(Frame),
    /// The network takes what is sent.
    Transmit,
    /// Time passes.
    Advance {
        /// This much of it.
        micros: u16,
    },
    /// The cable is plugged in, or not.
    Link(bool),
    /// The embedder chooses anew.
    Options(Choices),
    /// A reset.
    Reset(AnyReset),
    /// The state is saved, and restored to another card, which takes part from now on.
    SaveAndRestore {
        /// How far its clock is ahead.
        leap: u32,
    },
    /// The state is saved, and a lie restored to the card.
    RestoreMangled {
        /// Which field lies.
        field: u8,
        /// What it says.
        value: u64,
    },
}

/// A frame that is offered.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Frame {
    /// To whom; only some bits are used.
    pub destination: u8,
    /// Its bytes.
    pub length: Length,
    /// What makes its content.
    pub seed: u8,
}

/// A register of one of the four pages; only some bits of `page` and `offset` are used.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Register {
    /// Which page.
    pub page: u8,
    /// Which register.
    pub offset: u8,
    /// What is written.
    pub value: Page,
}

/// Where a remote DMA goes.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Direction {
    /// From the card.
    Read,
    /// To the card.
    Write,
    /// From the card, the frame at BNRY.
    SendPacket,
}

/// A type that is one of a few values.
macro_rules! one_of {
    ($($(#[$doc:meta])* $name:ident($inner:ty) = [$($value:expr),*];)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub $inner);

        impl<'a> Arbitrary<'a> for $name {
            fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
                u.choose(&[$($value),*]).map(|value| Self(*value))
            }
        }
    )*};
}

one_of! {
    /// A card.
    AnyModel(Model) =
        [Model::Ne1000, Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As];
    /// An access.
    AnyWidth(Width) = [Width::Byte, Width::Word, Width::Dword];
    /// A reset.
    AnyReset(Reset) = [Reset::Port, Reset::PowerOn];
    /// Damage.
    AnyError(WireError) = [WireError::Check, WireError::Alignment];
}

/// A number that is every other time one of those that broke other models.
macro_rules! often_one_of {
    ($($(#[$doc:meta])* $name:ident($inner:ty) = [$($value:expr),*];)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub $inner);

        impl<'a> Arbitrary<'a> for $name {
            fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
                let known = [$($value),*];
                let index = usize::from(u8::arbitrary(u)?) % (2 * known.len());
                known.get(index).map_or_else(|| u.arbitrary(), |value| Ok(*value)).map(Self)
            }
        }
    )*};
}

often_one_of! {
    /// An offset from the card's base: the data port, the reset port, the ends of the window.
    Port(u8) = [0x00, 0x07, 0x0F, 0x10, 0x11, 0x14, 0x16, 0x17, 0x18, 0x1D, 0x1F, 0x20, 0xFD, 0xFF];
    /// A page number, and with that any other byte.
    Page(u8) = [0x00, 0x20, 0x3F, 0x40, 0x46, 0x4C, 0x60, 0x7F, 0x80, 0xBF, 0xC0, 0xFF];
    /// A number of bytes to send or to move.
    Count(u16) = [0, 1, 2, 4, 59, 60, 61, 1514, 1515, 1518, 0xFFFF];
    /// An address on the card.
    MemoryAddress(u16) =
        [0, 0x1F, 0x20, 0x3FFE, 0x3FFF, 0x4000, 0x4600, 0x7FFE, 0x7FFF, 0xBFFE, 0xBFFF, 0xFFFF];
    /// Bytes of a frame.
    Length(u16) = [0, 5, 6, 14, 59, 60, 248, 249, 504, 505, 1514, 1518, 1519, 1600, 65_535];
}
