//! A socket at which tests ask what has happened, and put frames on the cable.
//!
//! Each connection carries one line, `report` or `frame` and the frame's bytes in hexadecimal
//! digits, and then the answer: what a [`Report`](crate::report::Report) prints, or the name of
//! what became of the frame.

use core::time::Duration;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// A client that connects has something to ask, and waits for the answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// What can be asked.
pub(crate) enum Request {
    /// What has happened.
    Report,
    /// A frame comes over the cable.
    Frame(Vec<u8>),
}

/// The socket.
pub(crate) struct Control(UnixListener);

/// Somebody who asks.
pub(crate) struct Client(UnixStream);

impl Control {
    /// The socket that `SLIRPKIT_CONTROL` names, if any.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn from_environment() -> Result<Option<Self>, String> {
        let Some(path) = std::env::var_os("SLIRPKIT_CONTROL") else { return Ok(None) };
        let listener = UnixListener::bind(path).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        listener
            .map(|listener| Some(Self(listener)))
            .map_err(|error| format!("SLIRPKIT_CONTROL: {error}"))
    }

    /// The next client, if there is one.
    pub(crate) fn accept(&self) -> Option<Client> {
        let (stream, _) = self.0.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        Some(Client(stream))
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Client {
    /// What it asks; `None` if that cannot be understood.
    pub(crate) fn request(&mut self) -> Option<Request> {
        let mut line = String::new();
        BufReader::new(&self.0).read_line(&mut line).ok()?;
        match line.trim_end().split_once(' ') {
            None if line.trim_end() == "report" => Some(Request::Report),
            Some(("frame", digits)) => bytes(digits).map(Request::Frame),
            _ => None,
        }
    }

    /// Answers. A client that does not read its answer does without.
    pub(crate) fn answer(mut self, text: &str) {
        let _ = self.0.write_all(text.as_bytes());
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}
