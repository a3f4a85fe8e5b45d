//! Why a replay ended early.

use core::fmt;
use std::io;

use ipstack::Instant;

use super::format::{Line, Sent};

/// Why a replay ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// Reading failed.
    Io(io::Error),
    /// The recording is broken.
    Broken {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The NAT did something else than what was recorded.
    Diverged(Box<Divergence>),
}

/// What is wrong with a line of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// It is not one of a recording.
    Syntax(serde_json::Error),
    /// It is too long to be one.
    TooLong,
    /// It is not the header of a known version.
    Header,
    /// The configuration in the header makes no NAT.
    Configuration,
    /// It stands where no such line can.
    Misplaced,
    /// It is missing, or ends early.
    Cut,
}

/// The first thing that the NAT did otherwise. Displayed, it is several lines: what was recorded
/// begins with `-`, what the NAT did with `+`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// Number of the line, from 1.
    pub line: u64,
    /// Number of the input that led there, from 1.
    pub input: u64,
    /// Time of that input.
    pub at: Instant,
    /// What was recorded.
    pub recorded: Act,
    /// What the NAT did. Where it called its host or link, the answer is not part of it.
    pub replayed: Act,
}

/// Something that the NAT did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// It sent a frame.
    Frame {
        /// Bytes of it, before cutting.
        len: usize,
        /// Bytes of payload in each frame if it is to be cut, else `None`.
        segment_size: Option<u16>,
        /// Its first bytes, 96 at most.
        head: Vec<u8>,
        /// A digest of it all.
        digest: u64,
    },
    /// Anything else, as it stands in the recording.
    Other(String),
}

impl Divergence {
    pub(super) fn new(
        (line, input, at): (u64, u64, Instant),
        recorded: &Line,
        replayed: &Line,
    ) -> Self {
        let (recorded, replayed) = (Act::new(recorded), Act::new(replayed));
        Self { line, input, at, recorded, replayed }
    }
}

impl Act {
    fn new(line: &Line) -> Self {
        match line {
            Line::Sent(Sent { len, segment, digest, head }) => Self::Frame {
                len: *len,
                segment_size: segment.map(|(_, _, segment_size)| segment_size),
                head: head.clone(),
                digest: *digest,
            },
            other => Self::Other(describe(other)),
        }
    }
}

/// The line without the answer that it may hold: that is no act of the NAT.
fn describe(line: &Line) -> String {
    let text = match line {
        Line::Host { call, .. } => serde_json::to_string(call).map(|call| format!("host: {call}")),
        Line::Link { call, .. } => serde_json::to_string(call).map(|call| format!("link: {call}")),
        Line::Due { at: None } => Ok("the end of the call, due never".to_owned()),
        Line::Due { at: Some(at) } => Ok(format!("the end of the call, due at {at}")),
        other => serde_json::to_string(other),
    };
    text.unwrap_or_else(|error| error.to_string())
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read the recording: {error}"),
            Self::Broken { line, fault } => write!(f, "line {line}: {fault}"),
            Self::Diverged(divergence) => divergence.fmt(f),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(cause) => write!(f, "no line of a recording: {cause}"),
            Self::TooLong => f.write_str("too long for a line of a recording"),
            Self::Header => {
                write!(f, "no header of a recording of version {}", super::VERSION)
            }
            Self::Configuration => f.write_str("no NAT can be made from this header"),
            Self::Misplaced => f.write_str("this cannot stand here"),
            Self::Cut => f.write_str("the recording is cut off here"),
        }
    }
}

impl core::error::Error for ReplayError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Broken { fault: Fault::Syntax(cause), .. } => Some(cause),
            Self::Broken { .. } | Self::Diverged(_) => None,
        }
    }
}
