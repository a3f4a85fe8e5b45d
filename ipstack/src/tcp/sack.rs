//! Blocks of a SACK option (RFC 2018 3).

use super::SeqNumber;
use crate::wire::TcpOptions;

/// Most blocks in one option here. The packet of an ACK with three is 68 bytes long, which every
/// IPv4 link carries (RFC 791 3.2), and as many are left beside timestamps.
pub const MAX_SACK_BLOCKS: usize = 3;

/// What the receiver holds beyond a gap: each block from its first number up to the one after its
/// last. The block that grew last comes first (RFC 2018 4).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlocks {
    blocks: [Option<(SeqNumber, SeqNumber)>; MAX_SACK_BLOCKS],
}

impl SackBlocks {
    /// No block.
    pub const NONE: Self = Self { blocks: [None; MAX_SACK_BLOCKS] };

    /// The first blocks of an option.
    #[must_use]
    pub fn from_options(options: &TcpOptions) -> Self {
        options.sack.iter().map(|(start, end)| (SeqNumber(*start), SeqNumber(*end))).collect()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The blocks.
    pub fn iter(&self) -> impl Iterator<Item = (SeqNumber, SeqNumber)> + '_ {
        self.blocks.iter().flatten().copied()
    }

    /// The options of a segment that carries these blocks and nothing else.
    #[must_use]
    pub fn to_options(&self) -> TcpOptions {
        let mut options = TcpOptions::NONE;
        for (start, end) in self.iter() {
            // There are fewer of them here.
            let _ = options.sack.push((start.0, end.0));
        }
        options
    }
}

impl FromIterator<(SeqNumber, SeqNumber)> for SackBlocks {
    /// Takes the first [`MAX_SACK_BLOCKS`].
    fn from_iter<I: IntoIterator<Item = (SeqNumber, SeqNumber)>>(blocks: I) -> Self {
        let mut taken = Self::NONE;
        for (place, block) in taken.blocks.iter_mut().zip(blocks) {
            *place = Some(block);
        }
        taken
    }
}
