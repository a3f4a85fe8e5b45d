//! The pool against queues of the standard library, and with handles that lie.

#![expect(clippy::std_instead_of_alloc, reason = "tests have std, and no alloc is linked")]

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec as StdVec;

use proptest::collection::vec as vec_of;
use proptest::prelude::*;

use super::*;

const QUEUES: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    Park { queue: usize, parts: StdVec<usize>, skip: usize },
    Advance { queue: usize, count: usize },
    Release { queue: usize },
    Join { queue: usize, rest: usize },
}

fn any_op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![0..20_usize, 2000..2100_usize, 0..9000_usize];
    let count = prop_oneof![0..20_usize, 2000..2100_usize, 0..20_000_usize];
    prop_oneof![
        5 => (0..QUEUES, vec_of(len.clone(), 0..4), prop_oneof![3 => Just(0), 1 => len])
            .prop_map(|(queue, parts, skip)| Op::Park { queue, parts, skip }),
        5 => (0..QUEUES, count).prop_map(|(queue, count)| Op::Advance { queue, count }),
        1 => (0..QUEUES).prop_map(|queue| Op::Release { queue }),
        2 => (0..QUEUES, 0..QUEUES).prop_map(|(queue, rest)| Op::Join { queue, rest }),
    ]
}

fn front(pool: &Pool<'_>, parked: &Parked) -> StdVec<u8> {
    pool.slices(parked).concat()
}

/// The bytes of a queue in each of its blocks, and what is free behind the last one.
fn blocks_of(pool: &Pool<'_>, parked: &Parked) -> (StdVec<usize>, usize) {
    let (mut blocks, mut block, mut room) = (StdVec::new(), parked.head, 0);
    while let Some((head, data)) = pool.taken_block(block) {
        blocks.push(head.parked(data).len());
        room = data.len() - usize::from(head.end);
        block = head.link;
    }
    (blocks, room)
}

proptest! {
    #[test]
    fn several_queues_keep_every_byte_in_order_and_leak_no_block(
        blocks in 0..24_usize,
        ops in vec_of(any_op(), 1..80),
    ) {
        let mut memory = vec![0xee; blocks * BLOCK_LEN + 100];
        let mut pool = Pool::new(&mut memory[..]);
        let mut handles = [Parked::EMPTY; QUEUES];
        let mut models = [const { VecDeque::<u8>::new() }; QUEUES];
        let mut bytes = (0..251_u8).cycle();
        for op in ops {
            match op {
                Op::Park { queue, parts, skip } => {
                    let parts = parts.iter().map(|len| bytes.by_ref().take(*len).collect::<StdVec<_>>());
                    let parts = parts.collect::<StdVec<_>>();
                    let slices = parts.iter().map(StdVec::as_slice).collect::<StdVec<_>>();
                    let wanted = parts.concat().get(skip..).unwrap_or_default().to_vec();
                    let room = pool.room() + blocks_of(&pool, &handles[queue]).1;
                    let taken = pool.park(&mut handles[queue], &slices, skip);
                    prop_assert_eq!(taken, wanted.len().min(room));
                    models[queue].extend(&wanted[..taken]);
                }
                Op::Advance { queue, count } => {
                    pool.advance(&mut handles[queue], count);
                    models[queue].drain(..count.min(models[queue].len()));
                }
                Op::Release { queue } => {
                    pool.release(&mut handles[queue]);
                    models[queue].clear();
                }
                Op::Join { queue, rest } => {
                    let mut handle = core::mem::take(&mut handles[rest]);
                    let model = core::mem::take(&mut models[rest]);
                    pool.join(&mut handles[queue], &mut handle);
                    prop_assert_eq!(handle, Parked::EMPTY);
                    models[queue].extend(model);
                }
            }
            for (handle, model) in handles.iter().zip(&mut models) {
                prop_assert_eq!(handle.len(), model.len());
                prop_assert_eq!(*handle == Parked::EMPTY, model.is_empty());
                let front = front(&pool, handle);
                prop_assert!(front.len() == model.len() || pool.slices(handle).is_full());
                prop_assert!(front == model.make_contiguous()[..front.len()], "bytes differ");
            }
            for handle in &handles {
                let (blocks, _) = blocks_of(&pool, handle);
                prop_assert_eq!(blocks.len(), handle.blocks());
                prop_assert_eq!(blocks.iter().sum::<usize>(), handle.len());
                prop_assert!(blocks.iter().all(|bytes| *bytes > 0), "an empty block is kept");
            }
            let in_use = handles.iter().map(Parked::blocks).sum::<usize>();
            prop_assert_eq!(pool.in_use(), in_use);
            prop_assert_eq!(pool.room(), (blocks - in_use) * BLOCK_DATA_LEN);
        }
        for handle in &mut handles {
            pool.release(handle);
        }
        // Every block can be had again.
        let all = vec![7; blocks * BLOCK_DATA_LEN];
        let mut parked = Parked::EMPTY;
        prop_assert_eq!(pool.park(&mut parked, &[&all, &[1]], 0), all.len());
        prop_assert_eq!((pool.in_use(), pool.room()), (blocks, 0));
    }

    #[test]
    fn handles_that_lie_never_panic_loop_or_free_a_block_twice(
        handles in vec_of((0..12_u32, 0..12_u32, prop_oneof![0..9000_u32, any::<u32>()], any::<u32>()), 1..6),
        ops in vec_of(any_op(), 1..60),
    ) {
        // Zeros look like blocks in use where none was ever used.
        let mut memory = vec![0; 8 * BLOCK_LEN];
        let mut pool = Pool::new(&mut memory[..]);
        let mut honest = Parked::EMPTY;
        pool.park(&mut honest, &[&[1; 5000]], 0);
        let mut handles = handles
            .into_iter()
            .map(|(head, tail, len, blocks)| Parked { head, tail, len, blocks })
            .collect::<StdVec<_>>();
        handles.push(honest);
        let last = handles.len() - 1;
        for op in ops {
            match op {
                Op::Park { queue, parts, skip } => {
                    let bytes = [2; 9000];
                    let parts = parts.iter().map(|len| &bytes[..*len]).collect::<StdVec<_>>();
                    pool.park(&mut handles[queue.min(last)], &parts, skip);
                }
                Op::Advance { queue, count } => pool.advance(&mut handles[queue.min(last)], count),
                Op::Release { queue } => pool.release(&mut handles[queue.min(last)]),
                Op::Join { queue, rest } => {
                    let mut copy = handles[rest.min(last)];
                    pool.join(&mut handles[queue.min(last)], &mut copy);
                }
            }
            for handle in &handles {
                prop_assert!(pool.slices(handle).len() <= MAX_SLICES);
            }
            prop_assert_eq!(pool.in_use(), in_use_by_links(&pool));
        }
    }
}

/// Counts the blocks in use by reading each link, and walks the free list to its end.
fn in_use_by_links(pool: &Pool<'_>) -> usize {
    let taken = (1..=pool.touched).filter(|block| pool.taken_block(*block).is_some()).count();
    let (mut free, mut block) = (0, pool.free);
    while block != 0 {
        free += 1;
        assert!(free <= pool.touched, "the free list is a ring");
        let head = pool.memory[pool.start_of(block).unwrap()..].first_chunk().unwrap();
        let head = Head::read(*head);
        assert!(head.is_free());
        block = head.link & !FREE;
    }
    assert_eq!(taken + free as usize, pool.touched as usize);
    taken
}

#[test]
fn a_handle_is_16_bytes_and_zero_when_empty() {
    assert!(size_of::<Parked>() <= 16);
    assert_eq!(Parked::default(), Parked::EMPTY);
    assert_eq!((Parked::EMPTY.len(), Parked::EMPTY.is_empty()), (0, true));
}

#[test]
fn memory_for_less_than_a_block_parks_nothing() {
    let mut memory = vec![0; BLOCK_LEN - 1];
    let mut pool = Pool::new(&mut memory[..]);
    let mut parked = Parked::EMPTY;
    assert_eq!((pool.room(), pool.park(&mut parked, &[b"abc"], 0)), (0, 0));
    assert_eq!((parked, pool.slices(&parked).len()), (Parked::EMPTY, 0));
}

#[test]
fn a_front_longer_than_a_gathered_write_comes_in_turns() {
    let bytes = (0..251_u8).cycle().take(20 * BLOCK_DATA_LEN).collect::<StdVec<_>>();
    let mut memory = vec![0; 20 * BLOCK_LEN];
    let mut pool = Pool::new(&mut memory[..]);
    let mut parked = Parked::EMPTY;
    assert_eq!(pool.park(&mut parked, &[&bytes], 0), bytes.len());
    let first = front(&pool, &parked);
    assert_eq!(first, bytes[..MAX_SLICES * BLOCK_DATA_LEN]);
    pool.advance(&mut parked, first.len());
    assert_eq!(front(&pool, &parked), bytes[first.len()..]);
    assert_eq!(pool.in_use(), 4);
}

#[test]
fn blocks_are_given_back_as_soon_as_they_are_read() {
    let mut memory = vec![0; 3 * BLOCK_LEN];
    let mut pool = Pool::new(&mut memory[..]);
    let mut parked = Parked::EMPTY;
    pool.park(&mut parked, &[&[5; 3 * BLOCK_DATA_LEN]], 0);
    pool.advance(&mut parked, BLOCK_DATA_LEN - 1);
    assert_eq!(pool.in_use(), 3);
    pool.advance(&mut parked, 1);
    assert_eq!((pool.in_use(), pool.room()), (2, BLOCK_DATA_LEN));
}

#[test]
fn a_released_copy_of_a_handle_frees_nothing_twice() {
    let mut memory = vec![0; 4 * BLOCK_LEN];
    let mut pool = Pool::new(&mut memory[..]);
    let mut parked = Parked::EMPTY;
    pool.park(&mut parked, &[&[5; 2 * BLOCK_DATA_LEN]], 0);
    let mut copy = parked;
    pool.release(&mut parked);
    assert!(pool.slices(&copy).is_empty());
    assert_eq!(pool.park(&mut copy, &[b"more"], 0), 0);
    pool.release(&mut copy);
    assert_eq!((pool.in_use(), in_use_by_links(&pool)), (0, 0));
}
