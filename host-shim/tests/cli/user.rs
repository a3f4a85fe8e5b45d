//! Who runs the program: the user of the tests and, if that is root, an ordinary one too.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::Uid;

use crate::place::Place;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_slirpkit");

/// A user and group that own nothing.
const NOBODY: u32 = 65_534;

/// Runs what follows it as an ordinary user for whom /dev/net/tun has its usual mode, whatever
/// the machine's own is.
const AS_NOBODY: &str = "mount --bind \"$0\" /dev/net/tun && \
    exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \"$@\"";

/// Somebody who runs the program.
pub(crate) struct User {
    pub(crate) name: &'static str,
    pub(crate) uid: u32,
    /// What only an ordinary user needs: copies of the program and of /dev/net/tun for him.
    borrowed: Option<Place>,
}

impl User {
    /// A command of this user.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match &self.borrowed {
            None => Command::new(program),
            Some(place) => {
                let mut command = Command::new("unshare");
                command
                    .args(["--mount", "sh", "-c", AS_NOBODY])
                    .arg(place.path("tun"))
                    .arg(program);
                command
            }
        };
        command.stdin(Stdio::null());
        command
    }

    /// The program, where this user can reach it.
    pub(crate) fn program(&self) -> PathBuf {
        self.borrowed.as_ref().map_or_else(|| PROGRAM.into(), |place| place.path("slirpkit"))
    }

    /// The program with its arguments.
    pub(crate) fn slirpkit(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(self.program());
        command.args(arguments);
        command
    }

    /// The program under a shell that opens further descriptors as `redirections` says.
    pub(crate) fn redirected(&self, redirections: &str, arguments: &[&str]) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", &format!("exec \"$0\" \"$@\" {redirections}")]);
        command.arg(self.program()).args(arguments);
        command
    }

    /// The output of a shell script in namespaces that `slirpkit run` makes with `options`.
    pub(crate) fn script(&self, options: &[&str], script: &str) -> String {
        let arguments = [&["run"], options, &["--", "sh", "-c", script]].concat();
        let output = self.slirpkit(&arguments).output().unwrap();
        assert!(output.status.success(), "{}: {arguments:?}: {output:?}", self.name);
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Everybody as whom `test` can run the program here. Says aloud who is left out and why.
pub(crate) fn everybody(test: &str) -> Vec<User> {
    let caller = User { name: "the caller", uid: Uid::effective().as_raw(), borrowed: None };
    let mut users = vec![caller];
    if Uid::effective().is_root() {
        users.push(nobody(test));
    }
    users.retain(|user| {
        let output = user.slirpkit(&["run", "--", "true"]).output().unwrap();
        let works = output.status.success();
        if !works {
            skip(&format!("{test} as {}: {}", user.name, complaint(&output)));
        }
        works
    });
    users
}

fn nobody(test: &str) -> User {
    let place = Place::new(&format!("{test}-nobody"));
    let (program, tun) = (place.path("slirpkit"), place.path("tun"));
    fs::copy(PROGRAM, &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    mknod(&tun, SFlag::S_IFCHR, Mode::empty(), makedev(10, 200)).unwrap();
    fs::set_permissions(&tun, fs::Permissions::from_mode(0o666)).unwrap();
    User { name: "an ordinary user", uid: NOBODY, borrowed: Some(place) }
}

/// Says that something was not tested, past the harness that hides what passing tests print; or
/// fails, where nothing may be left out.
pub(crate) fn skip(what: &str) {
    assert!(std::env::var_os("SLIRPKIT_REQUIRE_ALL").is_none(), "cannot be skipped here: {what}");
    std::io::stderr().write_all(format!("SKIPPED {what}\n").as_bytes()).unwrap();
}

/// The one line that a failure prints.
pub(crate) fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().to_owned()
}
