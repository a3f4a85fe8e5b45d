//! The program `slirpkit` in service for a guest.

use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::files;

/// `slirpkit` at a socket.
pub(crate) struct Program {
    child: Child,
    stderr: ChildStderr,
}

impl Program {
    /// Starts it with `subcommand`, and waits until it serves.
    pub(crate) fn serve(subcommand: &str, socket: &Path) -> Self {
        let options = "--host-loopback --stats --exit-fd 8 --ready-fd 9";
        let script = format!("exec \"$0\" {subcommand} {options} --socket \"$1\" 8<&0 9>&1 >&2");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .args([files::slirpkit(), socket.to_owned()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let ready = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
        assert_eq!(ready, "1");
        let stderr = child.stderr.take().unwrap();
        Self { child, stderr }
    }

    /// Ends it, and returns the table of its counters.
    pub(crate) fn end(mut self) -> Counters {
        drop(self.child.stdin.take());
        Counters(std::io::read_to_string(&mut self.stderr).unwrap())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `--stats` prints.
pub(crate) struct Counters(String);

impl Counters {
    /// A counter by its name; those that are zero are not printed.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let found = self.0.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        found.unwrap_or(0)
    }
}
