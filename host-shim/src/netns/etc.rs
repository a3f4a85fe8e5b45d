//! Another /etc/resolv.conf, seen in the current mount namespace only.
//!
//! The file lives in a tmpfs that no path leads to, and so goes with the namespace.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use super::Error;

const ETC: &str = "/etc";
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Where the host's /etc goes when it has no resolv.conf to lay ours over.
const HOST_ETC: &str = ".host";

/// Lays a file with `content` over /etc/resolv.conf. The mount namespace must be a new one.
///
/// # Errors
/// The first step that fails.
pub(super) fn replace_resolv_conf(content: &str) -> Result<(), Error> {
    // Mounts of the host still arrive here, but none of ours leaves.
    let flags = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|errno| failed("cannot detach from the host's mounts", errno))?;
    match open_path(RESOLV_CONF) {
        Ok(target) => lay_over(&target, content),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => rebuild_etc(content),
        Err(cause) => Err(cause),
    }
    .map_err(|cause| failed("cannot replace /etc/resolv.conf", cause))
}

fn failed(action: &str, cause: impl Into<io::Error>) -> Error {
    Error::new(action, cause).hint(
        &[Errno::EPERM, Errno::EACCES],
        "a security module (AppArmor, SELinux) or container forbids mounts here",
    )
}

/// Binds a new file over `target`, the file that /etc/resolv.conf leads to.
fn lay_over(target: &File, content: &str) -> io::Result<()> {
    // The tmpfs needs a directory for a moment; /etc is one that is certainly there.
    mount_tmpfs(ETC)?;
    let result = write_new(content).and_then(|()| bind(RESOLV_CONF, &proc_path(target)));
    // The file bound keeps the tmpfs alive.
    umount2(ETC, MntFlags::MNT_DETACH)?;
    result
}

/// Replaces /etc by links to its entries and the new file, for a host that has no file to bind
/// over: none at all, or a link to nowhere.
fn rebuild_etc(content: &str) -> io::Result<()> {
    // Copied before the tmpfs covers it, with what is mounted below: the kernel may have locked
    // the two together.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE;
    let host_etc = open_tree(CWD, ETC, flags | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    let names: Vec<_> =
        fs::read_dir(ETC)?.filter_map(|entry| entry.ok().map(|e| e.file_name())).collect();
    mount_tmpfs(ETC)?;
    let host_dir = format!("{ETC}/{HOST_ETC}");
    fs::create_dir(&host_dir)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(host_etc, "", CWD, &host_dir, flags)?;
    for name in names.iter().filter(|name| *name != "resolv.conf" && *name != HOST_ETC) {
        symlink(Path::new(HOST_ETC).join(name), Path::new(ETC).join(name))?;
    }
    write_new(content)
}

fn open_path(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)
}

/// A path to an open file, wherever mounts have hidden it.
fn proc_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn mount_tmpfs(at: &str) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("slirpkit"), at, Some("tmpfs"), flags, Some("mode=0755,size=1m")).map_err(Into::into)
}

fn bind(source: &str, target: &str) -> io::Result<()> {
    let flags = MsFlags::MS_BIND;
    mount(Some(source), target, None::<&str>, flags, None::<&str>).map_err(Into::into)
}

fn write_new(content: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(RESOLV_CONF)?;
    // Whatever the umask: the command may be another user.
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    file.write_all(content.as_bytes())
}
