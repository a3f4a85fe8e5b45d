//! The card by its registers, as drivers see it.

#![expect(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::panic,
    reason = "patterns wrap on purpose; a helper that fails fails its test"
)]

mod chip_alone;
mod cves;
#[cfg(feature = "driver")]
mod driver;
mod drivers;
mod guest;
mod invariants;
#[cfg(feature = "embedded-hal")]
mod irq_line;
mod loopback;
mod reception;
mod registers;
mod remote_dma;
mod reports;
mod rtl8029;
mod saved_state;
mod transmission;
