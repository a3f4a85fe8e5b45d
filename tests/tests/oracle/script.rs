//! What is done to a card just switched on for each difference, and what it answers.

use ne2000::Width::{Dword, Word};
use ne2000::regs::{CR, page0_read as r, page0_write as w, page1, page2};

use crate::card::Card;
use crate::{BROADCAST, DATA, GROUP, MAC, PEER, RESET, frame};

/// The answer for a frame that was not sent.
pub(crate) const NONE: u32 = u32::MAX;

/// A running card: words, the ring of 4600h to 7FFFh, empty, and broadcasts admitted.
fn start(card: &mut dyn Card) {
    card.set(&[(CR, 0x21), (w::DCR, 0x49), (w::RBCR0, 0), (w::RBCR1, 0), (w::RCR, 0x04)]);
    card.set(&[(w::TCR, 0), (w::PSTART, 0x46), (w::PSTOP, 0x80), (w::BNRY, 0x46)]);
    card.set(&[(w::TPSR, 0x40), (w::IMR, 0), (CR, 0x61), (page1::CURR, 0x47)]);
    for (offset, byte) in (page1::PAR0..).zip(MAC) {
        card.set(&[(offset, byte)]);
    }
    card.set(&[(CR, 0x22), (w::ISR, 0xFF)]);
}

/// Commands a remote DMA of `count` bytes from `address` on.
fn dma(card: &mut dyn Card, command: u8, address: u16, count: u16) {
    let [low, high] = address.to_le_bytes();
    card.set(&[(w::RSAR0, low), (w::RSAR1, high)]);
    let [low, high] = count.to_le_bytes();
    card.set(&[(w::RBCR0, low), (w::RBCR1, high), (CR, command)]);
}

const READ: u8 = 0x0A;
const WRITE: u8 = 0x12;

fn write_word(card: &mut dyn Card, address: u16, value: u32) {
    dma(card, WRITE, address, 2);
    card.write(DATA, Word, value);
}

fn read_word(card: &mut dyn Card, address: u16) -> u32 {
    dma(card, READ, address, 2);
    card.read(DATA, Word)
}

fn curr(card: &mut dyn Card) -> u32 {
    card.set(&[(CR, 0x62)]);
    let curr = card.get(page1::CURR);
    card.set(&[(CR, 0x22)]);
    curr
}

fn set_curr(card: &mut dyn Card, curr: u8) {
    card.set(&[(CR, 0x62), (page1::CURR, curr), (CR, 0x22)]);
}

fn sent(card: &mut dyn Card) -> u32 {
    card.sent().map_or(NONE, |frame| frame.len() as u32)
}

/// Sends `length` bytes from `page` on.
fn transmit(card: &mut dyn Card, page: u8, length: u16) {
    let [low, high] = length.to_le_bytes();
    card.set(&[(w::TPSR, page), (w::TBCR0, low), (w::TBCR1, high), (CR, 0x26)]);
}

pub(crate) fn command_after_power_on(card: &mut dyn Card) -> Vec<u32> {
    vec![card.get(CR)]
}

pub(crate) fn command_read_back(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    [&[0x21][..], &[0x22, 0x20], &[0x02], &[0x2A]]
        .map(|commands| {
            commands.iter().for_each(|command| card.set(&[(CR, *command)]));
            card.get(CR)
        })
        .to_vec()
}

pub(crate) fn rst_of_a_stop(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    let running = card.get(r::ISR) & 0x80;
    card.set(&[(CR, 0x21)]);
    vec![running, card.get(r::ISR) & 0x80]
}

pub(crate) fn command_without_start_and_stop(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(CR, 0x21), (CR, 0x20)]);
    let rst = card.get(r::ISR) & 0x80;
    card.receive(&frame(BROADCAST, 60));
    card.set(&[(CR, 0x60)]);
    vec![rst, card.get(page1::CURR)]
}

pub(crate) fn what_a_reset_resets(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::IMR, 0x7F), (CR, READ)]);
    assert!(card.irq_level(), "the DMA of no bytes is complete");
    assert_eq!(card.get(RESET), 0);
    vec![card.get(CR), card.get(r::ISR), u32::from(card.irq_level())]
}

pub(crate) fn reset_by_a_write(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(RESET, 0)]);
    vec![card.get(CR)]
}

pub(crate) fn reset_ports(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    vec![card.get(0x18), card.get(CR)]
}

pub(crate) fn data_ports(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    dma(card, READ, 0, 32);
    vec![card.get(0x12), card.get(r::CRDA0)]
}

pub(crate) fn wide_accesses_to_registers(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    // At even ports, since QEMU splits the others.
    let both = card.read(r::CLDA1, Word);
    card.set(&[(CR, 0x62)]);
    card.write(page1::PAR0 + 1, Word, 0xBBAA);
    vec![both, card.get(page1::PAR0 + 1), card.get(page1::PAR0 + 2)]
}

pub(crate) fn dma_of_no_bytes_while_stopped(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(CR, 0x09)]);
    vec![card.get(r::ISR) & 0x40]
}

pub(crate) fn abort_with_no_bytes_to_go(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(CR, 0x2A)]);
    vec![card.get(r::ISR) & 0x40]
}

pub(crate) fn send_packet(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.receive(&frame(BROADCAST, 60));
    card.set(&[(w::BNRY, 0x47), (w::RSAR1, 0), (CR, 0x1A)]);
    let crda = card.get(r::CRDA1);
    // The frame with its check sequence, by words.
    (0..32).for_each(|_| {
        card.read(DATA, Word);
    });
    vec![crda, card.get(r::BNRY)]
}

pub(crate) fn data_without_its_command(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    let mut moved = |command| {
        dma(card, command, 0x4000, 4);
        card.read(DATA, Word);
        card.get(r::CRDA0)
    };
    vec![moved(0x22), moved(WRITE)]
}

pub(crate) fn data_past_the_count(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    write_word(card, 0x4000, 0x2211);
    write_word(card, 0x4002, 0x4433);
    let within = read_word(card, 0x4000);
    card.set(&[(w::ISR, 0x40)]);
    vec![within, card.read(DATA, Word), card.get(r::ISR) & 0x40]
}

pub(crate) fn prom_filler(card: &mut dyn Card) -> Vec<u32> {
    card.get(RESET);
    start(card);
    dma(card, READ, 0x0C, 32);
    (0..7).map(|_| card.get(DATA)).collect()
}

pub(crate) fn writes_to_the_prom(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    write_word(card, 0, 0xBBAA);
    vec![read_word(card, 0)]
}

pub(crate) fn prom_mirror(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    vec![read_word(card, 0x20), read_word(card, 0x2000)]
}

pub(crate) fn size_of_the_ram(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    write_word(card, 0x8000, 0x1234);
    write_word(card, 0x4000, 0xABCD);
    vec![read_word(card, 0x8000), read_word(card, 0xC000)]
}

pub(crate) fn odd_addresses_of_words(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    dma(card, READ, 0x4001, 4);
    card.read(DATA, Word);
    vec![card.get(r::CRDA0)]
}

pub(crate) fn words_in_byte_mode(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    write_word(card, 0x4000, 0x2211);
    card.set(&[(w::DCR, 0x48)]);
    vec![read_word(card, 0x4000), card.get(r::CRDA0)]
}

pub(crate) fn middle_of_a_double_word(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    write_word(card, 0x4000, 0x2211);
    write_word(card, 0x4002, 0x4433);
    dma(card, READ, 0x4000, 2);
    let value = card.read(DATA, Dword);
    dma(card, READ, 0x7FFE, 4);
    card.read(DATA, Dword);
    vec![value, card.get(r::CRDA1)]
}

pub(crate) fn byte_order(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    write_word(card, 0x4000, 0x2211);
    card.set(&[(w::DCR, 0x4B)]);
    vec![read_word(card, 0x4000)]
}

pub(crate) fn pages_past_the_memory(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::PSTART, 0xC1), (w::PSTOP, 0xFF), (w::BNRY, 0xC0)]);
    set_curr(card, 0xFF);
    let (bnry, curr) = (card.get(r::BNRY), curr(card));
    card.set(&[(CR, 0xA2)]);
    vec![card.get(page2::PSTART), card.get(page2::PSTOP), bnry, curr]
}

pub(crate) fn identification(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    vec![card.get(r::ID0), card.get(r::ID1)]
}

pub(crate) fn current_local_address(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.receive(&frame(BROADCAST, 60));
    vec![card.get(r::CLDA0), card.get(r::CLDA1)]
}

pub(crate) fn page_2(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::IMR, 0x7F), (CR, 0xA2)]);
    [page2::RCR, page2::DCR, page2::IMR, 0x08].map(|offset| card.get(offset)).to_vec()
}

pub(crate) fn page_3(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(CR, 0xE2)]);
    vec![card.get(0x05), card.get(0x06)]
}

pub(crate) fn transmission_while_stopped(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::TBCR0, 60), (w::TBCR1, 0), (CR, 0x25), (CR, 0x22)]);
    vec![sent(card)]
}

pub(crate) fn transmission_of_nothing(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    transmit(card, 0x40, 0);
    vec![card.get(r::ISR), sent(card)]
}

pub(crate) fn transmission_past_the_memory(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    transmit(card, 0xBF, 600);
    vec![card.get(r::ISR), sent(card)]
}

pub(crate) fn transmission_in_loopback(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::TCR, 0x02)]);
    transmit(card, 0x40, 60);
    vec![sent(card), card.get(r::TSR)]
}

pub(crate) fn reception_in_loopback(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::TCR, 0x02)]);
    card.receive(&frame(BROADCAST, 60));
    vec![curr(card)]
}

pub(crate) fn station_address(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(CR, 0x62)]);
    for (offset, byte) in (page1::PAR0..).zip(PEER) {
        card.set(&[(offset, byte)]);
    }
    [PEER, MAC]
        .map(|destination| {
            card.receive(&frame(destination, 60));
            curr(card)
        })
        .to_vec()
}

pub(crate) fn promiscuous_mode(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::RCR, 0x10)]);
    card.receive(&frame(GROUP, 60));
    vec![curr(card)]
}

pub(crate) fn monitor_mode(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::RCR, 0x24)]);
    card.receive(&frame(BROADCAST, 60));
    vec![curr(card), card.get(r::RSR), card.get(r::CNTR2)]
}

pub(crate) fn stored_check_sequence(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.receive(&frame(BROADCAST, 60));
    dma(card, READ, 0x4704 + 60, 4);
    let words = [card.read(DATA, Word), card.read(DATA, Word)];
    words.into_iter().flat_map(|word| [word & 0xFF, word >> 8]).collect()
}

pub(crate) fn full_ring(card: &mut dyn Card) -> Vec<u32> {
    // Six pages for a frame that takes them all, then five for one that takes one.
    [(0x4D, 1514), (0x4C, 60)]
        .map(|(bnry, length)| {
            start(card);
            card.set(&[(w::BNRY, bnry)]);
            card.receive(&frame(BROADCAST, length));
            curr(card)
        })
        .to_vec()
}

pub(crate) fn curr_outside_the_ring(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::BNRY, 0x50)]);
    set_curr(card, 0x42);
    card.receive(&frame(BROADCAST, 60));
    vec![curr(card)]
}

pub(crate) fn bnry_below_the_ring(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.set(&[(w::BNRY, 0x01)]);
    card.receive(&frame(BROADCAST, 60));
    vec![curr(card)]
}

pub(crate) fn long_frames(card: &mut dyn Card) -> Vec<u32> {
    start(card);
    card.receive(&frame(BROADCAST, 1519));
    vec![curr(card)]
}
