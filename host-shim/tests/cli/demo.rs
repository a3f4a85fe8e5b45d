//! `slirpkit demo`, which needs no privilege: the test of the whole, on the host's own sockets.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;

use crate::place::Place;
use crate::user::{PROGRAM, complaint, everybody};

/// MiB each way.
const SIZE: u64 = 8;

fn demo(arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("demo").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// What the program printed, whose exit status must be 0.
fn shown(arguments: &[&str]) -> String {
    let output = demo(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The three numbers in the row `name`: download, upload, in all.
fn row(table: &str, name: &str) -> [u64; 3] {
    let row = table.lines().find_map(|line| line.strip_prefix(name));
    assert!(row.is_some(), "no row {name} in\n{table}");
    let numbers: Vec<u64> = row.unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn every_byte_arrives_both_ways_over_every_card() {
    for card in ["ne1000", "ne2000", "ne2000-8bit", "rtl8029as"] {
        let table = shown(&["--card", card, "--size", &SIZE.to_string()]);
        assert!(
            table.starts_with("lease     10.0.2.15/24, router 10.0.2.2, name server "),
            "{table}"
        );
        assert!(table.contains("\nping      the router answers after "), "{table}");
        for direction in ["download", "upload"] {
            let bytes = SIZE << 20;
            let line = format!("\n{direction:<10}{bytes} bytes, all of them right, in ");
            assert!(table.contains(&line), "{table}");
        }
        for loss in [
            "frames refused by the card",
            "retransmissions by the NAT",
            "retransmissions by the guest",
        ] {
            assert_eq!(row(&table, loss), [0; 3], "{card}: {table}");
        }
    }
}

/// Text whose numbers, and the blanks before them, are left open.
fn outline(text: &str) -> String {
    let digits_gone = text.replace(|c: char| c.is_ascii_digit(), " 0 ");
    let mut words: Vec<&str> = digits_gone.split_whitespace().collect();
    words.dedup_by(|a, b| (*a, *b) == ("0", "0"));
    words.join(" ")
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = include_str!("../../../README.md");
    let (_, after) = readme.split_once("cargo run --release -- demo\n```\n\n```text\n").unwrap();
    let (text, _) = after.split_once("```").unwrap();
    assert_eq!(outline(text), outline(&shown(&["--size", "1"])));
}

#[test]
fn it_takes_no_privilege() {
    for user in everybody("demo") {
        let output = user.slirpkit(&["demo", "--size", "1"]).output().unwrap();
        assert!(output.status.success(), "as {}: {output:?}", user.name);
    }
}

#[test]
fn the_table_adds_up() {
    let place = Place::new("demo");
    let file = place.path("demo.pcap");
    let size = SIZE.to_string();
    let table = shown(&["--size", &size, "--pcap", &file.display().to_string()]);
    let (to, from) = (row(&table, "frames for the guest"), row(&table, "frames from the guest"));
    // Segments of 1,460 bytes, and no more frames than one a segment for the rest.
    let segments = (SIZE << 20).div_ceil(1460);
    assert!(to[0] >= segments && to[0] < segments + segments / 8, "{table}");
    assert!(from[1] >= segments && from[1] < segments + segments / 8, "{table}");
    assert!(to[1] <= from[1] && from[0] <= to[0], "an ACK for each segment at most: {table}");
    // A frame of 1,514 bytes takes 379 accesses to a data port of 32 bits.
    assert!(row(&table, "register accesses")[0] > 379 * segments, "{table}");
    // The ring fills up before the guest is interrupted.
    assert!(row(&table, "interrupts")[0] < segments / 4, "{table}");
    assert!(row(&table, "system calls of the NAT")[0] < 2 * segments, "{table}");
    // And the capture has every frame.
    let mut reader = PcapReader::new(File::open(&file).unwrap()).unwrap();
    assert_eq!(reader.header().datalink, DataLink::ETHERNET);
    let (mut frames, mut bytes) = (0, 0);
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        frames += 1;
        bytes += packet.data.len() as u64;
    }
    assert_eq!(frames, to[2] + from[2], "{table}");
    assert!(bytes > 2 * (SIZE << 20), "{table}");
}

#[test]
fn counters_of_the_nat_are_printed_where_they_are_wanted() {
    let output = demo(&["--size", "1", "--stats"]);
    let stats = String::from_utf8(output.stderr).unwrap();
    let count = |name: &str| -> Option<u64> {
        let row = stats.lines().find_map(|line| line.strip_prefix(name))?;
        row.trim().parse().ok()
    };
    assert_eq!(count("tcp_bytes_in "), Some(1 << 20), "{stats}");
    assert_eq!(count("tcp_bytes_out "), Some(1 << 20), "{stats}");
    assert_eq!(count("tcp_closed "), Some(2), "{stats}");
    assert!(count("calls: peek ").is_some(), "{stats}");
}

#[test]
fn nothing_is_said_on_stderr_where_that_is_no_terminal() {
    assert_eq!(demo(&["--size", "1"]).stderr, b"");
}

#[test]
fn a_demonstration_that_fails_says_why() {
    let output = demo(&["--size", "1", "--pcap", "/nonexistent/x.pcap"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        complaint(&output),
        "slirpkit: cannot write /nonexistent/x.pcap: No such file or directory"
    );
    // No descriptor is left for the sockets.
    let script = "ulimit -n 4; exec \"$0\" demo --size 1";
    let output = Command::new("sh").args(["-c", script, PROGRAM]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("cannot use the host's sockets"), "{output:?}");
    assert!(output.stdout.is_empty());
}
