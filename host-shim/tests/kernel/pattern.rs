//! A stream of bytes of which each piece tells where it belongs.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The pattern repeats after this many bytes: a prime, so that no buffer or segment size hides
/// bytes that are out of place.
const PERIOD: usize = 1_000_003;

/// More than a piece of the pattern is never handled at a time.
const PIECE: usize = 64 << 10;

static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = (1..=PERIOD as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[2]);
    words.collect()
});

/// The bytes from `position` on: at least one, and not necessarily `wanted`.
fn piece(position: u64, wanted: u64) -> &'static [u8] {
    let start = usize::try_from(position % PERIOD as u64).unwrap();
    let length = usize::try_from(wanted).unwrap_or(PIECE).min(PIECE);
    &PATTERN[start..PERIOD.min(start + length)]
}

/// The first `length` bytes.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    PATTERN.iter().copied().cycle().take(length).collect()
}

/// Sends the first `length` bytes.
pub(crate) fn send(to: &mut impl Write, length: u64) -> io::Result<()> {
    let mut position = 0;
    while position < length {
        let piece = piece(position, length - position);
        to.write_all(piece)?;
        position += piece.len() as u64;
    }
    Ok(())
}

/// Receives `length` bytes and compares each.
pub(crate) fn receive(from: &mut impl Read, length: u64) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    let mut position = 0;
    while position < length {
        let wanted = usize::try_from(length - position).unwrap_or(PIECE).min(PIECE);
        let count = from.read(&mut buffer[..wanted])?;
        if count == 0 {
            return Err(io::Error::other(format!("the stream ended after {position} bytes")));
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            let expected = piece(position, rest.len() as u64);
            let (seen, after) = rest.split_at(expected.len());
            if seen != expected {
                return Err(io::Error::other(format!("wrong bytes from {position} on")));
            }
            position += seen.len() as u64;
            rest = after;
        }
    }
    Ok(())
}

/// SHA-256 in hexadecimal digits of what `write` writes.
pub(crate) fn sha256(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    write(&mut child.stdin.take().unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}
