//! The lease that a BusyBox client gets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::guest::{each, each_entered};
use crate::place::Place;

/// What udhcpc is to do with a lease: print it.
const PRINT: &str = r#"#!/bin/sh
[ "$1" != bound ] || echo "$ip $subnet $router $dns $mtu"
"#;

/// What is to be booted, from its fields and options.
const PRINT_BOOT: &str = r#"#!/bin/sh
[ "$1" != bound ] || echo "$siaddr $boot_file $sname $bootfile $tftp"
"#;

/// What the lease says, and the interface configured by it.
const CONFIGURE: &str = r#"#!/bin/sh
[ "$1" != bound ] || {
    echo "$ip $subnet $router $dns $mtu"
    ip addr add "$ip/$mask" dev "$interface"
    ip route add default via "$router"
    ip link set "$interface" mtu "$mtu"
}
"#;

const UDHCPC: &str = "busybox udhcpc -f -q -n -t 5 -T 3 -i tap0 -O mtu -s";

fn hook(place: &Place, text: &str) -> String {
    let path = place.path("hook");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_lease_is_given_in_the_namespaces_of_a_command() {
    let place = Place::new("udhcpc");
    let hook = hook(&place, PRINT);
    each("udhcpc", &["busybox"], |setup| {
        // Ordinary users send raw frames as root of their namespaces only.
        let options = ["--map-root", "--mtu", "1400"];
        let text = setup.script(&options, &format!("{UDHCPC} {hook} 2>&1"));
        let lease = "10.0.2.15 255.255.255.0 10.0.2.2 10.0.2.3 1400";
        assert!(text.lines().any(|line| line == lease), "{}: {text}", setup.name());
    });
}

#[test]
fn a_boot_file_is_named_with_its_server() {
    let place = Place::new("bootfile");
    let hook = hook(&place, PRINT_BOOT);
    each("bootfile", &["busybox"], |setup| {
        let url = "http://10.0.2.2:8000/boot.ipxe";
        let server = ["--next-server", "192.0.2.9", "--tftp-server-name", "tftp.example"];
        let options = [&["--map-root", "--bootfile", url][..], &server].concat();
        let ask = "-O bootfile -O tftp";
        let text = setup.script(&options, &format!("{UDHCPC} {hook} {ask} 2>&1"));
        let boot = format!("192.0.2.9 {url} tftp.example {url} tftp.example");
        assert!(text.lines().any(|line| line == boot), "{}: {text}", setup.name());
    });
}

#[test]
fn a_bare_tap_is_configured_by_its_lease() {
    let place = Place::new("lease");
    let hook = hook(&place, CONFIGURE);
    each_entered("lease", &["busybox", "ip", "ping"], |setup| {
        let inside = setup.namespace();
        let _attached = setup.attach(&inside.pid(), &["--no-configure", "--mtu", "1280"]);
        let text = inside.script(&format!("ip link set tap0 up; {UDHCPC} {hook} 2>&1"));
        let lease = "10.0.2.15 255.255.255.0 10.0.2.2 10.0.2.3 1280";
        assert!(text.lines().any(|line| line == lease), "{}: {text}", setup.name());
        assert!(inside.script("ip addr show tap0").contains("inet 10.0.2.15/24"));
        assert!(inside.script("ping -c 1 -W 10 10.0.2.2").contains(" 1 received"));
    });
}
