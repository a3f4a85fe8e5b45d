//! Text of the guest that comes before its turn, and text that the host has no room for: both are
//! kept in the pool. What was acknowledged stays there; what lies beyond a gap is only borrowing.

use ipstack::pool::BLOCK_DATA_LEN;
use ipstack::tcp::{Beyond, SackBlocks, Scoreboard, Stored};

use super::TcpFlow;
use super::recovery::RecoveryIndex;
use crate::host::{FlowId, Host};
use crate::link::Link;
use crate::nat::{Core, Io};
use crate::stats::DropReason;

impl Core<'_> {
    /// Whether text beyond a gap can be stored at all.
    pub(super) fn stores_beyond_gaps(&self) -> bool {
        self.pool.blocks() > 0 && self.recoveries.capacity() > 0
    }

    /// Bytes of the pool that acknowledged text may take.
    pub(super) const fn pool_room(&self) -> usize {
        let borrowed = self.recoveries.blocks().saturating_mul(BLOCK_DATA_LEN);
        self.pool.room().saturating_add(borrowed)
    }

    /// Stores text beyond a gap, as far as the flow's share of the pool allows.
    pub(super) fn store_beyond<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        beyond: &Beyond<'_>,
    ) {
        let Some(tcp) = self.table.tcp(id) else { return };
        self.share.count(io.now, &mut tcp.upload_epoch);
        // If there are more flows than blocks, some of them have one.
        let share = self.share.of(self.pool.blocks()).max(1);
        let Some(index) = self.recovery_of(id) else {
            return self.stats.drop(DropReason::TcpGap);
        };
        let stored = self.store_in_share(index, id, share, beyond);
        self.stats.counters.tcp_bytes_stored += stored.stored as u64;
        if stored.refused > 0 {
            self.stats.drop(DropReason::TcpGap);
        } else if stored.known > 0 && stored.stored == 0 {
            self.stats.drop(DropReason::TcpDuplicate);
        } else if stored.known > 0 {
            self.stats.counters.tcp_segments_overlapped += 1;
        }
    }

    /// Stores text as long as the flow has less than its share; flows that have more give way.
    fn store_in_share(
        &mut self,
        index: RecoveryIndex,
        id: FlowId,
        share: usize,
        beyond: &Beyond<'_>,
    ) -> Stored {
        let mut rest = *beyond;
        let mut sum = Stored { refused: rest.text.len(), ..Stored::default() };
        // Ends: each further turn has taken a run from some flow.
        while self.recoveries.runs(index, id).is_some_and(|runs| runs.blocks() < share) {
            let pool = &mut self.pool;
            let stored = self.recoveries.change(index, id, |runs| runs.store(pool, &rest));
            let Some(stored) = stored else { break };
            sum.stored = sum.stored.saturating_add(stored.stored);
            sum.known = sum.known.saturating_add(stored.known);
            sum.refused = stored.refused;
            if stored.refused == 0 || self.pool.room() > 0 {
                break;
            }
            let Some(lost) = self.recoveries.evict(&mut self.pool, share) else { break };
            self.stats.counters.tcp_bytes_evicted += lost as u64;
            let done = rest.text.len().saturating_sub(stored.refused);
            rest.text = rest.text.get(done..).unwrap_or_default();
            rest.sequence = rest.sequence.plus(u32::try_from(done).unwrap_or(u32::MAX));
        }
        sum
    }

    /// The flow's entry in the table of recoveries, made if there is none.
    pub(super) fn recovery_of(&mut self, id: FlowId) -> Option<RecoveryIndex> {
        let index = self.tcp(id)?.recovery;
        if self.recoveries.runs(index, id).is_some() {
            return Some(index);
        }
        let (index, lost) = self.recoveries.take(&mut self.pool, id)?;
        self.stats.counters.tcp_bytes_evicted += lost as u64;
        self.tcp(id)?.recovery = index;
        Some(index)
    }

    /// What is missing may have come: what was stored behind it is in order, and parked like all
    /// else that the host has not got. Returns how many bytes that were.
    pub(super) fn take_stored(&mut self, id: FlowId) -> u32 {
        let Some(tcp) = self.table.tcp(id) else { return 0 };
        let TcpFlow { connection, parked, recovery, .. } = tcp;
        let (index, pool) = (*recovery, &mut self.pool);
        let taken = self.recoveries.change(index, id, |runs| {
            let Some(expected) = connection.next_expected() else {
                // Nothing comes behind the end, whatever the guest has said before.
                runs.release(pool);
                return 0;
            };
            let mut next = runs.take(pool, expected);
            let length = u32::try_from(next.len()).unwrap_or(u32::MAX);
            let fin = runs.take_end(expected.plus(length));
            if length > 0 || fin {
                connection.on_stored(length, fin);
            }
            self.stats.counters.tcp_bytes_in += u64::from(length);
            pool.join(parked, &mut next);
            if fin {
                // Nothing comes behind the end.
                runs.release(pool);
            }
            length
        });
        taken.unwrap_or(0)
    }

    /// A flow, and what is known of the guest's end of it, if that is kept.
    pub(super) fn tcp_and_board(
        &mut self,
        id: FlowId,
    ) -> Option<(&mut TcpFlow, Option<&mut Scoreboard>)> {
        let tcp = self.table.tcp(id)?;
        let board = self.recoveries.board(tcp.recovery, id);
        Some((tcp, board))
    }

    /// Gives the flow's entry back if nothing is missing any more, either way.
    pub(super) fn end_recovery(&mut self, id: FlowId) {
        let Some((tcp, board)) = self.tcp_and_board(id) else { return };
        let repairs = tcp.connection.is_recovering();
        let index = tcp.recovery;
        let knows = board.is_some_and(|board| repairs || !board.is_empty());
        let stores = self.recoveries.runs(index, id).is_some_and(|runs| !runs.is_empty());
        if !knows && !stores {
            self.forget_recovery(id);
        }
    }

    /// The flow is in want of nothing any more.
    pub(super) fn forget_recovery(&mut self, id: FlowId) {
        let Some(tcp) = self.table.tcp(id) else { return };
        let index = core::mem::take(&mut tcp.recovery);
        self.recoveries.give_back(&mut self.pool, index, id);
    }

    /// Parks what follows the first `taken` bytes of `text`; what is only borrowing gives way to
    /// it. Returns how many bytes were parked.
    pub(super) fn park(&mut self, id: FlowId, text: &[&[u8]], taken: usize) -> usize {
        let total = super::tcp::total_len(text);
        let mut done = taken;
        while let Some(tcp) = self.table.tcp(id) {
            done = done.saturating_add(self.pool.park(&mut tcp.parked, text, done));
            if done >= total {
                break;
            }
            let Some(lost) = self.recoveries.evict(&mut self.pool, 0) else { break };
            self.stats.counters.tcp_bytes_evicted += lost as u64;
        }
        let parked = done.saturating_sub(taken);
        self.stats.counters.bytes_parked += parked as u64;
        parked
    }

    /// What an ACK to the guest says of text stored beyond a gap.
    pub(super) fn sack(&mut self, id: FlowId) -> SackBlocks {
        let Some(tcp) = self.tcp(id).filter(|tcp| tcp.connection.has_sack()) else {
            return SackBlocks::NONE;
        };
        let index = tcp.recovery;
        self.recoveries.runs(index, id).map_or(SackBlocks::NONE, |runs| runs.sack())
    }
}
