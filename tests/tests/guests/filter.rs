//! What the driver asks the address filter for, and what the card then takes.

use core::ops::Range;

use crate::machine::Machine;
use crate::pci::boot;

const GUEST: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
const SOMEBODY_ELSE: [u8; 6] = [0x52, 0x54, 0x00, 0x65, 0x43, 0x21];
/// The group of all addresses of IPv6 that end in 33:55:77 (RFC 4291 2.7.1, RFC 2464 7).
const GROUP: [u8; 6] = [0x33, 0x33, 0xff, 0x33, 0x55, 0x77];
const ADDRESS_OF_GROUP: &str = "fe80::33:5577/64";

const PRO: u64 = 0x10;

/// Bits of MAR, the first one being the lowest of MAR0, that `group` selects: the upper six bits of
/// its Ethernet CRC (DP8390D datasheet, section 10, multicast address registers).
fn hash(group: [u8; 6]) -> u64 {
    let mut crc = u32::MAX;
    for byte in group {
        for bit in 0..8 {
            let feedback = (crc >> 31) ^ u32::from(byte >> bit & 1);
            crc = (crc << 1) ^ (feedback * 0x04c1_1db7);
        }
    }
    u64::from(crc >> 26)
}

/// Whether the register that the overlay reports, MAR0 first, has the bit of this group.
fn selects(mar: u64, group: [u8; 6]) -> bool {
    let bit = hash(group);
    mar.to_be_bytes()[usize::try_from(bit / 8).unwrap()] >> (bit % 8) & 1 == 1
}

/// Puts a frame without meaning on the cable. Its type is that of local experiments.
fn frame_to(destination: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0; 60];
    let Range { start, end } = 0..6;
    frame[start..end].copy_from_slice(&destination);
    frame[6..12].copy_from_slice(&[0x52, 0x55, 10, 0, 2, 2]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

/// What the card makes of a frame to `destination`, which the driver must have seen if it is stored.
fn outcome(machine: &mut Machine, destination: [u8; 6]) -> String {
    let before = machine.counter("rx_packets");
    let outcome = machine.overlay().put_on_cable(&frame_to(destination));
    let seen = machine.counter("rx_packets") - before;
    assert_eq!(seen, u64::from(outcome == "Stored"), "{outcome}");
    outcome
}

/// Promiscuous mode takes frames for others, while it is on.
pub(crate) fn promiscuous(machine: &mut Machine) {
    machine.run("ip link set eth0 up");
    for _ in 0..2 {
        assert_eq!(machine.overlay().report()["register.rcr"] & PRO, 0);
        assert_eq!(outcome(machine, GUEST), "Stored");
        assert_eq!(outcome(machine, [0xff; 6]), "Stored");
        assert_eq!(outcome(machine, SOMEBODY_ELSE), "Filtered");
        machine.run("ip link set eth0 promisc on");
        assert_eq!(machine.overlay().report()["register.rcr"] & PRO, PRO);
        assert_eq!(outcome(machine, SOMEBODY_ELSE), "Stored");
        machine.run("ip link set eth0 promisc off");
    }
}

/// Frames for a group are taken from when it is joined until it is left.
pub(crate) fn group(machine: &mut Machine) {
    machine.run("ip link set eth0 up");
    for _ in 0..2 {
        assert!(!selects(machine.overlay().report()["register.mar"], GROUP));
        assert_eq!(outcome(machine, GROUP), "Filtered");
        machine.run(&format!("ip -6 addr add {ADDRESS_OF_GROUP} dev eth0"));
        assert!(selects(machine.overlay().report()["register.mar"], GROUP));
        assert_eq!(outcome(machine, GROUP), "Stored");
        machine.run(&format!("ip -6 addr del {ADDRESS_OF_GROUP} dev eth0"));
    }
}

#[test]
fn promiscuous_mode_takes_frames_for_others() {
    let Some(mut machine) = boot("filter-promiscuous") else { return };
    promiscuous(&mut machine);
}

#[test]
fn a_group_is_joined_and_left() {
    let Some(mut machine) = boot("filter-group") else { return };
    group(&mut machine);
}
