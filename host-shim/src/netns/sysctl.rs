//! Settings of a fresh network namespace under /proc/sys/net.

use std::fs;
use std::io;

use nix::unistd::Gid;

/// Lets every user of the namespace ping and listen on ports below 1024: there is nobody in it to
/// be protected from them. A kernel that refuses costs only that.
pub(super) fn relax() {
    // The kernel takes only group numbers that are mapped: all of them, or else the own one.
    let own = format!("{0} {0}", Gid::effective());
    report(
        "let users ping",
        set("net/ipv4/ping_group_range", "0 2147483647")
            .or_else(|_| set("net/ipv4/ping_group_range", &own)),
    );
    report("open low ports", set("net/ipv4/ip_unprivileged_port_start", "0"));
}

fn set(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/{name}"), value)
}

fn report(what: &str, result: io::Result<()>) {
    if let Err(cause) = result {
        log::info!("cannot {what} in the namespace: {cause}");
    }
}
