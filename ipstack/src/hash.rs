//! Keyed hashing: SipHash-2-4 (Aumasson and Bernstein, 2012) over bytes that come in pieces.
//!
//! A flow table indexed by it cannot be flooded by a guest that does not know the key, and RFC 6528
//! wants the same of initial sequence numbers.

/// A SipHash-2-4 state that has absorbed some bytes.
#[derive(Clone, Debug)]
pub struct SipHasher {
    v: [u64; 4],
    /// Bytes not yet absorbed, the first in the lowest bits; zero above them.
    tail: u64,
    /// How many they are, at most 7.
    tail_len: u32,
    /// All bytes written. Only its lowest eight bits count.
    written: u32,
}

impl SipHasher {
    /// An empty message under `key`, given as two integers: of a key of 16 bytes the first eight
    /// and the last eight, little-endian.
    #[must_use]
    pub const fn new(key: [u64; 2]) -> Self {
        let v = [
            key[0] ^ 0x736f_6d65_7073_6575,
            key[1] ^ 0x646f_7261_6e64_6f6d,
            key[0] ^ 0x6c79_6765_6e65_7261,
            key[1] ^ 0x7465_6462_7974_6573,
        ];
        Self { v, tail: 0, tail_len: 0, written: 0 }
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.push(u64::from(*byte), 1);
        }
    }

    /// Appends the two bytes of `value`, lowest first.
    pub const fn write_u16(&mut self, value: u16) {
        self.push(value as u64, 2);
    }

    /// Appends the four bytes of `value`, lowest first.
    pub const fn write_u32(&mut self, value: u32) {
        self.push(value as u64, 4);
    }

    /// Appends the eight bytes of `value`, lowest first.
    pub const fn write_u64(&mut self, value: u64) {
        self.push(value, 8);
    }

    /// Appends the sixteen bytes of `value`, lowest first.
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a u128")]
    pub const fn write_u128(&mut self, value: u128) {
        self.push(value as u64, 8);
        self.push((value >> 64) as u64, 8);
    }

    /// The hash of everything written so far.
    #[must_use]
    pub const fn finish(&self) -> u64 {
        let mut v = absorb(self.v, self.tail | (self.written as u64) << 56);
        v[2] ^= 0xff;
        let v = round(round(round(round(v))));
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }

    /// Appends the `count` lowest bytes of `bytes`, 1 to 8, whose other bytes are zero.
    const fn push(&mut self, bytes: u64, count: u32) {
        self.written = self.written.wrapping_add(count);
        self.tail |= bytes.wrapping_shl(8 * self.tail_len);
        let filled = self.tail_len + count;
        if filled < 8 {
            self.tail_len = filled;
            return;
        }
        self.v = absorb(self.v, self.tail);
        let absorbed = 8 - self.tail_len;
        self.tail = if absorbed == 8 { 0 } else { bytes.wrapping_shr(8 * absorbed) };
        self.tail_len = filled - 8;
    }
}

const fn absorb(mut v: [u64; 4], word: u64) -> [u64; 4] {
    v[3] ^= word;
    v = round(round(v));
    v[0] ^= word;
    v
}

/// SipRound: section 2 of the paper.
const fn round([mut v0, mut v1, mut v2, mut v3]: [u64; 4]) -> [u64; 4] {
    v0 = v0.wrapping_add(v1);
    v2 = v2.wrapping_add(v3);
    v1 = v1.rotate_left(13) ^ v0;
    v3 = v3.rotate_left(16) ^ v2;
    v0 = v0.rotate_left(32);
    v2 = v2.wrapping_add(v1);
    v0 = v0.wrapping_add(v3);
    v1 = v1.rotate_left(17) ^ v2;
    v3 = v3.rotate_left(21) ^ v0;
    v2 = v2.rotate_left(32);
    [v0, v1, v2, v3]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: [u64; 2] = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];

    fn hash(bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher::new(KEY);
        hasher.write(bytes);
        hasher.finish()
    }

    #[test]
    fn appendix_a_of_the_paper() {
        let message: [u8; 15] = core::array::from_fn(|i| i.to_le_bytes()[0]);
        assert_eq!(hash(&message), 0xa129_ca61_49be_45e5);
    }

    /// From the reference implementation: key 00 to 0f, message 00, 01, 02, ... of each length.
    #[test]
    fn reference_vectors() {
        let expected = [
            0x726f_db47_dd0e_0e31,
            0x74f8_39c5_93dc_67fd,
            0x0d6c_8009_d9a9_4f5a,
            0x8567_6696_d7fb_7e2d,
            0xcf27_94e0_2771_87b7,
            0x1876_5564_cd99_a68d,
            0xcbc9_466e_58fe_e3ce,
            0xab02_00f5_8b01_d137,
            0x93f5_f579_9a93_2462,
        ];
        let message: [u8; 8] = core::array::from_fn(|i| i.to_le_bytes()[0]);
        for (length, hash_of_length) in expected.into_iter().enumerate() {
            assert_eq!(hash(&message[..length]), hash_of_length, "length {length}");
        }
    }

    #[test]
    fn integers_equal_their_little_endian_bytes_at_any_offset() {
        for offset in 0..9 {
            let head = &[7; 9][..offset];
            let mut hasher = SipHasher::new(KEY);
            hasher.write(head);
            hasher.write_u16(0x0102);
            hasher.write_u32(0x0304_0506);
            hasher.write_u64(0x0708_090a_0b0c_0d0e);
            hasher.write_u128(0x0f10_1112_1314_1516_1718_191a_1b1c_1d1e);
            let mut bytes = std::vec::Vec::from(head);
            bytes.extend(0x0102u16.to_le_bytes());
            bytes.extend(0x0304_0506u32.to_le_bytes());
            bytes.extend(0x0708_090a_0b0c_0d0eu64.to_le_bytes());
            bytes.extend(0x0f10_1112_1314_1516_1718_191a_1b1c_1d1eu128.to_le_bytes());
            assert_eq!(hasher.finish(), hash(&bytes), "offset {offset}");
        }
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(bytes in prop::collection::vec(any::<u8>(), 0..600), cut: usize) {
            let (head, tail) = bytes.split_at(cut % (bytes.len() + 1));
            let mut hasher = SipHasher::new(KEY);
            hasher.write(head);
            hasher.write(tail);
            prop_assert_eq!(hasher.finish(), hash(&bytes));
        }
    }
}
