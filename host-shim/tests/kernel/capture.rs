//! What tcpdump reads in a capture.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::guest::each;
use crate::place::Place;

#[test]
fn a_capture_shows_both_directions_to_tcpdump() {
    each("pcap", &["tcpdump", "ping"], |setup| {
        let place = Place::new("pcap");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        let file = place.path("out.pcap");
        let options = ["--pcap", &file.display().to_string()];
        setup.script(&options, "ping -c 2 -i 0.01 -W 10 10.0.2.2");
        let read = Command::new("tcpdump").args(["-n", "-r"]).arg(&file).arg("icmp").output();
        let text = String::from_utf8(read.unwrap().stdout).unwrap();
        let count = |words| text.lines().filter(|line| line.contains(words)).count();
        assert_eq!(count("10.0.2.100 > 10.0.2.2: ICMP echo request"), 2, "{text}");
        assert_eq!(count("10.0.2.2 > 10.0.2.100: ICMP echo reply"), 2, "{text}");
    });
}
