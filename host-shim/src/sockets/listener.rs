//! Listeners, and what becomes of them when there is no descriptor left for who waits.

use core::net::SocketAddr;
use core::time::Duration;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, ipproto, sockopt};
use slirp_nat::host::{Accepted, FlowId, HostError, HostEvent, Ready, Token};

use super::errors::{from_bind_errno, from_errno, is_starved};
use super::slab::{Kind, Owner};
use super::stream::{self, Stream};
use super::{OsHost, family_of};

/// Connections that may wait to be accepted. Too short a queue refuses a burst (WSL #41139).
const BACKLOG: i32 = 128;

/// How long a listener that found no descriptor waits before it tries again, if none of ours is
/// closed before.
pub(super) const STARVED_RETRY: Duration = Duration::from_millis(100);

pub(super) fn open(address: SocketAddr) -> Result<OwnedFd, HostError> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd =
        rustix::net::socket_with(family_of(address), SocketType::STREAM, flags, Some(ipproto::TCP))
            .map_err(from_errno)?;
    sockopt::set_socket_reuseaddr(&fd, true).map_err(from_errno)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&fd, true).map_err(from_errno)?;
    }
    rustix::net::bind(&fd, &address).map_err(from_bind_errno)?;
    rustix::net::listen(&fd, BACKLOG).map_err(from_bind_errno)?;
    Ok(fd)
}

impl OsHost {
    /// Announces the listeners again that could not accept.
    pub(super) fn wake_starved(&mut self) {
        let ready = Ready { readable: true, ..Ready::default() };
        self.events.extend(self.starved.drain(..).map(|id| HostEvent::Forward(id, ready)));
    }

    pub(super) fn accept_one(
        &mut self,
        listener: Token,
        flow: FlowId,
    ) -> Result<Option<Accepted>, HostError> {
        loop {
            let Some(socket) = self.sockets.get(listener) else { return Err(HostError::Other) };
            let (Kind::Listener(fd), Owner::Forward(forward)) = (&socket.kind, socket.owner) else {
                return Err(HostError::Other);
            };
            self.shared.calls.open += 1;
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::acceptfrom_with(fd, flags) {
                Ok((fd, Some(peer))) => {
                    let local = rustix::net::getsockname(&fd).map_err(from_errno)?;
                    let (Ok(peer), Ok(local)) =
                        (SocketAddr::try_from(peer), SocketAddr::try_from(local))
                    else {
                        continue;
                    };
                    let stream = Stream::new(fd, &mut self.shared)?;
                    let kind = Kind::Stream(stream);
                    let token = self.register(Owner::Flow(flow), kind, stream::INTEREST)?;
                    return Ok(Some(Accepted { token, peer, local }));
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) if is_starved(error) => {
                    self.shared.calls.accept_starved += 1;
                    if !self.starved.contains(&forward) {
                        self.starved.push(forward);
                    }
                    return Err(HostError::NoResources);
                }
                Err(Errno::BADF | Errno::INVAL | Errno::NOTSOCK) => return Err(HostError::Other),
                // This connection died while it waited (accept(2), "Error handling").
                Ok((_, None)) | Err(_) => {}
            }
        }
    }
}
