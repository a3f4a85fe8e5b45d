//! Anything at all, in any order, on the common ground.

use std::collections::BTreeSet;

use ne2000::Width;
use ne2000::regs::{CR, page0_read as r, page0_write as w, page1};
use slirpkit_tests::numbers::Numbers;

use crate::differences::ALL;
use crate::pair::{Op, Pair};
use crate::{BROADCAST, DATA, GROUP, MAC, PEER, frame, program};

/// Runs, each from power-on and with a seed of its own.
const RUNS: u64 = 16;
/// What a driver or the network undertakes in a run, each of them some accesses.
const MOVES: usize = 500;

const WIDTHS: [Width; 3] = [Width::Byte, Width::Word, Width::Dword];

struct Run {
    pair: Pair,
    numbers: Numbers,
}

impl Run {
    fn set(&mut self, offset: u8, value: u8) {
        self.pair.apply(&Op::Write(offset, Width::Byte, u32::from(value)));
    }

    /// What somebody does next.
    fn go_on(&mut self) {
        match self.numbers.below(16) {
            0 => self.lay_the_ring(),
            1 => self.choose_a_filter(),
            2..=4 => self.transfer(),
            5 => self.transmit(),
            6..=8 => self.receive(),
            9..=11 => self.free_pages(),
            12 => self.interrupts(),
            13 => self.look_around(),
            _ => self.anything(),
        }
    }

    fn lay_the_ring(&mut self) {
        let start = 0x40 + self.numbers.below(0x30);
        let stop = start + 1 + self.numbers.below(0x80 - start);
        let outside = self.numbers.below(8) == 0;
        let (first, pages) = if outside { (0x40, 0x40) } else { (start, stop - start) };
        let page = |numbers: &mut Numbers| (first + numbers.below(pages)) as u8;
        let (bnry, curr) = (page(&mut self.numbers), page(&mut self.numbers));
        let command = self.numbers.pick(&[0x21, 0x22]);
        self.set(CR, command);
        self.set(w::PSTART, start as u8);
        self.set(w::PSTOP, stop as u8);
        self.set(w::BNRY, bnry);
        let dcr = self.numbers.pick(&[0x48, 0x49, 0x49, 0x49, 0x4B]);
        self.set(w::DCR, dcr);
        let tcr = self.numbers.pick(&[0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x18]);
        self.set(w::TCR, tcr);
        self.set(CR, 0x61);
        self.set(page1::CURR, curr);
        self.set(CR, 0x22);
    }

    fn choose_a_filter(&mut self) {
        let rcr = self.numbers.pick(&[0x00, 0x04, 0x0C, 0x0C, 0x0C, 0x1C, 0x1F, 0x24]);
        self.set(w::TCR, 0);
        self.set(w::RCR, rcr);
        self.set(CR, 0x62);
        let par = self.numbers.pick(&[MAC, MAC, MAC, PEER]);
        for (offset, byte) in (page1::PAR0..).zip(par) {
            self.set(offset, byte);
        }
        let mar = self.numbers.pick(&[0x00, 0xFF]);
        for offset in page1::MAR0..=page1::MAR7 {
            let mar = if self.numbers.below(2) == 0 { mar } else { self.numbers.byte() };
            self.set(offset, mar);
        }
        self.set(CR, 0x22);
    }

    /// A remote DMA, all of it or only its beginning, or more than it.
    fn transfer(&mut self) {
        let chip = self.pair.ours.card.state().chip;
        let ring_end = usize::from(chip.pstop) << 8;
        let address = match self.numbers.below(8) {
            0 => self.numbers.below(0x30),
            1 => self.numbers.below(0x1_0000),
            2 => 0x7FF0 + self.numbers.below(0x20),
            3..=5 => ring_end.saturating_sub(2 * self.numbers.below(16)),
            _ => 0x4000 + self.numbers.below(0x4000),
        } as u16;
        let address = if self.numbers.below(8) == 0 { address } else { address & !1 };
        let count = self.numbers.below(40) as u16;
        self.set(CR, 0x22);
        for (offset, value) in
            (w::RSAR0..).zip(address.to_le_bytes().into_iter().chain([count as u8, 0]))
        {
            self.set(offset, value);
        }
        let command = self.numbers.pick(&[0x0A, 0x12, 0x12]);
        self.set(CR, command);
        let width = self.numbers.pick(&WIDTHS);
        for _ in 0..self.numbers.below(24) {
            let value = self.numbers.next() as u32;
            let value = value & (u32::MAX >> (32 - 8 * u32::from(width.bytes())));
            let reads = if self.numbers.below(32) == 0 { command == 0x12 } else { command == 0x0A };
            self.pair.apply(&if reads {
                Op::Read(DATA, width)
            } else {
                Op::Write(DATA, width, value)
            });
        }
    }

    fn transmit(&mut self) {
        let page = self.numbers.pick(&[0x40, 0x46, 0x70, 0x7F, 0xC0, 0xD0, 0x00, 0x90]);
        let length = self.numbers.pick(&[0, 1, 14, 59, 60, 256, 1514, 1515, 4000]) as u16;
        self.set(CR, 0x22);
        self.set(w::TPSR, page);
        let [low, high] = length.to_le_bytes();
        self.set(w::TBCR0, low);
        self.set(w::TBCR1, high);
        let command = self.numbers.pick(&[0x26, 0x26, 0x26, 0x24, 0x25, 0x66]);
        self.set(CR, command);
    }

    fn receive(&mut self) {
        let mut destination = self.numbers.pick(&[MAC, MAC, MAC, BROADCAST, GROUP, PEER]);
        if destination == GROUP {
            destination[5] = self.numbers.byte();
        }
        // Shorter ones are padded by some versions of QEMU and not by others.
        let length = match self.numbers.below(4) {
            0 => 60 + self.numbers.below(1455),
            1 => self.numbers.pick(&[60, 247, 248, 249, 503, 504, 505, 1514, 1515, 1519]),
            _ => 60 + self.numbers.below(200),
        };
        let bytes = frame(destination, length);
        self.pair.apply(&Op::Frame(bytes));
        let stopped = self.pair.ours.card.state().chip.command.stopped;
        self.set(CR, if stopped { 0x61 } else { 0x62 });
        self.pair.apply(&Op::Read(page1::CURR, Width::Byte));
        self.set(CR, if stopped { 0x21 } else { 0x22 });
        self.pair.apply(&Op::Read(r::RSR, Width::Byte));
    }

    /// A driver is done with everything, or nearly.
    fn free_pages(&mut self) {
        let chip = self.pair.ours.card.state().chip;
        let last = if chip.curr == chip.pstart { chip.pstop } else { chip.curr };
        let bnry = last.wrapping_sub(1).wrapping_sub(self.numbers.pick(&[0, 0, 0, 1, 7]));
        self.set(CR, 0x22);
        self.set(w::BNRY, bnry);
    }

    fn interrupts(&mut self) {
        let (isr, imr) = (self.numbers.byte(), self.numbers.byte());
        self.set(CR, 0x22);
        self.set(w::ISR, isr);
        self.set(w::IMR, imr);
    }

    /// Every register of a page.
    fn look_around(&mut self) {
        let page = self.numbers.below(4) as u8;
        let stop = self.numbers.pick(&[1, 2, 2]);
        self.set(CR, page << 6 | 0x20 | stop);
        for offset in 0x00..=0x0F {
            self.pair.apply(&Op::Read(offset, Width::Byte));
        }
    }

    fn anything(&mut self) {
        for _ in 0..8 {
            let register = self.numbers.below(0x20) as u8;
            let offset = if self.numbers.below(4) == 0 { CR } else { register };
            let width =
                if self.numbers.below(8) == 0 { self.numbers.pick(&WIDTHS) } else { Width::Byte };
            let value = u32::from(self.numbers.byte());
            let write = self.numbers.below(2) == 0;
            self.pair.apply(&if write {
                Op::Write(offset, width, value)
            } else {
                Op::Read(offset, width)
            });
        }
    }

    /// All of the RAM.
    fn look_through_the_ram(&mut self) {
        self.set(CR, 0x21);
        self.set(w::DCR, 0x49);
        self.set(w::PSTOP, 0);
        for (offset, value) in (w::RSAR0..).zip([0x00, 0x40, 0x00, 0x40]) {
            self.set(offset, value);
        }
        self.set(CR, 0x0A);
        for _ in 0..0x1000 {
            self.pair.apply(&Op::Read(DATA, Width::Dword));
        }
    }
}

#[test]
fn both_cards_answer_alike_whatever_is_done_to_them() {
    let Some(program) = program::qemu() else { return };
    let mut met = BTreeSet::new();
    for seed in 0..RUNS {
        let mut run = Run { pair: Pair::new(&program), numbers: Numbers(seed) };
        run.pair.apply(&Op::Read(CR, Width::Byte));
        // From here on both know that they are stopped.
        run.set(CR, 0x21);
        for _ in 0..MOVES {
            run.go_on();
        }
        run.look_through_the_ram();
        met.extend(run.pair.met.into_keys());
    }
    let missing: Vec<_> = ALL.iter().filter(|difference| !met.contains(difference)).collect();
    // Else they have not been everywhere.
    assert!(missing.is_empty(), "the runs did not meet {missing:?}");
}
