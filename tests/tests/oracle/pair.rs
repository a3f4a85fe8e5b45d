//! Both cards, in step.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use ne2000::regs::{CR, Cr, Isr, page0_read as r};
use ne2000::{ChipState, Width};

use crate::MAC;
use crate::card::{Card, Ours};
use crate::differences::Difference;
use crate::ground::Ground;
use crate::qemu::Qemu;

/// What happens to a card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Read(u8, Width),
    Write(u8, Width, u32),
    Frame(Vec<u8>),
}

/// Operations that a failure shows.
const TRAIL: usize = 40;

/// QEMU's card and ours, of which the same is asked.
pub(crate) struct Pair {
    pub(crate) ours: Ours,
    qemu: Qemu,
    ground: Ground,
    trail: VecDeque<String>,
    /// How often each difference was met.
    pub(crate) met: BTreeMap<Difference, u32>,
}

impl Pair {
    pub(crate) fn new(program: &Path) -> Self {
        Self {
            ours: Ours::new(MAC),
            qemu: Qemu::start(program, MAC),
            ground: Ground::new(),
            trail: VecDeque::new(),
            met: BTreeMap::new(),
        }
    }

    /// Does `op` to both cards, unless it leads into a difference.
    pub(crate) fn apply(&mut self, op: &Op) {
        match self.ground.leads_into(&self.ours.card, op) {
            Some(difference) => self.meet(difference),
            None => {
                self.force(op);
            }
        }
    }

    /// Does `op` to both cards wherever it leads, and asks for answers that differ by a listed
    /// difference at most. Gives what ours read.
    pub(crate) fn force(&mut self, op: &Op) -> u32 {
        let before = self.ours.card.state().chip;
        let led_into = self.ground.leads_into(&self.ours.card, op);
        let [ours, qemu] = [&mut self.ours as &mut dyn Card, &mut self.qemu].map(|card| match op {
            Op::Read(offset, width) => card.read(*offset, *width),
            Op::Write(offset, width, value) => {
                card.write(*offset, *width, *value);
                0
            }
            Op::Frame(frame) => {
                card.receive(frame);
                0
            }
        });
        self.remember(op, ours);
        let untold = self.ground.check_sequence(&before, op);
        if (ours ^ qemu) & untold != 0 {
            self.meet(Difference::FrameCheckSequence);
        }
        if ours | untold != qemu | untold {
            match known(&before, op, ours, qemu).or(led_into) {
                Some(difference) => self.meet(difference),
                None => self.fail(&format!("ours reads {ours:#x}, QEMU's {qemu:#x}")),
            }
        }
        self.compare_lines(op);
        self.ground.follow(&before, op, &self.ours.card.state().chip);
        ours
    }

    /// The interrupt line, and what has been sent.
    fn compare_lines(&mut self, op: &Op) {
        let (ours, qemu) = (self.ours.irq_level(), self.qemu.irq_level());
        if ours != qemu {
            self.fail(&format!("interrupt: ours {ours}, QEMU's {qemu}"));
        }
        if !matches!(op, Op::Write(..)) {
            return;
        }
        loop {
            let (ours, qemu) = (self.ours.sent(), self.qemu.sent());
            if ours != qemu {
                self.fail(&format!("sent: {}", first_difference(ours, qemu)));
            }
            if ours.is_none() {
                return;
            }
        }
    }

    fn meet(&mut self, difference: Difference) {
        *self.met.entry(difference).or_default() += 1;
    }

    fn remember(&mut self, op: &Op, read: u32) {
        let line = match op {
            Op::Read(offset, width) => format!("read {offset:02x} {width:?}: {read:#x}"),
            Op::Write(offset, width, value) => format!("write {offset:02x} {width:?} {value:#x}"),
            Op::Frame(frame) => format!("frame of {} bytes: {:02x?}", frame.len(), &frame[..6]),
        };
        self.trail.push_back(line);
        if self.trail.len() > TRAIL {
            self.trail.pop_front();
        }
    }

    fn fail(&self, what: &str) -> ! {
        let trail: Vec<&str> = self.trail.iter().map(String::as_str).collect();
        panic!("{what}, after\n{}\n{:?}", trail.join("\n"), self.ours.card.state().chip)
    }
}

/// Where two frames differ, either of which may be missing.
fn first_difference(ours: Option<Vec<u8>>, qemu: Option<Vec<u8>>) -> String {
    let (Some(ours), Some(qemu)) = (&ours, &qemu) else {
        let len = |frame: &Option<Vec<u8>>| frame.as_ref().map(Vec::len);
        return format!("ours {:?} bytes, QEMU's {:?}", len(&ours), len(&qemu));
    };
    let position = ours.iter().zip(qemu).position(|(ours, qemu)| ours != qemu);
    format!("ours {} bytes, QEMU's {}, other ones from {position:?} on", ours.len(), qemu.len())
}

/// The difference by which a byte of a register is not the same on both cards.
fn known(before: &ChipState, op: &Op, ours: u32, qemu: u32) -> Option<Difference> {
    let Op::Read(offset, Width::Byte) = op else { return None };
    let (page, offset) = (before.command.page, *offset);
    let is = |both, difference| if both { Some(difference) } else { None };
    match (page, offset) {
        (0, CR) if (ours, qemu) == (0x21, 0) => Some(Difference::CommandAfterPowerOn),
        (_, CR) => is(same_command(ours, qemu), Difference::CommandLatch),
        (0, r::CLDA0 | r::CLDA1) => is(qemu == 0, Difference::Clda),
        (0, r::ISR) => is(ours == qemu | u32::from(Isr::RST.bits()), Difference::RstOfAStop),
        (0, r::ID0) => is((ours, qemu) == (0xFF, 0x50), Difference::Identification),
        (0, r::ID1) => is((ours, qemu) == (0xFF, 0x43), Difference::Identification),
        (2, 0x03..=0x0F) => is(qemu == 0, Difference::Page2),
        (3, 0x05 | 0x06) => is((ours, qemu) == (0, 0x40), Difference::Page3),
        _ => None,
    }
}

/// Whether two commands are the same but for STA, which stays, and for the forms of an abort.
fn same_command(ours: u32, qemu: u32) -> bool {
    let plain = |command: u32| {
        let command = Cr::from_bits(command as u8).without(Cr::STA);
        let idle = command.any_of(Cr::NO_DMA) || !command.any_of(Cr::RD);
        if idle { command.without(Cr::RD).with(Cr::NO_DMA) } else { command }
    };
    plain(ours) == plain(qemu)
}
