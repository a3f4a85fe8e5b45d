//! iPXE's ns8390, and Etherboot's before it: polled, byte counts that may be odd, commands without
//! STA, and a test string at 2000h that must not come back from an NE2000.

use ne2000::{Model, RxOutcome};

use crate::guest::{Guest, MAC, OVW, PEER, PRX, RDC, RST, frame};

struct Ipxe {
    guest: Guest,
    word: bool,
}

const RX_START: u8 = 0x46;
const STOP: u8 = 0x80;

impl Ipxe {
    fn dcr(&self) -> u8 {
        if self.word { 0x49 } else { 0x48 }
    }

    fn read(&mut self, address: u16, count: u16) -> Vec<u8> {
        let [low, high] = address.to_le_bytes();
        let [count_low, count_high] = count.to_le_bytes();
        self.guest.outs(&[(0x00, 0x22), (0x0A, count_low), (0x0B, count_high)]);
        self.guest.outs(&[(0x08, low), (0x09, high), (0x00, 0x0A)]);
        if self.word {
            let words = (0..count.div_ceil(2)).map(|_| self.guest.inw(0x10).to_le_bytes());
            words.collect::<Vec<_>>().concat()[..usize::from(count)].to_vec()
        } else {
            (0..count).map(|_| self.guest.inb(0x10)).collect()
        }
    }

    /// Writes, and waits for the end of it for as long as it takes.
    fn write(&mut self, address: u16, bytes: &[u8]) {
        let [low, high] = address.to_le_bytes();
        let [count_low, count_high] = (bytes.len() as u16).to_le_bytes();
        self.guest.outs(&[(0x00, 0x22), (0x07, RDC), (0x0A, count_low), (0x0B, count_high)]);
        self.guest.outs(&[(0x08, low), (0x09, high), (0x00, 0x12)]);
        if self.word {
            for pair in bytes.chunks(2) {
                let high = pair.get(1).copied().unwrap_or(0);
                self.guest.outw(0x10, u16::from_le_bytes([pair[0], high]));
            }
        } else {
            bytes.iter().for_each(|byte| self.guest.outb(0x10, *byte));
        }
        self.guest.await_isr(RDC);
    }

    fn reset(&mut self) {
        let dcr = self.dcr();
        self.guest.outs(&[(0x00, 0x21), (0x0E, dcr), (0x0A, 0), (0x0B, 0), (0x0C, 0x20)]);
        self.guest.outs(&[(0x0D, 0x02), (0x04, 0x40), (0x01, RX_START), (0x02, STOP)]);
        self.guest.outs(&[(0x03, STOP - 1), (0x0F, 0), (0x07, 0xFF), (0x00, 0x61)]);
        for (port, byte) in (1..).zip(MAC) {
            self.guest.outb(port, byte);
        }
        (8..16).for_each(|port| self.guest.outb(port, 0xFF));
        self.guest.outs(&[(0x07, RX_START), (0x00, 0x22), (0x07, 0xFF), (0x0D, 0), (0x0C, 0x0C)]);
    }

    /// One look for a frame: RSR.PRX must last, since it is looked at long after reception.
    fn poll(&mut self) -> Option<Vec<u8>> {
        if self.guest.inb(0x0C) & 0x01 == 0 {
            return None;
        }
        let mut page = self.guest.inb(0x03) + 1;
        if page >= STOP {
            page = RX_START;
        }
        self.guest.outb(0x00, 0x40);
        let curr = self.guest.inb(0x07);
        self.guest.outb(0x00, 0x00);
        if curr == page {
            return None;
        }
        let at = u16::from_le_bytes([0, page]);
        let header = self.read(at, 4);
        assert_eq!(header[0] & 0x01, 0x01);
        let length = u16::from_le_bytes([header[2], header[3]]) - 4;
        let to_end = (u16::from_le_bytes([0, STOP]) - at - 4).min(length);
        let mut frame = self.read(at + 4, to_end);
        if length > to_end {
            frame.extend(self.read(u16::from_le_bytes([0, RX_START]), length - to_end));
        }
        self.guest.outb(0x03, if header[1] == RX_START { STOP - 1 } else { header[1] - 1 });
        Some(frame)
    }

    fn transmit(&mut self, frame: &[u8]) {
        self.write(0x4000, frame);
        let [low, high] = (frame.len().max(60) as u16).to_le_bytes();
        self.guest.outs(&[(0x00, 0x22), (0x04, 0x40), (0x05, low), (0x06, high), (0x00, 0x26)]);
    }
}

fn probed(model: Model) -> Ipxe {
    let mut driver = Ipxe { guest: Guest::new(model), word: false };
    let test = b"NE*000 memory\0";
    let guest = &mut driver.guest;
    let port = guest.inb(0x1F);
    guest.outb(0x1F, port);
    guest.outs(&[(0x00, 0x21), (0x0C, 0x20), (0x0E, 0x48), (0x01, 0x20), (0x02, 0x40)]);
    driver.write(0x2000, test);
    assert_ne!(driver.read(0x2000, 14), test, "this is no NE1000");
    driver.word = true;
    driver.guest.outs(&[(0x0E, 0x49), (0x01, 0x40), (0x02, STOP)]);
    driver.write(0x4000, test);
    assert_eq!(driver.read(0x4000, 14), test);
    let prom = driver.read(0, 16);
    assert_eq!(prom.as_chunks::<2>().0[..6], MAC.map(|byte| [byte; 2]));
    driver.reset();
    driver
}

#[test]
fn probe_finds_ne2000_and_not_ne1000() {
    probed(Model::Ne2000);
    probed(Model::Rtl8029As);
}

#[test]
fn probe_finds_ne1000_by_its_ram() {
    let mut driver = Ipxe { guest: Guest::new(Model::Ne1000), word: false };
    driver.guest.outs(&[(0x00, 0x21), (0x0E, 0x48)]);
    driver.write(0x2000, b"NE1000");
    assert_eq!(driver.read(0x2000, 6), b"NE1000");
}

#[test]
fn polls_frames_of_odd_lengths_around_the_ring() {
    let mut driver = probed(Model::Rtl8029As);
    assert_eq!(driver.poll(), None);
    for seed in 0..100 {
        let sent = frame(MAC, 61 + usize::from(seed) * 14, seed);
        driver.guest.receive(&sent);
        assert_eq!(driver.poll(), Some(sent));
        assert_eq!(driver.poll(), None);
    }
}

/// It never acknowledges PRX, and lets nothing interrupt it. The network's next burst follows upon
/// some looks in vain.
#[test]
fn frames_that_wait_at_every_access_are_all_polled() {
    let mut driver = probed(Model::Rtl8029As);
    let frames: Vec<_> = (0..100).map(|seed| frame(MAC, 1000, seed)).collect();
    driver.guest.waiting.extend(frames.iter().cloned());
    assert_eq!(driver.guest.isr() & PRX, 0);
    let polled: Vec<_> = (0..200).filter_map(|_| driver.poll()).collect();
    assert_eq!(polled, frames);
    assert_eq!(driver.guest.isr() & PRX, PRX);
}

#[test]
fn odd_frames_are_sent_without_a_look_at_txp() {
    let mut driver = probed(Model::Rtl8029As);
    for length in [61, 75, 1513] {
        let sent = frame(PEER, length, 3);
        driver.transmit(&sent);
        driver.guest.pass(2_000);
        assert_eq!(driver.guest.sent.pop(), Some(sent));
    }
}

#[test]
fn overflow_is_recovered() {
    let mut driver = probed(Model::Rtl8029As);
    let options =
        ne2000::Options { receive_mode: ne2000::ReceiveMode::Strict, ..ne2000::Options::DEFAULT };
    driver.guest.card.set_options(options);
    let frames: Vec<_> = (0..12).map(|seed| frame(MAC, 1514, seed)).collect();
    let stored =
        frames.iter().filter(|sent| driver.guest.card.receive(sent) == RxOutcome::Stored).count();
    assert_eq!(driver.guest.isr() & OVW, OVW);
    driver.guest.outb(0x00, 0x21);
    driver.guest.pass(2_000);
    assert_eq!(driver.guest.isr() & RST, RST);
    driver.guest.outs(&[(0x0A, 0), (0x0B, 0), (0x0D, 0x02), (0x00, 0x22)]);
    // The frame that RSR tells of is the missed one, so the driver looks at the ring itself.
    let mut page = RX_START;
    for sent in &frames[..stored] {
        let header = driver.read(u16::from_le_bytes([0, page]), 4);
        assert_eq!(driver.read(u16::from_le_bytes([4, page]), 1514), *sent);
        page = header[1];
    }
    driver.guest.outs(&[(0x03, page - 1), (0x07, OVW), (0x0D, 0)]);
    driver.guest.receive(&frames[0]);
    assert_eq!(driver.poll(), Some(frames[0].clone()));
}
