//! A card with a NAT behind it, in the process of a stock QEMU.
//!
//! Preloaded into `qemu-system-x86_64` (`LD_PRELOAD`), this library lays an [`ne2000::Ne2000`] over
//! what the machine has, once the machine is complete. A driver in the guest then drives this card
//! by its registers; the NAT and its sockets are served by QEMU's main loop. Variables of the
//! environment say what is wanted:
//!
//! - `SLIRPKIT_OVERLAY=pci:ID`: an RTL8029AS over the ports of `-device ne2k_pci,id=ID`, which gives
//!   the place in the PCI bus and nothing else.
//! - `SLIRPKIT_OVERLAY=isa:PORT:IRQ`: an NE2000 at these ports, where the machine has no device.
//!   The port is hexadecimal.
//! - `SLIRPKIT_CONTROL=PATH`: a unix socket at which tests ask what has happened; see `control.rs`.
//! - `SLIRPKIT_BOOTFILE=NAME-OR-URL`: what the NAT tells the guest to boot.
//!
//! QEMU exports its functions to modules of its own making only; they are no public interface.
//! What is relied on here is the same in its versions 7.2 to 11.1.
#![deny(unsafe_code)]

mod alarm;
mod control;
mod qemu;
mod report;
mod service;
mod slot;
mod stalls;

use std::process::exit;

use crate::service::Service;

/// Called by QEMU when the machine has all its devices, before the guest runs.
fn lay() {
    let laid = slot::Slot::from_environment().and_then(|slot| {
        let service = Service::new(slot.model())?;
        qemu::install(&slot, service)
    });
    if let Err(error) = laid {
        eprintln!("qemu-overlay: {error}");
        exit(1);
    }
}
