//! The fragment queue against a model that predicts each of its answers, over IPv4 and IPv6.

mod model;

use core::net::{IpAddr, Ipv4Addr};

use arbitrary::Arbitrary;
use ipstack::Instant;
use ipstack::frag::{Fragment, FragmentKey, FragmentQueue, FragmentSlot, Fragmenter, Insert};

use crate::Target;
use model::{Ended, Model, Outcome};

/// A queue and what comes to it.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    /// Slots of the queue; only some bits are used.
    pub slots: u8,
    /// Bytes of memory for each slot, from the most there can be down.
    pub missing_memory: u16,
    /// Bytes of memory beside that, which are too few for the slots; only some bits are used.
    pub spare: u8,
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
        /// Whether it is one of IPv6.
        ipv6: bool,
        /// Bytes of payload.
        payload_len: u16,
        /// From `LONG` on all bits of the length are used, and else twelve.
        long: u8,
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
        /// Whether the queue is not told, so that late fragments join what is over.
        unseen: bool,
    },
}

/// One fragment by itself.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Arrival {
    /// Who it is from, and which of its datagrams it belongs to: two bits for the sender, one for
    /// the family, one for the protocol, and two for the identification.
    pub datagram: u8,
    /// Which bytes of it.
    pub bytes: Bytes,
    /// Whether more follow.
    pub more: bool,
    /// ECN codepoint in two bits, and bytes of header in the others.
    pub header: u8,
    /// From `FIRST_LIE` on the value of all its bytes, about which it lies.
    pub lie: u8,
}

/// Which bytes of a datagram a fragment has.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Bytes {
    /// Where others may well be: from a unit on, so many units, and less by some bytes if it is the
    /// last; only some bits of each are used.
    Near(u8, u8, u8),
    /// Where the longest datagram ends: so many units before the last, and so many bytes; only some
    /// bits of each are used.
    Far(u8, u8),
    /// Anything.
    Any {
        /// Where it belongs, in bytes.
        offset: u16,
        /// Bytes of payload; only some bits are used.
        len: u16,
    },
}

impl Arrival {
    /// Offset and length in bytes.
    fn place(self) -> (u16, usize) {
        match self.bytes {
            Bytes::Near(unit, units, less) => {
                let len = usize::from(units % 8) * 8 + 8;
                let less = if self.more { 0 } else { usize::from(less % 8) };
                (u16::from(unit % 16) * 8, len - less)
            }
            Bytes::Far(units, len) => {
                let len = usize::from(len % 128) + 1;
                let whole_units = if self.more { len.next_multiple_of(8) } else { len };
                (65_528 - u16::from(units % 16) * 8, whole_units)
            }
            Bytes::Any { offset, len } => (offset, usize::from(len % 2048)),
        }
    }
}

/// From here on a fragment lies.
const FIRST_LIE: u8 = 0xf0;
/// From here on a train is long.
const LONG: u8 = 0xf0;
const HEADER: [u8; 20] = [0x45; 20];
/// Identifications from here on are those of trains.
const FIRST_TRAIN: u32 = 1 << 16;
/// What is in memory before the queue writes there.
const UNTOUCHED: u8 = 0xee;

/// Bytes `offset..offset + len` of every datagram with `identification`.
fn payload(identification: u32, offset: usize, len: usize) -> Vec<u8> {
    let content = |at: usize| {
        let [byte, ..] =
            (at / 8).wrapping_add(identification as usize).wrapping_mul(167).to_le_bytes();
        byte
    };
    (offset..offset + len).map(content).collect()
}

fn address(ipv6: bool, last: u8) -> IpAddr {
    let ipv4 = Ipv4Addr::new(10, 0, 2, last);
    // The same bits, but another family.
    if ipv6 { ipv4.to_ipv6_mapped().into() } else { ipv4.into() }
}

fn key(ipv6: bool, sender: u8, identification: u32, protocol: u8) -> FragmentKey {
    let (source, destination) = (address(ipv6, sender), address(ipv6, 2));
    FragmentKey { source, destination, identification, protocol }
}

struct Bench<'a> {
    queue: FragmentQueue<'a>,
    model: Model,
    /// Microseconds.
    now: u64,
    trains: u32,
}

impl Target for Input {
    fn run(self) {
        let slots = usize::from(self.slots % 9);
        let room = usize::from(u16::MAX - self.missing_memory);
        // Of bytes that cannot be shared evenly some are left over.
        let spare = usize::from(self.spare).checked_rem(slots).unwrap_or(0);
        let mut fragments = vec![FragmentSlot::EMPTY; slots];
        let mut memory = vec![UNTOUCHED; slots * room + spare];
        let mut bench = Bench {
            queue: FragmentQueue::new(&mut fragments[..], &mut memory[..]),
            model: Model::new(slots, if slots == 0 { 0 } else { room }),
            now: 0,
            trains: 0,
        };
        for event in &self.events {
            bench.take(*event);
            bench.compare();
        }
        bench.wait(60);
        bench.expire();
        bench.compare();
        assert!(bench.queue.is_empty(), "something outlives its time");
        assert!(memory[slots * room..].iter().all(|byte| *byte == UNTOUCHED), "beyond the memory");
    }
}

impl Bench<'_> {
    fn take(&mut self, event: Event) {
        match event {
            Event::Fragment(arrival) => self.fragment(arrival),
            Event::Train { ipv6, payload_len, long, mtu, first, backwards } => {
                let len = if long < LONG { payload_len % 4096 } else { payload_len };
                self.train(ipv6, usize::from(len), usize::from(mtu), first, backwards);
            }
            Event::Wait { seconds, unseen } => {
                self.wait(seconds);
                if !unseen {
                    self.expire();
                }
            }
        }
    }

    fn fragment(&mut self, arrival: Arrival) {
        let [sender, family, protocol] = [3, 4, 8].map(|bits| arrival.datagram & bits);
        let identification = u32::from(arrival.datagram >> 4 & 3);
        let (offset, len) = arrival.place();
        let bytes = match arrival.lie {
            FIRST_LIE.. => vec![arrival.lie; len],
            _ => payload(identification, usize::from(offset), len),
        };
        self.insert(&Fragment {
            key: key(family != 0, sender, identification, protocol),
            header: &vec![arrival.header; usize::from(arrival.header >> 2)],
            ecn: arrival.header & 3,
            offset,
            more: arrival.more,
            payload: &bytes,
        });
    }

    fn train(&mut self, ipv6: bool, payload_len: usize, mtu: usize, first: u8, backwards: bool) {
        let identification = FIRST_TRAIN + self.trains;
        self.trains += 1;
        // Some hundred pieces at most: thousands take longer, and do nothing else.
        let mtu = mtu.max(payload_len / 128);
        let Some(fragmenter) = Fragmenter::new(payload_len, HEADER.len(), mtu) else {
            assert!(payload_len > 65_535 - HEADER.len() || mtu < HEADER.len() + 8);
            return;
        };
        let mut pieces: Vec<_> = fragmenter.collect();
        let count = pieces.len();
        pieces.rotate_left(usize::from(first) % count);
        if backwards {
            pieces.reverse();
        }
        let completed = self.model.counters.completed;
        for piece in pieces {
            assert!(HEADER.len() + piece.range.len() <= mtu);
            let bytes = payload(identification, piece.range.start, piece.range.len());
            self.insert(&Fragment {
                key: key(ipv6, 250, identification, 17),
                header: &HEADER,
                ecn: 0,
                offset: piece.offset,
                more: piece.more,
                payload: &bytes,
            });
        }
        let fits = (1..=self.model.room).contains(&payload_len);
        assert_eq!(self.model.counters.completed, completed + u64::from(fits));
    }

    fn insert(&mut self, fragment: &Fragment<'_>) {
        let expected = self.model.insert(self.now, fragment);
        let given = match self.queue.insert(Instant::from_micros(self.now), fragment) {
            Insert::Complete(datagram) => Outcome::Complete {
                header: datagram.header.to_vec(),
                ecn: datagram.ecn,
                payload: datagram.payload.to_vec(),
            },
            Insert::Held => Outcome::Held,
            Insert::Dropped(reason) => Outcome::Dropped(reason),
        };
        // Not `assert_eq`, which would print 64 KiB twice.
        assert!(given == expected, "another outcome than that of the model");
    }

    fn wait(&mut self, seconds: u8) {
        self.now += u64::from(seconds) * 1_000_000;
    }

    fn expire(&mut self) {
        let mut given = Vec::new();
        while let Some(expired) = self.queue.expire(Instant::from_micros(self.now)) {
            given.push(Ended {
                source: expired.key.source,
                identification: expired.key.identification,
                protocol: expired.key.protocol,
                first: expired.first.map(|first| (first.header.to_vec(), first.payload.to_vec())),
            });
        }
        given.sort();
        assert!(
            given == self.model.expire(self.now),
            "other datagrams end than those of the model"
        );
    }

    fn compare(&self) {
        assert_eq!(*self.queue.counters(), self.model.counters);
        assert_eq!(self.queue.len(), self.model.len());
        assert_eq!(self.queue.is_empty(), self.model.len() == 0);
        assert_eq!(self.queue.poll_at(), self.model.next_end().map(Instant::from_micros));
    }
}
