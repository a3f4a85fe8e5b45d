//! The fragment queue: fragments of datagrams whose content is known, beside lies.

use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use arbitrary::Arbitrary;
use ipstack::Instant;
use ipstack::frag::{Fragment, FragmentKey, FragmentQueue, FragmentSlot, Fragmenter, Insert};

use crate::Target;

/// A queue and what comes to it.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    /// Slots of the queue, less one; only some bits are used.
    pub slots: u8,
    /// Bytes of memory for each slot.
    pub slot_memory: u16,
    /// What comes, in this order.
    pub events: Vec<Event>,
}

/// One thing that happens to a queue.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Event {
    /// A fragment.
    Fragment(Arrival),
    /// All fragments of a datagram of which nothing came before, with nothing between them.
    Train {
        /// Bytes of payload.
        payload_len: u16,
        /// MTU of the link that cut it.
        mtu: u16,
        /// The order: which piece comes first.
        first: u8,
        /// The order: whether the others follow backwards.
        backwards: bool,
    },
    /// Time passes.
    Wait {
        /// This much of it.
        seconds: u8,
    },
}

/// One fragment by itself.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Arrival {
    /// Which of a few senders it is from; only some bits are used.
    pub sender: u8,
    /// Which of its datagrams it belongs to; only some bits are used.
    pub identification: u8,
    /// Where it belongs, in bytes.
    pub offset: u16,
    /// Bytes of payload.
    pub len: u16,
    /// Whether more follow.
    pub more: bool,
    /// ECN codepoint; only two bits are used.
    pub ecn: u8,
    /// The value of all its bytes if it lies about them.
    pub lie: Option<u8>,
}

const HEADER: [u8; 20] = [0x45; 20];
const MAX_PAYLOAD_LEN: usize = 65_535 - HEADER.len();
/// Identifications from here on are those of trains.
const FIRST_TRAIN: u32 = 1 << 16;

/// The byte at position `at` of every datagram with `identification`.
fn content(identification: u32, at: usize) -> u8 {
    let [byte, ..] = (at / 8).wrapping_add(identification as usize).wrapping_mul(167).to_le_bytes();
    byte
}

fn payload(identification: u32, offset: usize, len: usize) -> Vec<u8> {
    (offset..offset + len).map(|at| content(identification, at)).collect()
}

fn key(sender: u8, identification: u32) -> FragmentKey {
    let address = |last| -> Ipv6Addr { Ipv4Addr::new(10, 0, 2, last).to_ipv6_mapped() };
    FragmentKey { source: address(sender), destination: address(2), identification, protocol: 17 }
}

struct Bench<'a> {
    queue: FragmentQueue<'a>,
    slot_memory: usize,
    now: Instant,
    inserted: u64,
    trains: u32,
    /// Identifications of which a lie has come; nothing is known of their content.
    lied_about: [bool; 256],
}

impl Target for Input {
    fn run(self) {
        let slots = usize::from(self.slots % 8) + 1;
        let slot_memory = usize::from(self.slot_memory);
        let mut fragments = vec![FragmentSlot::EMPTY; slots];
        let mut memory = vec![0; slots * slot_memory];
        let mut bench = Bench {
            queue: FragmentQueue::new(&mut fragments[..], &mut memory[..]),
            slot_memory,
            now: Instant::ZERO,
            inserted: 0,
            trains: 0,
            lied_about: [false; 256],
        };
        for event in &self.events {
            bench.take(*event);
            bench.check_counters();
        }
        bench.wait(Duration::from_secs(30));
        assert!(bench.queue.is_empty(), "something outlives its time");
    }
}

impl Bench<'_> {
    fn take(&mut self, event: Event) {
        match event {
            Event::Fragment(arrival) => self.fragment(arrival),
            Event::Train { payload_len, mtu, first, backwards } => {
                self.train(usize::from(payload_len), usize::from(mtu), first, backwards);
            }
            Event::Wait { seconds } => self.wait(Duration::from_secs(seconds.into())),
        }
    }

    fn fragment(&mut self, arrival: Arrival) {
        let identification = arrival.identification % 16;
        let (offset, len) = (usize::from(arrival.offset), usize::from(arrival.len));
        let bytes = match arrival.lie {
            Some(byte) => {
                self.lied_about[usize::from(identification)] = true;
                vec![byte; len]
            }
            None => payload(identification.into(), offset, len),
        };
        let fragment = Fragment {
            key: key(arrival.sender % 4, identification.into()),
            header: &HEADER,
            ecn: arrival.ecn % 4,
            offset: arrival.offset,
            more: arrival.more,
            payload: &bytes,
        };
        let trusted = !self.lied_about[usize::from(identification)];
        if let Some(whole) = self.insert(&fragment) {
            assert!(whole.len() <= self.slot_memory.min(MAX_PAYLOAD_LEN));
            assert!(!trusted || whole == payload(identification.into(), 0, whole.len()));
        }
    }

    fn train(&mut self, payload_len: usize, mtu: usize, first: u8, backwards: bool) {
        let identification = FIRST_TRAIN + self.trains;
        self.trains += 1;
        let Some(fragmenter) = Fragmenter::new(payload_len, HEADER.len(), mtu) else {
            assert!(payload_len > MAX_PAYLOAD_LEN || mtu < HEADER.len() + 8);
            return;
        };
        let mut pieces: Vec<_> = fragmenter.collect();
        let count = pieces.len();
        pieces.rotate_left(usize::from(first) % count);
        if backwards {
            pieces.reverse();
        }
        let mut wholes = Vec::new();
        for piece in pieces {
            assert!(HEADER.len() + piece.range.len() <= mtu);
            let bytes = payload(identification, piece.range.start, piece.range.len());
            let fragment = Fragment {
                key: key(250, identification),
                header: &HEADER,
                ecn: 0,
                offset: piece.offset,
                more: piece.more,
                payload: &bytes,
            };
            wholes.extend(self.insert(&fragment));
        }
        if (1..=self.slot_memory).contains(&payload_len) {
            assert_eq!(wholes, [payload(identification, 0, payload_len)]);
        } else {
            assert_eq!(wholes, [[0; 0]; 0]);
        }
    }

    fn insert(&mut self, fragment: &Fragment<'_>) -> Option<Vec<u8>> {
        self.inserted += 1;
        match self.queue.insert(self.now, fragment) {
            Insert::Complete(datagram) => {
                assert_eq!(datagram.header, HEADER);
                Some(datagram.payload.to_vec())
            }
            Insert::Held | Insert::Dropped(_) => None,
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now.after(time);
        while let Some(expired) = self.queue.expire(self.now) {
            assert!(expired.first.is_none_or(|first| first.header == HEADER));
        }
        assert!(self.queue.poll_at().is_none_or(|at| at > self.now));
    }

    fn check_counters(&self) {
        let counted = self.queue.counters();
        let dropped = counted.malformed
            + counted.too_long
            + counted.memory
            + counted.overlap
            + counted.length
            + counted.ecn
            + counted.discarded;
        assert_eq!(counted.held + counted.completed + dropped, self.inserted);
        assert_eq!(self.queue.is_empty(), self.queue.poll_at().is_none());
    }
}
