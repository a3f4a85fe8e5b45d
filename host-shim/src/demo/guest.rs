//! A guest: a network stack that nobody here wrote, over a driver that has the card's ports only.

use core::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use ipstack::Instant;
use ne2000::Width;
use ne2000::driver::{Driver, DriverError, DriverStats, Ports};
use smoltcp::iface::{self, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::{dhcpv4, icmp, tcp};
use smoltcp::time::Instant as StackInstant;
use smoltcp::wire::{
    EthernetAddress, Icmpv4Packet, Icmpv4Repr, IpAddress, IpCidr, IpEndpoint, Ipv4Cidr,
};

use super::nic::{Interface, Nic, Tap};

/// Bytes of each of the socket's buffers. The window offered is one of them, four times what the
/// card's ring holds.
const BUFFER_LEN: usize = 64 << 10;

/// Identifier of the guest's pings, and the first of its ports (RFC 6335 6).
const FIRST_PORT: u16 = 49_152;

/// What DHCP has told the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Its address.
    pub address: Ipv4Addr,
    /// Bits of the network's prefix.
    pub prefix_len: u8,
    /// The default gateway.
    pub router: Option<Ipv4Addr>,
    /// The name server.
    pub resolver: Option<Ipv4Addr>,
}

/// Where the guest's one connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// It is being made, or bytes may still come.
    Open,
    /// The far end has ended its direction, and every byte before that has been taken.
    Ended,
    /// It was refused, reset or given up.
    Broken,
}

/// A guest with one TCP connection at a time.
pub struct Guest {
    interface: Interface,
    stack: iface::Interface,
    sockets: SocketSet<'static>,
    dhcp: SocketHandle,
    icmp: SocketHandle,
    tcp: SocketHandle,
    lease: Option<Lease>,
    next_port: u16,
}

impl Guest {
    /// Starts the driver of the card at `ports`, whose data port takes `width`, and begins to ask
    /// for a lease. `seed` is what the stack's numbers are drawn from.
    ///
    /// # Errors
    /// There is no card that the driver knows.
    pub fn boot(
        now: Instant,
        ports: &mut impl Ports,
        width: Width,
        seed: u64,
    ) -> Result<Self, DriverError> {
        let driver = Driver::start(ports, width)?;
        let mut config = iface::Config::new(EthernetAddress(driver.mac()).into());
        config.random_seed = seed;
        let mut interface = Interface::new(driver);
        let mut nic = Nic { interface: &mut interface, ports, tap: &mut () };
        let stack = iface::Interface::new(config, &mut nic, stack_time(now));
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_LEN]);
        let packets = || icmp::PacketBuffer::new(vec![icmp::PacketMetadata::EMPTY], vec![0; 1500]);
        let mut pinger = icmp::Socket::new(packets(), packets());
        // It cannot fail on a new socket with an identifier that is not 0.
        let _ = pinger.bind(icmp::Endpoint::Ident(FIRST_PORT));
        let dhcp = sockets.add(dhcpv4::Socket::new());
        let icmp = sockets.add(pinger);
        let mut stream = tcp::Socket::new(buffer(), buffer());
        // All that the ring held is acknowledged at once, by one ACK.
        stream.set_ack_delay(None);
        let tcp = sockets.add(stream);
        let (lease, next_port) = (None, FIRST_PORT);
        Ok(Self { interface, stack, sockets, dhcp, icmp, tcp, lease, next_port })
    }

    /// Serves the card's interrupt and does what is due: takes the frames that are in the ring, and
    /// sends what the stack has to send.
    pub fn poll(&mut self, now: Instant, ports: &mut impl Ports, tap: &mut impl Tap) {
        self.poll_frames(usize::MAX, now, ports, tap);
    }

    /// The same of a guest that takes `frames` frames at most, as drivers do that have a budget.
    pub fn poll_frames(
        &mut self,
        frames: usize,
        now: Instant,
        ports: &mut impl Ports,
        tap: &mut impl Tap,
    ) {
        let Self { interface, stack, sockets, .. } = self;
        let (mut nic, now) = (Nic { interface, ports, tap }, stack_time(now));
        for _ in 0..frames {
            if let PollIngressSingleResult::None = stack.poll_ingress_single(now, &mut nic, sockets)
            {
                break;
            }
        }
        nic.interface.send_held(nic.ports);
        while let PollResult::SocketStateChanged = stack.poll_egress(now, &mut nic, sockets) {}
        self.configure();
    }

    /// When to call [`Guest::poll`] even without an interrupt. Any call can change it.
    pub fn poll_at(&mut self, now: Instant) -> Option<Instant> {
        let due = self.stack.poll_at(stack_time(now), &self.sockets)?;
        Some(Instant::from_micros(due.total_micros().cast_unsigned()))
    }

    /// Takes address and route from a lease that has come.
    fn configure(&mut self) {
        let socket = self.sockets.get_mut::<dhcpv4::Socket<'_>>(self.dhcp);
        let Some(dhcpv4::Event::Configured(config)) = socket.poll() else { return };
        let lease = Lease {
            address: config.address.address(),
            prefix_len: config.address.prefix_len(),
            router: config.router,
            resolver: config.dns_servers.first().copied(),
        };
        self.lease = Some(lease);
        self.stack.update_ip_addrs(|addresses| {
            addresses.clear();
            // There is room for one.
            let _ = addresses.push(IpCidr::Ipv4(Ipv4Cidr::new(lease.address, lease.prefix_len)));
        });
        if let Some(router) = lease.router {
            // And for one route.
            let _ = self.stack.routes_mut().add_default_ipv4_route(router);
        }
    }

    /// The lease, once there is one.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        self.lease
    }

    /// Sends an echo request with `data`. Returns whether there was room for it.
    pub fn ping(&mut self, to: Ipv4Addr, data: &[u8]) -> bool {
        let message = Icmpv4Repr::EchoRequest { ident: FIRST_PORT, seq_no: 1, data };
        let socket = self.sockets.get_mut::<icmp::Socket<'_>>(self.icmp);
        let Ok(buffer) = socket.send(message.buffer_len(), IpAddress::Ipv4(to)) else {
            return false;
        };
        message.emit(&mut Icmpv4Packet::new_unchecked(buffer), &ChecksumCapabilities::default());
        true
    }

    /// Whose echo reply has come, and whether it has the same `data`.
    pub fn pong(&mut self, data: &[u8]) -> Option<(IpAddr, bool)> {
        let socket = self.sockets.get_mut::<icmp::Socket<'_>>(self.icmp);
        let (message, from) = socket.recv().ok()?;
        let packet = Icmpv4Packet::new_checked(message).ok()?;
        let reply = Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default()).ok()?;
        let expected = Icmpv4Repr::EchoReply { ident: FIRST_PORT, seq_no: 1, data };
        Some((from.into(), reply == expected))
    }

    /// Begins to connect to `remote`. Returns whether the connection before is over.
    pub fn connect(&mut self, remote: SocketAddrV4) -> bool {
        let (address, port) = (IpAddress::Ipv4(*remote.ip()), remote.port());
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.tcp);
        let local = self.next_port;
        self.next_port = local.checked_add(1).unwrap_or(FIRST_PORT);
        socket.connect(self.stack.context(), IpEndpoint::new(address, port), local).is_ok()
    }

    /// Hands bytes that have come to `take`, which says how many of them it has taken.
    pub fn receive(&mut self, take: impl FnOnce(&[u8]) -> usize) -> Stream {
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.tcp);
        match socket.recv(|bytes| (take(bytes), ())) {
            Ok(()) => Stream::Open,
            Err(tcp::RecvError::Finished) => Stream::Ended,
            Err(tcp::RecvError::InvalidState) if is_connecting(socket) => Stream::Open,
            Err(tcp::RecvError::InvalidState) => Stream::Broken,
        }
    }

    /// Hands room for bytes to `make`, which says how many it has written there.
    pub fn send(&mut self, make: impl FnOnce(&mut [u8]) -> usize) -> Stream {
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.tcp);
        match socket.send(|room| (make(room), ())) {
            Ok(()) => Stream::Open,
            Err(tcp::SendError::InvalidState) if is_connecting(socket) => Stream::Open,
            Err(tcp::SendError::InvalidState) => Stream::Broken,
        }
    }

    /// Ends the guest's direction.
    pub fn close(&mut self) {
        self.sockets.get_mut::<tcp::Socket<'_>>(self.tcp).close();
    }

    /// Whether both directions have ended, and the far end knows it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(
            self.sockets.get::<tcp::Socket<'_>>(self.tcp).state(),
            tcp::State::Closed | tcp::State::TimeWait
        )
    }

    /// TCP segments that the guest's stack has sent again.
    #[must_use]
    pub const fn retransmissions(&self) -> u64 {
        self.interface.resent.segments()
    }

    /// Pages of the ring that the driver has laid out.
    #[must_use]
    pub const fn ring_pages(&self) -> u8 {
        self.interface.driver.ring_pages()
    }

    /// What the driver has counted.
    #[must_use]
    pub const fn driver_stats(&self) -> &DriverStats {
        self.interface.driver.stats()
    }
}

impl core::fmt::Debug for Guest {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Guest").field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// Whether the far end has not answered yet.
fn is_connecting(socket: &tcp::Socket<'_>) -> bool {
    matches!(socket.state(), tcp::State::SynSent | tcp::State::SynReceived)
}

/// The stack's clock counts the same microseconds.
const fn stack_time(now: Instant) -> StackInstant {
    StackInstant::from_micros_const(now.micros().cast_signed())
}
