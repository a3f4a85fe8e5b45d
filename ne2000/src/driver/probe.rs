//! Finding out which card there is.

use core::fmt;

use super::data_port::{DataPort, Ports, get, set};
use super::{BYTE_MODE, STOP};
use crate::card::Width;
use crate::chip::regs::page0_read as r;
use crate::chip::regs::page0_write as w;
use crate::chip::regs::{CR, Isr, Rcr, Tcr};
use crate::memory::PROM_LEN;

/// Offset of the reset port.
const RESET: u8 = 0x1F;
/// Looks at ISR for the end of a reset.
const LOOKS: u16 = 1_000;

/// Why a driver did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverError {
    /// Nothing answers at the ports.
    NoCard,
    /// The reset port does not reset.
    NoReset,
    /// The station PROM bears no signature of this family.
    NoSignature,
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCard => "no card answers",
            Self::NoReset => "the card does not reset",
            Self::NoSignature => "the card's PROM has no signature",
        })
    }
}

impl core::error::Error for DriverError {}

/// What the station PROM tells.
pub(super) struct Found {
    pub(super) mac: [u8; 6],
    /// Whether the data port is two bytes wide.
    pub(super) wide_slot: bool,
    /// The packet RAM's first page.
    pub(super) first_page: u8,
    /// The packet RAM's last page.
    pub(super) last_page: u8,
}

pub(super) fn probe(ports: &mut impl Ports) -> Result<Found, DriverError> {
    if get(ports, CR) == 0xFF {
        return Err(DriverError::NoCard);
    }
    let value = get(ports, RESET);
    set(ports, RESET, value);
    if !(0..LOOKS).any(|_| Isr::from_bits(get(ports, r::ISR)).any_of(Isr::RST)) {
        return Err(DriverError::NoReset);
    }
    for (offset, value) in [
        (CR, STOP.bits()),
        (w::DCR, BYTE_MODE.bits()),
        (w::RBCR0, 0),
        (w::RBCR1, 0),
        (w::IMR, 0),
        (w::ISR, 0xFF),
        (w::RCR, Rcr::MON.bits()),
        (w::TCR, Tcr::LB_INTERNAL.bits()),
    ] {
        set(ports, offset, value);
    }
    let mut prom = [0; PROM_LEN];
    DataPort { width: Width::Byte, words: false }.input(ports, 0, &mut prom);
    identify(&prom).ok_or(DriverError::NoSignature)
}

/// An NE1000's PROM has every byte once and its signature at 0Eh; the others' have every byte
/// twice, and at 1Ch the letter of their slot's width.
fn identify(prom: &[u8; PROM_LEN]) -> Option<Found> {
    let (pairs, _) = prom.as_chunks::<2>();
    let signature = |at: usize| pairs.get(at).copied();
    if signature(7) == Some(*b"WW") {
        let mac = *prom.first_chunk()?;
        return Some(Found { mac, wide_slot: false, first_page: 0x20, last_page: 0x3F });
    }
    let mut mac = [0; 6];
    mac.iter_mut().zip(pairs).for_each(|(to, [byte, _])| *to = *byte);
    match signature(14)? {
        [b'W', b'W'] => Some(Found { mac, wide_slot: true, first_page: 0x40, last_page: 0x7F }),
        [b'B', b'B'] => Some(Found { mac, wide_slot: false, first_page: 0x40, last_page: 0x5F }),
        _ => None,
    }
}
