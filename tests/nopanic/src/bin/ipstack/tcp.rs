//! The TCP state machine: any calls, in any order.

use ipstack::checksum::ChecksumState;
use ipstack::pool::Pool;
use ipstack::tcp::{
    Beyond, Connection, Limits, Runs, SackBlocks, Scoreboard, SegmentIn, SeqNumber, Transmit,
    initial_sequence_number, reset_reply,
};
use ipstack::wire::TcpSegment;
use slirpkit_nopanic::{any, any_bytes, hidden, keep};

use crate::any_time;
use crate::wire::any_flags;

fn any_sequence() -> SeqNumber {
    let (a, b) = (SeqNumber(any()), SeqNumber(any()));
    keep((a.plus(any()), a.minus(any()), a.since(b), a.is_after(b), a.is_before(b)));
    a.max(b)
}

fn any_sack() -> SackBlocks {
    let blocks = [(any_sequence(), any_sequence()), (any_sequence(), any_sequence())];
    let sack: SackBlocks = hidden(&mut blocks.clone()).iter().copied().collect();
    keep(sack.is_empty());
    sack
}

fn any_segment() -> SegmentIn<'static> {
    let verify = ChecksumState::Partial;
    if let Ok(segment) = TcpSegment::parse(any_bytes(), any(), any(), verify) {
        return SegmentIn::new(&segment);
    }
    SegmentIn {
        sequence: any_sequence(),
        acknowledgment: any_sequence(),
        flags: any_flags(),
        window: any(),
        mss: any(),
        window_scale: any(),
        sack_permitted: any(),
        sack: any_sack(),
        payload: any_bytes(),
    }
}

/// Text beyond a gap, in a pool that others use, too.
pub(crate) fn runs() {
    let mut memory = [0; 8192];
    let mut pool = Pool::new(hidden(&mut memory[..]));
    let mut runs = Runs::EMPTY;
    while any() {
        match any::<u8>() {
            0 => {
                let beyond = Beyond { sequence: any_sequence(), text: any_bytes(), fin: any() };
                keep(runs.store(&mut pool, &beyond));
            }
            1 => {
                let mut next = runs.take(&mut pool, any_sequence());
                pool.release(&mut next);
            }
            2 => keep(runs.take_end(any_sequence())),
            3 => keep(runs.evict(&mut pool)),
            4 => keep(runs.release(&mut pool)),
            _ => {
                let sack = runs.sack();
                keep((runs.is_empty(), runs.blocks(), sack));
                for block in sack.iter() {
                    keep(block);
                }
                let options = sack.to_options();
                keep(SackBlocks::from_options(hidden(&mut options.clone())));
            }
        }
        hidden(&mut pool);
        hidden(&mut runs);
    }
}

pub(crate) fn connection() {
    let now = any_time();
    let iss = initial_sequence_number(now, [any(), any()], any(), any());
    let limits = Limits { mss: any(), window_scale: any(), receive_window: any(), sack: any() };
    let syn = any_segment();
    keep((syn.len(), syn.is_empty(), reset_reply(&syn)));
    let mut connection = if any() {
        Connection::accept(now, &syn, iss, &limits)
    } else {
        Connection::open(now, iss, &limits)
    };
    let mut board = Scoreboard::EMPTY;
    while any() {
        let lent = if any() { Some(&mut board) } else { None };
        step(&mut connection, lent);
        keep(board.is_empty());
        hidden(&mut connection);
        hidden(&mut board);
    }
}

fn step(connection: &mut Connection, board: Option<&mut Scoreboard>) {
    let now = any_time();
    match any::<u8>() {
        0 => keep(connection.on_segment(now, &any_segment(), board)),
        1 => keep(connection.settle(now, any())),
        2 => connection.host_connected(),
        3 => connection.host_readable(),
        4 => connection.host_failed(),
        5 if connection.is_outstanding(SeqNumber(any())) => connection.limit_mss(any()),
        6 => connection.promise(any()),
        7 => connection.owe_ack(),
        8 => keep(connection.abort()),
        9 => connection.postpone(now),
        10 => keep(connection.on_timer(now, board)),
        11 => transmit(connection, board),
        12 => connection.forgive(now),
        13 => connection.host_refused_bytes(),
        14 => connection.on_stored(any(), any()),
        15 => connection.await_host(now),
        16 => connection.await_address(now),
        _ => observe(connection),
    }
}

fn transmit(connection: &mut Connection, board: Option<&mut Scoreboard>) {
    let now = any_time();
    match connection.poll_transmit(now, board.as_deref()) {
        Transmit::Nothing => {}
        Transmit::Segment(segment) => keep(segment),
        Transmit::Data { offset, limit } => {
            keep((offset, limit));
            match any::<u8>() {
                0 => connection.host_drained(),
                1 => connection.host_ended(),
                _ => keep(connection.data_sent(now, any(), any(), any(), board)),
            }
        }
    }
}

fn observe(connection: &Connection) {
    keep((connection.state(), connection.state().is_synchronized(), connection.mss()));
    keep((connection.is_host_connected(), connection.is_half_open()));
    keep((connection.is_done_with_host(), connection.is_window_limited()));
    keep((connection.sent_up_to(), connection.guest_isn()));
    keep((connection.next_expected(), connection.has_sack(), connection.is_recovering()));
    keep((connection.is_receive_limited(), connection.stays_receive_limited()));
    keep((connection.receive_window(), connection.owes_window_update()));
    keep((connection.deadline(), connection.awaits_guest()));
}
