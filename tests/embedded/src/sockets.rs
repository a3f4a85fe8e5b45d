//! The guest's sockets and their memory.

use smoltcp::iface::{SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::{dhcpv4, icmp, tcp, udp};

/// Bytes of each buffer of a stream.
const STREAM_BUFFER: usize = 16 * 1024;

/// Bytes of each buffer of datagrams: one of the longest.
const DATAGRAM_BUFFER: usize = 1472;

/// The memory of a guest's sockets.
#[derive(Debug)]
pub struct GuestMemory {
    sockets: [SocketStorage<'static>; 4],
    stream: [[u8; STREAM_BUFFER]; 2],
    ping: [([icmp::PacketMetadata; 1], [u8; 256]); 2],
    datagram: [([udp::PacketMetadata; 1], [u8; DATAGRAM_BUFFER]); 2],
}

impl GuestMemory {
    /// Unused memory.
    pub const EMPTY: Self = Self {
        sockets: [SocketStorage::EMPTY; 4],
        stream: [[0; STREAM_BUFFER]; 2],
        ping: [([icmp::PacketMetadata::EMPTY], [0; 256]); 2],
        datagram: [([udp::PacketMetadata::EMPTY], [0; DATAGRAM_BUFFER]); 2],
    };
}

/// A guest's sockets, one of each kind.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) set: SocketSet<'static>,
    dhcp: SocketHandle,
    ping: SocketHandle,
    datagram: SocketHandle,
    stream: SocketHandle,
}

impl Sockets {
    pub(crate) fn new(memory: &'static mut GuestMemory) -> Self {
        let GuestMemory { sockets, stream, ping, datagram } = memory;
        let mut set = SocketSet::new(&mut sockets[..]);
        let [receive, send] = ping
            .each_mut()
            .map(|(metadata, bytes)| icmp::PacketBuffer::new(&mut metadata[..], &mut bytes[..]));
        let ping = set.add(icmp::Socket::new(receive, send));
        let [receive, send] = datagram
            .each_mut()
            .map(|(metadata, bytes)| udp::PacketBuffer::new(&mut metadata[..], &mut bytes[..]));
        let datagram = set.add(udp::Socket::new(receive, send));
        let [receive, send] = stream.each_mut().map(|bytes| tcp::SocketBuffer::new(&mut bytes[..]));
        let stream = set.add(tcp::Socket::new(receive, send));
        let dhcp = set.add(dhcpv4::Socket::new());
        Self { set, dhcp, ping, datagram, stream }
    }

    pub(crate) fn dhcp(&mut self) -> &mut dhcpv4::Socket<'static> {
        self.set.get_mut(self.dhcp)
    }

    pub(crate) fn ping(&mut self) -> &mut icmp::Socket<'static> {
        self.set.get_mut(self.ping)
    }

    pub(crate) fn datagram(&mut self) -> &mut udp::Socket<'static> {
        self.set.get_mut(self.datagram)
    }

    pub(crate) fn stream(&mut self) -> &mut tcp::Socket<'static> {
        self.set.get_mut(self.stream)
    }
}
