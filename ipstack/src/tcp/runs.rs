//! Text beyond a gap, kept in a [`Pool`] until what is missing has come.

use super::seq::numbers_of;
use super::{SackBlocks, SeqNumber};
use crate::pool::{Parked, Pool};

/// Most runs of one connection. Text that would make one more is not stored.
pub const MAX_RUNS: usize = 8;

/// Text beyond a gap, as a segment brought it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beyond<'a> {
    /// Where it begins.
    pub sequence: SeqNumber,
    /// The text, as far as it is in the window.
    pub text: &'a [u8],
    /// The guest's stream ends behind it.
    pub fin: bool,
}

/// What became of text beyond a gap, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stored {
    /// Stored now.
    pub stored: usize,
    /// Stored before.
    pub known: usize,
    /// Left out, for want of room.
    pub refused: usize,
}

/// Text beyond a gap, of one connection: disjoint runs of bytes, of which no two touch.
///
/// The bytes are in a [`Pool`], always the same one, which is lent for each call. They are not
/// acknowledged, though the guest may be told of them (RFC 2018), and may be given up at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runs {
    /// The run that grew last comes first; those beyond `count` are unused.
    runs: [Run; MAX_RUNS],
    count: u8,
    /// Where the guest's stream ends, if a FIN said so.
    end: Option<SeqNumber>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    start: SeqNumber,
    bytes: Parked,
}

impl Run {
    const EMPTY: Self = Self { start: SeqNumber(0), bytes: Parked::EMPTY };

    #[expect(clippy::cast_possible_truncation, reason = "a queue is less than 4 GiB long")]
    const fn end(&self) -> SeqNumber {
        self.start.plus(self.bytes.len() as u32)
    }

    fn holds(&self, sequence: SeqNumber) -> bool {
        !sequence.is_before(self.start) && sequence.is_before(self.end())
    }
}

impl Runs {
    /// Nothing.
    pub const EMPTY: Self = Self { runs: [Run::EMPTY; MAX_RUNS], count: 0, end: None };

    /// Whether nothing is stored.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0 && self.end.is_none()
    }

    /// How many blocks of the pool they take.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.iter().fold(0, |sum, run| sum.saturating_add(run.bytes.blocks()))
    }

    /// What the guest is told of them, the run that grew last first (RFC 2018 4).
    #[must_use]
    pub fn sack(&self) -> SackBlocks {
        self.ranges().collect()
    }

    /// First number of each run and the one after its last, the run that grew last first.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (SeqNumber, SeqNumber)> {
        self.iter().map(|run| (run.start, run.end()))
    }

    /// Stores text, as far as there is room.
    pub fn store(&mut self, pool: &mut Pool<'_>, beyond: &Beyond<'_>) -> Stored {
        let (mut at, mut text) = (beyond.sequence, beyond.text);
        let mut result = Stored::default();
        // Ends: each turn takes something off the text.
        while !text.is_empty() {
            let known = self.known_at(at);
            let length = if known > 0 { known } else { self.missing_at(at) };
            let (piece, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
            if known > 0 {
                result.known = result.known.saturating_add(piece.len());
            } else {
                let stored = self.store_piece(pool, at, piece);
                result.stored = result.stored.saturating_add(stored);
                if stored < piece.len() {
                    result.refused = text.len().saturating_sub(stored);
                    return result;
                }
            }
            (at, text) = (at.plus(numbers_of(piece)), rest);
        }
        if beyond.fin {
            self.end = Some(at);
        }
        result
    }

    /// The bytes that follow everything before `sequence`, which are then the caller's: empty if
    /// they are still missing. Runs that lie before it are given up.
    pub fn take(&mut self, pool: &mut Pool<'_>, sequence: SeqNumber) -> Parked {
        let mut next = Parked::EMPTY;
        while let Some(first) = self.position(|run| !run.start.is_after(sequence)) {
            let mut run = self.remove(first);
            if run.holds(sequence) {
                pool.advance(&mut run.bytes, sequence.since(run.start) as usize);
                next = run.bytes;
            } else {
                pool.release(&mut run.bytes);
            }
        }
        next
    }

    /// Whether the guest's stream ends at `sequence`. Then nothing is left here.
    pub fn take_end(&mut self, sequence: SeqNumber) -> bool {
        let here = self.end == Some(sequence);
        if self.end.is_some_and(|end| !end.is_after(sequence)) {
            self.end = None;
        }
        here
    }

    /// Gives up the run that will be needed last; returns how many bytes it had.
    pub fn evict(&mut self, pool: &mut Pool<'_>) -> usize {
        self.end = None;
        let furthest = (0..usize::from(self.count))
            .zip(&self.runs)
            .reduce(|a, b| if b.1.start.is_after(a.1.start) { b } else { a });
        let Some((place, _)) = furthest else { return 0 };
        let mut run = self.remove(place);
        let bytes = run.bytes.len();
        pool.release(&mut run.bytes);
        bytes
    }

    /// Gives up everything; returns how many bytes that was.
    pub fn release(&mut self, pool: &mut Pool<'_>) -> usize {
        let mut bytes = 0_usize;
        while self.count > 0 {
            bytes = bytes.saturating_add(self.evict(pool));
        }
        self.end = None;
        bytes
    }

    fn iter(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().take(usize::from(self.count))
    }

    fn position(&self, is_it: impl Fn(&Run) -> bool) -> Option<usize> {
        self.iter().position(is_it)
    }

    /// How many bytes from `sequence` on are stored.
    fn known_at(&self, sequence: SeqNumber) -> usize {
        let run = self.iter().find(|run| run.holds(sequence));
        run.map_or(0, |run| run.end().since(sequence) as usize)
    }

    /// How many bytes from `sequence` on, which is not stored, come before the next run.
    fn missing_at(&self, sequence: SeqNumber) -> usize {
        let starts = self.iter().filter(|run| run.start.is_after(sequence));
        let next = starts.map(|run| run.start.since(sequence) as usize).min();
        next.unwrap_or(usize::MAX)
    }

    /// Stores text that is in no run and reaches into none.
    fn store_piece(&mut self, pool: &mut Pool<'_>, at: SeqNumber, text: &[u8]) -> usize {
        let known = self.position(|run| run.end() == at);
        let mut run = match known {
            Some(place) => self.remove(place),
            None if usize::from(self.count) == MAX_RUNS => return 0,
            None => Run { start: at, ..Run::EMPTY },
        };
        let stored = pool.park(&mut run.bytes, &[text], 0);
        let end = run.end();
        if let Some(next) = self.position(|next| next.start == end).filter(|_| stored > 0) {
            let mut next = self.remove(next);
            pool.join(&mut run.bytes, &mut next.bytes);
        }
        if !run.bytes.is_empty() {
            self.insert(run);
        }
        stored
    }

    /// Puts a run in front of all others, of which there are fewer than [`MAX_RUNS`].
    fn insert(&mut self, run: Run) {
        let mut carried = run;
        for place in &mut self.runs {
            core::mem::swap(place, &mut carried);
        }
        self.count = self.count.saturating_add(1);
    }

    /// Takes out the run in this place, which there is.
    fn remove(&mut self, place: usize) -> Run {
        let mut carried = Run::EMPTY;
        for run in self.runs.iter_mut().take(usize::from(self.count)).skip(place).rev() {
            core::mem::swap(run, &mut carried);
        }
        self.count = self.count.saturating_sub(1);
        carried
    }
}
