//! Unix sockets with a name in the file system that go with the program.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Removes the name at the end, if it is still ours.
#[derive(Debug)]
pub(crate) struct SocketName {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketName {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: metadata.dev(), inode: metadata.ino() })
    }
}

impl Drop for SocketName {
    fn drop(&mut self) {
        let ours =
            |metadata: fs::Metadata| (metadata.dev(), metadata.ino()) == (self.device, self.inode);
        if fs::symlink_metadata(&self.path).is_ok_and(ours)
            && let Err(cause) = fs::remove_file(&self.path)
        {
            log::warn!("cannot remove {}: {cause}", self.path.display());
        }
    }
}

/// Listens at `path`.
///
/// # Errors
/// What the kernel reports, `AddrInUse` if somebody else listens there.
pub(crate) fn listen(path: &Path) -> io::Result<(UnixListener, SocketName)> {
    let listener =
        bind_over_stale(path, || UnixListener::bind(path), || UnixStream::connect(path).map(drop))?;
    listener.set_nonblocking(true)?;
    Ok((listener, SocketName::of(path)?))
}

/// Takes datagrams at `path`.
///
/// # Errors
/// What the kernel reports, `AddrInUse` if somebody else takes them.
pub(crate) fn datagram(path: &Path) -> io::Result<(OwnedFd, SocketName)> {
    let connect = || UnixDatagram::unbound()?.connect(path);
    let socket = bind_over_stale(path, || UnixDatagram::bind(path), connect)?;
    Ok((socket.into(), SocketName::of(path)?))
}

/// Binds, if need be over the name that a program left which did not end in good order: nobody
/// answers there.
fn bind_over_stale<T>(
    path: &Path,
    bind: impl Fn() -> io::Result<T>,
    connect: impl Fn() -> io::Result<()>,
) -> io::Result<T> {
    match bind() {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = fs::symlink_metadata(path)?.file_type().is_socket();
            let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
            if !is_socket || !connect().is_err_and(refused) {
                return Err(error);
            }
            fs::remove_file(path)?;
            bind()
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of this test's own, removed with all that is in it.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("slirpkit-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_name_goes_with_its_socket() {
        let directory = Directory::new("name");
        let path = directory.0.join("net.sock");
        let (listener, name) = listen(&path).unwrap();
        assert!(listen(&path).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse));
        drop((listener, name));
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_name_is_taken_over_and_a_file_is_not() {
        let directory = Directory::new("stale");
        let path = directory.0.join("net.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(listen(&path).unwrap());
        drop(UnixDatagram::bind(&path).unwrap());
        drop(datagram(&path).unwrap());
        fs::write(&path, "precious").unwrap();
        assert!(listen(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_name_that_became_somebody_elses_stays() {
        let directory = Directory::new("other");
        let path = directory.0.join("net.sock");
        let (listener, name) = listen(&path).unwrap();
        let (moved, kept) = (directory.0.join("moved"), path.clone());
        fs::rename(&path, moved).unwrap();
        fs::write(&kept, "").unwrap();
        drop((listener, name));
        assert!(kept.exists());
    }
}
