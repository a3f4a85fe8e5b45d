use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;

use super::super::capture::{Capture, Captured};
use super::super::dgram::DgramLink;
use super::*;

fn pair() -> (DgramLink, UnixDatagram) {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    (DgramLink::new(fd(ours), None).unwrap(), theirs)
}

#[test]
fn both_directions_can_be_read_back() {
    let name = format!("host-shim-capture-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let (link, theirs) = pair();
    let mut link = Captured::new(link, Capture::create(&path, 100).unwrap());
    theirs.send(&[1; 80]).unwrap();
    assert_eq!(received(&mut link).len(), 1);
    commit(&mut link, &[2; 42]);
    link.flush().unwrap();
    commit(&mut link, &[3; 1514]);
    link.flush().unwrap();
    assert_eq!(theirs.recv(&mut [0; 2000]).unwrap(), 60);
    assert_eq!(theirs.recv(&mut [0; 2000]).unwrap(), 1514);

    // What has been flushed is in the file, although the capture is still open.
    let mut reader = PcapReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!((reader.header().datalink, reader.header().snaplen), (DataLink::ETHERNET, 100));
    let (mut seen, mut last) = (Vec::new(), (0, 0));
    // The crate's checked reader wrongly refuses frames that were longer than what was kept.
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.unwrap();
        assert!((packet.ts_sec, packet.ts_frac) >= last, "time went backwards");
        last = (packet.ts_sec, packet.ts_frac);
        seen.push((packet.orig_len, packet.data.into_owned()));
    }
    let padded = [vec![2; 42], vec![0; 18]].concat();
    assert_eq!(seen, [(80, vec![1; 80]), (60, padded), (1514, vec![3; 100])]);
    std::fs::remove_file(&path).unwrap();
}

/// Takes the file header, then fails.
struct FullDisk {
    writes: usize,
}

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        if self.writes > 1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_capture_and_not_the_link() {
    let (link, theirs) = pair();
    let mut link = Captured::new(link, Capture::to(FullDisk { writes: 0 }, 65_535).unwrap());
    for round in 0..3 {
        commit(&mut link, &[round; 60]);
        link.flush().unwrap();
        let mut buffer = [0; 99];
        assert_eq!(theirs.recv(&mut buffer).unwrap(), 60);
        assert_eq!(buffer[..60], [round; 60]);
    }
    assert!(link.into_parts().1.is_none());
}
