//! Which QEMU.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The QEMU to ask; `None` if there is none, which is said, or fails where nothing may be skipped.
pub(crate) fn qemu() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("qemu-system-x86_64"));
    let found = found.into_iter().find(|program| Path::is_file(program));
    if found.is_none() {
        let must = std::env::var_os("SLIRPKIT_REQUIRE_ALL").is_some();
        assert!(!must, "cannot be skipped here: there is no qemu-system-x86_64");
        let line = b"SKIPPED the oracle: there is no qemu-system-x86_64\n";
        std::io::stderr().write_all(line).expect("a stderr");
    }
    found
}
