//! The common ground of both cards: what leads into no difference.

use ne2000::regs::{CR, Cr, Dcr, Rcr, Tcr, page0_write as w, page1};
use ne2000::{ChipState, Ne2000, RemoteDma, RxOutcome, Width};

use crate::differences::Difference;
use crate::pair::Op;
use crate::{DATA, MAC, RESET};

/// Where both cards have RAM.
const RAM: core::ops::Range<usize> = 0x4000..0x8000;
/// The PROM, but for its filler.
const PROM: core::ops::Range<usize> = 0x00..0x20;
const FILLER: core::ops::Range<usize> = 0x0C..0x1C;
/// The first page that QEMU refuses for BNRY and CURR, and the last that it takes for PSTART and
/// PSTOP.
const LAST_PAGE: u32 = 0xC0;
/// Free bytes without which QEMU stores no frame at all.
const QEMU_ROOM: usize = 1518;
const FCS_LEN: usize = 4;
const HEADER_LEN: usize = 4;
const LONGEST: usize = 1514;

/// What has to be known besides our card's state.
pub(crate) struct Ground {
    /// The bytes of RAM that hold a check sequence on our card, and what was there before on QEMU's.
    check_sequences: Vec<bool>,
}

impl Ground {
    pub(crate) fn new() -> Self {
        Self { check_sequences: vec![false; RAM.len()] }
    }

    /// The difference that `op` would lead into.
    pub(crate) fn leads_into(&self, card: &Ne2000, op: &Op) -> Option<Difference> {
        let chip = card.state().chip;
        match op {
            Op::Read(offset, width) | Op::Write(offset, width, _) => match (*offset, op) {
                (DATA, Op::Read(..)) => {
                    misdirected(&chip, RemoteDma::Read).or_else(|| self.data(&chip, op, *width))
                }
                (DATA, _) if chip.rbcr == 0 => None,
                (DATA, _) => {
                    misdirected(&chip, RemoteDma::Write).or_else(|| self.data(&chip, op, *width))
                }
                (0x11..=0x17, _) => Some(Difference::DataPorts),
                (0x18..RESET, _) => Some(Difference::ResetPorts),
                (RESET, Op::Read(..)) => Some(Difference::Reset),
                (RESET, _) => Some(Difference::ResetByWrite),
                _ if *width != Width::Byte => Some(Difference::WideRegisters),
                (offset, Op::Write(_, _, value)) => self.register(&chip, offset, *value),
                _ => None,
            },
            Op::Frame(frame) => reception(card, &chip, frame),
        }
    }

    /// A cycle of the data port whose command is there.
    fn data(&self, chip: &ChipState, op: &Op, width: Width) -> Option<Difference> {
        let dcr = Dcr::from_bits(chip.dcr);
        let (words, crda) = (dcr.any_of(Dcr::WTS), usize::from(chip.crda));
        if words && dcr.any_of(Dcr::BOS) {
            return Some(Difference::ByteOrder);
        }
        if crda % 2 != 0 && (words || width == Width::Dword) {
            return Some(Difference::OddAddress);
        }
        if !words && width == Width::Word {
            return Some(Difference::WordInByteMode);
        }
        let touched = crda..crda + touched(words, width);
        let stop = usize::from(chip.pstop) << 8;
        if width == Width::Dword
            && (chip.rbcr < 4 || (touched.start + 1..touched.end).contains(&stop))
        {
            return Some(Difference::DwordStep);
        }
        let write = matches!(op, Op::Write(..));
        touched.into_iter().find_map(|address| match address {
            _ if RAM.contains(&address) => None,
            _ if PROM.contains(&address) && write => Some(Difference::PromWritable),
            _ if FILLER.contains(&address) => Some(Difference::PromFiller),
            _ if PROM.contains(&address) => None,
            _ if address < RAM.start => Some(Difference::PromMirror),
            _ => Some(Difference::RamSize),
        })
    }

    /// The bits of what `op` reads that come from a check sequence on our card alone.
    pub(crate) fn check_sequence(&self, before: &ChipState, op: &Op) -> u32 {
        let Op::Read(DATA, width) = op else { return 0 };
        let crda = usize::from(before.crda);
        (0..usize::from(width.bytes()))
            .filter(|position| self.is_check_sequence(crda + position))
            .fold(0, |bits, position| bits | 0xFF << (8 * position))
    }

    fn is_check_sequence(&self, address: usize) -> bool {
        RAM.contains(&address) && self.check_sequences[address - RAM.start]
    }

    fn register(&self, chip: &ChipState, offset: u8, value: u32) -> Option<Difference> {
        let refused = match (chip.command.page, offset) {
            (_, CR) => return self.command(chip, Cr::from_bits(value as u8)),
            (0, w::RCR) if Rcr::from_bits(value as u8).any_of(Rcr::MON) => {
                return Some(Difference::Monitor);
            }
            (0, w::PSTART | w::PSTOP) => value > LAST_PAGE,
            (0, w::BNRY) | (1, page1::CURR) => value >= LAST_PAGE,
            _ => false,
        };
        if refused { Some(Difference::RegisterRange) } else { None }
    }

    fn command(&self, chip: &ChipState, cr: Cr) -> Option<Difference> {
        let stop = cr.any_of(Cr::STP);
        if !stop && !cr.any_of(Cr::STA) && chip.command.stopped {
            return Some(Difference::StartWithoutSta);
        }
        let empty = chip.rbcr == 0;
        match cr.bits() & Cr::RD.bits() {
            0x08 | 0x10 if empty && stop => return Some(Difference::ZeroLengthWhileStopped),
            0x18 => return Some(Difference::SendPacket),
            0x28 | 0x30 | 0x38 if empty && !stop => return Some(Difference::ZeroLengthAbort),
            _ => {}
        }
        if cr.any_of(Cr::TXP) { self.transmission(chip, stop) } else { None }
    }

    fn transmission(&self, chip: &ChipState, stop: bool) -> Option<Difference> {
        if stop {
            return Some(Difference::TransmitWhileStopped);
        }
        if Tcr::from_bits(chip.tcr).any_of(Tcr::LB) {
            return Some(Difference::LoopbackOut);
        }
        if chip.tbcr == 0 {
            return Some(Difference::TransmitNothing);
        }
        // QEMU takes the pages from C0h up for their aliases, which is what they are.
        let page = if chip.tpsr >= 0xC0 { chip.tpsr - 0x80 } else { chip.tpsr };
        let start = usize::from(page) << 8;
        let range = start..start + usize::from(chip.tbcr);
        if start < RAM.end && range.end > RAM.end {
            return Some(Difference::TransmitPastMemory);
        }
        if !RAM.contains(&start) {
            return Some(if start < RAM.start {
                Difference::PromMirror
            } else {
                Difference::RamSize
            });
        }
        let told = !range.into_iter().any(|address| self.is_check_sequence(address));
        if told { None } else { Some(Difference::FrameCheckSequence) }
    }

    /// What has become different, or the same again, in RAM.
    pub(crate) fn follow(&mut self, before: &ChipState, op: &Op, after: &ChipState) {
        match op {
            Op::Write(DATA, width, _)
                if before.command.remote == RemoteDma::Write && before.rbcr > 0 =>
            {
                let words = Dcr::from_bits(before.dcr).any_of(Dcr::WTS);
                let crda = usize::from(before.crda);
                (crda..crda + touched(words, *width)).for_each(|address| self.mark(address, false));
            }
            Op::Frame(frame) if before.curr != after.curr => {
                let told = HEADER_LEN + frame.len();
                let mut address = usize::from(before.curr) << 8;
                for position in 0..told + FCS_LEN {
                    self.mark(address, position >= told);
                    address += 1;
                    if address == usize::from(before.pstop) << 8 {
                        address = usize::from(before.pstart) << 8;
                    }
                }
            }
            _ => {}
        }
    }

    fn mark(&mut self, address: usize, check_sequence: bool) {
        if RAM.contains(&address) {
            self.check_sequences[address - RAM.start] = check_sequence;
        }
    }
}

/// Bytes of the card's memory that an access of the data port touches.
const fn touched(words: bool, width: Width) -> usize {
    match width {
        Width::Byte if words => 2,
        width => width.bytes() as usize,
    }
}

fn misdirected(chip: &ChipState, wanted: RemoteDma) -> Option<Difference> {
    if chip.command.remote != wanted {
        return Some(Difference::DataWithoutCommand);
    }
    (chip.rbcr == 0).then_some(Difference::DataPastCount)
}

fn reception(card: &Ne2000, chip: &ChipState, frame: &[u8]) -> Option<Difference> {
    if chip.command.stopped {
        return None;
    }
    if Tcr::from_bits(chip.tcr).any_of(Tcr::LB) {
        return Some(Difference::LoopbackIn);
    }
    if frame.len() > LONGEST {
        return Some(Difference::Oversize);
    }
    let everything = Rcr::from_bits(chip.rcr).any_of(Rcr::PRO);
    let group = frame[0] & 1 != 0;
    let outcome = card.clone().receive(frame);
    if outcome == RxOutcome::Filtered {
        return match (group, everything) {
            (true, true) => Some(Difference::Promiscuous),
            (false, false) if frame.starts_with(&MAC) => Some(Difference::StationAddress),
            _ => None,
        };
    }
    if !group && !everything && !frame.starts_with(&MAC) {
        return Some(Difference::StationAddress);
    }
    room(chip, outcome)
}

/// Whether both cards take, or refuse, a frame past the filter.
fn room(chip: &ChipState, outcome: RxOutcome) -> Option<Difference> {
    let ring = usize::from(chip.pstart) << 8..usize::from(chip.pstop) << 8;
    let (curr, bnry) = (usize::from(chip.curr) << 8, usize::from(chip.bnry) << 8);
    if ring.is_empty() {
        return None;
    }
    if ring.start < RAM.start {
        return Some(Difference::PromMirror);
    }
    if ring.end > RAM.end {
        return Some(Difference::RamSize);
    }
    if !ring.contains(&curr) {
        return Some(Difference::CurrOutsideTheRing);
    }
    if !ring.contains(&bnry) {
        return Some(Difference::BnryOutsideTheRing);
    }
    let free = if curr < bnry { bnry - curr } else { ring.len() - (curr - bnry) };
    let qemu_takes_it = free >= QEMU_ROOM;
    (qemu_takes_it != (outcome == RxOutcome::Stored)).then_some(Difference::FullRing)
}
