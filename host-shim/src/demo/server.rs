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

    /// Does all that is possible now, and closes when the client has. To be called when one of its
    /// descriptors is ready, which is told once.
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

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 100_000;

    /// A server and its client, whose sockets block.
    fn pair(direction: Direction) -> (Server, Poller, TcpStream) {
        let poller = Poller::new().unwrap();
        let server = Server::new(direction, SIZE, &poller).unwrap();
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port().unwrap())).unwrap();
        (server, poller, client)
    }

    /// Serves until the client has ended its direction, or something is wrong.
    fn serve_to_the_end(server: &mut Server, poller: &mut Poller) -> Result<(), ServerError> {
        while !server.has_ended() {
            poller.wait(None, |_, _| {}).unwrap();
            server.serve(poller)?;
        }
        Ok(())
    }

    #[test]
    fn an_upload_is_compared_to_its_end() {
        let (mut server, mut poller, mut client) = pair(Direction::Upload);
        let mut bytes = vec![0; 100_000];
        pattern::fill(0, &mut bytes);
        client.write_all(&bytes).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert!(serve_to_the_end(&mut server, &mut poller).is_ok());
        assert_eq!(server.position(), SIZE);
        assert_eq!(client.read(&mut bytes).unwrap(), 0, "the server closes, too");
    }

    #[test]
    fn a_wrong_byte_of_an_upload_is_named() {
        let (mut server, mut poller, mut client) = pair(Direction::Upload);
        let mut bytes = vec![0; 100_000];
        pattern::fill(0, &mut bytes);
        bytes[77_777] ^= 0x80;
        client.write_all(&bytes).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let result = serve_to_the_end(&mut server, &mut poller);
        assert!(matches!(result, Err(ServerError::Wrong(77_777))), "{result:?}");
    }

    #[test]
    fn a_download_is_the_pattern_and_ends_behind_it() {
        let (mut server, mut poller, mut client) = pair(Direction::Download);
        server.serve(&poller).unwrap();
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len() as u64, pattern::check(0, &bytes)), (SIZE, Ok(())));
        drop(client);
        assert!(serve_to_the_end(&mut server, &mut poller).is_ok());
    }
}
