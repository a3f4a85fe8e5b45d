//! What lies in the ring after a frame has been stored.

use ne2000::{Model, Ne2000, State, Width, WireError, crc};

/// Pages of the RAM that the model's driver knows, without aliases.
fn ram_pages(model: Model) -> core::ops::RangeInclusive<u8> {
    match model {
        Model::Ne1000 => 0x20..=0x40,
        Model::Ne2000EightBit => 0x40..=0x60,
        Model::Ne2000 | Model::Rtl8029As => 0x40..=0x80,
    }
}

/// Reads header, frame and check sequence back through the data port, if the ring is in RAM.
pub(super) fn check(before: &State, card: &Ne2000, frame: &[u8], error: Option<WireError>) {
    let chip = &before.chip;
    let ram = ram_pages(before.model);
    if !ram.contains(&chip.pstart) || !ram.contains(&chip.pstop) {
        return;
    }
    let mut expected = frame.to_vec();
    if before.pad_received && error.is_none() {
        expected.resize(frame.len().max(ne2000::MIN_FRAME_LEN), 0);
    }
    let group = u8::from(expected[0] & 1 == 1) << 5;
    let (status, damage) = match error {
        None => (0x01, 0x00),
        Some(WireError::Check) => (0x02, 0xFF),
        Some(WireError::Alignment) => (0x06, 0xFF),
    };
    let fcs = crc::fcs(&expected).map(|byte| byte ^ damage);
    expected.extend(fcs);
    let count = u16::try_from(expected.len()).expect("no longer than the longest frame");
    let [low, high] = count.to_le_bytes();
    let mut whole = vec![status | group, card.state().chip.curr, low, high];
    whole.extend(expected);
    assert_eq!(read_back(card, chip.curr, whole.len()), whole, "the ring holds something else");
}

/// Reads `count` bytes from `page` on, by bytes, on a card of its own.
fn read_back(card: &Ne2000, page: u8, count: usize) -> Vec<u8> {
    let mut card = card.clone();
    let [low, high, ..] = count.to_le_bytes();
    for (offset, value) in [
        (0x00, 0x20),
        (0x0E, 0x48),
        (0x08, 0),
        (0x09, page),
        (0x0A, low),
        (0x0B, high),
        (0x00, 0x08),
    ] {
        card.write(offset, Width::Byte, value.into());
    }
    (0..count).map(|_| card.read(0x10, Width::Byte).to_le_bytes()[0]).collect()
}
