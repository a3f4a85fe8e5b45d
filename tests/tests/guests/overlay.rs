//! What the library in QEMU's process tells, and does when asked.

use core::fmt::Write as _;
use core::ops::Index;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The library's control socket.
pub(crate) struct Overlay(PathBuf);

/// Counters and registers by name.
#[derive(Debug)]
pub(crate) struct Report(BTreeMap<String, u64>);

impl Overlay {
    pub(crate) const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    fn ask(&self, question: &str) -> String {
        let mut stream = UnixStream::connect(&self.0).unwrap();
        writeln!(stream, "{question}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// What has happened so far.
    pub(crate) fn report(&self) -> Report {
        let text = self.ask("report");
        let pairs = text.lines().map(|line| line.split_once(' ').unwrap());
        Report(pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect())
    }

    /// Puts a frame on the cable, and returns what the card made of it.
    pub(crate) fn put_on_cable(&self, frame: &[u8]) -> String {
        let mut question = "frame ".to_owned();
        frame.iter().for_each(|byte| write!(question, "{byte:02x}").unwrap());
        self.ask(&question).trim_end().to_owned()
    }
}

impl Index<&str> for Report {
    type Output = u64;

    /// A counter that was not reported, as a reason to drop that never occurred, is 0.
    fn index(&self, name: &str) -> &u64 {
        self.0.get(name).unwrap_or(&0)
    }
}
