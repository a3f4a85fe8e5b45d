//! The receive ring, the filter, and the configuration bits of reception.

use ne2000::{Model, Options, RxOutcome, WireError};

use crate::guest::{BROADCAST, Guest, MAC, OVW, PEER, PRX, RDC, RST, RXE, frame, with_fcs};

fn up() -> Guest {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest
}

fn unpadded(mut guest: Guest) -> Guest {
    guest.card.set_options(Options { pad_received: false, ..Options::DEFAULT });
    guest
}

#[test]
fn header_frame_and_check_sequence_are_stored() {
    let mut guest = up();
    let sent = frame(MAC, 100, 7);
    guest.receive(&sent);
    assert_eq!(guest.isr(), PRX);
    assert_eq!(guest.inb(0x0C), 0x01);
    assert_eq!(guest.peek(0x4700, 4), [0x01, 0x48, 104, 0]);
    assert_eq!(guest.peek(0x4704, 104), with_fcs(&sent));
    assert_eq!(guest.curr(), 0x48);
}

#[test]
fn pages_are_those_of_count_and_header() {
    for (length, pages) in [(60, 1), (248, 1), (249, 2), (504, 2), (505, 3), (1514, 6), (1518, 6)] {
        let mut guest = up();
        guest.receive(&frame(MAC, length, 0));
        assert_eq!(guest.curr(), 0x47 + pages, "{length}");
        assert_eq!(guest.peek(0x4700, 2), [0x01, 0x47 + pages]);
    }
}

#[test]
fn frame_wraps_at_the_rings_end_and_is_read_across_it() {
    let mut guest = up();
    guest.outs(&[(0x00, 0x62), (0x07, 0x7E), (0x00, 0x22), (0x03, 0x7D)]);
    let sent = frame(MAC, 1000, 3);
    guest.receive(&sent);
    assert_eq!(guest.curr(), 0x48);
    let mut wanted = vec![0x01, 0x48, 0xEC, 0x03];
    wanted.extend(with_fcs(&sent));
    assert_eq!(guest.peek(0x7E00, 1008), wanted);
}

#[test]
fn page_behind_the_frame_must_not_be_bnry() {
    for (bnry, outcome) in [(0x4D, RxOutcome::NoRoom), (0x4E, RxOutcome::Stored)] {
        let mut guest = up();
        guest.outb(0x03, bnry);
        assert_eq!(guest.card.receive(&frame(MAC, 1514, 0)), outcome);
    }
    let mut guest = up();
    guest.outb(0x03, 0x47);
    guest.receive(&frame(MAC, 1514, 0));
}

#[test]
fn boundary_outside_the_ring_never_stops_the_receiver() {
    let mut guest = up();
    guest.outb(0x03, 0);
    for seed in 0..200 {
        guest.receive(&frame(MAC, 1514, seed));
    }
}

#[test]
fn backpressure_changes_nothing_when_there_is_no_room() {
    let mut guest = up();
    guest.fill(1000, 0);
    let (state, ram) = (guest.card.state(), guest.card.ram().to_vec());
    assert_eq!(guest.card.receive(&frame(MAC, 1000, 1)), RxOutcome::NoRoom);
    assert_eq!((guest.card.state(), guest.card.ram()), (state, &ram[..]));
}

#[test]
fn room_is_a_burst_until_an_access_and_a_burst_again_once_prx_is_acknowledged() {
    let accesses: [fn(&mut Guest); 5] = [
        |guest| assert_eq!(guest.inb(0x00), 0x22),
        |guest| guest.outb(0x00, 0x22),
        |guest| assert_eq!(guest.inw(0x10), 0),
        |guest| guest.outw(0x10, 0),
        |guest| guest.outb(0x0F, 0x01),
    ];
    for access in accesses {
        let mut guest = up();
        assert_eq!(guest.card.receive_room(), 8);
        guest.receive(&frame(MAC, 60, 0));
        assert_eq!(guest.card.receive_room(), 7);
        access(&mut guest);
        assert_eq!(guest.card.receive_room(), 0);
        guest.outb(0x03, 0x47);
        assert_eq!(guest.card.receive_room(), 0);
        guest.outb(0x07, PRX);
        assert_eq!(guest.card.receive_room(), 8);
    }
}

/// Whatever IMR says: handlers mask PRX while they serve, and acknowledge it behind a last look.
#[test]
fn room_of_a_driver_that_never_acknowledges_is_there_again_when_it_keeps_looking() {
    for mask in [0x00, 0x3F] {
        let mut guest = up();
        guest.outb(0x0F, mask);
        guest.receive(&frame(MAC, 60, 0));
        for _ in 0..20 {
            assert_eq!(guest.curr(), 0x48);
        }
        assert_eq!(guest.card.receive_room(), 0, "the frame has not been fetched");
        guest.outb(0x03, 0x47);
        for _ in 0..4 {
            assert_eq!(guest.card.receive_room(), 0, "it may be about to acknowledge");
            assert_eq!(guest.curr(), 0x48);
        }
        assert_eq!(guest.card.receive_room(), 8);
        guest.receive(&frame(MAC, 60, 1));
        assert_eq!(guest.card.receive_room(), 7);
        assert_eq!(guest.curr(), 0x49);
        assert_eq!(guest.card.receive_room(), 0);
    }
}

#[test]
fn frames_left_behind_an_acknowledgment_are_told_of_by_one_more() {
    let mut guest = up();
    (0..4).for_each(|seed| guest.receive(&frame(MAC, 60, seed)));
    guest.outb(0x07, PRX);
    assert_eq!(guest.card.receive_room(), 1);
    guest.receive(&frame(MAC, 60, 4));
    assert_eq!(guest.card.receive_room(), 0);
    guest.outs(&[(0x03, 0x4B), (0x07, PRX)]);
    assert_eq!(guest.card.receive_room(), 8, "all of them have been fetched");
}

#[test]
fn room_counts_the_longest_frames_that_the_ring_takes() {
    for pages in 8..=58_u8 {
        let mut guest = Guest::new(Model::Ne2000);
        guest.bring_up(0x46, 0x46 + pages);
        // One place is kept for the frame that tells of others, unless it is the only one.
        let places = usize::from((pages - 2) / 6);
        assert_eq!(guest.card.receive_room(), (places - 1).clamp(1, 8), "{pages}");
    }
    let mut guest = up();
    guest.outb(0x03, 0x00);
    assert_eq!(guest.card.receive_room(), 8, "a boundary outside the ring stops no frame");
}

#[test]
fn can_receive_wants_room_for_the_longest_frame() {
    let mut guest = up();
    for free in 1..=10_u8 {
        // The page behind `free` more pages is BNRY.
        guest.outb(0x03, 0x47 + free + 1);
        assert_eq!(guest.card.can_receive(), free >= 6, "{free}");
        if guest.card.can_receive() {
            let _ = guest.card.clone().receive(&frame(MAC, 1518, 0));
        }
    }
}

#[test]
fn can_receive_is_true_of_a_small_ring_as_drivers_leave_it() {
    for pages in 3..12 {
        let mut guest = Guest::new(Model::Ne2000);
        guest.bring_up(0x46, 0x46 + pages);
        assert!(guest.card.can_receive(), "{pages}");
        guest.receive(&frame(MAC, 60, 0));
    }
}

#[test]
fn can_receive_is_false_while_the_receiver_is_off() {
    for (port, value) in [(0x00, 0x21), (0x0D, 0x02), (0x0D, 0x04), (0x0C, 0x24), (0x02, 0x46)] {
        let mut guest = up();
        guest.outb(port, value);
        assert!(!guest.card.can_receive(), "{port:x} {value:x}");
    }
    let strict = Guest::strict(Model::Ne2000);
    assert_eq!(strict.card.receive_room(), usize::MAX, "a cable waits for nobody");
}

#[test]
fn stopped_and_looped_receivers_take_nothing() {
    let mut guest = Guest::new(Model::Ne2000);
    assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::Stopped);
    guest.bring_up(0x46, 0x80);
    for loopback in [0x02, 0x04, 0x06] {
        guest.outb(0x0D, loopback);
        assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::Stopped);
    }
    guest.outs(&[(0x0D, 0), (0x00, 0x21)]);
    assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::Stopped);
}

#[test]
fn filter_takes_own_address_from_par_not_from_the_prom() {
    let mut guest = up();
    let other = [0x02, 1, 2, 3, 4, 5];
    assert_eq!(guest.card.receive(&frame(other, 60, 0)), RxOutcome::Filtered);
    guest.outb(0x00, 0x62);
    for (port, byte) in (1..).zip(other) {
        guest.outb(port, byte);
    }
    guest.outb(0x00, 0x22);
    guest.receive(&frame(other, 60, 0));
    assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::Filtered);
}

#[test]
fn broadcast_needs_ab_and_is_marked() {
    let mut guest = up();
    guest.receive(&frame(BROADCAST, 60, 0));
    assert_eq!(guest.inb(0x0C), 0x21);
    assert_eq!(guest.peek(0x4700, 1), [0x21]);
    guest.outb(0x0C, 0x18);
    assert_eq!(guest.card.receive(&frame(BROADCAST, 60, 0)), RxOutcome::Filtered);
}

#[test]
fn rsr_is_that_of_the_last_frame_past_the_filter() {
    let mut guest = unpadded(up());
    guest.receive(&frame(BROADCAST, 60, 0));
    for (other, outcome) in [
        (frame(PEER, 60, 0), RxOutcome::Filtered),
        (frame([1, 0, 0, 0, 0, 1], 60, 0), RxOutcome::Filtered),
        (frame(MAC, 40, 0), RxOutcome::Runt),
        (frame(MAC, 1600, 0), RxOutcome::Oversize),
    ] {
        assert_eq!(guest.card.receive(&other), outcome);
        assert_eq!(guest.inb(0x0C), 0x21, "{outcome:?}");
    }
    guest.outs(&[(0x07, 0xFF), (0x00, 0x21), (0x00, 0x22)]);
    assert_eq!(guest.inb(0x0C), 0x21, "it lasts: iPXE looks at it long after reception");
    guest.receive(&frame(MAC, 60, 0));
    assert_eq!(guest.inb(0x0C), 0x01);
}

#[test]
fn multicast_needs_am_and_its_bit_of_mar() {
    // 01:00:5E:00:00:01 has bit 31, that is MAR3 bit 7.
    let group = [0x01, 0x00, 0x5E, 0, 0, 1];
    let mut guest = up();
    guest.outb(0x0C, 0x0C);
    assert_eq!(guest.card.receive(&frame(group, 60, 0)), RxOutcome::Filtered);
    guest.outs(&[(0x00, 0x62), (0x0B, 0x80), (0x00, 0x22)]);
    guest.receive(&frame(group, 60, 0));
    guest.outb(0x0C, 0x04);
    assert_eq!(guest.card.receive(&frame(group, 60, 0)), RxOutcome::Filtered);
}

#[test]
fn promiscuous_means_physical_addresses_only() {
    let mut guest = up();
    guest.outb(0x00, 0x62);
    (8..16).for_each(|port| guest.outb(port, 0xFF));
    guest.outs(&[(0x00, 0x22), (0x0C, 0x10)]);
    guest.receive(&frame(PEER, 60, 0));
    assert_eq!(guest.card.receive(&frame(BROADCAST, 60, 0)), RxOutcome::Filtered);
    assert_eq!(guest.card.receive(&frame([1, 0, 0, 0, 0, 1], 60, 0)), RxOutcome::Filtered);
}

#[test]
fn monitor_mode_counts_and_stores_nothing() {
    let mut guest = up();
    guest.outb(0x0C, 0x24);
    assert_eq!(guest.inb(0x0C) & 0x40, 0x40, "DIS follows MON");
    assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::Monitored);
    assert_eq!(guest.card.receive(&frame(PEER, 60, 0)), RxOutcome::Filtered);
    assert_eq!((guest.inb(0x0C), guest.inb(0x0F), guest.isr()), (0x50, 1, 0));
    assert_eq!(guest.curr(), 0x47);
    guest.outb(0x0C, 0x04);
    assert_eq!(guest.inb(0x0C) & 0x40, 0);
}

#[test]
fn runts_need_ar_and_eight_bytes() {
    let mut guest = unpadded(up());
    assert_eq!(guest.card.receive(&frame(MAC, 59, 0)), RxOutcome::Runt);
    guest.outb(0x0C, 0x06);
    guest.receive(&frame(MAC, 59, 0));
    guest.receive(&frame(MAC, 6, 0));
    for length in 0..6 {
        assert_eq!(guest.card.receive(&frame(MAC, length, 0)), RxOutcome::Runt);
    }
    let chip = guest.card.state().chip;
    assert_eq!(chip.cntr, [0; 3]);
}

#[test]
fn short_frames_are_padded_unless_the_embedder_does_so() {
    let mut guest = up();
    guest.receive(&frame(MAC, 42, 9));
    assert_eq!(guest.peek(0x4702, 2), [64, 0]);
    let mut wanted = frame(MAC, 42, 9);
    wanted.resize(60, 0);
    assert_eq!(guest.peek(0x4704, 64), with_fcs(&wanted));
}

#[test]
fn oversize_frames_are_refused_at_the_card() {
    let mut guest = up();
    assert_eq!(guest.card.receive(&frame(MAC, 1519, 0)), RxOutcome::Oversize);
    guest.receive(&frame(MAC, 1518, 0));
}

#[test]
fn damaged_frames_are_counted_and_kept_only_with_sep() {
    let mut guest = up();
    let sent = frame(MAC, 60, 0);
    assert_eq!(guest.card.receive_damaged(&sent, WireError::Check), RxOutcome::Damaged);
    assert_eq!((guest.inb(0x0C), guest.inb(0x0E), guest.isr()), (0x02, 1, RXE));
    assert_eq!(guest.card.receive_damaged(&sent, WireError::Alignment), RxOutcome::Damaged);
    assert_eq!((guest.inb(0x0C), guest.inb(0x0D)), (0x06, 1));
    assert_eq!(guest.curr(), 0x47);
    guest.outs(&[(0x07, 0xFF), (0x0C, 0x05)]);
    assert_eq!(guest.card.receive_damaged(&sent, WireError::Check), RxOutcome::Stored);
    assert_eq!(guest.isr(), RXE);
    assert_eq!(guest.peek(0x4700, 4), [0x02, 0x48, 64, 0]);
    assert_ne!(guest.peek(0x4704, 64), with_fcs(&sent));
}

#[test]
fn overflow_in_strict_mode_keeps_curr_and_shuts_the_receiver() {
    let mut guest = Guest::strict(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.fill(1514, 0);
    assert_eq!(guest.isr(), PRX | OVW | RXE | RST);
    assert_eq!((guest.inb(0x0C), guest.inb(0x0F)), (0x10, 1));
    let curr = guest.curr();
    // Room alone does not help, and neither does acknowledging.
    guest.outs(&[(0x03, curr - 1), (0x07, OVW)]);
    assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::NoRoom);
    assert_eq!(guest.curr(), curr);
    guest.outb(0x00, 0x22);
    assert_eq!(guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::NoRoom);
    guest.outs(&[(0x00, 0x21), (0x00, 0x22)]);
    guest.receive(&frame(MAC, 60, 0));
    assert_eq!(guest.isr() & RST, 0);
}

/// The procedure of the datasheet, step by step, with a frame on its way out.
#[test]
fn overflow_recovery_loses_no_stored_frame_and_sends_once() {
    let mut guest = Guest::strict(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    let frames: Vec<_> = (0..).map(|seed| frame(MAC, 1514, seed)).take(16).collect();
    let stored = frames.iter().take_while(|f| guest.card.receive(f) == RxOutcome::Stored).count();
    guest.poke(0x4000, &frame(PEER, 60, 1));
    guest.send(0x40, 60);

    let txp = guest.inb(0x00) & 0x04;
    assert_eq!(txp, 0x04);
    guest.outb(0x00, 0x21);
    guest.pass(1_600);
    assert_eq!(guest.isr() & RST, RST);
    guest.outs(&[(0x0A, 0), (0x0B, 0)]);
    let resend = txp != 0 && guest.isr() & 0x0A == 0;
    guest.outs(&[(0x0D, 0x02), (0x00, 0x22)]);
    let mut page = 0x47;
    for sent in &frames[..stored] {
        let header = guest.peek(u16::from(page) << 8, 4);
        let count = u16::from_le_bytes([header[2], header[3]]);
        let whole = guest.peek(u16::from(page) << 8, count + 4);
        assert_eq!(whole[4..], with_fcs(sent));
        page = header[1];
        guest.outb(0x03, if page == 0x46 { 0x7F } else { page - 1 });
    }
    guest.outs(&[(0x07, OVW | RDC), (0x0D, 0x00)]);
    if resend {
        guest.outb(0x00, 0x26);
    }
    guest.pass(2_000);
    assert_eq!(guest.sent, [frame(PEER, 60, 1)]);
    guest.receive(&frames[0]);
}

#[test]
fn every_outcome_is_counted() {
    let mut guest = unpadded(up());
    guest.receive(&frame(MAC, 60, 0));
    let _ = guest.card.receive(&frame(PEER, 60, 0));
    let _ = guest.card.receive(&frame(MAC, 59, 0));
    let _ = guest.card.receive(&frame(MAC, 2000, 0));
    let _ = guest.card.receive_damaged(&frame(MAC, 60, 0), WireError::Check);
    guest.outb(0x0C, 0x24);
    let _ = guest.card.receive(&frame(MAC, 60, 0));
    guest.outs(&[(0x0C, 0x04), (0x02, 0x46)]);
    let _ = guest.card.receive(&frame(MAC, 60, 0));
    guest.outb(0x00, 0x21);
    let _ = guest.card.receive(&frame(MAC, 60, 0));
    guest.card.set_link(false);
    let _ = guest.card.receive(&frame(MAC, 60, 0));
    let s = guest.card.stats();
    let counts = [s.stored, s.filtered, s.runts, s.oversize, s.damaged, s.monitored, s.no_room];
    assert_eq!((counts, s.stopped, s.no_link), ([1; 7], 1, 1));
}
