//! What is wrong is said in one line, with what to do about it.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use crate::place::Place;
use crate::user::{PROGRAM, complaint};

fn slirpkit(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn assert_complains(arguments: &[&str], status: i32, line: &str) {
    let output = slirpkit(arguments);
    assert_eq!(complaint(&output), line);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn a_wrong_command_line_is_status_2() {
    assert_complains(
        &[],
        2,
        "slirpkit: give one of run, attach, qemu, nic, replay and demo; see 'slirpkit --help'",
    );
    assert_complains(
        &["run", "--mtu", "67", "--", "true"],
        2,
        "slirpkit: invalid value '67' for '--mtu <BYTES>': 67 is not in 68..=65521; see 'slirpkit run --help'",
    );
    assert_complains(
        &["run", "--cidr", "10.0.2.0/26", "--", "true"],
        2,
        "slirpkit: invalid value '10.0.2.0/26' for '--cidr <NETWORK/PREFIX>': the prefix must be 8 to 25: \
         a network has to hold the address .100; see 'slirpkit run --help'",
    );
    assert_complains(
        &["run", "--forward", "80:80", "--", "true"],
        2,
        "slirpkit: invalid value '80:80' for '--forward <[udp:]HOSTADDR:PORT-[GUEST]:PORT>': expected \
         [udp:]HOSTADDR:PORT-[GUEST]:PORT, as 127.0.0.1:8080-:80 or udp:[::1]:53-:53; see 'slirpkit run --help'",
    );
    assert_complains(
        &["run"],
        2,
        "slirpkit: the following required arguments were not provided: <COMMAND>...; see 'slirpkit run --help'",
    );
}

#[test]
fn the_exit_status_comes_even_if_nobody_can_hear_the_rest() {
    for (arguments, expected) in [
        (&["run", "--mtu", "67", "--", "true"][..], 2),
        (&["attach", "--netns", "/nonexistent"], 1),
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let status = Command::new(PROGRAM).args(arguments).stderr(full).status().unwrap();
        assert_eq!(status.code(), Some(expected), "{arguments:?}: {status}");
    }
}

#[test]
fn an_address_that_is_not_the_hosts_is_doubted() {
    assert_complains(
        &["run", "--forward", "192.0.2.1:8080-:80", "--", "true"],
        1,
        "slirpkit: cannot forward 192.0.2.1:8080-:80: cannot listen: host error; \
         is it an address of this host?",
    );
}

#[test]
fn a_descriptor_that_is_not_open_is_status_2() {
    assert_complains(
        &["run", "--ready-fd", "77", "--", "true"],
        2,
        "slirpkit: --ready-fd 77: not open: open it in the shell, as 77>FILE or 77<FILE",
    );
    assert_complains(
        &["run", "--exit-fd", "1", "--", "true"],
        2,
        "slirpkit: --exit-fd 1: standard input, output and error are not for this: use 3 or more",
    );
}

#[test]
fn what_cannot_be_done_is_status_1() {
    assert_complains(
        &["run", "--pcap", "/nonexistent/x.pcap", "--", "true"],
        1,
        "slirpkit: cannot write /nonexistent/x.pcap: No such file or directory",
    );
    assert_complains(
        &["attach", "--netns", "/nonexistent"],
        1,
        "slirpkit: cannot open the namespace /nonexistent: No such file or directory; \
         is the process still alive, or the path right?",
    );
}

#[test]
fn a_port_that_is_taken_is_named_and_nothing_stays_behind() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Place::new("usage");
    let socket = place.path("net.sock").display().to_string();
    assert_complains(
        &["qemu", "--socket", &socket, "--forward", &format!("127.0.0.1:{port}-:80")],
        1,
        &format!(
            "slirpkit: cannot forward 127.0.0.1:{port}-:80: cannot listen: address in use; \
             choose another port of the host"
        ),
    );
    assert!(place.entries().is_empty());
}

#[test]
fn a_file_that_is_no_network_namespace_is_refused() {
    let output = slirpkit(&["attach", "--netns", "/dev/null"]);
    assert!(complaint(&output).contains("/dev/null"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn help_goes_to_stdout_and_teaches_by_example() {
    for (arguments, part) in [
        (&["--help"][..], "slirpkit run -- curl"),
        (&["run", "--help"], "slirpkit run -- ping -c1 10.0.2.2"),
        (&["attach", "--help"], "slirpkit attach --pid $!"),
        (&["qemu", "--help"], "-netdev stream,id=n0,server=off,addr.type=unix,addr.path=PATH"),
    ] {
        let output = slirpkit(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(text.contains(part), "{text}");
        assert!(output.stderr.is_empty());
    }
}
