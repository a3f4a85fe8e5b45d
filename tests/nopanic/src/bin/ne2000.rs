//! Everything that `ne2000` offers.
#![no_std]
#![no_main]

use embedded_hal::digital::{ErrorKind, ErrorType, OutputPin};
use ne2000::crc::fcs;
use ne2000::driver::{Driver, Ports};
use ne2000::regs::Isr;
use ne2000::rtl8029::{PciConfig, PciState, Rtl8029As};
use ne2000::{
    ChipKind, Dp8390, IrqLine, IsaCard, LocalBus, MacPolicy, Model, Ne2000, Options, ReceiveMode,
    Reset, RxOutcome, State, TransmitState, TransmitTiming, TxRange, Width, WireError,
};
use slirpkit_nopanic::{any, any_bytes, hidden, keep, one_of};

slirpkit_nopanic::program!({
    let model = one_of(Model::Ne1000, &[Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As]);
    let mut card = Ne2000::with_options(model, any(), any_options());
    let mut function = Rtl8029As::new(any(), any_options());
    let mut chip = Dp8390::new(one_of(ChipKind::Dp8390, &[ChipKind::Rtl8029As]));
    let line = IrqLine::new(AnyPin);
    let mut isa = if any() {
        IsaCard::new(Ne2000::with_options(model, any(), any_options()), line)
    } else {
        IsaCard::restored(Ne2000::with_options(model, any(), any_options()), line)
    };
    while any() {
        any_chip_call(hidden(&mut chip), &mut AnyBus { page: any() });
        any_isa_call(hidden(&mut isa));
        any_call(hidden(&mut card));
        any_call(function.card_mut());
        any_pci_call(hidden(&mut function));
        any_driver(&mut AnyPorts);
        any_driver(&mut card);
    }
    let (last, mut line) = isa.into_parts();
    keep(last.irq_level());
    line.adopt(any());
    keep(line.sync(any()).is_ok());
    line.release();
});

/// A bus of which nothing is known.
struct AnyBus {
    page: [u8; 256],
}

impl LocalBus for AnyBus {
    fn byte(&self, address: u16) -> u8 {
        keep(address);
        any()
    }

    fn set_byte(&mut self, address: u16, value: u8) {
        keep((address, value));
    }

    fn page_mut(&mut self, page: u8) -> Option<&mut [u8; 256]> {
        keep(page);
        if any() { Some(&mut self.page) } else { None }
    }

    fn piece(&self, address: u16) -> &[u8] {
        keep(address);
        any_bytes()
    }
}

/// A pin that fails as it likes.
struct AnyPin;

impl ErrorType for AnyPin {
    type Error = ErrorKind;
}

impl OutputPin for AnyPin {
    fn set_low(&mut self) -> Result<(), ErrorKind> {
        if any() { Ok(()) } else { Err(ErrorKind::Other) }
    }

    fn set_high(&mut self) -> Result<(), ErrorKind> {
        if any() { Ok(()) } else { Err(ErrorKind::Other) }
    }
}

/// Ports that answer as they like.
struct AnyPorts;

impl Ports for AnyPorts {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        keep((offset, width));
        any()
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        keep((offset, width, value));
    }
}

fn any_driver(ports: &mut impl Ports) {
    let Ok(mut driver) = Driver::start(ports, any_width()) else {
        return;
    };
    while any() {
        keep((driver.can_send(ports), driver.send(ports, any_bytes())));
        keep(driver.receive(ports, hidden(&mut [0; 2048][..])));
        keep((driver.mac(), driver.ring_pages(), driver.stats()));
    }
}

fn any_chip_call(chip: &mut Dp8390, bus: &mut AnyBus) {
    chip.set_receive_mode(one_of(ReceiveMode::BackPressure, &[ReceiveMode::Strict]));
    chip.set_timing(one_of(TransmitTiming::BitTime, &[TransmitTiming::Instant]));
    keep(chip.remote_read(bus));
    chip.remote_write(bus, any());
    keep((chip.receive_room(), chip.transmission_pending()));
    keep(chip.take_transmission());
    let bits = Isr::from_bits(any());
    let changed = chip.isr().with(bits).without(Isr::from_bits(any()));
    keep((chip.word_mode(), changed.bits(), changed.any_of(bits)));
    keep((fcs(any_bytes()), any_width().bytes()));
    keep(one_of(Model::Ne1000, &[Model::Ne2000]).ram_len());
}

fn any_isa_call(isa: &mut IsaCard<AnyPin>) {
    keep(isa.read(any(), any_width()).0);
    keep(isa.write(any(), any_width(), any()).is_ok());
    keep(isa.receive(any_bytes()).0);
    keep(isa.transmit().1.is_ok());
    keep((isa.advance(any()).is_ok(), isa.sync().is_ok()));
    keep(isa.reset(one_of(Reset::PowerOn, &[Reset::Port])).is_ok());
    keep(isa.card().irq_level());
    any_call(isa.card_mut());
}

fn any_options() -> Options {
    Options {
        receive_mode: one_of(ReceiveMode::BackPressure, &[ReceiveMode::Strict]),
        timing: one_of(TransmitTiming::BitTime, &[TransmitTiming::Instant]),
        pad_received: any(),
    }
}

fn any_width() -> Width {
    one_of(Width::Byte, &[Width::Word, Width::Dword])
}

fn any_call(card: &mut Ne2000) {
    keep(card.read(any(), any_width()));
    card.write(any(), any_width(), any());
    keep::<RxOutcome>(card.receive(any_bytes()));
    let error = one_of(WireError::Check, &[WireError::Alignment]);
    keep(card.receive_damaged(any_bytes(), error));
    if let Some(frame) = card.transmit() {
        keep((frame.len(), frame.as_slice()));
        frame.pieces().for_each(keep);
        keep(frame.copy_to(hidden(&mut [0; 2048][..])));
    }
    card.advance(any());
    keep((card.poll_at(), card.irq_level(), card.transmit_pending()));
    keep((card.receive_room(), card.can_receive()));
    keep((card.model(), card.mac(), card.prom(), card.ram(), card.stats()));
    card.set_link(any());
    card.set_options(any_options());
    card.reset(one_of(Reset::PowerOn, &[Reset::Port]));
    let state = any_state(card);
    let policy = one_of(MacPolicy::Saved, &[MacPolicy::Replace(any())]);
    keep(card.restore(&state, any_bytes(), policy, any()).is_ok());
}

/// A state of which nothing is known where the code looks at it.
fn any_state(card: &Ne2000) -> State {
    let mut state = *hidden(&mut card.state());
    state.version = any();
    state.chip.command.page = any();
    state.chip.cntr = any();
    state.chip.fifo_position = any();
    state.chip.burst_left = any();
    state.chip.empty_looks = any();
    state.chip.tbcr = any();
    let frame = TxRange { address: any(), length: any() };
    state.chip.transmitter =
        TransmitState::Sending { frame, taken: any(), ends_at: any(), result: any() };
    state.page3.mode = any();
    state
}

fn any_pci_call(function: &mut Rtl8029As) {
    keep(function.io_read(any(), any_width()));
    keep(function.io_write(any(), any_width(), any()));
    keep(function.config().read(any(), any_width()));
    function.config_mut().write(any(), any_width(), any());
    keep((function.config().io_base(), function.config().rom_base()));
    let state = PciState { command: any(), bar0: any(), rom_bar: any(), interrupt_line: any() };
    *function.config_mut() = PciConfig::from_state(&state);
    keep(function.card().irq_level());
    function.reset();
}
