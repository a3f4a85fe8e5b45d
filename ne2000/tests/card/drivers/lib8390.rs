//! What Linux's `ne` and `ne2k-pci` share: the 8390 library. Buffers of 6 pages, BNRY one behind
//! CURR, at most nine frames served in a call, at most twelve rounds in an interrupt.

use crate::guest::{Guest, MAC, OVW, PRX, PTX, RDC, RST, RXE};

/// How the driver reaches the data port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    Bytes,
    Words,
    DoubleWords,
}

pub(crate) struct Lib8390 {
    pub(crate) guest: Guest,
    pub(crate) port: Port,
    pub(crate) tx_start: u8,
    pub(crate) stop: u8,
    pub(crate) current: u8,
    pub(crate) received: Vec<Vec<u8>>,
    /// What the driver complains of in the kernel's log.
    pub(crate) complaints: Vec<&'static str>,
}

impl Lib8390 {
    pub(crate) fn new(guest: Guest, port: Port, tx_start: u8, stop: u8) -> Self {
        Self {
            guest,
            port,
            tx_start,
            stop,
            current: 0,
            received: Vec::new(),
            complaints: Vec::new(),
        }
    }

    fn rx_start(&self) -> u8 {
        self.tx_start + if self.port == Port::Bytes { 6 } else { 12 }
    }

    /// Opens the interface.
    pub(crate) fn open(&mut self) {
        let (start, stop, rx) = (self.tx_start, self.stop, self.rx_start());
        let dcr = if self.port == Port::Bytes { 0x48 } else { 0x49 };
        let guest = &mut self.guest;
        guest.outs(&[(0x00, 0x21), (0x0E, dcr), (0x0A, 0), (0x0B, 0), (0x0C, 0x20), (0x0D, 0x02)]);
        guest.outs(&[(0x04, start), (0x01, rx), (0x03, stop - 1), (0x02, stop)]);
        guest.outs(&[(0x07, 0xFF), (0x0F, 0x00), (0x00, 0x61)]);
        for (port, byte) in (1..).zip(MAC) {
            guest.outb(port, byte);
            assert_eq!(guest.inb(port), byte, "the address reads back");
        }
        guest.outs(&[(0x07, rx), (0x00, 0x21), (0x07, 0xFF), (0x0F, 0x3F), (0x00, 0x22)]);
        guest.outb(0x0D, 0x00);
        self.current = rx;
        self.set_multicast([0; 8], 0x04);
    }

    /// Fills the multicast filter, reads it back, and sets the receive configuration.
    pub(crate) fn set_multicast(&mut self, filter: [u8; 8], rcr: u8) {
        let guest = &mut self.guest;
        guest.outs(&[(0x0C, 0x04), (0x00, 0x62)]);
        for (port, byte) in (8..).zip(filter) {
            guest.outb(port, byte);
            assert_eq!(guest.inb(port), byte, "the filter reads back");
        }
        guest.outs(&[(0x00, 0x22), (0x0C, rcr)]);
    }

    fn remote(&mut self, address: u16, count: u16, command: u8) {
        assert_eq!(self.guest.inb(0x00) & 0x18, 0, "no other DMA is going on");
        let [count_low, count_high] = count.to_le_bytes();
        let [low, high] = address.to_le_bytes();
        self.guest.outs(&[(0x00, 0x22), (0x0A, count_low), (0x0B, count_high)]);
        self.guest.outs(&[(0x08, low), (0x09, high), (0x00, command)]);
    }

    /// Reads by the widest accesses, and the tail by narrower ones.
    fn input(&mut self, address: u16, count: u16) -> Vec<u8> {
        self.remote(address, count, 0x0A);
        let mut bytes = Vec::new();
        let left = |bytes: &Vec<u8>| usize::from(count) - bytes.len();
        while self.port == Port::DoubleWords && left(&bytes) >= 4 {
            bytes.extend(self.guest.inl(0x10).to_le_bytes());
        }
        while self.port != Port::Bytes && left(&bytes) >= 2 {
            bytes.extend(self.guest.inw(0x10).to_le_bytes());
        }
        while left(&bytes) >= 1 {
            bytes.push(self.guest.inb(0x10));
        }
        self.guest.outs(&[(0x07, RDC), (0x00, 0x22)]);
        bytes
    }

    /// Copies a frame to `page`; words are rounded up.
    fn output(&mut self, page: u8, frame: &[u8]) {
        let mut frame = frame.to_vec();
        if self.port != Port::Bytes && frame.len() % 2 == 1 {
            frame.push(0);
        }
        self.guest.outs(&[(0x00, 0x22), (0x07, RDC)]);
        self.remote(u16::from_le_bytes([0, page]), frame.len() as u16, 0x12);
        match self.port {
            Port::Bytes => frame.iter().for_each(|byte| self.guest.outb(0x10, *byte)),
            Port::Words | Port::DoubleWords => {
                let (fours, tail) = frame.as_chunks::<4>();
                for four in fours {
                    if self.port == Port::DoubleWords {
                        self.guest.outl(0x10, u32::from_le_bytes(*four));
                    } else {
                        self.guest.outw(0x10, u16::from_le_bytes([four[0], four[1]]));
                        self.guest.outw(0x10, u16::from_le_bytes([four[2], four[3]]));
                    }
                }
                for two in tail.as_chunks::<2>().0 {
                    self.guest.outw(0x10, u16::from_le_bytes(*two));
                }
            }
        }
        self.guest.await_isr(RDC);
        self.guest.outs(&[(0x07, RDC), (0x00, 0x22)]);
    }

    /// Sends a frame, with interrupts masked meanwhile.
    pub(crate) fn xmit(&mut self, frame: &[u8]) {
        self.guest.outb(0x0F, 0);
        let page = self.tx_start;
        self.output(page, frame);
        self.guest.outb(0x00, 0x22);
        assert_eq!(self.guest.inb(0x00) & 0x04, 0, "the transmitter is free");
        let [low, high] = (frame.len() as u16).to_le_bytes();
        self.guest.outs(&[(0x05, low), (0x06, high), (0x04, page), (0x00, 0x26)]);
        self.guest.outb(0x0F, 0x3F);
    }

    /// The interrupt handler, if the line is high.
    pub(crate) fn interrupt(&mut self) {
        if !self.guest.irq() {
            return;
        }
        self.guest.outb(0x00, 0x22);
        for _ in 0..12 {
            let isr = self.guest.isr();
            if isr == 0 {
                return;
            }
            if isr & OVW != 0 {
                self.overrun();
            } else if isr & (PRX | RXE) != 0 {
                self.serve();
            }
            if isr & PTX != 0 {
                self.guest.outb(0x07, PTX);
                assert_eq!(self.guest.inb(0x04) & 0x01, 0x01, "sent");
            }
            if isr & RDC != 0 {
                self.guest.outb(0x07, RDC);
            }
            self.guest.outb(0x00, 0x22);
        }
        self.complaints.push("too much work at interrupt");
    }

    /// Serves at most nine frames, and acknowledges PRX behind them without another look.
    fn serve(&mut self) {
        for _ in 0..9 {
            self.guest.outb(0x00, 0x60);
            let behind = self.guest.inb(0x07);
            self.guest.outb(0x00, 0x20);
            let mut frame_page = self.guest.inb(0x03) + 1;
            if frame_page >= self.stop {
                frame_page = self.rx_start();
            }
            if frame_page != self.current {
                self.complaints.push("mismatched read page pointers");
            }
            if frame_page == behind {
                break;
            }
            let at = u16::from_le_bytes([0, frame_page]);
            let header = self.input(at, 4);
            let count = u16::from_le_bytes([header[2], header[3]]);
            let ring = self.stop - self.rx_start();
            let pages = header[1].wrapping_sub(frame_page).wrapping_add(ring) % ring;
            let expected = 1 + ((count.wrapping_sub(4) + 4) >> 8) as u8;
            if pages != expected && pages != expected + 1 {
                self.complaints.push("bogus packet size or next page");
                return;
            }
            if !(64..=1522).contains(&count) || header[0] & 0x0F != 0x01 {
                self.complaints.push("bogus packet");
            } else {
                let frame = self.input(at + 4, count - 4);
                self.received.push(frame);
            }
            self.current = header[1];
            let boundary = if header[1] == self.rx_start() { self.stop - 1 } else { header[1] - 1 };
            self.guest.outb(0x03, boundary);
        }
        self.guest.outb(0x07, PRX | RXE);
    }

    /// The datasheet's recovery from an overflow.
    fn overrun(&mut self) {
        let sending = self.guest.inb(0x00) & 0x04 != 0;
        self.guest.outb(0x00, 0x21);
        self.guest.pass(10_000);
        assert_eq!(self.guest.isr() & RST, RST);
        self.guest.outs(&[(0x0A, 0), (0x0B, 0)]);
        let resend = sending && self.guest.isr() & 0x0A == 0;
        self.guest.outs(&[(0x0D, 0x02), (0x00, 0x22)]);
        self.serve();
        self.guest.outs(&[(0x07, OVW), (0x0D, 0x00)]);
        if resend {
            self.guest.outb(0x00, 0x26);
        }
    }
}
