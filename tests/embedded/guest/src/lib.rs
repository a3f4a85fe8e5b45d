//! The guest as a Wasm module: it imports the ports of a card and a place for its lines.

#![no_std]

use core::fmt::{self, Write};
use core::panic::PanicInfo;

use ne2000::Width;
use ne2000::driver::Ports;
use slirpkit_embedded::{Failure, Guest, GuestMemory, Progress};
use static_cell::{ConstStaticCell, StaticCell};

static MEMORY: ConstStaticCell<GuestMemory> = ConstStaticCell::new(GuestMemory::EMPTY);
static GUEST: StaticCell<Guest> = StaticCell::new();

#[link(wasm_import_module = "card")]
unsafe extern "C" {
    safe fn read(offset: u32, width: u32) -> u32;
    safe fn write(offset: u32, width: u32, value: u32);
}

#[link(wasm_import_module = "console")]
unsafe extern "C" {
    /// Reads `len` bytes of UTF-8 at `text`, and keeps nothing.
    safe fn print(text: *const u8, len: usize);
}

struct Card;

impl Ports for Card {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        read(offset.into(), width.bytes().into())
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        write(offset.into(), width.bytes().into(), value);
    }
}

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print(text.as_ptr(), text.len());
        Ok(())
    }
}

/// What [`guest_poll`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Answer {
    /// To be called again.
    Running = 0,
    /// All was as it should be.
    Passed = 1,
    /// Something was not, and has been printed.
    Failed = 2,
}

/// Starts the card. The guest, or null if the card does not start, or at the second call.
#[unsafe(no_mangle)]
pub extern "C" fn guest_start() -> Option<&'static mut Guest> {
    let guest = Guest::new(&mut Card, Width::Dword, MEMORY.try_take()?).map_err(say).ok()?;
    GUEST.try_init(guest)
}

/// See [`Guest::poll`]; `now` is in microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn guest_poll(guest: &mut Guest, now: u64) -> Answer {
    match guest.poll(now, &mut Card, &mut Console) {
        Ok(Progress::Running) => Answer::Running,
        Ok(Progress::Passed) => Answer::Passed,
        Err(failure) => {
            say(failure);
            Answer::Failed
        }
    }
}

/// See [`Guest::poll_at`].
#[unsafe(no_mangle)]
pub extern "C" fn guest_poll_at(guest: &mut Guest, now: u64) -> u64 {
    guest.poll_at(now)
}

/// Prints what the guest sent and received.
#[unsafe(no_mangle)]
pub extern "C" fn guest_report(guest: &Guest) {
    guest.report(&mut Console);
}

fn say(Failure(why): Failure) {
    let _ = writeln!(Console, "{why}");
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
