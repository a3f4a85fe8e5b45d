//! Where QEMU, the guests and what goes between them are.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The suite of Debian whose QEMU is used.
const SUITE: &str = "trixie-backports";

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// What `prepare.py` has made.
fn guests() -> PathBuf {
    target().join("guests")
}

/// QEMU: the one that `SLIRPKIT_QEMU` names, or the one brought here.
pub(crate) fn qemu() -> PathBuf {
    std::env::var_os("SLIRPKIT_QEMU")
        .map_or_else(|| guests().join(SUITE).join("qemu"), PathBuf::from)
}

/// A file of the guest for this architecture.
pub(crate) fn of_guest(architecture: &str, name: &str) -> PathBuf {
    guests().join(architecture).join(name)
}

/// The library that puts the card into QEMU.
pub(crate) fn overlay() -> PathBuf {
    target().join("release/libqemu_overlay.so")
}

/// The program `slirpkit`.
pub(crate) fn slirpkit() -> PathBuf {
    target().join("release/slirpkit")
}

/// Whether all of these are there. If not, says aloud that a test is left out; or fails, where
/// nothing may be left out.
pub(crate) fn present(test: &str, files: &[&Path]) -> bool {
    let missing: Vec<_> = files.iter().filter(|file| !file.exists()).collect();
    if missing.is_empty() {
        return true;
    }
    let what = format!("{test}: missing {missing:?}; `.ci/run guests` makes them");
    assert!(std::env::var_os("SLIRPKIT_REQUIRE_ALL").is_none(), "cannot be skipped here: {what}");
    std::io::stderr().write_all(format!("SKIPPED {what}\n").as_bytes()).unwrap();
    false
}
