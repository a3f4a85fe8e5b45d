//! Bytes as hexadecimal digits.

use core::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Digits(bytes))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let digits = String::deserialize(deserializer)?;
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(D::Error::custom("an odd number of hexadecimal digits"));
    }
    let byte = |pair: &[u8; 2]| Some(value(pair[0])? << 4 | value(pair[1])?);
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.ok_or_else(|| D::Error::custom("not a hexadecimal digit"))
}

/// Written piece by piece: a batch of frames is long.
struct Digits<'a>(&'a [u8]);

impl fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
        let mut text = [0; 128];
        for piece in self.0.chunks(text.len() / 2) {
            for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(piece) {
                *pair = [digit(byte >> 4), digit(byte & 0x0f)];
            }
            let written = text.get(..piece.len() * 2).unwrap_or_default();
            f.write_str(core::str::from_utf8(written).unwrap_or_default())?;
        }
        Ok(())
    }
}

const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
