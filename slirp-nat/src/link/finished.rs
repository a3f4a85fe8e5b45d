//! Frames as they go over a wire that does no work for them.

use ipstack::wire::ethernet::MIN_FRAME_LEN;

use super::{TxMeta, segments};

const PADDING: [u8; MIN_FRAME_LEN] = [0; MIN_FRAME_LEN];

/// A frame in pieces: header, payload, padding.
pub type Pieces<'a> = [&'a [u8]; 3];

/// Hands every frame that `frame` is to be cut into to `emit`, with checksums and padding done: for
/// a link without offload. Some guests' drivers take nothing below 60 bytes (passt bug 166).
pub fn for_each_frame(frame: &[u8], meta: &TxMeta, mut emit: impl FnMut(Pieces<'_>)) {
    let Some(segmentation) = meta.segment else {
        emit([frame, &[], padding(frame.len())]);
        return;
    };
    for segment in segments(frame, segmentation) {
        let header = segment.header();
        let payload = frame.get(segment.payload()).unwrap_or_default();
        emit([header, payload, padding(header.len().saturating_add(payload.len()))]);
    }
}

fn padding(length: usize) -> &'static [u8] {
    PADDING.get(length..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_short_frame_is_padded_to_sixty_bytes() {
        let mut seen = Vec::new();
        for_each_frame(&[7; 42], &TxMeta::default(), |pieces| seen.push(pieces.concat()));
        assert_eq!(seen, [[vec![7; 42], vec![0; 18]].concat()]);
    }

    #[test]
    fn a_long_frame_is_left_alone() {
        for_each_frame(&[7; 61], &TxMeta::default(), |pieces| {
            assert_eq!(pieces.concat(), [7; 61]);
        });
    }
}
