//! Everything that `slirp-nat` offers.
#![no_std]
#![no_main]

mod card;
mod host;
mod link;

use core::net::SocketAddr;

use ipstack::Instant;
use ipstack::frag::FragmentSlot;
use managed::ManagedSlice;
use slirp_nat::host::{DatagramMeta, FlowId, ForwardId, Ready, Token};
use slirp_nat::link::Offload;
use slirp_nat::{
    Config, Deadline, DropReason, Flow, Forward, ForwardSlot, Frame, Host, HostEvent, Lease, Link,
    Nat, Permit, Protocol, PushHost, Recovery, RingHost, RingSlot, Secret, SegmentFate, Storage,
    UdpFiltering, UdpMapping,
};
use slirpkit_nopanic::{any, any_bytes, hidden, keep, one_of};

use host::AnyHost;
use link::AnyLink;

slirpkit_nopanic::program!({
    let mut flows = [Flow::EMPTY; 4];
    let mut buckets = [0; 4];
    let mut permits = [Permit::EMPTY; 4];
    let mut fragments = [FragmentSlot::EMPTY; 4];
    let mut fragment_memory = [0; 4096];
    let mut pool = [0; 2048];
    let mut recoveries = [Recovery::EMPTY; 2];
    let mut datagram = [0; 2048];
    let mut replies = [0; 2048];
    let mut leases = [Lease::EMPTY; 4];
    let mut forwards = [ForwardSlot::EMPTY; 4];
    let storage = Storage {
        flows: ManagedSlice::Borrowed(hidden(&mut flows[..])),
        buckets: ManagedSlice::Borrowed(hidden(&mut buckets[..])),
        permits: ManagedSlice::Borrowed(hidden(&mut permits[..])),
        fragments: ManagedSlice::Borrowed(hidden(&mut fragments[..])),
        fragment_memory: ManagedSlice::Borrowed(hidden(&mut fragment_memory[..])),
        pool: ManagedSlice::Borrowed(hidden(&mut pool[..])),
        recoveries: ManagedSlice::Borrowed(hidden(&mut recoveries[..])),
        datagram: ManagedSlice::Borrowed(hidden(&mut datagram[..])),
        replies: ManagedSlice::Borrowed(hidden(&mut replies[..])),
        leases: ManagedSlice::Borrowed(hidden(&mut leases[..])),
        forwards: ManagedSlice::Borrowed(hidden(&mut forwards[..])),
    };
    let config = any_config();
    keep(config.validate());
    let Ok(mut nat) = Nat::new(config, Secret([any(), any()]), storage) else { continue };
    let mut rings = [RingSlot::EMPTY; 4];
    let mut ring_memory = [0; 4096];
    let mut ring_host =
        RingHost::new(AnyHost, hidden(&mut rings[..]), hidden(&mut ring_memory[..]));
    let (mut host, mut link) = (AnyHost, AnyLink([0; 2048]));
    while any() {
        any_call(&mut nat, hidden::<dyn Host>(&mut host), hidden::<dyn Link>(&mut link));
        any_call(&mut nat, hidden::<dyn Host>(&mut ring_host), hidden::<dyn Link>(&mut link));
        card::any_turns(&mut nat, hidden::<dyn Host>(&mut host));
        while let Some(event) = ring_host.next_event() {
            nat.on_host_event(any_time(), event, hidden(&mut ring_host), &mut link);
        }
        keep((Host::capabilities(&ring_host), ring_host.ring_len()));
        keep(PushHost::capabilities(ring_host.inner()));
        hidden(ring_host.inner_mut());
        hidden(&mut nat);
    }
    link::cut();
    plain_values();
});

fn any_config() -> Config {
    let mut config = Config::default();
    config.mtu = any();
    config.network = any();
    config.prefix_len = any();
    config.gateway = any();
    config.dns = any();
    config.first_lease = any();
    config.default_guest = any();
    keep(config.hostname.push_str("guest"));
    keep(config.domain.push_str("example"));
    hidden(&mut config.hostname);
    hidden(&mut config.domain);
    keep(config.boot_file.push_str("boot.ipxe"));
    keep(config.tftp_server_name.push_str("tftp"));
    hidden(&mut config.boot_file);
    hidden(&mut config.tftp_server_name);
    config.next_server = one_of(None, &[Some(any())]);
    keep(config.resolvers.push(any()));
    hidden(&mut config.resolvers);
    config.host_loopback = any();
    config.udp_mapping =
        one_of(UdpMapping::EndpointIndependent, &[UdpMapping::AddressAndPortDependent]);
    config.udp_filtering =
        one_of(UdpFiltering::EndpointIndependent, &[UdpFiltering::AddressDependent]);
    config
}

fn any_call(nat: &mut Nat<'_>, host: &mut dyn Host, link: &mut dyn Link) {
    let now = any_time();
    match any::<u8>() {
        0 => {
            let offload = Offload { checksum_partial: any(), segment_size: any() };
            let mut frames = [Frame { bytes: any_bytes(), offload }, Frame::new(any_bytes())];
            nat.receive(now, hidden(&mut frames[..]), host, link);
        }
        1 => nat.on_host_event(now, any_event(), host, link),
        2 => nat.on_link_ready(now, host, link),
        3 => nat.on_timer(now, host, link),
        4 => {
            let protocol = one_of(Protocol::Tcp, &[Protocol::Udp]);
            let rule = Forward { protocol, host: any(), guest: any() };
            keep(nat.add_forward(rule, host));
        }
        5 => keep(nat.remove_forward(ForwardId(any()), host)),
        6 => {
            let mut resolvers: [SocketAddr; 2] = [any(), any()];
            nat.set_resolvers(hidden(&mut resolvers[..]));
        }
        _ => observe(nat),
    }
}

fn any_time() -> Instant {
    Instant::from_micros(any())
}

fn any_event() -> HostEvent {
    let ready = Ready { readable: any(), writable: any(), error: any() };
    if any() {
        HostEvent::Flow(FlowId::from_bits(any()), ready)
    } else {
        HostEvent::Forward(ForwardId(any()), ready)
    }
}

fn observe(nat: &Nat<'_>) {
    if let Some(Deadline { at, why }) = nat.poll_at() {
        keep((at, why));
    }
    keep((nat.config(), nat.flow_count(), nat.pool_blocks_in_use()));
    let stats = nat.stats();
    for (name, count) in stats.counters.iter() {
        keep((name, count));
    }
    for (reason, count) in stats.drops() {
        keep((reason.name(), count));
    }
    for (fate, count) in stats.segment_fates() {
        keep((fate.name(), count));
    }
    keep((stats.dropped(DropReason::Dhcp), stats.dropped_total()));
    keep(stats.segments(SegmentFate::Taken));
}

fn plain_values() {
    keep((FlowId { slot: any(), generation: any() }.to_bits(), Token(any())));
    keep(DatagramMeta::new(any()));
}
