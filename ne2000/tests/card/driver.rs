//! The driver of the crate itself, on every card and through every width of the data port.

use ne2000::driver::{Driver, DriverError, Ports};
use ne2000::{Model, Ne2000, Options, ReceiveMode, RxOutcome, TransmitTiming, Width};

use crate::guest::{MAC, PEER, PTX, frame};

const MODELS: [Model; 4] = [Model::Ne1000, Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As];
const WIDTHS: [Width; 3] = [Width::Byte, Width::Word, Width::Dword];

fn started(model: Model, width: Width, receive_mode: ReceiveMode) -> (Ne2000, Driver) {
    let options = Options { receive_mode, ..Options::DEFAULT };
    let mut card = Ne2000::with_options(model, MAC, options);
    let driver = Driver::start(&mut card, width).expect("a card");
    assert_eq!(driver.mac(), MAC);
    (card, driver)
}

fn on_each(receive_mode: ReceiveMode, test: impl Fn(Ne2000, Driver)) {
    for (model, width) in MODELS.into_iter().flat_map(|m| WIDTHS.map(|width| (m, width))) {
        println!("{model:?}, {width:?}");
        let (card, driver) = started(model, width, receive_mode);
        test(card, driver);
    }
}

fn on_each_in_both_modes(test: impl Fn(Ne2000, Driver)) {
    on_each(ReceiveMode::BackPressure, &test);
    on_each(ReceiveMode::Strict, &test);
}

fn received(driver: &mut Driver, ports: &mut impl Ports) -> Option<Vec<u8>> {
    let mut buffer = [0; 1518];
    driver.receive(ports, &mut buffer).map(|length| buffer[..length].to_vec())
}

fn all_received(driver: &mut Driver, ports: &mut impl Ports) -> Vec<Vec<u8>> {
    core::iter::from_fn(|| received(driver, ports)).collect()
}

fn taken(card: &mut Ne2000) -> Option<Vec<u8>> {
    card.transmit().map(|frame| frame.pieces().flatten().copied().collect())
}

/// Fills the ring until it overflows, with frames of the greatest length.
fn overflow(card: &mut Ne2000) -> Vec<Vec<u8>> {
    let frames = (0..).map(|seed| frame(MAC, 1514, seed));
    let stored: Vec<_> =
        frames.take_while(|sent| card.receive(sent) == RxOutcome::Stored).collect();
    assert!(card.state().chip.overflowed && !stored.is_empty());
    stored
}

#[test]
fn frames_of_every_length_arrive_and_leave_whole() {
    on_each_in_both_modes(|mut card, mut driver| {
        let mut now = 0;
        for length in (1..=1518).step_by(37).chain([59, 60, 61, 1514, 1518]) {
            let sent = frame(MAC, length, length as u8);
            let mut padded = sent.clone();
            padded.resize(length.max(60), 0);
            if length >= 6 {
                assert_eq!(card.receive(&sent), RxOutcome::Stored);
                assert!(card.irq_level());
                assert_eq!(received(&mut driver, &mut card).as_ref(), Some(&padded));
                assert_eq!(received(&mut driver, &mut card), None);
                assert!(!card.irq_level());
            }
            assert!(driver.can_send(&mut card));
            assert!(driver.send(&mut card, &sent));
            assert_eq!(taken(&mut card), Some(padded));
            card.advance(now);
            now += 2_000;
            card.advance(now);
            assert!(card.irq_level());
            assert_eq!(received(&mut driver, &mut card), None);
            assert!(!card.irq_level());
        }
    });
}

#[test]
fn transmitter_is_busy_until_the_frame_has_left() {
    on_each_in_both_modes(|mut card, mut driver| {
        assert!(driver.send(&mut card, &frame(PEER, 60, 1)));
        assert!(!driver.can_send(&mut card));
        assert!(!driver.send(&mut card, &frame(PEER, 60, 2)));
        assert_eq!(taken(&mut card), Some(frame(PEER, 60, 1)));
        card.advance(0);
        assert!(!driver.can_send(&mut card));
        card.advance(2_000);
        assert!(driver.send(&mut card, &frame(PEER, 60, 3)));
        assert_eq!(taken(&mut card), Some(frame(PEER, 60, 3)));
        assert_eq!(driver.stats().sent, 2);
    });
}

#[test]
fn frames_without_bytes_and_beyond_the_buffer_are_not_sent() {
    let (mut card, mut driver) = started(Model::Ne2000, Width::Word, ReceiveMode::BackPressure);
    assert!(!driver.send(&mut card, &[]));
    assert!(!driver.send(&mut card, &[0; 1519]));
    assert!(!card.transmit_pending());
}

/// In either mode nothing is lost by a sender who asks for room, however little the driver takes at
/// a time.
#[test]
fn sender_who_asks_for_room_loses_nothing() {
    on_each(ReceiveMode::BackPressure, |mut card, mut driver| {
        let frames: Vec<_> = (0..200).map(|i| frame(MAC, 60 + i * 7, i as u8)).collect();
        let mut waiting = frames.iter();
        let mut got = Vec::new();
        while got.len() < frames.len() {
            for sent in waiting.by_ref().take(card.receive_room()) {
                assert_eq!(card.receive(sent), RxOutcome::Stored);
            }
            got.extend(received(&mut driver, &mut card));
        }
        assert_eq!(got, frames);
        assert_eq!(card.stats().no_room, 0);
        assert_eq!(received(&mut driver, &mut card), None);
        assert!(!card.irq_level());
        assert!(driver.stats().ring_high_water > 0);
        assert!(driver.stats().ring_high_water < driver.ring_pages());
    });
}

#[test]
fn burst_fills_the_ring_as_far_as_there_is_room() {
    let (mut card, mut driver) = started(Model::Rtl8029As, Width::Dword, ReceiveMode::BackPressure);
    assert_eq!(card.receive_room(), 8);
    (0..8).for_each(|seed| assert_eq!(card.receive(&frame(MAC, 1514, seed)), RxOutcome::Stored));
    assert_eq!(all_received(&mut driver, &mut card).len(), 8);
    assert_eq!((driver.stats().received, driver.stats().ring_high_water), (8, 48));
}

#[test]
fn overflow_is_recovered_without_loss_of_a_stored_frame() {
    on_each(ReceiveMode::Strict, |mut card, mut driver| {
        for round in 1..4 {
            let stored = overflow(&mut card);
            assert_eq!(all_received(&mut driver, &mut card), stored);
            assert_eq!(driver.stats().overflows, round);
            assert!(!card.irq_level());
            assert!(driver.send(&mut card, &frame(PEER, 60, 1)));
            assert_eq!(taken(&mut card), Some(frame(PEER, 60, 1)));
            card.advance(round * 10_000);
            card.advance(round * 10_000 + 1_000);
        }
    });
}

#[test]
fn overflow_while_a_frame_leaves_loses_neither() {
    on_each(ReceiveMode::Strict, |mut card, mut driver| {
        assert!(driver.send(&mut card, &frame(PEER, 1000, 1)));
        card.advance(0);
        let stored = overflow(&mut card);
        assert_eq!(received(&mut driver, &mut card), None, "the frame is still leaving");
        assert!(!driver.can_send(&mut card));
        assert_eq!(taken(&mut card), Some(frame(PEER, 1000, 1)));
        assert_eq!(received(&mut driver, &mut card), None);
        card.advance(2_000);
        assert_eq!(all_received(&mut driver, &mut card), stored);
        assert_eq!(taken(&mut card), None);
        assert!(driver.can_send(&mut card));
    });
}

/// A network that takes the frame only after the driver has lost its patience.
#[test]
fn transmission_that_outlasts_the_recovery_is_sent_once() {
    let (mut card, mut driver) = started(Model::Ne2000, Width::Word, ReceiveMode::Strict);
    assert!(driver.send(&mut card, &frame(PEER, 60, 1)));
    let stored = overflow(&mut card);
    let first = (0..10_000).find_map(|_| received(&mut driver, &mut card));
    assert_eq!(first.as_ref(), stored.first());
    assert_eq!(all_received(&mut driver, &mut card), stored[1..]);
    assert_eq!(taken(&mut card), Some(frame(PEER, 60, 1)));
    card.advance(1_000);
    card.advance(2_000);
    assert!(driver.can_send(&mut card));
    assert_eq!(taken(&mut card), None);
}

/// A card that gives the frame up when it is stopped, as the datasheet allows.
struct GivingUp(Ne2000);

impl Ports for GivingUp {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        self.0.read(offset, width)
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        self.0.write(offset, width, value);
        if offset == 0 && value & 1 != 0 && self.0.transmit().is_some() {
            self.0.write(0x07, Width::Byte, PTX.into());
        }
    }
}

#[test]
fn transmission_given_up_at_the_stop_is_sent_anew() {
    let (mut card, mut driver) = started(Model::Ne2000, Width::Word, ReceiveMode::Strict);
    card.set_options(Options {
        receive_mode: ReceiveMode::Strict,
        timing: TransmitTiming::Instant,
        ..Options::DEFAULT
    });
    assert!(driver.send(&mut card, &frame(PEER, 60, 1)));
    let stored = overflow(&mut card);
    let mut card = GivingUp(card);
    let first = (0..10_000).find_map(|_| received(&mut driver, &mut card));
    assert_eq!(first.as_ref(), stored.first());
    assert!(!card.0.transmit_pending());
    assert_eq!(all_received(&mut driver, &mut card), stored[1..]);
    assert_eq!(taken(&mut card.0), Some(frame(PEER, 60, 1)));
}

#[test]
fn frame_longer_than_the_buffer_is_skipped_and_counted() {
    let (mut card, mut driver) = started(Model::Ne2000, Width::Word, ReceiveMode::BackPressure);
    for length in [200, 100] {
        assert_eq!(card.receive(&frame(MAC, length, 0)), RxOutcome::Stored);
    }
    let mut buffer = [0; 150];
    assert_eq!(driver.receive(&mut card, &mut buffer), None);
    assert!(card.irq_level());
    assert_eq!(driver.receive(&mut card, &mut buffer), Some(100));
    assert_eq!((driver.stats().too_long, driver.stats().received), (1, 1));
}

/// Whatever stands in the ring where a frame must begin, the driver gives it up and goes on.
#[test]
fn ring_with_a_bogus_header_is_given_up() {
    let headers: [[u8; 4]; 5] = [
        [0x00, 0x47, 64, 0],
        [0x03, 0x47, 64, 0],
        [0x01, 0x48, 64, 0],
        [0x01, 0x47, 3, 0],
        [0x01, 0x0F, 0xFF, 0xFF],
    ];
    for header in headers {
        let (mut card, mut driver) = started(Model::Ne2000, Width::Word, ReceiveMode::BackPressure);
        (0..3).for_each(|seed| assert_eq!(card.receive(&frame(MAC, 60, seed)), RxOutcome::Stored));
        let ring = 0x46 - 0x40;
        let mut ram = card.ram().to_vec();
        ram[ring * 256..][..4].copy_from_slice(&header);
        let state = card.state();
        card.restore(&state, &ram, ne2000::MacPolicy::Saved, 0).expect("its own state");
        assert_eq!(all_received(&mut driver, &mut card), [[0; 0]; 0]);
        assert_eq!(driver.stats().bogus, 1);
        assert_eq!(card.receive(&frame(MAC, 60, 9)), RxOutcome::Stored);
        assert_eq!(all_received(&mut driver, &mut card), [frame(MAC, 60, 9)]);
    }
}

struct Counting(Ne2000, usize);

impl Ports for Counting {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        self.1 += 1;
        self.0.read(offset, width)
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        self.1 += 1;
        self.0.write(offset, width, value);
    }
}

/// In a virtual machine it is accesses that cost; the README has these figures.
#[test]
fn accesses_a_frame_are_those_of_the_data_port_and_few_more() {
    for (model, width, data) in [
        (Model::Ne1000, Width::Byte, 1514),
        (Model::Ne2000, Width::Word, 757),
        (Model::Rtl8029As, Width::Dword, 379),
    ] {
        let (card, mut driver) = started(model, width, ReceiveMode::BackPressure);
        let mut card = Counting(card, 0);
        assert!(driver.send(&mut card, &frame(PEER, 1514, 0)));
        assert_eq!(card.1, data + 12);
        card.1 = 0;
        (0..2).for_each(|n| assert_eq!(card.0.receive(&frame(MAC, 1514, n)), RxOutcome::Stored));
        assert_eq!(all_received(&mut driver, &mut card).len(), 2);
        let header = 4 / usize::from(width.bytes());
        assert_eq!(card.1, 2 * (data + header + 19) + 8, "and a look that finds nothing");
    }
}

struct Stub(fn(u8) -> u8);

impl Ports for Stub {
    fn read(&mut self, offset: u8, _: Width) -> u32 {
        self.0(offset).into()
    }

    fn write(&mut self, _: u8, _: Width, _: u32) {}
}

#[test]
fn what_is_no_card_is_refused() {
    let refused = |answer: fn(u8) -> u8| Driver::start(&mut Stub(answer), Width::Word).err();
    assert_eq!(refused(|_| 0xFF), Some(DriverError::NoCard));
    assert_eq!(refused(|_| 0x00), Some(DriverError::NoReset));
    assert_eq!(refused(|port| if port == 0x07 { 0x80 } else { 0 }), Some(DriverError::NoSignature));
    for (error, text) in [
        (DriverError::NoCard, "no card answers"),
        (DriverError::NoReset, "the card does not reset"),
        (DriverError::NoSignature, "the card's PROM has no signature"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn driver_can_start_again() {
    on_each_in_both_modes(|mut card, driver| {
        let width = if driver.ring_pages() == 58 { Width::Dword } else { Width::Byte };
        assert_eq!(card.receive(&frame(MAC, 60, 0)), RxOutcome::Stored);
        let mut driver = Driver::start(&mut card, width).expect("a card");
        assert_eq!(received(&mut driver, &mut card), None);
        assert_eq!(card.receive(&frame(MAC, 60, 1)), RxOutcome::Stored);
        assert_eq!(all_received(&mut driver, &mut card), [frame(MAC, 60, 1)]);
    });
}
