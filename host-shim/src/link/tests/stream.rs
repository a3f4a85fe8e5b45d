use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;

use super::super::stream::StreamLink;
use super::*;

fn pair() -> (StreamLink, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (StreamLink::new(fd(ours)).unwrap(), theirs)
}

fn encode(frames: &[Vec<u8>]) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|frame| [&(frame.len() as u32).to_be_bytes()[..], frame].concat())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn frames_survive_any_split_of_the_stream(
        lengths in proptest::collection::vec(prop_oneof![0_usize..100, 1400_usize..1600, Just(MAX_FRAME_LEN)], 1..40),
        cuts in proptest::collection::vec(1_usize..70_000, 1..60),
    ) {
        let (mut link, mut peer) = pair();
        let frames: Vec<Vec<u8>> = lengths
            .iter()
            .enumerate()
            .map(|(index, length)| vec![index as u8; *length])
            .collect();
        let bytes = encode(&frames);
        let (mut rest, mut seen) = (&bytes[..], Vec::new());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at(rest.len().min(*cut));
            peer.write_all(now).unwrap();
            seen.extend(received(&mut link));
            rest = later;
        }
        prop_assert_eq!(link.counters().frames_in, frames.len() as u64);
        prop_assert_eq!(seen, frames);
    }
}

#[test]
fn a_batch_is_one_read_and_one_write() {
    let (mut link, mut peer) = pair();
    let frames: Vec<Vec<u8>> = (0..100).map(|index| vec![index; 100]).collect();
    peer.write_all(&encode(&frames)).unwrap();
    assert_eq!(received(&mut link), frames);
    for frame in &frames {
        commit(&mut link, frame);
    }
    assert!(!link.flush().unwrap());
    assert!(!link.wants_write());
    assert_eq!((link.counters().reads, link.counters().writes), (1, 1));
    let mut heard = vec![0; 100 * 104];
    peer.read_exact(&mut heard).unwrap();
    assert_eq!(heard, encode(&frames));
    assert_eq!(received(&mut link), Vec::<Vec<u8>>::new());
}

#[test]
fn a_frame_that_nobody_could_send_ends_the_link() {
    let (mut link, mut peer) = pair();
    peer.write_all(b"GET / HTTP/1.0\r\n").unwrap();
    let error = link.receive_batch(&mut Batch::new()).unwrap_err();
    assert!(matches!(error, LinkError::Oversized(0x4745_5420)), "{error}");
}

#[test]
fn the_peers_close_ends_the_link() {
    let (mut link, peer) = pair();
    drop(peer);
    assert!(matches!(link.receive_batch(&mut Batch::new()), Err(LinkError::Closed)));
    commit(&mut link, &[1; 60]);
    assert!(matches!(link.flush(), Err(LinkError::Closed)));
}

#[test]
fn a_slow_peer_loses_nothing_and_the_end_of_the_shortage_is_reported() {
    let (mut link, mut peer) = pair();
    peer.set_nonblocking(true).unwrap();
    let (mut sent, mut heard, mut shortages) = (Vec::new(), Vec::<u8>::new(), 0);
    for index in 0..2000_u32 {
        let frame = vec![index as u8; 1514];
        while link.room().frames == 0 || link.room().bytes < frame.len() {
            assert!(link.wants_write());
            // A pipe's worth at a time, so that the link sees partial writes.
            let mut buffer = vec![0; 10_000];
            let count = peer.read(&mut buffer).unwrap();
            heard.extend(&buffer[..count]);
            shortages += u32::from(link.flush().unwrap());
        }
        commit(&mut link, &frame);
        link.flush().unwrap();
        sent.push(frame);
    }
    while heard.len() < 2000 * 1518 {
        let mut buffer = vec![0; 10_000];
        if let Ok(count) = peer.read(&mut buffer) {
            heard.extend(&buffer[..count]);
        }
        shortages += u32::from(link.flush().unwrap());
    }
    assert_eq!(heard, encode(&sent));
    assert_eq!((link.counters().frames_out, link.counters().overrun), (2000, 0));
    assert!(shortages > 0);
    assert!(!link.wants_write());
}

#[test]
fn short_frames_are_padded() {
    let (mut link, mut peer) = pair();
    commit(&mut link, &[9; 42]);
    link.flush().unwrap();
    let mut heard = [0; 64];
    peer.read_exact(&mut heard).unwrap();
    assert_eq!(heard[..4], 60_u32.to_be_bytes());
    assert_eq!(heard[4..46], [9; 42]);
    assert_eq!(heard[46..], [0; 18]);
}
