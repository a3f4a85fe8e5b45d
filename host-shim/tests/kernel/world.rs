//! A small internet: the host, a router of the kernel's behind it, and a server behind that.

use core::net::Ipv4Addr;

use crate::namespace::Namespace;

/// The host's address on its network, and a second one.
pub(crate) const HOST: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
pub(crate) const HOST_TOO: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 3);
/// The router's address there.
pub(crate) const HOP: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// The server's address behind the router.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);

/// Each in a namespace of its own.
pub(crate) struct World {
    pub(crate) host: Namespace,
    pub(crate) server: Namespace,
    _router: Namespace,
}

impl World {
    pub(crate) fn new() -> Self {
        let [host, router, server] = [(); 3].map(|()| Namespace::new());
        router.script(&format!(
            "ip link add left type veth peer name eth0 netns {}
             ip link add right type veth peer name eth0 netns {}
             ip addr add {HOP}/24 dev left; ip link set left up
             ip addr add 203.0.113.1/24 dev right; ip link set right up
             echo 1 >/proc/sys/net/ipv4/ip_forward
             echo 0 >/proc/sys/net/ipv4/icmp_ratelimit",
            host.pid(),
            server.pid()
        ));
        host.script(&format!(
            "ip addr add {HOST}/24 dev eth0; ip addr add {HOST_TOO}/24 dev eth0
             ip link set eth0 up; ip route add default via {HOP}
             echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range"
        ));
        server.script(&format!(
            "ip addr add {SERVER}/24 dev eth0; ip link set eth0 up
             ip route add default via 203.0.113.1
             echo 0 >/proc/sys/net/ipv4/icmp_ratelimit"
        ));
        Self { host, server, _router: router }
    }
}
