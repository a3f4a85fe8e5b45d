//! Port forwards: listeners of the host whose connections and datagrams go to the guest.

use core::net::SocketAddr;

use crate::host::{HostError, Token};

/// What a forward carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Protocol {
    /// TCP connections.
    Tcp,
    /// UDP datagrams.
    Udp,
}

/// One port forward (libslirp's hostfwd).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forward {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Where the host listens.
    pub host: SocketAddr,
    /// Where it leads; an unspecified address means the guest: the latest lease, or
    /// [`Config::default_guest`](crate::Config::default_guest).
    pub guest: SocketAddr,
}

/// Why a forward was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ForwardError {
    /// There is one at that host address and port already.
    Duplicate,
    /// The table given in [`Storage::forwards`](crate::Storage::forwards) is full.
    TableFull,
    /// The guest address is none that a guest can have, or its port is 0.
    Guest,
    /// The host could not listen.
    Host(HostError),
}

impl core::fmt::Display for ForwardError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Duplicate => f.write_str("that host address and port is forwarded already"),
            Self::TableFull => f.write_str("the table of forwards is full"),
            Self::Guest => {
                f.write_str("the guest address must lie in the guest's network, with a port")
            }
            Self::Host(error) => write!(f, "cannot listen: {error}"),
        }
    }
}

impl core::error::Error for ForwardError {}

/// One entry of the table of forwards.
#[derive(Clone, Copy, Debug)]
pub struct ForwardSlot(pub(crate) Option<Listener>);

impl ForwardSlot {
    /// An unused entry.
    pub const EMPTY: Self = Self(None);
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener {
    pub(crate) rule: Forward,
    pub(crate) token: Token,
    /// It has connections or datagrams that were not taken yet.
    pub(crate) readable: bool,
    /// Taking them has failed: it is tried again with the next call, not at once.
    pub(crate) stalled: bool,
}

impl Listener {
    /// Errors in one turn after which a forward is left alone until something else happens; fewer
    /// if that was so the last time.
    pub(crate) const fn chances(&self) -> u8 {
        if self.stalled { 1 } else { 16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_is_wrong() {
        for (error, named) in [
            (ForwardError::Duplicate, "already"),
            (ForwardError::TableFull, "full"),
            (ForwardError::Guest, "guest address"),
            (ForwardError::Host(HostError::InUse), "cannot listen: address in use"),
        ] {
            assert!(std::format!("{error}").contains(named), "{error:?}: {error}");
        }
    }
}
