//! Card, NAT and `RingHost` on a PC without an operating system, with a scripted host behind them
//! and a guest at the card's registers. The result is on the serial port.

#![no_std]
#![no_main]

mod pc;
mod stack;

use core::arch::global_asm;
use core::fmt::{Display, Write};
use core::panic::PanicInfo;

use ipstack::Instant;
use ne2000::{Model, Ne2000, Width};
use pc::{Serial, Verdict, exit};
use slirp_nat::Nat;
use slirpkit_embedded::{
    Buffers, Extent, Failure, Guest, GuestMemory, Machine, Progress, Server, Tables, card,
};
use static_cell::{ConstStaticCell, StaticCell};

global_asm!(include_str!("boot.s"), STACK_LEN = const stack::LEN, options(att_syntax));

static NE2000: ConstStaticCell<Ne2000> = ConstStaticCell::new(card(Model::Ne2000));
static TABLES: ConstStaticCell<Tables> = ConstStaticCell::new(Tables::EMPTY);
static BUFFERS: ConstStaticCell<Buffers> = ConstStaticCell::new(Buffers::EMPTY);
static MACHINE: StaticCell<Machine<'static, Server>> = StaticCell::new();
static GUEST_MEMORY: ConstStaticCell<GuestMemory> = ConstStaticCell::new(GuestMemory::EMPTY);
static GUEST: StaticCell<Guest> = StaticCell::new();

/// Called by `boot.s`, once.
#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    print_memory();
    match run() {
        Ok(()) => exit(Verdict::Pass),
        Err(Failure(why)) => fail(why),
    }
}

fn print_memory() {
    for Extent { name, count, bytes } in Tables::EXTENTS.iter().chain(&Buffers::EXTENTS) {
        let _ = writeln!(Serial, "memory     {name:16} {count:6} {bytes:7} bytes");
    }
    for (name, bytes) in [
        ("card", size_of::<Ne2000>()),
        ("nat", size_of::<Nat<'_>>()),
        ("machine", size_of::<Machine<'_, Server>>()),
    ] {
        let _ = writeln!(Serial, "memory     {name:16} {:6} {bytes:7} bytes", 1);
    }
}

fn run() -> Result<(), Failure> {
    let machine = machine()?;
    let guest = GUEST.init(Guest::new(machine, Width::Word, GUEST_MEMORY.take())?);
    let mut now = 0;
    while guest.poll(now, machine, &mut Serial)? == Progress::Running {
        now = machine.next_time(now, guest.poll_at(now));
        machine.turn(Instant::from_micros(now));
    }
    guest.report(&mut Serial);
    machine.settle();
    for (name, value) in machine.counters() {
        let _ = writeln!(Serial, "counter    {name:34} {value:8}");
    }
    let used = stack::used();
    let _ = writeln!(Serial, "stack      {used} of {} bytes at most", stack::LEN);
    if used == stack::LEN {
        return Err(Failure("the stack may have been too small"));
    }
    machine.check()
}

/// Apart, so that what is moved to its place leaves the stack again.
#[inline(never)]
fn machine() -> Result<&'static mut Machine<'static, Server>, Failure> {
    let machine = Machine::new(Server::new(), NE2000.take(), TABLES.take(), BUFFERS.take());
    Ok(MACHINE.init(machine.map_err(|_| Failure("the tables do not suffice"))?))
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    fail(info)
}

fn fail(why: impl Display) -> ! {
    let _ = writeln!(Serial, "{why}");
    exit(Verdict::Fail)
}
