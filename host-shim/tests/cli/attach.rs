//! `slirpkit attach`.

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::Place;
use crate::user::{User, complaint, everybody, skip};

/// A process that holds a network namespace, and ends with this value.
struct Holder(Child);

impl Holder {
    /// A namespace of the user's own: in a user namespace, unless he is root anyway.
    fn new(user: &User, prepare: &str) -> Self {
        let mut command = user.command("unshare");
        if user.uid != 0 {
            command.args(["--user", "--map-root-user"]);
        }
        let script = format!("{prepare}; echo ready; exec sleep 1000");
        command.args(["--net", "sh", "-c", &script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"ready\n");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// A file of /proc as the namespace has it.
    fn read(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.0.id())).unwrap()
    }

    fn interfaces(&self) -> Vec<String> {
        let text = self.read("net/dev");
        text.lines()
            .skip(2)
            .filter_map(|line| line.split_once(':').map(|(name, _)| name.trim().to_owned()))
            .collect()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `slirpkit attach`, once it is ready. Its standard input is the exit descriptor.
fn attach(user: &User, arguments: &[&str]) -> Child {
    let arguments = [&["attach", "--ready-fd", "9", "--exit-fd", "8"], arguments].concat();
    let mut command = user.redirected("8<&0 9>&1 >&2", &arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    child.stdout.as_mut().unwrap().read_to_string(&mut ready).unwrap();
    assert_eq!(ready, "1", "{}: {arguments:?}", user.name);
    child
}

fn end(child: &Child) {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
}

#[test]
fn a_tap_comes_and_goes_with_the_program() {
    for user in everybody("attach") {
        let holder = Holder::new(&user, "true");
        let arguments = ["--pid", &holder.pid(), "--tap", "eth7", "--mtu", "1400"];
        let mut child = attach(&user, &arguments);
        assert!(holder.interfaces().contains(&"eth7".to_owned()));
        assert!(holder.read("net/fib_trie").contains("10.0.2.100"));
        let gateway = format!("eth7\t00000000\t{:08X}", u32::from_ne_bytes([10, 0, 2, 2]));
        assert!(holder.read("net/route").contains(&gateway), "{}", holder.read("net/route"));
        end(&child);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(!holder.interfaces().contains(&"eth7".to_owned()));
    }
}

#[test]
fn rights_that_are_not_needed_any_more_are_given_up() {
    for user in everybody("rights") {
        let holder = Holder::new(&user, "true");
        let mut child = attach(&user, &["--pid", &holder.pid()]);
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        // All that may be left is CAP_NET_RAW, for raw pings.
        let permitted = u64::from_str_radix(value("CapPrm:").trim(), 16).unwrap();
        assert_eq!(permitted & !(1 << 13), 0, "{status}");
        assert_eq!(value("NoNewPrivs:").trim(), "1");
        end(&child);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_namespace_can_be_named_by_its_file() {
    for user in everybody("attach-path") {
        let holder = Holder::new(&user, "true");
        let path = format!("/proc/{}/ns/net", holder.pid());
        let mut child = attach(&user, &["--netns", &path]);
        assert!(holder.interfaces().contains(&"tap0".to_owned()));
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn the_removal_of_the_file_ends_the_program() {
    let place = Place::new("removal");
    for user in everybody("attach-removal") {
        let holder = Holder::new(&user, "true");
        let (link, other) = (place.path("ns"), place.path("other"));
        std::os::unix::fs::symlink(format!("/proc/{}/ns/net", holder.pid()), &link).unwrap();
        fs::write(&other, "").unwrap();
        let mut child = attach(&user, &["--netns", &link.display().to_string()]);
        fs::remove_file(&other).unwrap();
        fs::remove_file(&link).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn without_configuration_the_tap_has_no_address() {
    for user in everybody("no-configure") {
        let holder = Holder::new(&user, "true");
        let mut child = attach(&user, &["--pid", &holder.pid(), "--no-configure"]);
        assert!(holder.interfaces().contains(&"tap0".to_owned()));
        assert!(!holder.read("net/fib_trie").contains("10.0.2.100"));
        assert!(!holder.read("net/route").contains("tap0"));
        end(&child);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn the_end_of_the_process_ends_the_program() {
    for user in everybody("attach-end") {
        let holder = Holder::new(&user, "true");
        let mut child = attach(&user, &["--pid", &holder.pid()]);
        drop(holder);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_persistent_tap_is_used_as_it_is_and_stays() {
    if Command::new("ip").arg("-V").output().is_err() {
        return skip("persistent tap: the program ip is missing");
    }
    for user in everybody("persistent") {
        let holder =
            Holder::new(&user, "ip tuntap add tap5 mode tap; ip addr add 10.0.2.77/24 dev tap5");
        let mut child = attach(&user, &["--pid", &holder.pid(), "--tap", "tap5"]);
        assert!(!holder.read("net/fib_trie").contains("10.0.2.100"));
        end(&child);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(holder.interfaces().contains(&"tap5".to_owned()));
    }
}

#[test]
fn an_interface_that_is_no_tap_is_refused_in_one_line() {
    for user in everybody("no-tap") {
        let holder = Holder::new(&user, "true");
        let arguments = ["attach", "--pid", &holder.pid(), "--tap", "lo"];
        let output = user.slirpkit(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            complaint(&output),
            "slirpkit: cannot make or use the tap lo: Invalid argument; \
             that interface is no tap: choose another name with --tap"
        );
    }
}

#[test]
fn somebody_elses_namespace_is_refused_in_one_line() {
    let place = Place::new("foreign");
    for user in everybody("foreign").iter().filter(|user| user.uid != 0) {
        // That of the tests themselves belongs to root, or to nobody the user is.
        let own = format!("/proc/{}/ns/net", std::process::id());
        let link = place.path("ns");
        let _ = std::os::unix::fs::symlink(own, &link);
        let arguments = ["attach", "--netns", &link.display().to_string()];
        let output = user.slirpkit(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let line = complaint(&output);
        assert!(line.contains("run as") && line.contains("root"), "{line}");
    }
}
