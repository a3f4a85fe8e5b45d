//! Network namespaces: making or entering one, and putting a tap into it.
//!
//! The program stays in its caller's namespaces. A forked helper enters the others, makes the tap
//! there and passes its descriptor back ([`channel`]): a tap belongs to the namespace in which it
//! was opened, whoever holds the descriptor.
//!
//! All of this needs a process of one thread: the kernel refuses `unshare` and `setns` of a user
//! namespace otherwise, and nothing but system calls could follow a `fork`.

pub(crate) mod channel;
mod etc;
pub(crate) mod fresh;
mod idmap;
mod interface;
pub(crate) mod join;
mod netlink;
mod sysctl;
mod tap;

use core::fmt;
use core::net::Ipv4Addr;
use std::io;

use nix::errno::Errno;

pub(crate) use fresh::Fresh;
pub(crate) use idmap::IdMap;
pub(crate) use interface::{InterfaceName, netmask};
pub(crate) use join::Target;

/// Frames that a tap of ours queues for the program. The kernel's default, 500, overflows when a
/// guest sends while the program is not scheduled.
pub(crate) const QUEUE_FRAMES: u16 = 4096;

/// What an interface in the namespace is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Addresses {
    /// The interface's own address.
    pub(crate) guest: Ipv4Addr,
    /// Length of the network's prefix.
    pub(crate) prefix_len: u8,
    /// Where the default route leads.
    pub(crate) gateway: Ipv4Addr,
    /// Largest IP packet, in bytes.
    pub(crate) mtu: u16,
}

/// A step that failed, with what to do about it where that is known.
#[derive(Debug)]
pub(crate) struct Error {
    action: String,
    cause: Option<io::Error>,
    hint: Option<&'static str>,
}

impl Error {
    fn new(action: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        Self { action: action.into(), cause: Some(cause.into()), hint: None }
    }

    /// Adds what to do, if the cause is one of `errnos`.
    fn hint(mut self, errnos: &[Errno], hint: &'static str) -> Self {
        if self.errno().is_some_and(|errno| errnos.contains(&errno)) {
            self.hint = Some(hint);
        }
        self
    }

    /// An error that the helper process described.
    fn reported(line: String) -> Self {
        Self { action: line, cause: None, hint: None }
    }

    fn errno(&self) -> Option<Errno> {
        self.cause.as_ref()?.raw_os_error().map(Errno::from_raw)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action)?;
        if let Some(cause) = &self.cause {
            write!(f, ": {}", describe(cause))?;
        }
        self.hint.map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as &(dyn core::error::Error + 'static))
    }
}

/// What the system says about an error, without its number.
pub(crate) fn describe(cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(errno) => Errno::from_raw(errno).desc().to_owned(),
        None => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_step_and_the_remedy_in_one_line() {
        let error = Error::new("cannot open /dev/net/tun", Errno::ENOENT)
            .hint(&[Errno::ENOENT], "load the module tun");
        assert_eq!(
            error.to_string(),
            "cannot open /dev/net/tun: No such file or directory; load the module tun"
        );
    }

    #[test]
    fn a_hint_for_another_cause_is_left_out() {
        let error = Error::new("cannot make tap0", Errno::EBUSY).hint(&[Errno::EPERM], "be root");
        assert_eq!(error.to_string(), "cannot make tap0: Device or resource busy");
    }
}
