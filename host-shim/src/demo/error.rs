//! What can go wrong with a demonstration.

use core::fmt;
use std::io;

use ne2000::driver::DriverError;
use slirp_nat::ConfigError;

use super::server::ServerError;
use super::{Direction, Progress};

/// Why the demonstration failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The guest's driver does not find its card.
    Driver(DriverError),
    /// The NAT cannot be set up.
    Config(ConfigError),
    /// A socket of the host cannot be made, or waiting for it failed.
    Io(io::Error),
    /// The server at the far end of a transfer failed.
    Server(Direction, io::Error),
    /// The echo reply came from somebody else, or brought back other bytes.
    Pong,
    /// The byte at this position is not what was sent.
    Wrong(Direction, u64),
    /// The stream ended after this many bytes.
    Short(Direction, u64),
    /// The guest's connection was refused or reset after this many bytes.
    Broken(Direction, u64),
    /// Nothing has happened for too long.
    Stalled(Progress),
}

impl Error {
    pub(super) fn of_server(direction: Direction, error: ServerError) -> Self {
        match error {
            ServerError::Io(error) => Self::Server(direction, error),
            ServerError::Wrong(position) => Self::Wrong(direction, position),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(error) => write!(f, "the guest's driver: {error}"),
            Self::Config(error) => write!(f, "cannot set up the NAT: {error}"),
            Self::Io(error) => write!(f, "cannot use the host's sockets: {error}"),
            Self::Server(direction, error) => write!(f, "{direction}: the server: {error}"),
            Self::Pong => f.write_str("ping: the reply is not that of the gateway"),
            Self::Wrong(direction, position) => {
                write!(f, "{direction}: the byte at {position} is wrong")
            }
            Self::Short(direction, bytes) => write!(f, "{direction}: ended after {bytes} bytes"),
            Self::Broken(direction, bytes) => {
                write!(f, "{direction}: the connection broke after {bytes} bytes")
            }
            Self::Stalled(progress) => write!(f, "{progress}: nothing happens any more"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Driver(error) => Some(error),
            Self::Config(error) => Some(error),
            Self::Io(error) | Self::Server(_, error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
