//! A datagram socket stands in for the tap: one read or write is one frame on both.

use std::os::unix::net::UnixDatagram;

use slirp_nat::link::TcpSegmentation;

use super::super::tap::TapLink;
use super::*;

const HEADER_LEN: usize = 14 + 20 + 20;

fn pair() -> (TapLink, UnixDatagram) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    (TapLink::new(fd(ours), 1000).unwrap(), theirs)
}

fn drain(peer: &UnixDatagram) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; MAX_FRAME_LEN];
    core::iter::from_fn(|| {
        let length = peer.recv(&mut buffer).ok()?;
        Some(buffer[..length].to_vec())
    })
    .collect()
}

/// A TCP super-segment over IPv4 with `payload`.
fn super_segment(payload: &[u8]) -> Vec<u8> {
    let ip_len = (HEADER_LEN - 14 + payload.len()) as u16;
    let mut frame = vec![0; HEADER_LEN];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&ip_len.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    let sum = ipstack::checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    frame.extend(payload);
    frame
}

fn commit_segments(link: &mut impl Link, payload: &[u8], segment_size: u16) {
    let frame = super_segment(payload);
    link.reserve(frame.len()).unwrap().copy_from_slice(&frame);
    let segmentation =
        TcpSegmentation { tcp_offset: 34, header_len: HEADER_LEN as u16, segment_size };
    link.commit(frame.len(), &TxMeta { segment: Some(segmentation) });
}

#[test]
fn a_super_segment_is_cut_and_its_short_rest_padded() {
    let (mut link, peer) = pair();
    let payload: Vec<u8> = (0..2003).map(|index| (index % 251) as u8).collect();
    commit_segments(&mut link, &payload, 1000);
    let frames = drain(&peer);
    assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [1054, 1054, 60]);
    assert_eq!(frames[0][HEADER_LEN..], payload[..1000]);
    assert_eq!(frames[1][HEADER_LEN..], payload[1000..2000]);
    assert_eq!(frames[2][HEADER_LEN..], [&payload[2000..], &[0; 3]].concat());
    assert_eq!(frames[2][16..18], 43_u16.to_be_bytes(), "padding is no part of the packet");
    assert_eq!((link.counters().writes, link.counters().frames_out), (3, 3));
}

#[test]
fn a_batch_is_what_is_readable_up_to_sixty_four_frames() {
    let (mut link, peer) = pair();
    peer.set_nonblocking(false).unwrap();
    let sender = std::thread::spawn(move || {
        for index in 0..100 {
            peer.send(&[index; 60]).unwrap();
        }
        peer
    });
    let (mut seen, mut batch) = (Vec::new(), Batch::new());
    while seen.len() < 100 {
        link.receive_batch(&mut batch).unwrap();
        assert!(batch.len() <= FRAMES_PER_BATCH);
        seen.extend(batch.iter().map(<[u8]>::to_vec));
    }
    assert!(seen.iter().enumerate().all(|(index, frame)| *frame == [index as u8; 60]));
    assert_eq!(received(&mut link), Vec::<Vec<u8>>::new());
    drop(sender.join().unwrap());
}

#[test]
fn a_refused_frame_is_counted_and_the_link_goes_on() {
    let (mut link, peer) = pair();
    let mut sent = 0;
    while link.counters().refused == 0 {
        commit(&mut link, &[sent; 1514]);
        sent += 1;
    }
    assert_eq!(link.counters().frames_out + 1, u64::from(sent));
    assert_eq!(drain(&peer).len() + 1, usize::from(sent));
    assert!(!link.flush().unwrap());
    commit(&mut link, &[7; 60]);
    assert_eq!(drain(&peer), [[7; 60]]);
}
