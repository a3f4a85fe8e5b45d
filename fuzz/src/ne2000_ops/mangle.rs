//! Lies in a saved state.

use ne2000::{Model, ReceiveMode, RemoteDma, State, TransmitState, TransmitTiming, TxRange};

/// Writes `value`, or as much of it as there is room for, into one field of the state.
pub(super) fn mangle(state: &mut State, ram: &mut Vec<u8>, field: u8, value: u64) {
    let [byte, second, third, fourth, ..] = value.to_le_bytes();
    let word = u16::from_le_bytes([byte, second]);
    let flag = byte & 1 == 1;
    let chip = &mut state.chip;
    match field % 48 {
        0 => state.version = word,
        1 => state.mac = value.to_le_bytes()[..6].try_into().expect("six bytes"),
        2 => {
            let models = [Model::Ne1000, Model::Ne2000, Model::Ne2000EightBit, Model::Rtl8029As];
            state.model = models[usize::from(byte & 3)];
        }
        3 => ram.truncate(usize::from(word)),
        4 => state.pad_received = flag,
        5 => {
            chip.receive_mode = if flag { ReceiveMode::Strict } else { ReceiveMode::BackPressure };
        }
        6 => {
            chip.timing = if flag { TransmitTiming::Instant } else { TransmitTiming::BitTime };
        }
        7 => chip.link_up = flag,
        8 => chip.command.stopped = flag,
        9 => chip.command.started = flag,
        10 => {
            let commands =
                [RemoteDma::Idle, RemoteDma::Read, RemoteDma::Write, RemoteDma::SendPacket];
            chip.command.remote = commands[usize::from(byte & 3)];
        }
        11 => chip.command.page = byte,
        12 => chip.isr = byte,
        13 => chip.imr = byte,
        14 => chip.dcr = byte,
        15 => chip.tcr = byte,
        16 => chip.rcr = byte,
        17 => chip.tsr = byte,
        18 => chip.rsr = byte,
        19 => chip.ncr = byte,
        20 => chip.pstart = byte,
        21 => chip.pstop = byte,
        22 => chip.bnry = byte,
        23 => chip.curr = byte,
        24 => chip.overflowed = flag,
        25 => chip.burst_left = byte,
        26 => chip.par = value.to_le_bytes()[..6].try_into().expect("six bytes"),
        27 => chip.mar = value.to_le_bytes(),
        28 => chip.cntr = [byte, second, third],
        29 => chip.fifo = value.to_le_bytes(),
        30 => chip.fifo_position = byte,
        31 => chip.tpsr = byte,
        32 => chip.tbcr = word,
        33 => chip.transmitter = TransmitState::Idle,
        34 => chip.transmitter = TransmitState::Held,
        35 => {
            chip.transmitter = TransmitState::Sending {
                frame: TxRange { address: word, length: u16::from_le_bytes([third, fourth]) },
                taken: value >> 32 & 1 == 1,
                ends_at: (value >> 33 & 1 == 1).then_some(value >> 34),
                result: byte,
            };
        }
        36 => chip.clda = word,
        37 => chip.crda = word,
        38 => chip.rbcr = word,
        39 => chip.data_latch = word,
        40 => chip.local_next = byte,
        41 => chip.remote_next = byte,
        42 => chip.address_counter = word,
        43 => state.page3.mode = byte,
        44 => state.page3.config2 = byte,
        45 => state.page3.config3 = byte,
        46 => state.page3.eeprom.words[usize::from(third & 3)][usize::from(fourth & 15)] = word,
        _ => state.page3.eeprom.write_enabled = flag,
    }
}
