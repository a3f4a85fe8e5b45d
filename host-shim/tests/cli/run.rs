//! `slirpkit run`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::Place;
use crate::user::{PROGRAM, complaint, everybody, skip};

/// Starts a command that prints a line when it is ready, and waits for that.
fn start(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, output)
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    for user in everybody("exit-status") {
        let status = |command: &[&str]| {
            let arguments = [&["run", "--"], command].concat();
            user.slirpkit(&arguments).output().unwrap().status.code()
        };
        assert_eq!(status(&["sh", "-c", "exit 0"]), Some(0));
        assert_eq!(status(&["sh", "-c", "exit 77"]), Some(77));
        assert_eq!(status(&["sh", "-c", "kill -TERM $$"]), Some(128 + 15));
        assert_eq!(status(&["sh", "-c", "kill -KILL $$"]), Some(128 + 9));
        assert_eq!(status(&["/nonexistent"]), Some(127));
        assert_eq!(status(&["/etc/passwd"]), Some(126));
    }
}

#[test]
fn a_command_that_is_missing_is_named_in_one_line() {
    for user in everybody("missing") {
        let output = user.slirpkit(&["run", "--", "/nonexistent"]).output().unwrap();
        assert_eq!(
            complaint(&output),
            "slirpkit: cannot execute /nonexistent: No such file or directory"
        );
    }
}

#[test]
fn the_namespace_has_a_loopback_and_a_configured_tap() {
    for user in everybody("interfaces") {
        let trie = user.script(&[], "cat /proc/net/fib_trie");
        assert!(trie.contains("127.0.0.1"), "lo is not up: {trie}");
        assert!(trie.contains("10.0.2.100"), "{trie}");
        let routes = user.script(&[], "cat /proc/net/route");
        let routes: Vec<Vec<&str>> =
            routes.lines().map(|line| line.split('\t').collect()).collect();
        // Interface, destination, gateway, flags; numbers are in network order, read as little
        // endian on the machines that have it.
        let gateway = format!("{:08X}", u32::from_ne_bytes([10, 0, 2, 2]));
        assert!(
            routes.iter().any(|route| route[..3] == ["tap0", "00000000", &gateway]),
            "{routes:?}"
        );
        assert_eq!(user.script(&[], "cat /proc/sys/net/ipv6/conf/tap0/mtu"), "65520\n");
    }
}

#[test]
fn the_network_and_the_mtu_can_be_chosen() {
    for user in everybody("options") {
        let options = ["--cidr", "192.168.7.128/25", "--mtu", "1280"];
        let script = "cat /etc/resolv.conf /proc/sys/net/ipv6/conf/tap0/mtu /proc/net/fib_trie";
        let text = user.script(&options, script);
        assert!(text.starts_with("nameserver 192.168.7.131\n"), "{text}");
        assert!(text.contains("\n1280\n"), "{text}");
        assert!(text.contains("192.168.7.228"), "{text}");
    }
}

#[test]
fn the_queue_of_the_tap_is_longer_than_the_kernels_default() {
    if Command::new("ip").arg("-V").output().is_err() {
        return skip("queue length: the program ip is missing");
    }
    for user in everybody("queue") {
        let text = user.script(&[], "ip -o link show tap0");
        assert!(text.contains("qlen 4096"), "{text}");
    }
}

#[test]
fn resolv_conf_names_the_relay_and_the_hosts_stays() {
    let host = fs::read("/etc/resolv.conf").ok();
    for user in everybody("resolv-conf") {
        let text = user.script(&[], "cat /etc/resolv.conf");
        let servers: Vec<&str> =
            text.lines().filter(|line| line.starts_with("nameserver")).collect();
        assert_eq!(servers, ["nameserver 10.0.2.3"]);
    }
    assert_eq!(fs::read("/etc/resolv.conf").ok(), host);
}

/// Runs the script in a mount namespace of root whose /etc has no resolv.conf, or a strange one.
fn with_another_etc(prepare: &str) -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        skip("another /etc: takes root");
        return None;
    }
    let script = format!(
        "mkdir \"$1/etc\" && cp /etc/passwd \"$1/etc\" && mount --bind \"$1/etc\" /etc && {prepare} && \
         \"$0\" run -- sh -c 'cat /etc/resolv.conf; cut -d: -f1 /etc/passwd | head -n1' && ls -A /etc"
    );
    let place = Place::new(&format!("etc-{}", prepare.len()));
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, PROGRAM])
        .arg(place.as_ref())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_host_without_resolv_conf_gets_none_but_the_command_does() {
    if let Some(text) = with_another_etc("true") {
        assert_eq!(text, "nameserver 10.0.2.3\nroot\npasswd\n");
    }
}

#[test]
fn a_resolv_conf_that_is_a_link_is_followed_and_a_broken_one_replaced() {
    if let Some(text) = with_another_etc("ln -s nowhere /etc/resolv.conf") {
        assert_eq!(text, "nameserver 10.0.2.3\nroot\npasswd\nresolv.conf\n");
    }
    let link = "echo nameserver 1.1.1.1 > /etc/stub && ln -s stub /etc/resolv.conf";
    if let Some(text) = with_another_etc(link) {
        assert_eq!(text, "nameserver 10.0.2.3\nroot\npasswd\nresolv.conf\nstub\n");
    }
}

#[test]
fn the_command_is_the_same_user_or_root() {
    for user in everybody("ids") {
        assert_eq!(user.script(&[], "id -u"), format!("{}\n", user.uid));
        assert_eq!(user.script(&["--map-root"], "id -u; id -g"), "0\n0\n");
        // Root over the namespace, and not beyond: not of the user namespace of the tests.
        let ours = fs::read_link("/proc/self/ns/user").unwrap();
        let theirs = user.script(&["--map-root"], "readlink /proc/self/ns/user");
        assert_ne!(theirs.trim_end(), ours.to_str().unwrap());
    }
}

#[test]
fn the_command_may_ping_and_listen_on_low_ports() {
    for user in everybody("sysctls") {
        let text = user.script(
            &[],
            "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/net/ipv4/ping_group_range",
        );
        let numbers: Vec<u32> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let &[first_port, first_group, last_group] = &numbers[..] else { panic!("{text}") };
        assert_eq!(first_port, 0);
        let group: u32 = user.script(&[], "id -g").trim_end().parse().unwrap();
        assert!((first_group..=last_group).contains(&group), "{text}");
    }
}

#[test]
fn signals_reach_the_command_once() {
    let signals =
        [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];
    for user in everybody("signals") {
        for signal in signals {
            let name = signal.as_str().trim_start_matches("SIG");
            let script = format!(
                "n=0; trap 'n=$((n + 1))' {name}; echo ready; \
                 while [ $n = 0 ]; do sleep 0.05; done; sleep 0.1; exit $((40 + n))"
            );
            let arguments = ["run", "--", "sh", "-c", &script];
            let (mut child, _output) = start(&mut user.slirpkit(&arguments));
            send(&child, signal);
            assert_eq!(child.wait().unwrap().code(), Some(41), "{signal} as {}", user.name);
        }
    }
}

#[test]
fn usr1_prints_the_counters_where_they_are_wanted() {
    for user in everybody("usr1") {
        let script = "echo ready; read -r line; exit 5";
        let mut command = user.slirpkit(&["run", "--stats", "--", "sh", "-c", script]);
        let (mut child, _output) = start(command.stdin(Stdio::piped()).stderr(Stdio::piped()));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        send(&child, Signal::SIGUSR1);
        let mut line = String::new();
        while !line.starts_with("calls ") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "no table");
        }
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(5));
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("calls "), "no table at the end: {rest}");
    }
}

#[test]
fn the_command_dies_with_the_program() {
    for user in everybody("death") {
        let script = "echo ready; exec sleep 1000";
        let (mut child, mut output) = start(&mut user.slirpkit(&["run", "--", "sh", "-c", script]));
        send(&child, Signal::SIGKILL);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        // The end of the pipe comes when the last process that could write to it is gone.
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

#[test]
fn descriptors_of_ours_are_not_the_commands() {
    for user in everybody("descriptors") {
        let arguments = ["run", "--ready-fd", "9", "--exit-fd", "8", "--", "ls", "/proc/self/fd"];
        let mut command = user.redirected("8<&0 9>/dev/null", &arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let exit = child.stdin.take().unwrap();
        let output = child.wait_with_output().unwrap();
        drop(exit);
        let text = String::from_utf8(output.stdout).unwrap();
        let fds: Vec<&str> = text.lines().collect();
        assert!(fds.contains(&"0") && !fds.contains(&"8") && !fds.contains(&"9"), "{fds:?}");
    }
}

#[test]
fn the_command_keeps_its_own_limit_of_open_files() {
    for user in everybody("limit") {
        let script = "ulimit -Sn 100; exec \"$0\" run --flows 1 -- sh -c 'ulimit -Sn'";
        let output = user.command("sh").args(["-c", script]).arg(user.program()).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "100\n");
    }
}

#[test]
fn a_hangup_of_the_exit_descriptor_ends_the_command() {
    for user in everybody("exit-fd") {
        let script = "echo ready; exec sleep 1000";
        let arguments = ["run", "--exit-fd", "8", "--", "sh", "-c", script];
        let mut command = user.redirected("8<&0 </dev/null", &arguments);
        let (mut child, _output) = start(command.stdin(Stdio::piped()));
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    }
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    for user in everybody("nohup") {
        let mut command = user.command("sh");
        let script = "echo ready; read -r line; exit 6";
        command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(user.program());
        command.args(["run", "--", "sh", "-c", script]).stdin(Stdio::piped());
        let (mut child, _output) = start(&mut command);
        send(&child, Signal::SIGHUP);
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(6));
    }
}

#[test]
fn one_run_may_run_another() {
    for user in everybody("nested") {
        let program = user.program().display().to_string();
        let inner = format!(
            "{program} run --cidr 10.9.0.0/16 -- cat /etc/resolv.conf; cat /etc/resolv.conf"
        );
        let text = user.script(&[], &inner);
        let servers: Vec<&str> =
            text.lines().filter(|line| line.starts_with("nameserver")).collect();
        assert_eq!(servers, ["nameserver 10.9.0.3", "nameserver 10.0.2.3"]);
    }
}

#[test]
fn root_does_without_a_user_namespace_where_there_is_none() {
    for user in everybody("no-userns") {
        // Root of a user namespace that allows no further ones.
        let script = "echo 0 >/proc/sys/user/max_user_namespaces && \
            exec \"$0\" run -- sh -c 'id -u; cat /etc/resolv.conf'";
        let mut command = user.command("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(user.program());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", user.name);
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("0\nnameserver 10.0.2.3\n"));
        assert_eq!(
            complaint(&output),
            "slirpkit: no user namespace (No space left on device): \
             the command keeps the rights of root"
        );
    }
}

#[test]
fn nothing_stays_behind() {
    for user in everybody("traces") {
        user.script(&["--map-root"], "true");
    }
    // The name that our tmpfs mounts carry, and the tap.
    assert!(!fs::read_to_string("/proc/self/mountinfo").unwrap().contains(" slirpkit "));
    assert!(!fs::read_to_string("/proc/net/dev").unwrap().contains("tap0"));
}

#[test]
fn a_capture_begins_like_a_capture() {
    let place = Place::new("pcap");
    let file = place.path("out.pcap");
    let status = Command::new(PROGRAM)
        .args(["run", "--pcap", &file.display().to_string(), "--", "true"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !status.status.success() {
        return skip(&format!("capture: {}", complaint(&status)));
    }
    // The magic number for nanosecond stamps (draft-ietf-opsawg-pcap 4).
    let bytes = fs::read(&file).unwrap();
    let magic = bytes.first_chunk().map(|magic| u32::from_ne_bytes(*magic));
    assert!(magic.is_some_and(|magic| [magic, magic.swap_bytes()].contains(&0xa1b2_3c4d)));
}
