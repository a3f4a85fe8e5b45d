//! User and group numbers of a new user namespace (user_namespaces(7)).

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::unistd::{Gid, Pid, Uid};

use super::Error;

const HINT: &str =
    "user namespaces are restricted here: run as root, or ask for them to be allowed";

/// Who the caller is within the namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdMap {
    /// The same user and group as outside.
    Same,
    /// Root.
    Root,
}

/// Fills the maps of the user namespace that the process `child` has made: with all numbers of
/// the caller's namespace if he is root, else with his own only.
///
/// # Errors
/// If the kernel or a security module refuses.
pub(super) fn write(child: Pid, map: IdMap) -> Result<(), Error> {
    if Uid::effective().is_root() {
        match write_all(child) {
            Ok(()) => return Ok(()),
            Err(cause) => log::debug!("cannot map all users, only the own: {cause}"),
        }
    }
    write_own(child, map).map_err(|cause| {
        Error::new("cannot map users into the new namespace", cause)
            .hint(&[Errno::EPERM, Errno::EACCES], HINT)
    })
}

/// Every number means the same as outside. Takes CAP_SETUID and CAP_SETGID.
fn write_all(child: Pid) -> io::Result<()> {
    for map in ["uid_map", "gid_map"] {
        let outside = fs::read_to_string(format!("/proc/self/{map}"))?;
        fs::write(format!("/proc/{child}/{map}"), identity(&outside))?;
    }
    Ok(())
}

/// Only the caller's own numbers. Without a right to change groups the kernel demands that
/// `setgroups` be denied first, lest somebody leave a group that forbids him something.
fn write_own(child: Pid, map: IdMap) -> io::Result<()> {
    let (uid, gid) = (Uid::effective(), Gid::effective());
    let (inner_uid, inner_gid) = match map {
        IdMap::Same => (uid, gid),
        IdMap::Root => (Uid::from_raw(0), Gid::from_raw(0)),
    };
    fs::write(format!("/proc/{child}/setgroups"), "deny")?;
    fs::write(format!("/proc/{child}/gid_map"), format!("{inner_gid} {gid} 1"))?;
    fs::write(format!("/proc/{child}/uid_map"), format!("{inner_uid} {uid} 1"))
}

/// A map of every number in `outside` to itself. Each of its lines has the first number within,
/// the first number without, and how many there are.
fn identity(outside: &str) -> String {
    let extent = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (first, count) = (fields.next()?, fields.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    };
    outside.lines().filter_map(extent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_extent_of_the_callers_map_is_kept_in_place() {
        let outside = "         0     100000      65536\n     65536       1000          1\n";
        assert_eq!(identity(outside), "0 0 65536\n65536 65536 1\n");
        assert_eq!(identity("         0          0 4294967295\n"), "0 0 4294967295\n");
    }
}
