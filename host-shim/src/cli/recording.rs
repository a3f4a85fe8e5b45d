//! `--record`: the file.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// For nobody but the user: it holds payload and keys.
const MODE: u32 = 0o600;

/// Opens `path` for a new recording. A file that is there is taken from other readers before it is
/// emptied; what is no file, as a pipe or /dev/null, keeps its mode.
///
/// # Errors
/// It cannot be written, or others cannot be kept from reading it.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(MODE).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(MODE))?;
        file.set_len(0)?;
    }
    Ok(file)
}
