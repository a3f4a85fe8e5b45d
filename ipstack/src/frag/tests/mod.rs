//! Fragments as written exchanges, named by the public bug where there is one.

#![expect(clippy::std_instead_of_alloc, reason = "tests have std, and no alloc is linked")]

mod contradictions;
mod ipv6;
mod limits;
mod properties;
mod reassembly;
mod room;

use core::net::Ipv4Addr;
use core::ops::Range;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::Instant;

const HEADER: [u8; 20] = [0x45; 20];

/// Slots and payload memory, both full of what must not show.
struct Memory {
    slots: Vec<FragmentSlot>,
    bytes: Vec<u8>,
}

impl Memory {
    fn new(slots: usize, chunk_len: usize) -> Self {
        Self { slots: vec![FragmentSlot::EMPTY; slots], bytes: vec![0xee; slots * chunk_len] }
    }

    fn queue(&mut self) -> FragmentQueue<'_> {
        FragmentQueue::new(&mut self.slots[..], &mut self.bytes[..])
    }
}

/// Bytes that repeat only after 251.
fn pattern(len: usize) -> Vec<u8> {
    (0..251).cycle().take(len).collect()
}

fn key(source: u8, identification: u32) -> FragmentKey {
    FragmentKey {
        source: Ipv4Addr::new(10, 0, 2, source).into(),
        destination: Ipv4Addr::new(192, 0, 2, 1).into(),
        identification,
        protocol: 17,
    }
}

/// The fragment with the bytes `range` of `datagram`; the last one if they reach its end.
fn part(datagram: &[u8], range: Range<usize>) -> Fragment<'_> {
    Fragment {
        key: key(15, 1),
        header: &HEADER,
        ecn: 0,
        offset: u16::try_from(range.start).unwrap(),
        more: range.end < datagram.len(),
        payload: &datagram[range],
    }
}

/// All fragments of `datagram` behind a 20-byte header at `mtu`.
fn cut(datagram: &[u8], mtu: usize) -> Vec<Fragment<'_>> {
    Fragmenter::new(datagram.len(), HEADER.len(), mtu)
        .unwrap()
        .map(|piece| part(datagram, piece.range))
        .collect()
}

/// Inserts all `fragments` at time zero; the last one must complete `datagram`, and no other.
fn assert_completes(queue: &mut FragmentQueue<'_>, fragments: &[Fragment<'_>], datagram: &[u8]) {
    let (last, others) = fragments.split_last().unwrap();
    for fragment in others {
        assert_eq!(queue.insert(Instant::ZERO, fragment), Insert::Held);
    }
    let Insert::Complete(whole) = queue.insert(Instant::ZERO, last) else {
        panic!("not complete after {} fragments", fragments.len());
    };
    assert!(whole.payload == datagram, "bytes differ");
    assert_eq!(whole.header, fragments.iter().find(|f| f.offset == 0).unwrap().header);
    assert!(queue.is_empty());
}
