//! State out and in.

use ne2000::{
    ChipState, CommandState, MacPolicy, Model, Ne2000, RestoreError, State, TransmitState, TxRange,
};

use crate::guest::{Guest, MAC, PTX, frame};

fn busy() -> Guest {
    let mut guest = Guest::new(Model::Rtl8029As);
    guest.bring_up(0x46, 0x80);
    guest.card.advance(1_000);
    guest.receive(&frame(MAC, 300, 1));
    guest.poke(0x4000, &frame(MAC, 1514, 2));
    guest.send(0x40, 1514);
    guest.card.advance(1_100);
    guest.remote(0x4700, 100, 0x0A);
    guest.inl(0x10);
    guest.outs(&[(0x00, 0xEA), (0x01, 0x8A), (0x01, 0x8E)]);
    guest
}

fn restored(card: &Ne2000, now: u64) -> Ne2000 {
    let mut other = Ne2000::new(Model::Ne1000, [0; 6]);
    other.restore(&card.state(), card.ram(), MacPolicy::Saved, now).expect("own state");
    other
}

#[test]
fn restored_card_is_the_same_card() {
    let guest = busy();
    let other = restored(&guest.card, 1_100);
    assert_eq!(other.state(), guest.card.state());
    assert_eq!((other.ram(), other.prom()), (guest.card.ram(), guest.card.prom()));
    assert_eq!((other.model(), other.mac()), (Model::Rtl8029As, MAC));
    assert_eq!(other.irq_level(), guest.card.irq_level());
}

#[test]
fn transmission_ends_after_the_time_that_was_left() {
    let mut guest = busy();
    guest.collect();
    let left = guest.card.poll_at().expect("a deadline") - 1_100;
    let mut other = restored(&guest.card, 77_000);
    assert_eq!(other.poll_at(), Some(77_000 + left));
    other.advance(77_000 + left);
    assert_eq!(other.state().chip.isr & PTX, PTX);
}

#[test]
fn address_can_be_replaced() {
    let new = [2, 2, 2, 2, 2, 2];
    let guest = busy();
    let mut card = Ne2000::new(Model::Rtl8029As, [0; 6]);
    card.restore(&guest.card.state(), guest.card.ram(), MacPolicy::Replace(new), 0).expect("state");
    assert_eq!(
        (card.mac(), card.prom()[..12].to_vec(), card.state().chip.par),
        (new, vec![2; 12], new)
    );
    assert_eq!(card.state().page3.eeprom.words[0][1..4], [0x0202; 3]);
}

#[test]
fn address_of_the_drivers_own_choice_is_kept() {
    let mut guest = busy();
    guest.outs(&[(0x00, 0x62), (0x01, 0x06)]);
    let par = guest.card.state().chip.par;
    let mut card = guest.card.clone();
    card.restore(&guest.card.state(), guest.card.ram(), MacPolicy::Replace([2; 6]), 0)
        .expect("state");
    assert_eq!(card.state().chip.par, par);
}

type Change = fn(&mut State);

#[test]
fn impossible_states_are_refused_and_change_nothing() {
    let changes: [(&str, Change); 19] = [
        ("command.page", |s| s.chip.command.page = 4),
        ("command.stopped", |s| {
            s.chip.command = CommandState { stopped: false, started: false, ..s.chip.command };
        }),
        ("isr", |s| s.chip.isr = 0x80),
        ("imr", |s| s.chip.imr = 0x80),
        ("tsr", |s| s.chip.tsr = 0x80),
        ("ncr", |s| s.chip.ncr = 16),
        ("burst_left", |s| s.chip.burst_left = 8),
        ("empty_looks", |s| s.chip.empty_looks = 5),
        ("fifo_position", |s| s.chip.fifo_position = 8),
        ("cntr", |s| s.chip.cntr[1] = 193),
        ("transmitter", |s| s.chip.transmitter = TransmitState::Held),
        ("transmitter", |s| {
            let frame = TxRange { address: 0x4000, length: 60 };
            s.chip.transmitter =
                TransmitState::Sending { frame, taken: true, ends_at: Some(69), result: 1 };
        }),
        ("transmitter", |s| {
            let frame = TxRange { address: 0x4000, length: 0 };
            s.chip.transmitter =
                TransmitState::Sending { frame, taken: false, ends_at: None, result: 1 };
        }),
        ("page3.mode", |s| s.page3.mode = 0x40),
        ("page3.mode", |s| s.page3.mode = 0x81),
        ("page3.mode", |s| s.page3.mode = 1),
        ("page3.config2", |s| s.page3.config2 = 0x41),
        ("page3.config3", |s| s.page3.config3 = 0x48),
        ("transmitter", |s| {
            let frame = TxRange { address: 0x4000, length: 60 };
            s.chip.transmitter =
                TransmitState::Sending { frame, taken: true, ends_at: None, result: 0x20 };
        }),
    ];
    let guest = busy();
    for (field, change) in changes {
        let mut state = guest.card.state();
        change(&mut state);
        let mut card = Ne2000::new(Model::Ne2000, MAC);
        let refused = card.restore(&state, guest.card.ram(), MacPolicy::Saved, 0);
        assert_eq!(refused, Err(RestoreError::Impossible(field)));
        let text = refused.expect_err("as just seen").to_string();
        assert_eq!(text, format!("impossible value of {field}"));
        assert_eq!(card.state(), Ne2000::new(Model::Ne2000, MAC).state());
    }
}

#[test]
fn other_versions_and_lengths_are_refused() {
    let guest = busy();
    let mut card = guest.card.clone();
    let mut state = guest.card.state();
    let ram = [0; 8192];
    let refused = card.restore(&state, &ram, MacPolicy::Saved, 0).expect_err("half the RAM");
    assert_eq!(refused, RestoreError::RamLength { given: 8192, wanted: 16_384 });
    assert_eq!(refused.to_string(), "8192 bytes of RAM, not 16384");
    state.version = 1;
    let refused = card.restore(&state, guest.card.ram(), MacPolicy::Saved, 0).expect_err("version");
    assert_eq!(refused, RestoreError::Version(1));
    assert_eq!(refused.to_string(), "state of version 1, not 2");
}

#[test]
fn every_register_value_can_be_restored() {
    let mut state = busy().card.state();
    state.chip = ChipState {
        pstart: 0xFF,
        pstop: 0,
        bnry: 0xFF,
        curr: 0xFF,
        tpsr: 0xFF,
        tbcr: 0xFFFF,
        crda: 0xFFFF,
        rbcr: 0xFFFF,
        overflowed: true,
        ..state.chip
    };
    let mut card = Ne2000::new(Model::Ne2000, MAC);
    card.restore(&state, &[0; 16_384], MacPolicy::Saved, u64::MAX).expect("a guest can do this");
    let _ = card.receive(&frame(MAC, 1514, 0));
    card.advance(u64::MAX);
    assert!(card.transmit().is_some());
}

#[cfg(feature = "serde")]
#[test]
fn state_is_the_same_after_a_way_through_text() {
    fn passes<T>(value: T)
    where
        T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + core::fmt::Debug,
    {
        let text = serde_json::to_string(&value).expect("text");
        assert_eq!(serde_json::from_str::<T>(&text).expect("its own text"), value);
    }
    passes(busy().card.state());
    passes(ne2000::rtl8029::PciConfig::default().state());
    passes(ne2000::Options::default());
}

/// Only text can bring them: the fields are private.
#[cfg(feature = "serde")]
#[test]
fn impossible_places_in_an_eeprom_instruction_are_refused() {
    use serde_json::json;

    let guest = busy();
    let restore = |phase: &serde_json::Value| {
        let mut text = serde_json::to_value(guest.card.state()).expect("text");
        text["page3"]["eeprom"]["phase"] = phase.clone();
        let state: State = serde_json::from_value(text).expect("all of its fields");
        guest.card.clone().restore(&state, guest.card.ram(), MacPolicy::Saved, 0)
    };
    for possible in [
        json!("Standby"),
        json!("Done"),
        json!({"Command": {"bits": 0, "missing": 8}}),
        json!({"Reading": {"address": 63, "word": 0, "left": 16}}),
        json!({"Writing": {"address": null, "word": 0, "missing": 1}}),
    ] {
        assert_eq!(restore(&possible), Ok(()), "{possible}");
    }
    for impossible in [
        json!({"Command": {"bits": 0, "missing": 0}}),
        json!({"Command": {"bits": 0, "missing": 9}}),
        json!({"Reading": {"address": 64, "word": 0, "left": 16}}),
        json!({"Reading": {"address": 63, "word": 0, "left": 17}}),
        json!({"Writing": {"address": 64, "word": 0, "missing": 1}}),
        json!({"Writing": {"address": null, "word": 0, "missing": 0}}),
    ] {
        let refused = Err(RestoreError::Impossible("page3.eeprom"));
        assert_eq!(restore(&impossible), refused, "{impossible}");
    }
}
