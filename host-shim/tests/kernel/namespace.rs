//! Network namespaces, and threads within them.

use std::fs::File;
use std::io::Read as _;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns};

/// A namespace of the tests' own, which ends with this value, or with the tests at the latest.
pub(crate) struct Namespace(Child);

impl Namespace {
    /// An empty one, with lo up.
    pub(crate) fn new() -> Self {
        Self::start(Command::new("unshare"))
    }

    /// The same by another program `unshare`, with options for more than that.
    pub(crate) fn start(mut unshare: Command) -> Self {
        let mut child = unshare
            .args(["--net", "sh", "-c", "ip link set lo up && echo ready && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"ready\n");
        Self(child)
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }

    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    /// The output of a shell script that runs within it.
    pub(crate) fn script(&self, script: &str) -> String {
        let output =
            within(&self.path(), Command::new("sh").args(["-ec", script])).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What `act` returns within it.
    pub(crate) fn enter<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        enter(&self.path(), act)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `act` returns in a thread within the network namespace `path`: the sockets that it makes
/// belong there for good.
pub(crate) fn enter<T: Send>(path: &Path, act: impl FnOnce() -> T + Send) -> T {
    let result = thread::scope(|scope| {
        let inside = move || {
            setns(File::open(path).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
            act()
        };
        scope.spawn(inside).join()
    });
    result.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// `command` in the network namespace `path`.
pub(crate) fn within(path: &Path, command: &Command) -> Command {
    let mut net = std::ffi::OsString::from("--net=");
    net.push(path);
    prefixed(&["nsenter".as_ref(), net.as_ref()], command)
}

/// `command` as the last arguments of another program.
pub(crate) fn prefixed(prefix: &[&std::ffi::OsStr], command: &Command) -> Command {
    let mut whole = Command::new(prefix[0]);
    whole.args(&prefix[1..]).arg(command.get_program()).args(command.get_args());
    whole.stdin(Stdio::null());
    whole
}
