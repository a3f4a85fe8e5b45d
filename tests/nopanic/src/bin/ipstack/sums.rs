//! Checksum and keyed hash.

use ipstack::checksum::{PseudoHeader, Sum, checksum, update, update_u32};
use ipstack::hash::SipHasher;
use slirpkit_nopanic::{any, any_bytes, keep};

pub(crate) fn sums() {
    let pseudo = PseudoHeader::new(any(), any(), any(), any()).sum();
    let sum = if any() { pseudo } else { Sum::ZERO };
    let sum = sum.add_bytes(any_bytes()).add_u16(any()).add_u32(any());
    keep((sum.fold(), sum.finish(), checksum(any_bytes())));
    keep((update(any(), any(), any()), update_u32(any(), any(), any())));
}

pub(crate) fn hash() {
    let mut hasher = SipHasher::new([any(), any()]);
    hasher.write(any_bytes());
    hasher.write_u16(any());
    hasher.write_u32(any());
    hasher.write_u64(any());
    hasher.write_u128(any::<u64>().into());
    keep(hasher.finish());
}
