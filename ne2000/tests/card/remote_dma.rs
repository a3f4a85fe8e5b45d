//! Remote DMA in all its widths and corners.

use ne2000::Model;

use crate::guest::{Guest, MAC, RDC, RST, frame, with_fcs};

fn words() -> Guest {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outs(&[(0x0E, 0x49), (0x00, 0x22)]);
    guest
}

#[test]
fn completion_comes_with_the_last_byte() {
    for count in [1_u16, 2, 3, 59, 256] {
        let mut guest = Guest::new(Model::Ne2000);
        guest.outb(0x00, 0x22);
        guest.remote(0x4000, count, 0x0A);
        for _ in 1..count {
            guest.inb(0x10);
            assert_eq!(guest.isr() & RDC, 0);
        }
        guest.inb(0x10);
        assert_eq!(guest.isr() & RDC, RDC);
    }
}

#[test]
fn odd_counts_in_word_mode_end_at_zero() {
    let mut guest = words();
    guest.poke(0x4000, &[1, 2, 3]);
    assert_eq!(guest.card.state().chip.rbcr, 0);
    assert_eq!(guest.peek(0x4000, 4), [1, 2, 3, 0]);
}

#[test]
fn zero_length_transfers_complete_at_once() {
    for command in [0x0A, 0x12, 0x09, 0x11] {
        let mut guest = words();
        guest.remote(0x4000, 0, command);
        assert_eq!(guest.isr() & RDC, RDC, "{command:x}");
    }
}

#[test]
fn byte_access_in_word_mode_takes_a_whole_word() {
    let mut guest = words();
    guest.poke(0x4000, &[1, 2, 3, 4]);
    guest.remote(0x4000, 4, 0x0A);
    assert_eq!([guest.inb(0x10), guest.inb(0x10)], [1, 3]);
    assert_eq!(guest.isr() & RDC, RDC);
}

#[test]
fn wide_access_in_byte_mode_is_several_byte_cycles() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.poke(0x4000, &[1, 2, 3, 4]);
    guest.remote(0x4000, 4, 0x0A);
    assert_eq!(guest.inw(0x10), 0x0201);
    assert_eq!(guest.card.state().chip.rbcr, 2);
}

#[test]
fn double_word_access_is_two_words() {
    let mut guest = Guest::new(Model::Rtl8029As);
    guest.outb(0x0E, 0x49);
    guest.remote(0x4000, 8, 0x12);
    guest.outl(0x10, 0x0403_0201);
    guest.outl(0x10, 0x0807_0605);
    assert_eq!(guest.isr() & RDC, RDC);
    assert_eq!(guest.peek(0x4000, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
    guest.remote(0x4004, 4, 0x0A);
    assert_eq!(guest.inl(0x10), 0x0807_0605);
}

/// A bus has no wide cycle at an odd address, and none across the border between two ports.
#[test]
fn accesses_at_odd_ports_are_cycles_of_a_byte() {
    let mut guest = words();
    guest.poke(0x4000, &[1, 2, 3, 4, 5, 6, 7, 8]);
    guest.remote(0x4000, 8, 0x0A);
    assert_eq!(guest.inw(0x11), 0x0301, "the low bytes of two words");
    assert_eq!(guest.inl(0x0F), 0x0706_0500, "a tally counter, a byte, a word");
    assert_eq!(guest.isr() & RDC, RDC);
    guest.inw(0x17);
    assert_eq!((guest.inb(0x00), guest.isr() & RST), (0x21, RST), "data, then reset");
}

#[test]
fn all_data_ports_are_alike() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.poke(0x4000, &[1, 2, 3, 4, 5, 6, 7, 8]);
    guest.remote(0x4000, 8, 0x0A);
    let read: Vec<u8> = (0x10..0x18).map(|port| guest.inb(port)).collect();
    assert_eq!(read, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn byte_order_of_a_68000_swaps_words() {
    let mut guest = words();
    guest.poke(0x4000, &[1, 2]);
    guest.outb(0x0E, 0x4B);
    assert_eq!(guest.peek(0x4000, 2), [2, 1]);
    guest.poke(0x4000, &[3, 4]);
    guest.outb(0x0E, 0x49);
    assert_eq!(guest.peek(0x4000, 2), [4, 3]);
}

#[test]
fn transfers_where_nothing_is_count_down_and_complete() {
    let mut guest = Guest::new(Model::Rtl8029As);
    guest.outb(0x0E, 0x49);
    guest.poke(0x2000, &[1, 2, 3, 4]);
    assert_eq!(guest.peek(0x2000, 4), [0xFF; 4]);
    guest.remote(0x2000, 2, 0x12);
    guest.outw(0x10, 0);
    assert_eq!(guest.isr() & RDC, RDC);
}

#[test]
fn reading_on_after_the_end_disturbs_nothing() {
    let mut guest = words();
    guest.poke(0x4000, &[1, 2]);
    assert_eq!(guest.peek(0x4000, 2), [1, 2]);
    let before = guest.card.state();
    assert_eq!([guest.inw(0x10), guest.inw(0x10)], [0x0201; 2]);
    assert_eq!(guest.card.state(), before);
}

#[test]
fn data_moves_only_in_the_commanded_direction() {
    let mut guest = words();
    guest.poke(0x4000, &[1, 2]);
    guest.remote(0x4000, 2, 0x0A);
    guest.outw(0x10, 0xAAAA);
    assert_eq!(guest.inw(0x10), 0x0201);
    guest.remote(0x4000, 2, 0x12);
    guest.inw(0x10);
    assert_eq!(guest.isr() & RDC, RDC, "only from the read before");
    assert_eq!(guest.card.state().chip.rbcr, 2);
    guest.outb(0x00, 0x22);
    guest.outw(0x10, 0xAAAA);
    assert_eq!(guest.peek(0x4000, 2), [1, 2]);
}

#[test]
fn abort_ends_without_completion() {
    let mut guest = words();
    guest.remote(0x4000, 8, 0x0A);
    guest.inw(0x10);
    guest.outb(0x00, 0x22);
    guest.inw(0x10);
    assert_eq!(guest.isr() & RDC, 0);
    assert_eq!(guest.card.state().chip.rbcr, 6);
}

#[test]
fn next_command_goes_on_where_the_last_one_ended() {
    let mut guest = words();
    guest.poke(0x4000, &[1, 2, 3, 4]);
    assert_eq!(guest.peek(0x4000, 2), [1, 2]);
    guest.outs(&[(0x0A, 2), (0x0B, 0), (0x00, 0x0A)]);
    assert_eq!(guest.inw(0x10), 0x0403);
}

#[test]
fn wrap_at_the_rings_end_is_for_writes_too_and_for_equality_only() {
    let mut guest = words();
    guest.outs(&[(0x01, 0x46), (0x02, 0x60)]);
    guest.poke(0x5FFE, &[1, 2, 3, 4]);
    assert_eq!(guest.peek(0x4600, 2), [3, 4]);
    guest.poke(0x6000, &[5, 6]);
    assert_eq!(guest.peek(0x6000, 2), [5, 6]);
    guest.outb(0x02, 0x00);
    assert_eq!(guest.peek(0, 2), [MAC[0]; 2]);
}

#[test]
fn send_packet_reads_the_frame_at_bnry_and_frees_it() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.outs(&[(0x00, 0x62), (0x07, 0x7F), (0x00, 0x22), (0x03, 0x7F)]);
    let sent = frame(MAC, 300, 5);
    guest.receive(&sent);
    guest.outb(0x00, 0x1A);
    assert_eq!(guest.card.state().chip.rbcr, 304);
    let words: Vec<u8> = (0..152).flat_map(|_| guest.inw(0x10).to_le_bytes()).collect();
    assert_eq!(words[4..], sent[..]);
    assert_eq!(guest.isr() & RDC, RDC);
    assert_eq!(guest.inb(0x03), 0x47, "BNRY is the next frame");
}

#[test]
fn automatic_send_packet_goes_on_to_the_next_frame() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.outs(&[(0x0E, 0x59), (0x03, 0x47)]);
    let frames = [frame(MAC, 60, 1), frame(MAC, 60, 2)];
    guest.receive(&frames[0]);
    guest.receive(&frames[1]);
    guest.outb(0x00, 0x1A);
    for sent in &frames {
        let words: Vec<u8> = (0..32).flat_map(|_| guest.inw(0x10).to_le_bytes()).collect();
        assert_eq!(words[4..], sent[..]);
        assert_eq!(guest.isr() & RDC, RDC);
        guest.outb(0x07, RDC);
    }
    assert_eq!(guest.inb(0x03), 0x49);
    let latch = guest.inw(0x10);
    assert_eq!((guest.inw(0x10), guest.isr() & RDC), (latch, 0), "the ring is empty");
}

#[test]
fn send_packet_of_an_empty_ring_completes() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.bring_up(0x46, 0x80);
    guest.outs(&[(0x03, 0x47), (0x00, 0x1A)]);
    assert_eq!((guest.isr(), guest.inb(0x03)), (RDC, 0x47));
}

#[test]
fn remote_dma_works_while_stopped() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outb(0x0E, 0x49);
    guest.remote(0x4000, 2, 0x11);
    guest.outw(0x10, 0x1234);
    guest.remote(0x4000, 2, 0x09);
    assert_eq!(guest.inw(0x10), 0x1234);
}

#[test]
fn stored_frame_is_intact_through_every_width() {
    for model in [Model::Ne1000, Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As] {
        let (start, stop) = match model {
            Model::Ne1000 => (0x26, 0x40),
            Model::Ne2000EightBit => (0x46, 0x60),
            Model::Ne2000 | Model::Rtl8029As => (0x46, 0x80),
        };
        let mut guest = Guest::new(model);
        guest.bring_up(start, stop);
        let mut page = start + 1;
        for seed in 0..60 {
            let sent = frame(MAC, 60 + usize::from(seed) * 24, seed);
            guest.receive(&sent);
            let count = sent.len() as u16 + 4;
            let read = guest.peek(u16::from_le_bytes([0, page]), count + 4);
            assert_eq!(read[4..], with_fcs(&sent), "{model:?} {seed}");
            page = read[1];
            guest.outb(0x03, if page == start { stop - 1 } else { page - 1 });
        }
    }
}
