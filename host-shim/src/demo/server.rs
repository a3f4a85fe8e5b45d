//! The far end of a transfer: a server on the host's loopback, in the same thread.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use super::{Direction, pattern};
use crate::poller::{EventFlags, Poller, Source};

/// More is never read or written at a time.
const PIECE: usize = 64 << 10;

/// Its number among the descriptors that are waited for.
const NUMBER: u32 = 0;

/// Why a server gave up.
#[derive(Debug)]
pub(super) enum ServerError {
    /// A socket failed.
    Io(io::Error),
    /// The byte at this position is wrong.
    Wrong(u64),
}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Serves one client: sends it the pattern, or compares what it sends.
pub(super) struct Server {
    listener: TcpListener,
    client: Option<TcpStream>,
    direction: Direction,
    size: u64,
    position: u64,
    ended: bool,
    buffer: Vec<u8>,
}

impl Server {
    /// Listens on a port of 127.0.0.1 that is free, as one of the descriptors of `poller`.
    pub(super) fn new(direction: Direction, size: u64, poller: &Poller) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        poller.add(&listener, Source::External(NUMBER), EventFlags::IN | EventFlags::ET)?;
        let (client, position, ended) = (None, 0, false);
        Ok(Self { listener, client, direction, size, position, ended, buffer: vec![0; PIECE] })
    }

    /// Its port.
    pub(super) fn port(&self) -> io::Result<u16> {
        self.listener.local_addr().map(|address| address.port())
    }

    /// Which way it serves.
    pub(super) const fn direction(&self) -> Direction {
        self.direction
    }

    /// Bytes sent or received so far.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// Whether the client has ended its direction.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Does all that is possible now, and closes when the client has. To be called when one of its descriptors is ready, which is
    /// told once.
    pub(super) fn serve(&mut self, poller: &Poller) -> Result<(), ServerError> {
        match self.try_serve(poller) {
            Err(ServerError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }

    fn try_serve(&mut self, poller: &Poller) -> Result<(), ServerError> {
        if self.ended {
            return Ok(());
        }
        let Self { listener, client, direction, size, position, ended, buffer } = self;
        let client = match client {
            Some(client) => client,
            None => {
                let (accepted, _) = listener.accept()?;
                accepted.set_nonblocking(true)?;
                let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                poller.add(&accepted, Source::External(NUMBER), flags).map_err(io::Error::from)?;
                client.insert(accepted)
            }
        };
        if *direction == Direction::Download {
            while *position < *size {
                let left = usize::try_from(*size - *position).unwrap_or(PIECE).min(PIECE);
                *position += client.write(pattern::piece(*position, left))? as u64;
                if position == size {
                    client.shutdown(Shutdown::Write)?;
                }
            }
        }
        while !*ended {
            let count = client.read(buffer)?;
            *ended = count == 0;
            let bytes = buffer.get(..count).unwrap_or_default();
            pattern::check(*position, bytes).map_err(ServerError::Wrong)?;
            *position += bytes.len() as u64;
        }
        self.client = None;
        Ok(())
    }
}
