//! The pattern of `host_shim::demo` over blocking streams.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use host_shim::demo::pattern::{check, fill, piece};

/// More than a piece of the pattern is never handled at a time.
const PIECE: usize = 64 << 10;

fn at_most_a_piece(left: u64) -> usize {
    usize::try_from(left).unwrap_or(PIECE).min(PIECE)
}

/// The first `length` bytes.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(0, &mut bytes);
    bytes
}

/// Sends the first `length` bytes.
pub(crate) fn send(to: &mut impl Write, length: u64) -> io::Result<()> {
    let mut position = 0;
    while position < length {
        let piece = piece(position, at_most_a_piece(length - position));
        to.write_all(piece)?;
        position += piece.len() as u64;
    }
    Ok(())
}

/// Receives `length` bytes and compares each.
pub(crate) fn receive(from: &mut impl Read, length: u64) -> io::Result<()> {
    receive_part(from, 0, length)
}

/// Receives the bytes from `position` up to `length` and compares each.
pub(crate) fn receive_part(from: &mut impl Read, mut position: u64, length: u64) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    while position < length {
        let count = from.read(&mut buffer[..at_most_a_piece(length - position)])?;
        if count == 0 {
            return Err(io::Error::other(format!("the stream ended after {position} bytes")));
        }
        check(position, &buffer[..count])
            .map_err(|at| io::Error::other(format!("a wrong byte at {at}")))?;
        position += count as u64;
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
