//! Packets at random, with the tendencies that the IP Stack Integrity Checker gives them: its
//! programs isic, tcpsic, udpsic and icmpsic are in no package of Debian 12. They differ in that a
//! seed decides all of it, and that no kernel looks at them on the way.

#![expect(clippy::cast_possible_truncation, reason = "parts of numbers, and lengths below 1,500")]

use core::net::Ipv4Addr;

use crate::numbers::Numbers;

/// Which of the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Isic,
    Tcpsic,
    Udpsic,
    Icmpsic,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Isic, Self::Tcpsic, Self::Udpsic, Self::Icmpsic];
}

/// In how many of a hundred packets something is as it should not be, or seldom is.
const STRANGE_VERSION: usize = 10;
const STRANGE_SOURCE: usize = 10;
const STRANGE_CHECKSUM: usize = 10;
const STRANGE_LENGTH: usize = 10;
const OPTIONS: usize = 50;
const FRAGMENTS: usize = 30;

const MAX_PAYLOAD: usize = 1300;

/// Packets of one kind.
pub(crate) struct Noise {
    pub(crate) kind: Kind,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    /// The port that every other packet goes to.
    pub(crate) port: u16,
    pub(crate) numbers: Numbers,
}

impl Noise {
    /// The next one.
    pub(crate) fn packet(&mut self) -> Vec<u8> {
        let protocol = match self.kind {
            Kind::Isic => self.numbers.byte(),
            Kind::Tcpsic => 6,
            Kind::Udpsic => 17,
            Kind::Icmpsic => 1,
        };
        let source = if self.often(STRANGE_SOURCE) { self.word() } else { u32::from(self.source) };
        let addresses = [source.to_be_bytes(), self.destination.octets()].concat();
        let mut body = match self.kind {
            Kind::Isic => self.bytes(MAX_PAYLOAD),
            Kind::Tcpsic => self.segment(),
            Kind::Udpsic => self.datagram(),
            Kind::Icmpsic => self.message(),
        };
        self.sum(&addresses, protocol, &mut body);
        let mut packet = self.header(protocol, &addresses, body.len());
        packet.extend_from_slice(&body);
        packet
    }

    fn often(&mut self, share: usize) -> bool {
        self.numbers.below(100) < share
    }

    fn word(&mut self) -> u32 {
        self.numbers.next() as u32
    }

    /// Up to `most` of them.
    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.numbers.below(most + 1);
        (0..length).map(|_| self.numbers.byte()).collect()
    }

    /// As many as fit a header whose length field counts words, if there are any.
    fn options(&mut self) -> Vec<u8> {
        let mut options = if self.often(OPTIONS) { self.bytes(40) } else { Vec::new() };
        options.truncate(options.len() / 4 * 4);
        options
    }

    /// An IPv4 header whose length and checksum are right, as the kernel makes them.
    fn header(&mut self, protocol: u8, addresses: &[u8], body: usize) -> Vec<u8> {
        let options = self.options();
        let version = if self.often(STRANGE_VERSION) { self.numbers.byte() & 15 } else { 4 };
        let words = 5 + options.len() / 4;
        let total = (words * 4 + body) as u16;
        let fragment = if self.often(FRAGMENTS) { self.word() as u16 } else { 0 };
        let mut header = vec![version << 4 | words as u8, self.numbers.byte()];
        header.extend_from_slice(&total.to_be_bytes());
        header.extend_from_slice(&(self.word() as u16).to_be_bytes());
        header.extend_from_slice(&fragment.to_be_bytes());
        header.extend_from_slice(&[self.numbers.byte(), protocol, 0, 0]);
        header.extend_from_slice(addresses);
        header.extend_from_slice(&options);
        let sum = !folded(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    /// Ports, of which the destination is often the one where somebody listens.
    fn ports(&mut self) -> Vec<u8> {
        let listening = self.often(50);
        let [from, to] = [(); 2].map(|()| self.word() as u16);
        let to = if listening { self.port } else { to };
        [from.to_be_bytes(), to.to_be_bytes()].concat()
    }

    fn segment(&mut self) -> Vec<u8> {
        let mut segment = self.ports();
        segment.extend((0..8).map(|_| self.numbers.byte()));
        let options = self.options();
        let offset = if self.often(STRANGE_LENGTH) {
            self.numbers.byte() & 15
        } else {
            5 + (options.len() / 4) as u8
        };
        // A bare SYN is what gets furthest.
        let flags = if self.often(10) { 2 } else { self.numbers.byte() };
        segment.extend_from_slice(&[offset << 4, flags]);
        // Window, checksum, urgent pointer.
        segment.extend((0..6).map(|_| self.numbers.byte()));
        segment.extend_from_slice(&options);
        segment.extend(self.bytes(MAX_PAYLOAD));
        segment
    }

    fn datagram(&mut self) -> Vec<u8> {
        let mut datagram = self.ports();
        let data = self.bytes(MAX_PAYLOAD);
        let length = 8 + data.len() as u16;
        let length = if self.often(STRANGE_LENGTH) { self.word() as u16 } else { length };
        datagram.extend_from_slice(&length.to_be_bytes());
        datagram.extend_from_slice(&[0, 0]);
        datagram.extend(data);
        datagram
    }

    fn message(&mut self) -> Vec<u8> {
        let [kind, code] =
            if self.often(50) { [8, 0] } else { [(); 2].map(|()| self.numbers.byte()) };
        let mut message = vec![kind, code, 0, 0];
        message.extend(self.bytes(MAX_PAYLOAD));
        message
    }

    /// Puts the checksum where the protocol has it, a wrong one now and then.
    fn sum(&mut self, addresses: &[u8], protocol: u8, body: &mut [u8]) {
        let place = match self.kind {
            Kind::Isic => return,
            Kind::Tcpsic => 16,
            Kind::Udpsic => 6,
            Kind::Icmpsic => 2,
        };
        body[place..place + 2].fill(0);
        let mut summed = body.to_vec();
        if self.kind != Kind::Icmpsic {
            let [high, low] = (body.len() as u16).to_be_bytes();
            summed.splice(0..0, [addresses, &[0, protocol, high, low]].concat());
        }
        let sum = if self.often(STRANGE_CHECKSUM) { self.word() as u16 } else { !folded(&summed) };
        body[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The sum of RFC 1071.
fn folded(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
