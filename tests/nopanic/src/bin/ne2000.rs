//! Everything that `ne2000` offers.
#![no_std]
#![no_main]

use ne2000::rtl8029::{PciConfig, PciState, Rtl8029As};
use ne2000::{
    MacPolicy, Model, Ne2000, Options, ReceiveMode, Reset, RxOutcome, State, TransmitState,
    TransmitTiming, TxRange, Width, WireError,
};
use slirpkit_nopanic::{any, any_bytes, hidden, keep, one_of};

slirpkit_nopanic::program!({
    let model = one_of(Model::Ne1000, &[Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As]);
    let mut card = Ne2000::with_options(model, any(), any_options());
    let mut function = Rtl8029As::new(any(), any_options());
    while any() {
        any_call(hidden(&mut card));
        any_call(function.card_mut());
        any_pci_call(hidden(&mut function));
    }
});

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
    keep((card.poll_at(), card.can_receive(), card.irq_level()));
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
