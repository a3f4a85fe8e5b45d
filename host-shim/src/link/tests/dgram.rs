use std::os::unix::net::UnixDatagram;

use super::super::dgram::DgramLink;
use super::*;

#[test]
fn one_datagram_is_one_frame_both_ways() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let mut link = DgramLink::new(fd(ours), None).unwrap();
    theirs.send(&[1; 100]).unwrap();
    theirs.send(&[2; 65_549]).unwrap();
    assert_eq!(received(&mut link), [vec![1; 100], vec![2; 65_549]]);
    commit(&mut link, &[3; 42]);
    commit(&mut link, &[4; 1514]);
    assert!(!link.flush().unwrap());
    let mut buffer = [0; 2000];
    assert_eq!(theirs.recv(&mut buffer).unwrap(), 60);
    assert_eq!(theirs.recv(&mut buffer).unwrap(), 1514);
    assert_eq!(buffer[..1514], [4; 1514]);
}

#[test]
fn a_full_peer_loses_nothing() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut link = DgramLink::new(fd(ours), None).unwrap();
    let (mut heard, mut buffer) = (Vec::new(), [0; 2000]);
    for index in 0..2000_u32 {
        while link.room().frames == 0 || link.room().bytes < 1514 {
            assert!(link.wants_write());
            let count = theirs.recv(&mut buffer).unwrap();
            heard.push(buffer[..count].to_vec());
            link.flush().unwrap();
        }
        commit(&mut link, &[index as u8; 1514]);
        link.flush().unwrap();
    }
    while heard.len() < 2000 {
        let count = theirs.recv(&mut buffer).unwrap();
        heard.push(buffer[..count].to_vec());
        link.flush().unwrap();
    }
    assert!(heard.iter().enumerate().all(|(index, frame)| *frame == [index as u8; 1514]));
    assert_eq!(link.counters().refused, 0);
}

#[test]
fn the_peer_may_come_late_and_come_back() {
    let name = format!("host-shim-dgram-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let ours = UnixDatagram::unbound().unwrap();
    let mut link = DgramLink::new(fd(ours), Some(path.clone())).unwrap();
    commit(&mut link, &[0; 60]);
    assert!(!link.flush().unwrap());
    assert_eq!((link.counters().refused, link.wants_write()), (1, false));
    for round in 1..3 {
        let theirs = UnixDatagram::bind(&path).unwrap();
        commit(&mut link, &[round; 60]);
        link.flush().unwrap();
        let mut buffer = [0; 99];
        assert_eq!(theirs.recv(&mut buffer).unwrap(), 60);
        assert_eq!(buffer[..60], [round; 60]);
        drop(theirs);
        std::fs::remove_file(&path).unwrap();
        commit(&mut link, &[0; 60]);
        link.flush().unwrap();
    }
    assert_eq!(link.counters().refused, 3);
}
