//! The Crynwr packet drivers, which mTCP and WATTCP use: whole frames across the ring's end in one
//! remote read, RDC never acknowledged after reads, IMR zero inside the handler.

use ne2000::{Model, RxOutcome};

use crate::guest::{Guest, MAC, PEER, PRX, PTX, RDC, RST, frame};

struct Crynwr {
    guest: Guest,
    word: bool,
    start: u8,
    stop: u8,
}

impl Crynwr {
    /// Reads, rounded up to words, and leaves RDC as it is.
    fn read(&mut self, address: u16, count: u16) -> Vec<u8> {
        self.guest.remote(address, count, 0x0A);
        let mut bytes = Vec::new();
        while bytes.len() < usize::from(count) {
            if self.word {
                bytes.extend(self.guest.inw(0x10).to_le_bytes());
            } else {
                bytes.push(self.guest.inb(0x10));
            }
        }
        bytes.truncate(usize::from(count));
        bytes
    }

    fn send(&mut self, frame: &[u8]) {
        assert_eq!(self.guest.inb(0x00) & 0x04, 0);
        self.guest.outb(0x07, RDC);
        self.guest.remote(u16::from_le_bytes([0, self.start]), frame.len() as u16, 0x12);
        if self.word {
            for pair in frame.chunks(2) {
                let high = pair.get(1).copied().unwrap_or(0);
                self.guest.outw(0x10, u16::from_le_bytes([pair[0], high]));
            }
        } else {
            frame.iter().for_each(|byte| self.guest.outb(0x10, *byte));
        }
        assert_eq!(self.guest.isr() & RDC, RDC, "65,536 looks at it at most");
        let [low, high] = (frame.len() as u16).to_le_bytes();
        self.guest.outs(&[(0x05, low), (0x06, high), (0x04, self.start), (0x00, 0x26)]);
    }

    /// The handler: mask, acknowledge, serve all that is there, open the mask.
    fn interrupt(&mut self) -> Vec<Vec<u8>> {
        assert!(self.guest.irq());
        self.guest.outb(0x0F, 0x00);
        assert!(!self.guest.irq());
        let mut frames = Vec::new();
        let isr = self.guest.isr();
        self.guest.outb(0x07, isr & 0x3F);
        if isr & PRX != 0 {
            loop {
                self.guest.outb(0x00, 0x62);
                let curr = self.guest.inb(0x07);
                self.guest.outb(0x00, 0x22);
                let mut page = self.guest.inb(0x03) + 1;
                if page == self.stop {
                    page = self.start + 6;
                }
                if page == curr {
                    break;
                }
                let at = u16::from_le_bytes([0, page]);
                // Header, addresses and the first bytes; then everything from behind the header.
                let head = self.read(at, 26);
                assert_eq!(head[0] & 0x01, 0x01);
                let count = u16::from_le_bytes([head[2], head[3]]) - 4;
                frames.push(self.read(at + 4, count));
                let next = head[1];
                self.guest
                    .outb(0x03, if next == self.start + 6 { self.stop - 1 } else { next - 1 });
            }
        }
        self.guest.outb(0x0F, 0x3F);
        frames
    }
}

fn installed(model: Model) -> Crynwr {
    let word = model == Model::Ne2000;
    let (start, stop) = if word { (0x40, 0x80) } else { (0x20, 0x40) };
    let mut driver = Crynwr { guest: Guest::new(model), word, start, stop };
    let guest = &mut driver.guest;
    let port = guest.inb(0x1F);
    guest.outb(0x1F, port);
    guest.await_isr(RST);
    let dcr = if word { 0x49 } else { 0x48 };
    guest.outs(&[(0x00, 0x21), (0x0E, dcr)]);
    // Sixteen byte reads, with a count of thirty-two in word mode.
    guest.remote(0, if word { 0x20 } else { 0x10 }, 0x0A);
    let prom: Vec<u8> = (0..16).map(|_| guest.inb(0x10)).collect();
    assert_eq!((&prom[..6], &prom[14..]), (&MAC[..], &[0x57; 2][..]));
    guest.outs(&[(0x00, 0x21), (0x0E, dcr), (0x0A, 0), (0x0B, 0), (0x0C, 0x20), (0x0D, 0x02)]);
    guest.outs(&[(0x01, start + 6), (0x03, start + 6), (0x02, stop), (0x07, 0xFF), (0x0F, 0x3F)]);
    guest.outb(0x00, 0x61);
    for (port, byte) in (1..).zip(MAC) {
        guest.outb(port, byte);
    }
    guest.outs(&[(0x07, start + 7), (0x00, 0x22), (0x0D, 0x00), (0x0C, 0x04)]);
    driver
}

#[test]
fn frames_come_across_the_rings_end_in_one_read() {
    for model in [Model::Ne1000, Model::Ne2000] {
        let mut driver = installed(model);
        for seed in 0..60 {
            let frames = [frame(MAC, 1200, seed), frame(MAC, 61, seed)];
            frames.iter().for_each(|sent| driver.guest.receive(sent));
            assert_eq!(driver.interrupt(), frames);
        }
    }
}

#[test]
fn frame_that_comes_while_masked_interrupts_when_the_mask_opens() {
    let mut driver = installed(Model::Ne2000);
    driver.guest.outb(0x0F, 0x00);
    driver.guest.receive(&frame(MAC, 60, 0));
    assert!(!driver.guest.irq());
    driver.guest.outb(0x0F, 0x3F);
    assert_eq!(driver.interrupt().len(), 1);
    assert!(!driver.guest.irq());
}

/// A network that offers frames after any access of the driver's, which acknowledges PRX before it
/// serves: when the line is low again, the ring is empty.
#[test]
fn frames_that_come_at_any_access_are_all_served() {
    for (length, pace) in
        [60, 1514].into_iter().flat_map(|length| (0..60).map(move |n| (length, n)))
    {
        let mut driver = installed(Model::Ne2000);
        driver.guest.pace = pace;
        let frames: Vec<_> = (0..50).map(|seed| frame(MAC, length, seed)).collect();
        driver.guest.waiting.extend(frames.iter().cloned());
        let mut received = Vec::new();
        while received.len() < frames.len() {
            driver.guest.inb(0x00);
            while driver.guest.irq() {
                received.extend(driver.interrupt());
            }
            let stored = driver.guest.card.stats().stored;
            assert_eq!(received.len() as u64, stored, "every {pace} accesses");
        }
        assert_eq!(received, frames);
    }
}

#[test]
fn frames_are_sent() {
    for model in [Model::Ne1000, Model::Ne2000] {
        let mut driver = installed(model);
        for length in [60, 61, 1514] {
            let sent = frame(PEER, length, 1);
            driver.send(&sent);
            driver.guest.pass(2_000);
            assert_eq!(driver.guest.isr() & PTX, PTX);
            assert_eq!(driver.guest.sent.pop(), Some(sent));
            assert!(driver.interrupt().is_empty());
        }
    }
}

#[test]
fn multicast_is_set_by_stopping_a_running_chip() {
    let mut driver = installed(Model::Ne2000);
    driver.guest.receive(&frame(MAC, 60, 1));
    driver.guest.outb(0x00, 0x61);
    (8..16).for_each(|port| driver.guest.outb(port, 0xFF));
    assert_eq!(driver.guest.card.receive(&frame(MAC, 60, 2)), RxOutcome::Stopped);
    driver.guest.outs(&[(0x00, 0x22), (0x0C, 0x0C)]);
    driver.guest.receive(&frame([1, 0, 0x5E, 0, 0, 1], 60, 3));
    assert_eq!(driver.interrupt().len(), 2);
}

/// It rewrites CURR with what it read, and takes one frame.
#[test]
fn overflow_is_recovered_one_frame_at_a_time() {
    let mut driver = installed(Model::Ne2000);
    let strict =
        ne2000::Options { receive_mode: ne2000::ReceiveMode::Strict, ..ne2000::Options::DEFAULT };
    driver.guest.card.set_options(strict);
    driver.guest.fill(1514, 7);
    let guest = &mut driver.guest;
    guest.outb(0x00, 0x21);
    guest.pass(2_000);
    assert_eq!(guest.isr() & RST, RST);
    guest.outs(&[(0x0A, 0), (0x0B, 0), (0x0D, 0x02), (0x00, 0x22), (0x00, 0x62)]);
    let curr = guest.inb(0x07);
    guest.outs(&[(0x07, curr), (0x00, 0x22)]);
    let header = driver.read(0x4700, 4);
    assert_eq!(driver.read(0x4704, 1514), frame(MAC, 1514, 7));
    driver.guest.outs(&[(0x03, header[1] - 1), (0x07, 0x10), (0x0D, 0x00)]);
    driver.guest.receive(&frame(MAC, 1000, 8));
    assert_eq!(driver.interrupt().pop(), Some(frame(MAC, 1000, 8)));
}
