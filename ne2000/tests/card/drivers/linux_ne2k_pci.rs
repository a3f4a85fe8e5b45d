//! Linux `ne2k-pci`: double words on the data port, pages 40h to 80h.

use ne2000::{Model, RxOutcome};

use super::lib8390::{Lib8390, Port};
use crate::guest::{BROADCAST, Guest, MAC, PEER, PRX, PTX, RST, frame};

/// Finds the card, resets it and reads its address.
fn probe(guest: &mut Guest) -> [u8; 6] {
    assert_ne!(guest.inb(0x00), 0xFF);
    guest.outb(0x00, 0x61);
    let saved = guest.inb(0x0D);
    guest.outs(&[(0x0D, 0xFF), (0x00, 0x20)]);
    guest.inb(0x0D);
    assert_eq!(guest.inb(0x0D), 0, "the counter is cleared by the first read");
    guest.outs(&[(0x00, 0x61), (0x0D, saved), (0x00, 0x21)]);
    let port = guest.inb(0x1F);
    guest.outb(0x1F, port);
    guest.await_isr(RST);
    guest.outb(0x07, 0xFF);
    guest.outs(&[(0x00, 0x21), (0x0E, 0x49), (0x0A, 0), (0x0B, 0), (0x0F, 0), (0x07, 0xFF)]);
    guest.outs(&[(0x0C, 0x20), (0x0D, 0x02), (0x0A, 32), (0x0B, 0), (0x08, 0), (0x09, 0)]);
    guest.outb(0x00, 0x0A);
    // Thirty-two byte reads in word mode, each of which takes a word.
    let prom: Vec<u8> = (0..32).map(|_| guest.inb(0x10)).collect();
    assert_eq!(prom[14..16], [0x57; 2]);
    prom[..6].try_into().expect("six bytes")
}

fn opened(mut guest: Guest) -> Lib8390 {
    assert_eq!(probe(&mut guest), MAC);
    let mut driver = Lib8390::new(guest, Port::DoubleWords, 0x40, 0x80);
    driver.open();
    driver
}

#[test]
fn probe_finds_address_and_word_mode() {
    for model in [Model::Rtl8029As, Model::Ne2000] {
        assert_eq!(probe(&mut Guest::new(model)), MAC);
    }
}

#[test]
fn frames_of_every_length_arrive_and_leave_whole() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    for length in 60..=1514 {
        let sent = frame(MAC, length, length as u8);
        assert!(driver.guest.card.can_receive());
        driver.guest.receive(&sent);
        driver.interrupt();
        assert_eq!(driver.received.pop(), Some(sent.clone()));
        driver.xmit(&sent);
        driver.guest.pass(2_000);
        driver.interrupt();
        let left = driver.guest.sent.pop().expect("a frame");
        assert_eq!(left, sent);
    }
    assert!(driver.complaints.is_empty(), "{:?}", driver.complaints);
}

/// Eight frames an interrupt: one less than the driver serves in a call.
#[test]
fn backpressure_leaves_no_frame_behind_a_ten_frame_budget() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    for burst in 0..100 {
        for _ in 0..8 {
            assert!(driver.guest.card.can_receive());
            driver.guest.receive(&frame(MAC, 60, burst));
        }
        assert!(!driver.guest.card.can_receive());
        driver.interrupt();
        assert!(!driver.guest.irq());
        assert_eq!(driver.received.len(), 8 * (1 + usize::from(burst)));
    }
}

/// A network that offers frames after any access of the driver's: when the line is low again, the
/// ring is empty.
#[test]
fn frames_that_come_at_any_access_are_all_served() {
    for (length, pace) in [60, 400, 1514].into_iter().flat_map(|len| (0..60).map(move |n| (len, n)))
    {
        let mut driver = opened(Guest::new(Model::Rtl8029As));
        driver.guest.pace = pace;
        let frames: Vec<_> = (0..50).map(|seed| frame(MAC, length, seed)).collect();
        driver.guest.waiting.extend(frames.iter().cloned());
        while driver.received.len() < frames.len() {
            driver.guest.inb(0x00);
            driver.interrupt();
            if !driver.guest.irq() {
                let stored = driver.guest.card.stats().stored;
                assert_eq!(driver.received.len() as u64, stored, "every {pace} accesses");
            }
        }
        assert_eq!(driver.received, frames);
    }
}

#[test]
fn frame_offered_between_the_last_look_and_the_acknowledgment_is_not_admitted() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    driver.guest.receive(&frame(MAC, 60, 0));
    assert!(driver.guest.card.can_receive(), "the driver has not looked yet");
    assert_eq!(driver.guest.isr(), PRX);
    assert_eq!(driver.guest.card.receive_room(), 0, "the driver may have looked at CURR");
    driver.guest.outb(0x07, PRX);
    assert!(driver.guest.card.can_receive());
}

/// Linux until 2.6 gave up after twelve rounds and acknowledged everything, frames in the ring or
/// not. The next frame brings those before it with it, and there is room for it.
#[test]
fn frames_acknowledged_unserved_do_not_shut_the_ring_for_ever() {
    for length in [60, 1514] {
        let mut driver = opened(Guest::new(Model::Rtl8029As));
        let mut sent = 0;
        while driver.guest.card.can_receive() {
            driver.guest.receive(&frame(MAC, length, 0));
            sent += 1;
        }
        driver.guest.outb(0x07, 0x3F);
        driver.interrupt();
        assert!(driver.received.is_empty(), "too much work at interrupt");
        assert!(driver.guest.card.can_receive());
        driver.guest.receive(&frame(MAC, length, 1));
        driver.interrupt();
        assert_eq!(driver.received.len(), sent + 1);
    }
}

/// Without memory for a frame the driver gives up and acknowledges PRX all the same. The next frame
/// brings with it what was left, but not so many that the driver's budget leaves some again.
#[test]
fn frames_left_for_want_of_memory_are_served_with_the_next_one() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    while driver.guest.card.can_receive() {
        driver.guest.receive(&frame(MAC, 60, 0));
    }
    driver.guest.outb(0x07, PRX);
    driver.guest.waiting.extend((0..7).map(|seed| frame(MAC, 60, seed)));
    driver.guest.inb(0x00);
    driver.interrupt();
    while driver.guest.irq() {
        driver.interrupt();
    }
    assert_eq!((driver.received.len(), driver.guest.waiting.len()), (8 + 7, 0));
}

/// The same without asking: frames stay in the ring although the line is low.
#[test]
fn burst_beyond_the_budget_strands_frames() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    for seed in 0..20 {
        driver.guest.receive(&frame(MAC, 60, seed));
    }
    driver.interrupt();
    assert!(!driver.guest.irq());
    assert_eq!(driver.received.len(), 9, "why there is room for eight, and then for none");
}

#[test]
fn overflow_is_recovered_without_loss_of_a_stored_frame() {
    let mut driver = opened(Guest::strict(Model::Rtl8029As));
    let frames: Vec<_> = (0..20).map(|seed| frame(MAC, 1514, seed)).collect();
    let stored =
        frames.iter().filter(|sent| driver.guest.card.receive(sent) == RxOutcome::Stored).count();
    assert!((1..9).contains(&stored));
    driver.xmit(&frame(PEER, 60, 9));
    driver.interrupt();
    driver.guest.pass(2_000);
    driver.interrupt();
    assert_eq!(driver.received, frames[..stored]);
    assert_eq!(driver.guest.sent, [frame(PEER, 60, 9)]);
    driver.guest.receive(&frame(MAC, 100, 1));
    driver.interrupt();
    assert_eq!(driver.received.len(), stored + 1);
    assert!(driver.complaints.is_empty(), "{:?}", driver.complaints);
}

#[test]
fn promiscuous_takes_all_since_the_driver_opens_the_multicast_filter_too() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    let group = [0x01, 0x00, 0x5E, 1, 2, 3];
    assert_eq!(driver.guest.card.receive(&frame(PEER, 60, 0)), RxOutcome::Filtered);
    driver.set_multicast([0xFF; 8], 0x1C);
    for destination in [PEER, group, BROADCAST] {
        driver.guest.receive(&frame(destination, 60, 0));
    }
    driver.set_multicast([0; 8], 0x04);
    assert_eq!(driver.guest.card.receive(&frame(group, 60, 0)), RxOutcome::Filtered);
}

#[test]
fn full_duplex_is_set_in_page_3() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    let guest = &mut driver.guest;
    guest.outs(&[(0x00, 0xE0), (0x01, 0xC0), (0x06, 0x40), (0x01, 0x00)]);
    assert_eq!(guest.inb(0x06), 0x40);
    guest.outb(0x00, 0x20);
    guest.receive(&frame(MAC, 60, 0));
}

#[test]
fn closing_and_opening_again_starts_afresh() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    driver.guest.receive(&frame(MAC, 60, 0));
    driver.guest.outs(&[(0x00, 0x21), (0x0C, 0x20)]);
    assert_eq!(driver.guest.card.receive(&frame(MAC, 60, 0)), RxOutcome::Stopped);
    driver.open();
    driver.guest.receive(&frame(MAC, 61, 1));
    driver.interrupt();
    assert_eq!(driver.received, [frame(MAC, 61, 1)]);
}

#[test]
fn statistics_read_three_clear_counters() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    assert_eq!([0x0D, 0x0E, 0x0F].map(|port| driver.guest.inb(port)), [0; 3]);
}

#[test]
fn completion_of_a_transmission_interrupts() {
    let mut driver = opened(Guest::new(Model::Rtl8029As));
    driver.xmit(&frame(PEER, 60, 0));
    assert!(!driver.guest.irq());
    driver.guest.pass(100);
    assert!(driver.guest.irq());
    assert_eq!(driver.guest.isr(), PTX);
    driver.interrupt();
    assert!(!driver.guest.irq());
}
