//! A driver that works with both cards at once.

use ne2000::driver::{Driver, Ports};
use ne2000::{MIN_FRAME_LEN, Width};

use crate::pair::{Op, Pair};
use crate::{BROADCAST, MAC, frame, program};

impl Ports for Pair {
    fn read(&mut self, offset: u8, width: Width) -> u32 {
        self.force(&Op::Read(offset, width))
    }

    fn write(&mut self, offset: u8, width: Width, value: u32) {
        self.force(&Op::Write(offset, width, value));
    }
}

/// Frames of every number of pages, several times around the ring, and as many back.
#[test]
fn both_cards_serve_a_driver_alike() {
    let Some(program) = program::qemu() else { return };
    for width in [Width::Byte, Width::Word, Width::Dword] {
        let mut pair = Pair::new(&program);
        let mut driver = Driver::start(&mut pair, width).expect("a card on both sides");
        assert_eq!(driver.mac(), MAC);
        let mut buffer = [0; 1514];
        for round in 0..16 {
            let destination = if round % 3 == 0 { BROADCAST } else { MAC };
            let lengths = [MIN_FRAME_LEN + round, 247 + round, 1514 - 37 * round];
            let frames = lengths.map(|length| frame(destination, length));
            for frame in &frames {
                pair.apply(&Op::Frame(frame.clone()));
            }
            for frame in &frames {
                let length = driver.receive(&mut pair, &mut buffer).expect("the frame");
                assert_eq!(&buffer[..length], frame, "{width:?}, round {round}");
                assert!(driver.send(&mut pair, frame));
            }
            assert_eq!(driver.receive(&mut pair, &mut buffer), None);
        }
        assert_eq!((driver.stats().sent, driver.stats().received), (48, 48));
    }
}
