//! The fragment queue and the fragmenter.

use core::net::Ipv6Addr;

use ipstack::frag::{
    Expired, Fragment, FragmentDrop, FragmentKey, FragmentQueue, FragmentSlot, Fragmenter, Insert,
};
use slirpkit_nopanic::{any, any_bytes, hidden, keep};

use crate::any_time;

fn any_fragment() -> Fragment<'static> {
    let address = || Ipv6Addr::from(any::<[u8; 16]>());
    Fragment {
        key: FragmentKey {
            source: address(),
            destination: address(),
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
        keep((queue.poll_at(), queue.len(), queue.is_empty()));
        keep((queue.counters().held, queue.counters().dropped(FragmentDrop::Memory)));
        hidden(&mut queue);
    }
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
