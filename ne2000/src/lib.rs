#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

mod card;
mod chip;
#[cfg(feature = "driver")]
pub mod driver;
#[cfg(feature = "embedded-hal")]
mod irq;
#[cfg(feature = "embedded-hal")]
mod isa;
mod memory;
mod ports;
pub mod rtl8029;
mod state;
mod stats;

pub use card::{MAX_FRAME_LEN, MIN_FRAME_LEN, Ne2000, Options, Reset, TxFrame, Width};
pub use chip::{
    ChipKind, ChipState, CommandState, Dp8390, LocalBus, ReceiveMode, RemoteDma, RxOutcome,
    TransmitState, TransmitTiming, TxRange, WireError, crc, regs,
};
#[cfg(feature = "embedded-hal")]
pub use irq::IrqLine;
#[cfg(feature = "embedded-hal")]
pub use isa::IsaCard;
pub use memory::{Model, PACKET_RAM_LEN, PAGE_LEN, PROM_LEN};
pub use state::{MacPolicy, RestoreError, STATE_VERSION, State};
pub use stats::Stats;
