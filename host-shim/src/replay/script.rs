//! The lines of a recording that is replayed.

use std::io::{BufRead, Read as _};

use ipstack::Instant;

use super::error::{Divergence, Fault, ReplayError};
use super::format::{Answer, HostCall, Input, Line, LinkAnswer, LinkCall, Sent};

/// What was replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Calls on the NAT.
    pub inputs: u64,
    /// Calls of the NAT on its host and link.
    pub answers: u64,
    /// Frames and super-segments for the guest.
    pub frames: u64,
}

/// Longest line that is read: it is somebody else's file. A batch of frames from one of the links
/// here takes less than a megabyte.
const MAX_LINE_LEN: usize = 16 << 20;

/// The lines still to come.
#[derive(Debug)]
pub(super) struct Script<R> {
    reader: R,
    text: Vec<u8>,
    number: u64,
    now: Instant,
    pub(super) report: Report,
    /// Why the replay has failed; what the NAT does from then on does not matter.
    pub(super) failure: Option<ReplayError>,
}

impl<R: BufRead> Script<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            text: Vec::new(),
            number: 0,
            now: Instant::ZERO,
            report: Report::default(),
            failure: None,
        }
    }

    /// The next line; `None` behind the last.
    pub(super) fn next_line(&mut self) -> Result<Option<Line>, ReplayError> {
        self.text.clear();
        self.number += 1;
        let mut reader = self.reader.by_ref().take(MAX_LINE_LEN as u64);
        let length = reader.read_until(b'\n', &mut self.text).map_err(ReplayError::Io)?;
        match self.text.strip_suffix(b"\n") {
            Some(text) => {
                serde_json::from_slice(text).map(Some).map_err(|e| self.broken(Fault::Syntax(e)))
            }
            None if length == 0 => Ok(None),
            None if length == MAX_LINE_LEN => Err(self.broken(Fault::TooLong)),
            None => Err(self.broken(Fault::Cut)),
        }
    }

    /// A fault of the line that was read last.
    pub(super) const fn broken(&self, fault: Fault) -> ReplayError {
        ReplayError::Broken { line: self.number, fault }
    }

    /// Counts an input that is about to be given to the NAT.
    pub(super) const fn begin(&mut self, input: &Input) {
        self.report.inputs += 1;
        self.now = Instant::from_micros(input.at);
    }

    /// The next line, if it `fits` and nothing has failed yet.
    fn take(&mut self, fits: impl FnOnce(&Line) -> bool, replayed: &Line) -> Option<Line> {
        if self.failure.is_some() {
            return None;
        }
        match self.next_line() {
            Ok(Some(line)) if fits(&line) => return Some(line),
            Ok(Some(line)) => {
                let (number, input) = (self.number, self.report.inputs);
                let divergence = Divergence::new((number, input, self.now), &line, replayed);
                self.failure = Some(ReplayError::Diverged(Box::new(divergence)));
            }
            Ok(None) => self.failure = Some(self.broken(Fault::Cut)),
            Err(error) => self.failure = Some(error),
        }
        None
    }

    /// Compares the end of a call with what was recorded.
    pub(super) fn ends_call(&mut self, due: Option<u64>) {
        let replayed = Line::Due { at: due };
        self.take(|line| *line == replayed, &replayed);
    }

    /// Compares a frame. Returns whether nothing had failed before it.
    pub(super) fn sends(&mut self, sent: &Sent) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.report.frames += 1;
        let replayed = Line::Sent(sent.clone());
        self.take(|line| *line == replayed, &replayed);
        true
    }

    /// What the host answered to `call`.
    pub(super) fn ask(&mut self, call: &HostCall) -> Option<Answer> {
        let fits =
            |line: &Line| matches!(line, Line::Host { call: recorded, .. } if recorded == call);
        let replayed = Line::Host { call: call.clone(), answer: Answer::Nothing };
        let Line::Host { answer, .. } = self.take(fits, &replayed)? else { return None };
        self.report.answers += 1;
        Some(answer)
    }

    /// What the link answered to `call`.
    pub(super) fn ask_link(&mut self, call: &LinkCall) -> Option<LinkAnswer> {
        let fits =
            |line: &Line| matches!(line, Line::Link { call: recorded, .. } if recorded == call);
        let replayed = Line::Link { call: call.clone(), answer: LinkAnswer::Lent(None) };
        let Line::Link { answer, .. } = self.take(fits, &replayed)? else { return None };
        self.report.answers += 1;
        Some(answer)
    }
}
