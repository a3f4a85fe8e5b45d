//! The Internet checksum of one full-size TCP segment, beside a plain copy of the same bytes: the
//! sum is to cost at most four copies.

use core::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ipstack::checksum::checksum;

const FULL_SIZE_SEGMENT: usize = 1460;

fn checksum_beside_copy(criterion: &mut Criterion) {
    let source: [u8; FULL_SIZE_SEGMENT] = core::array::from_fn(|i| i.to_le_bytes()[0]);
    let mut target = [0; FULL_SIZE_SEGMENT];
    let mut group = criterion.benchmark_group("1460 bytes");
    group.throughput(Throughput::Bytes(FULL_SIZE_SEGMENT as u64));
    group.bench_function("copy", |bencher| {
        bencher.iter(|| black_box(&mut target[..]).copy_from_slice(black_box(&source[..])));
    });
    group.bench_function("checksum", |bencher| {
        bencher.iter(|| checksum(black_box(&source[..])));
    });
    group.bench_function("checksum, unaligned", |bencher| {
        bencher.iter(|| checksum(black_box(&source[1..])));
    });
    group.finish();
}

criterion_group!(benches, checksum_beside_copy);
criterion_main!(benches);
