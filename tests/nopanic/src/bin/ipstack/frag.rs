//! The fragment queue and the fragmenter.

use ipstack::frag::{
    Expired, Fragment, FragmentDrop, FragmentKey, FragmentQueue, FragmentSlot, Fragmenter, Insert,
};
use ipstack::wire::{Ipv4Packet, Ipv6Packet, Ipv6Payload};
use slirpkit_nopanic::{any, any_bytes, hidden, keep};

use crate::any_time;

fn any_fragment() -> Fragment<'static> {
    Fragment {
        key: FragmentKey {
            source: any(),
            destination: any(),
            identification: any(),
            protocol: any(),
        },
        header: any_bytes(),
        ecn: any(),
        offset: any(),
        more: any(),
        payload: any_bytes(),
    }
}

pub(crate) fn queue() {
    let mut slots = [FragmentSlot::EMPTY; 4];
    let mut memory = [0; 4096];
    let mut queue = FragmentQueue::new(hidden(&mut slots[..]), hidden(&mut memory[..]));
    while any() {
        match queue.insert(any_time(), &any_fragment()) {
            Insert::Complete(datagram) => keep((datagram.header, datagram.ecn, datagram.payload)),
            Insert::Held => {}
            Insert::Dropped(why) => keep(why),
        }
        if let Some(Expired { key, first: Some(first) }) = queue.expire(any_time()) {
            keep((key, first.header, first.payload));
        }
        if let Ok(packet) = Ipv4Packet::parse(any_bytes()) {
            keep(queue.insert(any_time(), &Fragment::ipv4(&packet)));
        }
        insert_ipv6(&mut queue);
        keep((queue.poll_at(), queue.len(), queue.is_empty()));
        keep((queue.counters().held, queue.counters().dropped(FragmentDrop::Memory)));
        hidden(&mut queue);
    }
}

fn insert_ipv6(queue: &mut FragmentQueue<'_>) {
    let Ok(packet) = Ipv6Packet::parse(any_bytes()) else { return };
    let Ok(Ipv6Payload::Fragment(fragment)) = packet.payload_behind_extensions() else { return };
    let header = packet.quoted_header(&fragment);
    keep(queue.insert(any_time(), &Fragment::ipv6(&packet, &fragment, &header)));
}

pub(crate) fn fragmenter() {
    let Some(mut fragmenter) = Fragmenter::new(any(), any(), any()) else { return };
    while let Some(piece) = fragmenter.peek() {
        keep(piece);
        fragmenter.advance();
        hidden(&mut fragmenter);
    }
    keep(fragmenter.next());
}
