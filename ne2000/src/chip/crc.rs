//! The CRC-32 of IEEE 802.3, for the frame check sequence and the multicast filter.

/// 04C11DB7h with its bits reversed: the bytes come least significant bit first.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// Bytes that go into the sum at once.
const STEP: usize = 8;

/// Tables for that: table `n` is for a byte with `n` more behind it.
static TABLES: [[u32; 256]; STEP] = tables();

/// The frame check sequence of `frame`, in the order in which it follows the frame.
pub fn fcs(frame: &[u8]) -> [u8; 4] {
    (!update(u32::MAX, frame)).to_le_bytes()
}

/// The bit of MAR that `address` selects, 0 to 63: the upper six bits of the CRC as the chip's
/// shift register holds it, which is not inverted and has its first bit on top.
pub(super) fn multicast_bit(address: &[u8; 6]) -> u8 {
    let [top, ..] = update(u32::MAX, address).reverse_bits().to_be_bytes();
    top >> 2
}

/// A check sequence in the making, byte by byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running(u32);

/// What is left when a frame's own check sequence has gone in as well.
const RESIDUE: u32 = 0xDEBB_20E3;

impl Running {
    pub(super) const fn new() -> Self {
        Self(u32::MAX)
    }

    pub(super) fn push(&mut self, byte: u8) {
        self.0 = update(self.0, &[byte]);
    }

    pub(super) const fn fcs(self) -> [u8; 4] {
        (!self.0).to_le_bytes()
    }

    /// Whether the last four bytes were the check sequence of those before.
    pub(super) const fn ends_in_fcs(self) -> bool {
        self.0 == RESIDUE
    }
}

fn update(crc: u32, bytes: &[u8]) -> u32 {
    let (chunks, tail) = bytes.as_chunks::<STEP>();
    let crc = chunks.iter().fold(crc, |crc, chunk| {
        let sum = u64::from_le_bytes(*chunk) ^ u64::from(crc);
        let tables = (0..STEP).rev();
        tables.zip(sum.to_le_bytes()).fold(0, |crc, (table, byte)| crc ^ entry(table, byte))
    });
    tail.iter().fold(crc, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        entry(0, low ^ byte) ^ (crc >> 8)
    })
}

fn entry(table: usize, byte: u8) -> u32 {
    TABLES.get(table).and_then(|table| table.get(usize::from(byte))).copied().unwrap_or(0)
}

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "runs in the compiler, which refuses an index out of bounds; no index exceeds 255"
)]
const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut table = 0;
        while table < STEP {
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
                bit += 1;
            }
            tables[table][byte] = crc;
            table += 1;
        }
        byte += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The catalogue's check value of CRC-32/ISO-HDLC.
    #[test]
    fn the_check_string_has_its_known_crc() {
        assert_eq!(fcs(b"123456789"), 0xCBF4_3926_u32.to_le_bytes());
        assert_eq!(fcs(&[]), [0; 4]);
    }

    /// The shift register itself, bit by bit, with nothing in it at first.
    fn shifted(bytes: &[u8]) -> u32 {
        let shift = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
        bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift))
    }

    #[test]
    fn table_n_tells_of_a_byte_and_n_zeros_behind_it() {
        for (n, table) in tables().iter().enumerate() {
            for (byte, crc) in (0..=u8::MAX).zip(table) {
                let mut bytes = [0; STEP];
                bytes[0] = byte;
                assert_eq!(*crc, shifted(&bytes[..=n]), "byte {byte}, {n} zeros");
            }
        }
    }

    #[test]
    fn eight_bytes_at_once_are_eight_bytes_one_by_one() {
        let bytes: [u8; 100] = core::array::from_fn(|i| (i * 37).to_le_bytes()[0]);
        for length in 0..bytes.len() {
            let mut running = Running::new();
            bytes[..length].iter().for_each(|byte| running.push(*byte));
            assert_eq!(fcs(&bytes[..length]), running.fcs());
        }
    }

    /// As worked out bit by bit from the datasheet's shift register, and as drivers know it: all
    /// hosts have bit 31, the broadcast address bit 63.
    #[test]
    fn known_groups_select_their_known_bits() {
        for (address, bit) in [
            ([0x01, 0x00, 0x5E, 0x00, 0x00, 0x01], 31),
            ([0x33, 0x33, 0x00, 0x00, 0x00, 0x01], 62),
            ([0x09, 0x00, 0x00, 0x00, 0x00, 0x01], 16),
            ([0x01; 6], 12),
            ([0xFF; 6], 63),
        ] {
            assert_eq!(multicast_bit(&address), bit, "{address:02x?}");
        }
    }
}
