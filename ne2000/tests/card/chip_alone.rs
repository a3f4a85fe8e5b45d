//! The chip without a card around it, in front of memory of an embedder's own.

use ne2000::{ChipKind, Dp8390, LocalBus};

/// RAM throughout, with what every bus must have and nothing more.
struct Ram(Vec<u8>);

impl LocalBus for Ram {
    fn byte(&self, address: u16) -> u8 {
        self.0[usize::from(address)]
    }

    fn set_byte(&mut self, address: u16, value: u8) {
        self.0[usize::from(address)] = value;
    }

    fn page_mut(&mut self, page: u8) -> Option<&mut [u8; 256]> {
        self.0[usize::from(page) << 8..].first_chunk_mut()
    }

    fn piece(&self, address: u16) -> &[u8] {
        &self.0[usize::from(address)..]
    }
}

fn outs(chip: &mut Dp8390, ram: &Ram, pairs: &[(u8, u8)]) {
    for (offset, value) in pairs {
        chip.write(ram, *offset, *value);
    }
}

#[test]
fn words_pass_through_a_bus_that_knows_bytes_only() {
    let mut chip = Dp8390::new(ChipKind::Dp8390);
    let mut ram = Ram(vec![0; 0x1_0000]);
    // Start, word mode; four bytes to 1234h, and from there.
    let transfer = |command| [(0x08, 0x34), (0x09, 0x12), (0x0A, 4), (0x0B, 0), (0x00, command)];
    outs(&mut chip, &ram, &[(0x0E, 0x49), (0x00, 0x22)]);
    outs(&mut chip, &ram, &transfer(0x12));
    chip.remote_write(&mut ram, 0x0201);
    chip.remote_write(&mut ram, 0x0403);
    assert_eq!(ram.0[0x1233..0x1239], [0, 1, 2, 3, 4, 0]);
    outs(&mut chip, &ram, &transfer(0x0A));
    assert_eq!([chip.remote_read(&ram), chip.remote_read(&ram)], [0x0201, 0x0403]);
}

#[test]
fn offsets_beyond_the_registers_lead_nowhere() {
    let mut chip = Dp8390::new(ChipKind::Dp8390);
    let ram = Ram(vec![0; 0x1_0000]);
    for page in 0..4 {
        chip.write(&ram, 0x00, page << 6 | 0x21);
        let before = chip.state();
        (16..=u8::MAX).for_each(|offset| chip.write(&ram, offset, 0x5A));
        assert_eq!(chip.state(), before, "page {page}");
    }
    chip.write(&ram, 0x00, 0x21);
    assert!((16..=u8::MAX).all(|offset| chip.read(offset) == 0xFF));
}
