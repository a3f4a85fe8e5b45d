//! Card, NAT and `RingHost` as a Wasm module: what an emulator in a browser would load. It exports
//! the ports of the card and the turn of the NAT, and imports the host's sockets.

#![no_std]

mod host;

use core::panic::PanicInfo;

use host::{Sockets, report};
use ipstack::Instant;
use ne2000::driver::Ports;
use ne2000::{Model, Ne2000, Width};
use slirp_nat::Nat;
use slirpkit_embedded::{Buffers, Extent, Failure, Machine, Tables, card};
use static_cell::{ConstStaticCell, StaticCell};

static CARD: ConstStaticCell<Ne2000> = ConstStaticCell::new(card(Model::Rtl8029As));
static TABLES: ConstStaticCell<Tables> = ConstStaticCell::new(Tables::EMPTY);
static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::EMPTY);
static NIC: StaticCell<Nic> = StaticCell::new();

/// Everything behind the ports of one card.
pub type Nic = Machine<'static, Sockets>;

/// A card after power-on, and its network; null at the second call. All other functions take what
/// this one gave.
#[unsafe(no_mangle)]
pub extern "C" fn nic_start() -> Option<&'static mut Nic> {
    let card = CARD.try_take()?;
    let nic = Machine::new(Sockets, card, TABLES.try_take()?, BUFFERS.try_take()?).ok()?;
    NIC.try_init(nic)
}

/// The driver reads `width` bytes at `offset`.
#[unsafe(no_mangle)]
pub extern "C" fn nic_read(nic: &mut Nic, offset: u8, width: u8) -> u32 {
    nic.read(offset, width_of(width))
}

/// The driver writes `width` bytes at `offset`.
#[unsafe(no_mangle)]
pub extern "C" fn nic_write(nic: &mut Nic, offset: u8, width: u8, value: u32) {
    nic.write(offset, width_of(width), value);
}

/// The level of the interrupt line.
#[unsafe(no_mangle)]
pub extern "C" fn nic_irq_level(nic: &Nic) -> bool {
    nic.irq_level()
}

/// Does what is due at `now`, in microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn nic_turn(nic: &mut Nic, now: u64) {
    nic.turn(Instant::from_micros(now));
}

/// When a guest that wants to go on at `guest_at`, and this card, are next to be called.
#[unsafe(no_mangle)]
pub extern "C" fn nic_next_time(nic: &Nic, now: u64, guest_at: u64) -> u64 {
    nic.next_time(now, guest_at)
}

/// Reports the memory that there is, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn nic_report_memory() {
    for Extent { name, bytes, .. } in Tables::EXTENTS.iter().chain(&Buffers::EXTENTS) {
        report(name, *bytes as u64);
    }
    report("card", size_of::<Ne2000>() as u64);
    report("nat", size_of::<Nat<'_>>() as u64);
    report("machine", size_of::<Nic>() as u64);
}

/// Lets all that is left end, reports the counters, and says whether they are as they should be.
#[unsafe(no_mangle)]
pub extern "C" fn nic_finish(nic: &mut Nic) -> bool {
    nic.settle();
    for (name, value) in nic.counters() {
        report(name, value);
    }
    nic.check().map_err(|Failure(why)| report(why, 1)).is_ok()
}

const fn width_of(bytes: u8) -> Width {
    match bytes {
        1 => Width::Byte,
        2 => Width::Word,
        _ => Width::Dword,
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
