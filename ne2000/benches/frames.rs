//! A frame of 1,514 bytes through a card's registers, as a driver moves it: host nanoseconds a
//! frame, sent and received, by a data port of each width. The frame check sequence, which every
//! received frame needs, is beside it.

#![expect(clippy::expect_used, reason = "a card that does not start ends the bench")]

use core::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ne2000::driver::Driver;
use ne2000::{Model, Ne2000, Options, RxOutcome, TransmitTiming, Width, crc};

const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
/// The card that has a data port of that width.
const PORTS: [(&str, Model, Width); 3] = [
    ("8 bits", Model::Ne1000, Width::Byte),
    ("16 bits", Model::Ne2000, Width::Word),
    ("32 bits", Model::Rtl8029As, Width::Dword),
];

fn started(model: Model, width: Width) -> (Ne2000, Driver) {
    let options = Options { timing: TransmitTiming::Instant, ..Options::DEFAULT };
    let mut card = Ne2000::with_options(model, MAC, options);
    let driver = Driver::start(&mut card, width).expect("a card");
    (card, driver)
}

fn frame() -> [u8; 1514] {
    let mut frame = core::array::from_fn(|i| i.to_le_bytes()[0]);
    frame[..6].copy_from_slice(&MAC);
    frame
}

/// The driver copies the frame to the card and asks for its transmission, the network takes it, and
/// the driver acknowledges the interrupt.
fn sent(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1514 bytes sent");
    for (name, model, width) in PORTS {
        let (mut card, mut driver) = started(model, width);
        let frame = frame();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                assert!(driver.send(&mut card, black_box(&frame)));
                let sent = card.transmit().expect("a frame");
                black_box(sent.as_slice());
                assert_eq!(driver.receive(&mut card, &mut []), None);
            });
        });
    }
    group.finish();
}

/// The card stores the frame, and the driver copies it out of the ring, acknowledges the interrupt
/// and finds nothing more.
fn received(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1514 bytes received");
    for (name, model, width) in PORTS {
        let (mut card, mut driver) = started(model, width);
        let frame = frame();
        let mut buffer = [0; 1518];
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                assert_eq!(card.receive(black_box(&frame)), RxOutcome::Stored);
                assert_eq!(driver.receive(&mut card, black_box(&mut buffer)), Some(frame.len()));
                assert_eq!(driver.receive(&mut card, black_box(&mut buffer)), None);
            });
        });
    }
    group.finish();
}

fn check_sequence(criterion: &mut Criterion) {
    let frame = frame();
    criterion.bench_function("1514 bytes checked", |bencher| {
        bencher.iter(|| crc::fcs(black_box(&frame)));
    });
}

criterion_group!(benches, sent, received, check_sequence);
criterion_main!(benches);
