//! Guests: namespaces that `slirpkit run` makes.

use core::net::Ipv4Addr;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::unistd::Uid;

use crate::namespace::{self, Namespace, prefixed, within};
use crate::user::{User, everybody, skip};

/// The router, at which the guest finds the host's loopback.
pub(crate) const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// What a test runs on: somebody who runs the program, and how it looks ahead in sockets.
pub(crate) struct Setup {
    user: User,
    peek: &'static str,
}

/// Runs `test` as everybody, and in both ways of peeking as the first of them, if the programs
/// that it needs are there.
pub(crate) fn each(name: &str, programs: &[&str], test: impl Fn(&Setup)) {
    let missing: Vec<_> = programs.iter().filter(|program| !exists(program)).collect();
    if !missing.is_empty() {
        return skip(&format!("{name}: missing {missing:?}"));
    }
    for (index, user) in everybody(name).into_iter().enumerate() {
        let mut setup = Setup { user, peek: "offset" };
        test(&setup);
        if index == 0 {
            setup.peek = "discard";
            test(&setup);
        }
    }
}

/// The same for a test whose client is this process, which has to enter namespaces.
pub(crate) fn each_entered(name: &str, programs: &[&str], test: impl Fn(&Setup)) {
    if may_enter(name) {
        each(name, programs, test);
    }
}

/// Whether this process may enter namespaces, for a test that needs it.
pub(crate) fn may_enter(name: &str) -> bool {
    let root = Uid::effective().is_root();
    if !root {
        skip(&format!("{name}: entering a namespace takes root"));
    }
    root
}

fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

impl Setup {
    /// For messages.
    pub(crate) fn name(&self) -> String {
        format!("{}, peek by {}", self.user.name, self.peek)
    }

    /// Whether this is the first of all that a test runs on.
    pub(crate) fn is_first(&self) -> bool {
        self.peek == "offset" && Uid::effective().as_raw() == self.user.uid
    }

    /// `slirpkit SUBCOMMAND` with the host's loopback in reach.
    fn slirpkit(&self, subcommand: &str, arguments: &[&str]) -> Command {
        let options = [subcommand, "--host-loopback", "--stats", "--peek", self.peek];
        self.user.slirpkit(&[&options[..], arguments].concat())
    }

    /// What a bash script, ended after a while, leaves in namespaces that `slirpkit run` makes with
    /// `options`.
    pub(crate) fn outcome(&self, options: &[&str], script: &str) -> Output {
        let command = ["--", "bash", "-c", script];
        let command = self.slirpkit("run", &[options, &command[..]].concat());
        prefixed(&["timeout", "-k", "5", "120"].map(AsRef::as_ref), &command).output().unwrap()
    }

    /// The output of a bash script that succeeds.
    pub(crate) fn script(&self, options: &[&str], script: &str) -> String {
        let output = self.outcome(options, script);
        assert!(output.status.success(), "{}: {script}: {output:?}", self.name());
        String::from_utf8(output.stdout).unwrap()
    }

    /// A guest that stays, in the network of this process or of the namespace `world`.
    pub(crate) fn guest(&self, world: Option<&Path>, options: &[&str]) -> Guest {
        let command = ["--", "sh", "-c", "echo $$; exec cat"];
        let mut command = self.slirpkit("run", &[options, &command[..]].concat());
        if let Some(world) = world {
            command = within(world, &command);
        }
        Guest::start(command)
    }

    /// A namespace that the program may enter: of the user's own, unless he is root anyway.
    pub(crate) fn namespace(&self) -> Namespace {
        let mut command = self.user.command("unshare");
        if self.user.uid != 0 {
            command.args(["--user", "--map-root-user"]);
        }
        Namespace::start(command)
    }

    /// `slirpkit attach` to the namespace of the process `pid`, once it is ready.
    pub(crate) fn attach(&self, pid: &str, options: &[&str]) -> Attached {
        let ends = ["--ready-fd", "9", "--exit-fd", "8"];
        let arguments = [&["attach", "--peek", self.peek, "--pid", pid], &ends[..], options];
        let mut command = self.user.redirected("8<&0 9>&1 >&2", &arguments.concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        child.stdout.as_mut().unwrap().read_to_string(&mut ready).unwrap();
        assert_eq!(ready, "1", "{}", self.name());
        Attached(child)
    }
}

/// `slirpkit attach` in service, until this value ends.
pub(crate) struct Attached(Child);

impl Drop for Attached {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A namespace behind the program, which ends with this value, or with the tests at the latest.
pub(crate) struct Guest {
    child: Child,
    path: PathBuf,
}

impl Guest {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pid = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut pid).unwrap();
        let path = format!("/proc/{}/ns/net", pid.trim_end()).into();
        let guest = Self { child, path };
        assert!(!pid.is_empty(), "{}", guest.end().0);
        guest
    }

    /// What `act` returns within it.
    pub(crate) fn enter<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        namespace::enter(&self.path, act)
    }

    /// The outcome of a shell script within it.
    pub(crate) fn outcome(&self, script: &str) -> Output {
        let command = prefixed(
            &["timeout", "60"].map(AsRef::as_ref),
            Command::new("sh").args(["-c", script]),
        );
        within(&self.path, &command).output().unwrap()
    }

    /// The directory in /proc of the program: of the parent of the command that it runs.
    fn program(&self) -> PathBuf {
        let status =
            fs::read_to_string(self.path.ancestors().nth(2).unwrap().join("status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        Path::new("/proc").join(parent.trim())
    }

    /// How much memory the program has in use.
    pub(crate) fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(self.program().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How many descriptors the program has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(self.program().join("fd")).unwrap().count()
    }

    /// Ends it and returns what the program printed: its counters.
    pub(crate) fn end(mut self) -> Counters {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        Counters(text)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The command sees the end of its input, and the program the end of its command.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The table that `--stats` prints.
pub(crate) struct Counters(pub(crate) String);

impl Counters {
    /// Every counter that is not zero.
    fn all(&self) -> HashMap<&str, u64> {
        let row =
            |line: &'_ str| line.rsplit_once(' ').map(|(name, count)| (name.len(), count.parse()));
        let rows = self.0.lines().filter_map(|line| match row(line) {
            Some((length, Ok(count))) => Some((line[..length].trim_end(), count)),
            _ => None,
        });
        rows.collect()
    }

    /// One counter.
    pub(crate) fn get(&self, name: &str) -> u64 {
        let all = self.all();
        assert!(all.contains_key("calls"), "no counters: {}", self.0);
        all.get(name).copied().unwrap_or(0)
    }
}
