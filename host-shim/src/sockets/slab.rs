//! The table of sockets: a token is an index into it.

use std::os::fd::OwnedFd;

use slirp_nat::host::{FlowId, ForwardId, HostEvent, Ready, Token};

use super::datagram::Datagram;
use super::stream::Stream;

/// Whose socket it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    Flow(FlowId),
    Forward(ForwardId),
}

impl Owner {
    pub(super) const fn event(self, ready: Ready) -> HostEvent {
        match self {
            Self::Flow(flow) => HostEvent::Flow(flow, ready),
            Self::Forward(forward) => HostEvent::Forward(forward, ready),
        }
    }
}

#[derive(Debug)]
pub(super) enum Kind {
    Stream(Stream),
    Datagram(Datagram),
    Listener(OwnedFd),
}

impl Kind {
    pub(super) const fn fd(&self) -> &OwnedFd {
        match self {
            Self::Stream(stream) => stream.fd(),
            Self::Datagram(datagram) => datagram.fd(),
            Self::Listener(fd) => fd,
        }
    }
}

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) owner: Owner,
    pub(super) kind: Kind,
}

#[derive(Debug, Default)]
struct Slot {
    /// How often the slot has been used before.
    generation: u32,
    socket: Option<Socket>,
}

#[derive(Debug, Default)]
pub(super) struct Slab {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slab {
    /// How many sockets there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len().saturating_sub(self.free.len())
    }

    /// Returns index and generation of the slot.
    pub(super) fn insert(&mut self, owner: Owner, kind: Kind) -> (u32, u32) {
        let socket = Some(Socket { owner, kind });
        let reused = self.free.pop();
        if let Some((index, slot)) =
            reused.and_then(|index| Some((index, self.slots.get_mut(index as usize)?)))
        {
            slot.socket = socket;
            return (index, slot.generation);
        }
        // A process has far fewer descriptors than 2^31.
        let index = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot { generation: 0, socket });
        (index, 0)
    }

    pub(super) fn get(&mut self, token: Token) -> Option<&mut Socket> {
        self.slots.get_mut(token.0 as usize)?.socket.as_mut()
    }

    /// The socket of an event, unless that slot has since got another one.
    pub(super) fn current(&mut self, index: u32, generation: u32) -> Option<&mut Socket> {
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation == generation { slot.socket.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<Socket> {
        let slot = self.slots.get_mut(token.0 as usize)?;
        let socket = slot.socket.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(token.0);
        Some(socket)
    }
}
