//! The options of a TCP header (RFC 9293 3.1, RFC 7323, RFC 2018).

use heapless::Vec;

/// Most bytes of options in a header.
pub const MAX_OPTIONS_LEN: usize = 40;

/// Largest window scale; a larger one is taken as this (RFC 7323 2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;

/// Most SACK blocks in one header (RFC 2018 3).
pub const MAX_SACK_BLOCKS: usize = 4;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

const MSS_LEN: u8 = 4;
const WINDOW_SCALE_LEN: u8 = 3;
const SACK_PERMITTED_LEN: u8 = 2;
const TIMESTAMPS_LEN: u8 = 10;

/// The options that are understood here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TcpOptions {
    /// Largest segment that the sender takes, in bytes of payload. In a SYN only.
    pub mss: Option<u16>,
    /// By how many bits the sender shifts its windows, at most [`MAX_WINDOW_SCALE`]. In a SYN only.
    pub window_scale: Option<u8>,
    /// Whether the sender understands SACK. In a SYN only.
    pub sack_permitted: bool,
    /// The sender's clock and the echo of the receiver's (RFC 7323 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Blocks that the sender holds beyond a gap: first sequence number, and the one after the last.
    pub sack: Vec<(u32, u32), MAX_SACK_BLOCKS>,
}

impl TcpOptions {
    /// No options.
    pub const NONE: Self = Self {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: Vec::new(),
    };

    /// Reads the bytes between fixed header and payload. Options of unknown kind are passed over,
    /// as are those of known kind with a wrong length; one that is shorter than its own kind and
    /// length, or passes the end, ends the list.
    #[must_use]
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut options = Self::NONE;
        let mut rest = bytes;
        while let Some((kind, after_kind)) = rest.split_first() {
            rest = match *kind {
                END => break,
                NO_OPERATION => after_kind,
                kind => match split_option(after_kind) {
                    Some((data, after)) => {
                        options.read(kind, data);
                        after
                    }
                    None => break,
                },
            };
        }
        options
    }

    fn read(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (MSS, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
            (SACK_PERMITTED, &[]) => self.sack_permitted = true,
            (TIMESTAMPS, data) if data.len() == 8 => self.timestamps = read_pair(data),
            (SACK, data) if data.len() % 8 == 0 => {
                self.sack =
                    data.chunks_exact(8).filter_map(read_pair).take(MAX_SACK_BLOCKS).collect();
            }
            _ => {}
        }
    }

    /// Bytes that [`TcpOptions::emit`] writes, a multiple of 4.
    #[must_use]
    pub(super) fn emitted_len(&self) -> usize {
        let sack = match self.emitted_sack_blocks() {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        self.emitted_len_without_sack() + sack
    }

    /// At most 24: four for each but the timestamps, which take twelve.
    fn emitted_len_without_sack(&self) -> usize {
        4 * usize::from(self.mss.is_some())
            + 4 * usize::from(self.window_scale.is_some())
            + 4 * usize::from(self.sack_permitted)
            + 12 * usize::from(self.timestamps.is_some())
    }

    /// The first SACK blocks, as many as there is room for: three beside timestamps (RFC 2018 3).
    fn emitted_sack_blocks(&self) -> usize {
        let room = MAX_OPTIONS_LEN.saturating_sub(self.emitted_len_without_sack() + 4) / 8;
        self.sack.len().min(room)
    }

    /// Writes the options, each padded in front to a multiple of four bytes, and returns what is
    /// left of `buffer`; `None` if it is too short.
    pub(super) fn emit<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b mut [u8]> {
        let mut rest = buffer;
        if let Some(mss) = self.mss {
            let [a, b] = mss.to_be_bytes();
            rest = put(rest, [MSS, MSS_LEN, a, b])?;
        }
        if let Some(shift) = self.window_scale {
            let shift = shift.min(MAX_WINDOW_SCALE);
            rest = put(rest, [NO_OPERATION, WINDOW_SCALE, WINDOW_SCALE_LEN, shift])?;
        }
        if self.sack_permitted {
            rest = put(rest, [NO_OPERATION, NO_OPERATION, SACK_PERMITTED, SACK_PERMITTED_LEN])?;
        }
        if let Some(timestamps) = self.timestamps {
            rest = put(rest, [NO_OPERATION, NO_OPERATION, TIMESTAMPS, TIMESTAMPS_LEN])?;
            rest = put_pair(rest, timestamps)?;
        }
        let blocks = self.emitted_sack_blocks();
        if blocks > 0 {
            let length = u8::try_from(2 + 8 * blocks).ok()?;
            rest = put(rest, [NO_OPERATION, NO_OPERATION, SACK, length])?;
            for block in self.sack.iter().take(blocks) {
                rest = put_pair(rest, *block)?;
            }
        }
        Some(rest)
    }
}

/// Splits what follows the kind of an option into its data and what comes after it.
fn split_option(after_kind: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, after_length) = after_kind.split_first()?;
    after_length.split_at_checked(usize::from(*length).checked_sub(2)?)
}

fn read_pair(data: &[u8]) -> Option<(u32, u32)> {
    let (first, rest) = data.split_first_chunk()?;
    Some((u32::from_be_bytes(*first), u32::from_be_bytes(*rest.first_chunk()?)))
}

fn put(buffer: &mut [u8], bytes: [u8; 4]) -> Option<&mut [u8]> {
    let (to, rest) = buffer.split_first_chunk_mut()?;
    *to = bytes;
    Some(rest)
}

fn put_pair(buffer: &mut [u8], (first, second): (u32, u32)) -> Option<&mut [u8]> {
    put(put(buffer, first.to_be_bytes())?, second.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn emitted(options: &TcpOptions) -> std::vec::Vec<u8> {
        let mut buffer = [0xee; MAX_OPTIONS_LEN];
        let unused = options.emit(&mut buffer).unwrap().len();
        assert_eq!(unused, MAX_OPTIONS_LEN - options.emitted_len());
        buffer[..options.emitted_len()].to_vec()
    }

    #[test]
    fn a_syn_of_linux_is_read_whole() {
        let options =
            TcpOptions::parse(&[2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7]);
        assert_eq!(
            options,
            TcpOptions {
                mss: Some(1460),
                window_scale: Some(7),
                sack_permitted: true,
                timestamps: Some((9, 0)),
                ..TcpOptions::NONE
            }
        );
    }

    #[test]
    fn window_scales_above_14_count_as_14() {
        assert_eq!(TcpOptions::parse(&[3, 3, 15]).window_scale, Some(14));
        assert_eq!(TcpOptions::parse(&[3, 3, 255]).window_scale, Some(14));
    }

    #[test]
    fn an_option_of_no_length_or_past_the_end_ends_the_list() {
        for broken in [&[9, 0][..], &[9, 1], &[9], &[9, 20], &[8, 10, 0, 0]] {
            let bytes = [&[3, 3, 2][..], broken, &[2, 4, 5, 0xb4]].concat();
            let options = TcpOptions::parse(&bytes);
            assert_eq!(options.window_scale, Some(2), "{broken:?}");
            assert_eq!(options.mss, None, "{broken:?}");
        }
    }

    #[test]
    fn nothing_is_read_after_the_end_mark() {
        assert_eq!(TcpOptions::parse(&[0, 3, 3, 2]), TcpOptions::NONE);
    }

    #[test]
    fn unknown_options_and_wrong_lengths_are_passed_over() {
        let bytes = [254, 4, 1, 2, 2, 3, 9, 5, 7, 1, 1, 1, 1, 1, 3, 3, 5];
        let options = TcpOptions::parse(&bytes);
        assert_eq!(options, TcpOptions { window_scale: Some(5), ..TcpOptions::NONE });
    }

    #[test]
    fn sack_blocks_that_do_not_fit_are_left_out() {
        let four = Vec::from_array([(1, 2), (3, 4), (5, 6), (7, 8)]);
        let alone = TcpOptions { sack: four.clone(), ..TcpOptions::NONE };
        assert_eq!(TcpOptions::parse(&emitted(&alone)).sack.len(), 4);
        let beside = TcpOptions { sack: four, timestamps: Some((1, 2)), ..TcpOptions::NONE };
        assert_eq!(emitted(&beside).len(), MAX_OPTIONS_LEN);
        assert_eq!(TcpOptions::parse(&emitted(&beside)).sack[..], [(1, 2), (3, 4), (5, 6)]);
    }

    #[test]
    fn a_buffer_too_short_is_an_error() {
        let options = TcpOptions { mss: Some(1460), ..TcpOptions::NONE };
        assert!(options.emit(&mut [0; 3]).is_none());
    }

    proptest! {
        #[test]
        fn parse_reads_what_emit_wrote(
            mss: Option<u16>, window_scale in prop::option::of(0u8..=14), sack_permitted: bool,
            timestamps: Option<(u32, u32)>, sack in prop::collection::vec(any::<(u32, u32)>(), 0..2),
        ) {
            let sack = sack.into_iter().collect();
            let options = TcpOptions { mss, window_scale, sack_permitted, timestamps, sack };
            let bytes = emitted(&options);
            prop_assert_eq!(bytes.len() % 4, 0);
            prop_assert_eq!(TcpOptions::parse(&bytes), options);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..41)) {
            let _ = TcpOptions::parse(&bytes);
        }
    }
}
