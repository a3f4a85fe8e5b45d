//! Where QEMU's card and ours differ on purpose: each as a script with what both answer.
//! ne2000/README.md says why.

use crate::card::{Card, Ours};
use crate::qemu::Qemu;
use crate::script::{self, NONE};
use crate::{MAC, program};

/// Declares the differences, each with its name in ne2000/README.md, QEMU's answers, ours, and the
/// script that brings them about on a card just switched on.
macro_rules! differences {
    ($($difference:ident $name:literal $qemu:expr, $ours:expr, $script:ident;)*) => {
        /// A difference on purpose.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(crate) enum Difference {
            $($difference,)*
        }

        /// All of them.
        pub(crate) const ALL: &[Difference] = &[$(Difference::$difference,)*];

        /// Their names, in the order of ne2000/README.md.
        const NAMES: &[&str] = &[$($name,)*];

        $(
            #[test]
            fn $script() {
                shows($name, &$qemu, &$ours, script::$script);
            }
        )*
    };
}

differences! {
    CommandAfterPowerOn "CR after power-on"
        [0x00], [0x21], command_after_power_on;
    CommandLatch "CR read back"
        [0x21, 0x20, 0x02, 0x2A], [0x23, 0x22, 0x22, 0x22], command_read_back;
    RstOfAStop "ISR.RST of a stop"
        [0, 0], [0, 0x80], rst_of_a_stop;
    StartWithoutSta "a command with neither STA nor STP"
        [0, 0x48], [0x80, 0x47], command_without_start_and_stop;
    Reset "what a reset resets"
        [0x0A, 0x80, 1], [0x21, 0xC0, 0], what_a_reset_resets;
    ResetByWrite "reset by a write"
        [0x22], [0x21], reset_by_a_write;
    ResetPorts "reset ports 18h to 1Eh"
        [0xFF, 0x22], [0, 0x21], reset_ports;
    DataPorts "data ports 11h to 17h"
        [0xFF, 0], [0x52, 2], data_ports;
    WideRegisters "wide accesses to registers"
        [0xFFFF, 0x54, 0x00], [0x4600, 0xAA, 0xBB], wide_accesses_to_registers;
    ZeroLengthWhileStopped "a DMA of no bytes while stopped"
        [0], [0x40], dma_of_no_bytes_while_stopped;
    ZeroLengthAbort "an abort with no bytes to go"
        [0x40], [0], abort_with_no_bytes_to_go;
    SendPacket "Send Packet"
        [0x00, 0x47], [0x47, 0x48], send_packet;
    DataWithoutCommand "data without its command"
        [2, 2], [0, 0], data_without_its_command;
    DataPastCount "data past the count"
        [0x2211, 0x4433, 0x40], [0x2211, 0x2211, 0], data_past_the_count;
    PromFiller "PROM bytes 0Ch to 1Bh"
        [0x12, 0x12, 0x34, 0x34, 0x56, 0x56, 0], [0; 7], prom_filler;
    PromWritable "writes to the PROM"
        [0xBBAA], [0x5252], writes_to_the_prom;
    PromMirror "20h to 3FFFh"
        [0xFFFF, 0xFFFF], [0x5252, 0x5252], prom_mirror;
    RamSize "8000h to FFFFh"
        [0x1234, 0xFFFF], [0x5252, 0xABCD], size_of_the_ram;
    OddAddress "odd addresses of words"
        [3], [2], odd_addresses_of_words;
    WordInByteMode "words in byte mode"
        [0x0011, 1], [0x2211, 2], words_in_byte_mode;
    DwordStep "the middle of a double word"
        [0x4433_2211, 0x80], [0x2211_2211, 0x46], middle_of_a_double_word;
    ByteOrder "DCR.BOS"
        [0x2211], [0x1122], byte_order;
    RegisterRange "pages C0h and up in ring registers"
        [0x46, 0x80, 0x46, 0x47], [0xC1, 0xFF, 0xC0, 0xFF], pages_past_the_memory;
    Identification "0Ah and 0Bh"
        [0x50, 0x43], [0xFF, 0xFF], identification;
    Clda "CLDA"
        [0, 0], [0x44, 0x47], current_local_address;
    Page2 "page 2 but PSTART and PSTOP"
        [0, 0, 0, 0], [0x04, 0x49, 0x7F, 0xFF], page_2;
    Page3 "page 3"
        [0x40, 0x40], [0, 0], page_3;
    TransmitWhileStopped "TXP while stopped"
        [NONE], [60], transmission_while_stopped;
    TransmitNothing "TBCR of 0"
        [0x02, 0], [0x02, NONE], transmission_of_nothing;
    TransmitPastMemory "transmissions that leave the RAM"
        [0x02, NONE], [0x02, 600], transmission_past_the_memory;
    LoopbackOut "transmission in loopback"
        [60, 0x01], [NONE, 0x51], transmission_in_loopback;
    LoopbackIn "reception in loopback"
        [0x48], [0x47], reception_in_loopback;
    StationAddress "which station address is heard"
        [0x47, 0x48], [0x48, 0x48], station_address;
    Promiscuous "RCR.PRO and groups"
        [0x48], [0x47], promiscuous_mode;
    Monitor "RCR.MON"
        [0x48, 0x21, 0], [0x47, 0x70, 1], monitor_mode;
    FrameCheckSequence "the stored check sequence"
        [0, 0, 0, 0], [0xAC, 0xAF, 0xF3, 0x25], stored_check_sequence;
    FullRing "when the ring is full"
        [0x4D, 0x47], [0x47, 0x48], full_ring;
    CurrOutsideTheRing "CURR outside the ring"
        [0x43], [0x42], curr_outside_the_ring;
    BnryOutsideTheRing "BNRY below the ring"
        [0x47], [0x48], bnry_below_the_ring;
    Oversize "frames of more than 1,518 bytes"
        [0x4D], [0x47], long_frames;
}

fn shows(name: &str, qemu: &[u32], ours: &[u32], script: fn(&mut dyn Card) -> Vec<u32>) {
    assert_ne!(qemu, ours, "{name}: no difference");
    assert_eq!(script(&mut Ours::new(MAC)), ours, "{name}: ours");
    if let Some(program) = program::qemu() {
        assert_eq!(script(&mut Qemu::start(&program, MAC)), qemu, "{name}: QEMU's");
    }
}

/// The first column of the table in ne2000/README.md.
#[test]
fn the_readme_lists_every_difference_and_no_other() {
    let readme = include_str!("../../../ne2000/README.md");
    let (_, section) = readme.split_once("\n## Where QEMU's card does otherwise\n").expect("it");
    let section = section.split("\n## ").next().expect("a section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let listed: Vec<&str> = rows.skip(1).filter_map(|row| row.split(" | ").next()).collect();
    assert_eq!(listed, NAMES);
}
