//! The program in service over a socket.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::user::PROGRAM;

/// The program in service, and what it says.
pub(crate) struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Server {
    /// Starts `subcommand` with `arguments`, and waits until it serves.
    pub(crate) fn start(subcommand: &str, arguments: &[&str]) -> Self {
        Self::start_after(":", subcommand, arguments)
    }

    /// Starts it in a shell that has done `before`.
    pub(crate) fn start_after(before: &str, subcommand: &str, arguments: &[&str]) -> Self {
        let script = format!("{before}; exec \"$0\" \"$@\" 9>&1 >&2");
        let mut child = Command::new("sh")
            .args(["-c", &script, PROGRAM, subcommand, "--ready-fd", "9", "-v"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        child.stdout.as_mut().unwrap().read_to_string(&mut ready).unwrap();
        assert_eq!(ready, "1");
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Waits for a line of stderr with `part` in it.
    pub(crate) fn expect(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "never said {part:?}");
        }
    }

    /// How many descriptors it has open.
    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Ends it, and returns what it said last.
    pub(crate) fn end(mut self, signal: Signal) -> String {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        said
    }
}

/// A test that fails leaves no server behind.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
