//! What the guest holds beyond a gap of what it was sent, by its SACK blocks (RFC 6675).

use super::congestion::DUPLICATE_ACK_THRESHOLD;
use super::{SackBlocks, SeqNumber};

/// Most ranges that are known of. With more the highest are forgotten, and told of again later.
const MAX_RANGES: usize = 16;

type Range = (SeqNumber, SeqNumber);

/// What the guest holds of what was sent after the first byte that it misses.
///
/// A connection works without one, as NewReno has it (RFC 6582): it may be lent one whenever the
/// guest sends SACK blocks, and may lose it at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scoreboard {
    /// Ascending and apart from each other; those beyond `count` are unused.
    ranges: [Range; MAX_RANGES],
    count: u8,
    /// What lies before was sent again in this recovery (`HighRxt`), if anything was.
    high_rxt: Option<SeqNumber>,
    /// The highest number sent when something was last sent again.
    max_when_resent: SeqNumber,
}

impl Scoreboard {
    /// Nothing is known.
    pub const EMPTY: Self = Self {
        ranges: [(SeqNumber(0), SeqNumber(0)); MAX_RANGES],
        count: 0,
        high_rxt: None,
        max_when_resent: SeqNumber(0),
    };

    /// Whether the guest is not known to hold anything beyond a gap.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes what an ACK up to `una` says while all before `max` was sent; returns whether it says
    /// of anything for the first time. Blocks of what was never sent are passed over, as are those
    /// of what is acknowledged, such as D-SACK (RFC 2883).
    pub(super) fn update(&mut self, una: SeqNumber, max: SeqNumber, sack: &SackBlocks) -> bool {
        self.forget_before(una);
        let mut news = false;
        for (start, end) in sack.iter() {
            let sent = start.is_after(una) && start.is_before(end) && !end.is_after(max);
            let known = self.iter().any(|(a, b)| !start.is_before(a) && !end.is_after(b));
            if sent && !known {
                self.insert((start, end));
                news = true;
            }
        }
        news
    }

    /// Forgets what the guest holds: it may have thrown it away (RFC 2018 8).
    pub(super) const fn clear(&mut self) {
        self.count = 0;
    }

    /// A recovery begins: nothing was sent again.
    pub(super) const fn begin(&mut self) {
        self.high_rxt = None;
    }

    /// What lies before `end` was sent again, while all before `max` had been sent.
    pub(super) fn note_resent(&mut self, end: SeqNumber, max: SeqNumber) {
        self.high_rxt = Some(self.high_rxt.map_or(end, |before| before.max(end)));
        self.max_when_resent = max;
    }

    /// Whether what begins at `una` was sent again in this recovery.
    pub(super) fn is_resent(&self, una: SeqNumber) -> bool {
        self.high_rxt.is_some_and(|high_rxt| high_rxt.is_after(una))
    }

    /// The first number from `una` on that was not sent again.
    fn not_resent(&self, una: SeqNumber) -> SeqNumber {
        self.high_rxt.map_or(una, |high_rxt| una.max(high_rxt))
    }

    /// Whether the guest holds the byte with this number.
    pub(super) fn holds(&self, number: SeqNumber) -> bool {
        self.end_of(number).is_some()
    }

    /// The end of the range that a number is in.
    pub(super) fn end_of(&self, number: SeqNumber) -> Option<SeqNumber> {
        let range = self.iter().find(|(start, end)| within(number, *start, *end));
        range.map(|(_, end)| end)
    }

    /// Where the next range after a number begins.
    pub(super) fn start_after(&self, number: SeqNumber) -> Option<SeqNumber> {
        self.iter().map(|(start, _)| start).find(|start| start.is_after(number))
    }

    /// Whether what begins at `number` counts as lost: `IsLost` (RFC 6675 4).
    pub(super) fn is_lost(&self, number: SeqNumber, mss: u32) -> bool {
        let mut above = Above::default();
        self.iter()
            .filter(|(_, end)| end.is_after(number))
            .for_each(|(start, end)| above.add(start.max(number), end));
        above.means_loss(mss)
    }

    /// Whether the guest holds enough of what was sent after something had been sent again to say
    /// that this got lost, too. It is still missing, since `una` is.
    pub(super) fn is_lost_again(&self, una: SeqNumber, mss: u32) -> bool {
        self.is_resent(una) && self.is_lost(self.max_when_resent, mss)
    }

    /// The next bytes to be sent again, those that count as lost only or `any` between ranges:
    /// `NextSeg` (RFC 6675 4), rules 1 and 3. First number, and the one after the last.
    pub(super) fn next_hole(&self, una: SeqNumber, mss: u32, any: bool) -> Option<Range> {
        let mut from = self.not_resent(una);
        if let Some(end) = self.end_of(from) {
            from = end;
        }
        let end = self.start_after(from)?;
        (any || self.is_lost(from, mss)).then_some((from, end))
    }

    /// Bytes before `nxt` that the guest holds.
    pub(super) fn held_before(&self, nxt: SeqNumber) -> u32 {
        let held = self.iter().filter(|(start, _)| start.is_before(nxt));
        held.fold(0, |sum, (start, end)| {
            let end = if end.is_after(nxt) { nxt } else { end };
            sum.saturating_add(end.since(start))
        })
    }

    /// Bytes between `una` and `nxt` that are not on their way: held, or lost and not sent again.
    /// What is left is `Pipe` (RFC 6675 4).
    pub(super) fn out_of_pipe(&self, una: SeqNumber, nxt: SeqNumber, mss: u32) -> u32 {
        let mut above = Above::default();
        let mut lost = 0_u32;
        let ranges = self.ranges.iter().take(usize::from(self.count));
        let ends = ranges.clone().rev().skip(1).map(|(_, end)| *end).chain([una]);
        for ((start, end), hole) in ranges.rev().zip(ends) {
            above.add(*start, *end);
            let hole = self.not_resent(hole);
            let until = if start.is_after(nxt) { nxt } else { *start };
            if above.means_loss(mss) && until.is_after(hole) {
                lost = lost.saturating_add(until.since(hole));
            }
        }
        self.held_before(nxt).saturating_add(lost)
    }

    fn iter(&self) -> impl Iterator<Item = Range> {
        self.ranges.iter().take(usize::from(self.count)).copied()
    }

    fn forget_before(&mut self, una: SeqNumber) {
        let known = *self;
        self.count = 0;
        known.iter().filter(|(_, end)| end.is_after(una)).for_each(|range| self.push(range));
    }

    /// Adds a range, and makes one of all that it touches.
    fn insert(&mut self, range: Range) {
        let known = *self;
        let (mut start, mut end) = range;
        let apart = |(a, b): &Range| b.is_before(range.0) || a.is_after(range.1);
        for (a, b) in known.iter().filter(|range| !apart(range)) {
            start = if a.is_before(start) { a } else { start };
            end = end.max(b);
        }
        self.count = 0;
        let others = || known.iter().filter(apart);
        others().filter(|(a, _)| a.is_before(start)).for_each(|range| self.push(range));
        self.push((start, end));
        others().filter(|(a, _)| a.is_after(start)).for_each(|range| self.push(range));
    }

    /// Adds the highest range, if there is room.
    fn push(&mut self, range: Range) {
        if let Some(place) = self.ranges.get_mut(usize::from(self.count)) {
            *place = range;
            self.count = self.count.saturating_add(1);
        }
    }
}

/// What the guest holds above some number.
#[derive(Default)]
struct Above {
    ranges: u8,
    bytes: u32,
}

impl Above {
    fn add(&mut self, start: SeqNumber, end: SeqNumber) {
        self.ranges = self.ranges.saturating_add(1);
        self.bytes = self.bytes.saturating_add(end.since(start));
    }

    fn means_loss(&self, mss: u32) -> bool {
        let segments = u32::from(DUPLICATE_ACK_THRESHOLD) - 1;
        self.ranges >= DUPLICATE_ACK_THRESHOLD || self.bytes > mss.saturating_mul(segments)
    }
}

fn within(number: SeqNumber, start: SeqNumber, end: SeqNumber) -> bool {
    !number.is_before(start) && number.is_before(end)
}
