//! What only the RTL8029AS has: page 3, its EEPROM, and PCI.

use ne2000::rtl8029::{PciConfig, Rtl8029As};
use ne2000::{Model, Options, Width};

use crate::guest::{Guest, MAC};

const EECS: u8 = 0x88;
const EESK: u8 = 0x04;
const EEDI: u8 = 0x02;

fn on_page3() -> Guest {
    let mut guest = Guest::new(Model::Rtl8029As);
    guest.outb(0x00, 0xE1);
    guest
}

/// Clocks `bits` bits of `value` into the EEPROM, top bit first, and returns what came out.
fn clock(guest: &mut Guest, value: u32, bits: u32) -> u32 {
    (0..bits).rev().fold(0, |out, i| {
        let data = if value >> i & 1 == 1 { EEDI } else { 0 };
        guest.outb(0x01, EECS | data);
        guest.outb(0x01, EECS | data | EESK);
        out << 1 | u32::from(guest.inb(0x01) & 1)
    })
}

/// One instruction: start bit, two bits of opcode, six of address, and `bits` of data.
fn instruction(guest: &mut Guest, opcode: u32, address: u32, data: u32, bits: u32) -> u32 {
    guest.outb(0x01, 0x80);
    clock(guest, 1 << 8 | opcode << 6 | address, 9);
    let out = clock(guest, data, bits);
    guest.outb(0x01, 0x80);
    out
}

#[test]
fn configuration_reads_as_qemus() {
    let mut guest = on_page3();
    assert_eq!([3, 5, 6].map(|port| guest.inb(port)), [0x00, 0x40, 0x40]);
    assert_eq!([14, 15].map(|port| guest.inb(port)), [0x29, 0x80]);
}

#[test]
fn configuration_is_written_in_its_mode_only() {
    let mut guest = on_page3();
    guest.outs(&[(5, 0x30), (6, 0x76)]);
    assert_eq!([5, 6].map(|port| guest.inb(port)), [0x40, 0x40]);
    guest.outs(&[(1, 0xC0), (5, 0x30), (6, 0x36), (1, 0x00)]);
    assert_eq!([1, 5, 6].map(|port| guest.inb(port)), [0x00, 0x30, 0x36]);
    guest.outb(1, 0x40);
    assert_eq!([1, 5, 6].map(|port| guest.inb(port)), [0x00, 0x40, 0x40], "loaded anew");
}

#[test]
fn other_cards_have_no_page_3() {
    let mut guest = Guest::new(Model::Ne2000);
    guest.outs(&[(0x00, 0xE1), (1, 0xC0), (6, 0x76)]);
    assert!((1..16).all(|port| guest.inb(port) == 0));
}

#[test]
fn eeprom_holds_address_and_identification() {
    let mut guest = on_page3();
    let words: Vec<u32> =
        [1, 2, 3, 0x3B, 0x3C].map(|a| instruction(&mut guest, 0b10, a, 0, 16)).to_vec();
    let [a, b, c, d, e, f] = MAC.map(u32::from);
    assert_eq!(words, [b << 8 | a, d << 8 | c, f << 8 | e, 0x8029, 0x10EC]);
}

#[test]
fn eeprom_reads_on_to_the_next_word() {
    let mut guest = on_page3();
    assert_eq!(instruction(&mut guest, 0b10, 0x3B, 0, 32), 0x8029_10EC);
}

#[test]
fn eeprom_is_written_only_when_enabled() {
    let mut guest = on_page3();
    instruction(&mut guest, 0b01, 7, 0x1234, 16);
    assert_eq!(instruction(&mut guest, 0b10, 7, 0, 16), 0xFFFF);
    instruction(&mut guest, 0b00, 0b11_0000, 0, 0);
    instruction(&mut guest, 0b01, 7, 0x1234, 16);
    assert_eq!(instruction(&mut guest, 0b10, 7, 0, 16), 0x1234);
    instruction(&mut guest, 0b11, 7, 0, 0);
    assert_eq!(instruction(&mut guest, 0b10, 7, 0, 16), 0xFFFF, "erased");
    instruction(&mut guest, 0b00, 0b01_0000, 0x5A5A, 16);
    assert_eq!(instruction(&mut guest, 0b10, 63, 0, 16), 0x5A5A, "all written");
    instruction(&mut guest, 0b00, 0b10_0000, 0, 0);
    assert_eq!(instruction(&mut guest, 0b10, 0, 0, 16), 0xFFFF, "all erased");
    instruction(&mut guest, 0b00, 0b00_0000, 0, 0);
    instruction(&mut guest, 0b01, 7, 0x1234, 16);
    assert_eq!(instruction(&mut guest, 0b10, 7, 0, 16), 0xFFFF, "disabled");
    assert_eq!(guest.card.prom()[..2], [MAC[0]; 2], "the PROM is another thing");
}

#[test]
fn eeprom_does_nothing_more_until_it_is_selected_again() {
    let mut guest = on_page3();
    instruction(&mut guest, 0b00, 0b11_0000, 0, 0);
    clock(&mut guest, 1 << 8 | 0b01 << 6 | 7, 9);
    clock(&mut guest, 0x1234, 16);
    // Another write, without a pause of the select wire.
    clock(&mut guest, 1 << 8 | 0b01 << 6 | 8, 9);
    clock(&mut guest, 0x5678, 16);
    assert_eq!(instruction(&mut guest, 0b10, 7, 0, 32), 0x1234_FFFF);
}

#[test]
fn eeprom_is_ready_when_selected_again() {
    let mut guest = on_page3();
    instruction(&mut guest, 0b10, 0, 0, 0);
    guest.outb(0x01, EECS);
    assert_eq!(guest.inb(0x01), EECS | 1);
}

#[test]
fn configuration_space_identifies_the_card() {
    let config = PciConfig::new();
    assert_eq!(config.read(0x00, Width::Dword), 0x8029_10EC);
    assert_eq!(config.read(0x06, Width::Word), 0x0200);
    assert_eq!(config.read(0x08, Width::Dword), 0x0200_0000);
    assert_eq!(config.read(0x2C, Width::Dword), 0x8029_10EC);
    assert_eq!(config.read(0x3D, Width::Byte), 1);
    assert_eq!(config.read(0x0E, Width::Byte), 0);
    assert_eq!(config.read(0xFE, Width::Dword), 0);
}

#[test]
fn address_registers_size_and_place_the_windows() {
    let mut config = PciConfig::new();
    config.write(0x10, Width::Dword, 0xFFFF_FFFF);
    assert_eq!(config.read(0x10, Width::Dword), 0xFFFF_FFE1);
    config.write(0x14, Width::Dword, 0xFFFF_FFFF);
    assert_eq!(config.read(0x14, Width::Dword), 0);
    config.write(0x30, Width::Dword, 0xFFFF_FFFF);
    assert_eq!(config.read(0x30, Width::Dword), 0xFFFF_8001);
    config.write(0x10, Width::Word, 0xC100);
    config.write(0x12, Width::Word, 0);
    assert_eq!((config.io_base(), config.rom_base()), (None, None));
    config.write(0x04, Width::Word, 0xFFFF);
    assert_eq!(config.read(0x04, Width::Word), 0x0003);
    assert_eq!((config.io_base(), config.rom_base()), (Some(0xC100), Some(0xFFFF_8000)));
    config.write(0x3C, Width::Word, 0xFF0B);
    assert_eq!(config.read(0x3C, Width::Word), 0x010B);
    assert_eq!(PciConfig::from_state(&config.state()).state(), config.state());
}

#[test]
fn function_answers_in_its_window_only() {
    let mut function = Rtl8029As::new(MAC, Options::DEFAULT);
    assert_eq!(function.io_read(0, Width::Byte), None);
    function.config_mut().write(0x10, Width::Dword, 0xC100);
    function.config_mut().write(0x04, Width::Byte, 1);
    assert_eq!(function.io_read(0xC100, Width::Byte), Some(0x21));
    assert_eq!(function.io_read(0xC10A, Width::Word), Some(0x4350));
    assert!(function.io_write(0xC11F, Width::Byte, 0));
    assert_eq!(function.io_read(0xC120, Width::Byte), None);
    assert!(!function.io_write(0xC0FF, Width::Byte, 0));
    // Moved while it runs, and switched off.
    assert!(function.io_write(0xC100, Width::Byte, 0x22));
    function.config_mut().write(0x11, Width::Byte, 0xD0);
    assert_eq!(function.io_read(0xC100, Width::Byte), None);
    assert_eq!(function.io_read(0xD000, Width::Byte), Some(0x22));
    assert_eq!(
        function.io_read(0xD01F, Width::Dword),
        Some(0xFFFF_FF00),
        "the last port is a reset"
    );
    function.config_mut().write(0x04, Width::Byte, 0);
    assert!(!function.io_write(0xD000, Width::Byte, 0x22));
    function.reset();
    assert_eq!(function.config().io_base(), None);
}

#[test]
fn the_card_in_the_slot_is_the_one_that_the_window_shows() {
    let mut function = Rtl8029As::new(MAC, Options::DEFAULT);
    function.config_mut().write(0x10, Width::Dword, 0xC100);
    function.config_mut().write(0x04, Width::Byte, 1);
    function.card_mut().write(0x00, Width::Byte, 0x22);
    assert_eq!(function.io_read(0xC100, Width::Byte), Some(0x22));
    assert!(function.io_write(0xC100, Width::Byte, 0x62));
    assert_eq!(function.card().state().chip.command.page, 1);
}
