//! Loopback, by the tables of results in National Semiconductor's application note 937.

use ne2000::{Model, crc::fcs};

use crate::guest::{BROADCAST, Guest, MAC, PEER, PTX, RXE, frame};

/// Sends `sent` in loopback mode `lb` with DCR.LS clear, byte-wide.
fn looped(lb: u8, sent: &[u8]) -> Guest {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.outs(&[(0x0E, 0x40), (0x0D, lb)]);
    guest.poke(0x4000, sent);
    guest.send(0x40, sent.len() as u16);
    guest.pass(2_000);
    assert!(guest.sent.is_empty(), "nothing gets to the network");
    assert_eq!(guest.curr(), 0x47, "nothing gets to the ring");
    guest
}

#[test]
fn own_address_reports_a_check_error_since_the_chip_made_the_sequence() {
    for (lb, tsr) in [(0x02, 0x51), (0x04, 0x41), (0x06, 0x01)] {
        let mut guest = looped(lb, &frame(MAC, 60, 0));
        let read = [guest.inb(0x04), guest.inb(0x0C), guest.isr()];
        assert_eq!(read, [tsr, 0x02, RXE | PTX]);
    }
}

#[test]
fn other_address_is_rejected() {
    let mut guest = looped(0x02, &frame(PEER, 60, 0));
    assert_eq!([guest.inb(0x04), guest.inb(0x0C), guest.isr()], [0x51, 0x01, PTX]);
}

#[test]
fn broadcast_is_marked() {
    let mut guest = looped(0x02, &frame(BROADCAST, 60, 0));
    assert_eq!(guest.inb(0x0C), 0x22);
}

#[test]
fn software_check_sequence_is_checked() {
    let mut sent = frame(MAC, 60, 0);
    sent.extend(fcs(&sent));
    let mut guest = looped(0x03, &sent);
    assert_eq!([guest.inb(0x0C), guest.isr()], [0x01, PTX]);
    sent[20] ^= 1;
    let mut guest = looped(0x03, &sent);
    assert_eq!([guest.inb(0x0C), guest.isr()], [0x02, RXE | PTX]);
}

/// The datasheet's alignment: a frame of 64 bytes ends in location 7, and the count wraps round.
#[test]
fn fifo_holds_count_and_last_bytes() {
    let sent = frame(MAC, 60, 0);
    let mut guest = looped(0x02, &sent);
    let mut wanted = vec![64, 0, 0, sent[59]];
    wanted.extend(fcs(&sent));
    let read: Vec<u8> = (0..8).map(|_| guest.inb(0x06)).collect();
    assert_eq!(read, wanted);
    assert_eq!(guest.inb(0x06), 64, "and round again");
}

#[test]
fn fifo_is_aligned_by_the_length() {
    // 8n + 5 bytes with the sequence: the last byte and the sequence come first.
    let sent = frame(MAC, 57, 0);
    let mut guest = looped(0x02, &sent);
    let mut wanted = vec![sent[56]];
    wanted.extend(fcs(&sent));
    wanted.extend([61, 0, 0]);
    let read: Vec<u8> = (0..8).map(|_| guest.inb(0x06)).collect();
    assert_eq!(read, wanted);
}

#[test]
fn word_mode_loops_one_byte_of_each_word() {
    let sent = frame(MAC, 60, 0);
    for (dcr, offset) in [(0x43, 0), (0x41, 1)] {
        let mut guest = Guest::new(Model::Ne2000);
        guest.bring_up(0x46, 0x80);
        let mut words = vec![0xEE; 120];
        for (i, byte) in sent.iter().enumerate() {
            words[2 * i + offset] = *byte;
        }
        guest.poke(0x4000, &words);
        guest.outs(&[(0x0E, dcr), (0x0D, 0x02)]);
        guest.send(0x40, 120);
        guest.pass(2_000);
        assert_eq!(guest.inb(0x0C), 0x02, "the address matches");
        let read: Vec<u8> = (0..8).map(|_| guest.inb(0x06)).collect();
        assert_eq!(read[4..], fcs(&sent));
    }
}

#[test]
fn normal_operation_keeps_the_receiver_out_of_it() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.outb(0x0D, 0x02);
    guest.send(0x40, 60);
    guest.pass(2_000);
    assert!(guest.sent.is_empty());
    assert_eq!((guest.inb(0x0C), guest.isr()), (0, PTX));
}
