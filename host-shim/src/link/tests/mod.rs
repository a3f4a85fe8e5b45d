mod capture;
mod dgram;
mod stream;
mod tap;

use std::os::fd::OwnedFd;

use slirp_nat::Link;
use slirp_nat::link::TxMeta;

use super::*;

/// Hands `frame` to the link as the NAT does.
fn commit(link: &mut impl Link, frame: &[u8]) {
    let buffer = link.reserve(frame.len()).unwrap();
    assert_eq!(buffer.len(), frame.len());
    buffer.copy_from_slice(frame);
    link.commit(frame.len(), &TxMeta::default());
}

fn received(link: &mut impl GuestLink) -> Vec<Vec<u8>> {
    let mut batch = Batch::new();
    link.receive_batch(&mut batch).unwrap();
    batch.iter().map(<[u8]>::to_vec).collect()
}

fn fd<T: Into<OwnedFd>>(socket: T) -> OwnedFd {
    socket.into()
}
