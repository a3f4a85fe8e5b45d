//! Anything in any order: what must hold of a connection after each of it.

use std::vec;

use proptest::prelude::*;

use super::*;

/// What can happen to a connection.
#[derive(Clone, Debug)]
enum Step {
    /// Flags, distance of the number from the expected one, and of the ACK from the first
    /// unacknowledged one, window, bytes of text.
    Segment(u16, i64, i64, u16, usize),
    /// Bytes of the batch that cannot be handed on.
    Settle(u32),
    HostConnects,
    HostWrites(u16),
    HostEnds,
    HostFails,
    Promise(u32),
    Wait(u64),
    Timer,
    Postpone,
    LimitMss(u16),
    Poll,
}

fn distance() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(0i64), 3 => -3..4i64, 2 => -70_000..70_000i64, 1 => any::<u32>().prop_map(i64::from)]
}

fn flags() -> impl Strategy<Value = u16> {
    let ack = TcpFlags::ACK.bits();
    prop_oneof![6 => Just(ack), 2 => Just(ack | TcpFlags::FIN.bits()), 1 => any::<u16>()]
}

fn step() -> impl Strategy<Value = Step> {
    let window = prop_oneof![Just(0u16), 1..100u16, any::<u16>()];
    let length = prop_oneof![3 => Just(0usize), 2 => 1..50usize, 1 => 1..3000usize];
    prop_oneof![
        12 => (flags(), distance(), distance(), window, length)
            .prop_map(|(flags, seq, ack, window, length)| Step::Segment(flags, seq, ack, window, length)),
        6 => prop_oneof![3 => Just(0u32), 1 => any::<u32>()].prop_map(Step::Settle),
        2 => Just(Step::HostConnects),
        4 => (0..5000u16).prop_map(Step::HostWrites),
        1 => Just(Step::HostEnds),
        1 => prop::bool::weighted(0.1).prop_map(|fails| if fails { Step::HostFails } else { Step::Poll }),
        3 => (0..200_000u32).prop_map(Step::Promise),
        3 => (0..10_000u64).prop_map(Step::Wait),
        4 => Just(Step::Timer),
        1 => Just(Step::Postpone),
        1 => any::<u16>().prop_map(Step::LimitMss),
        4 => Just(Step::Poll),
    ]
}

/// A lab in which segments are random, and what is owed to them is kept.
struct Chaos {
    lab: Lab,
    rcv_adv: SeqNumber,
    unsettled: bool,
}

impl Chaos {
    fn segment(&mut self, step: (u16, i64, i64, u16, usize)) {
        let (flags, sequence, acknowledgment, window, length) = step;
        let connection = &mut self.lab.connection;
        let payload = vec![7; length];
        let segment = SegmentIn {
            sequence: connection.rcv_nxt.plus(sequence as u32),
            acknowledgment: connection.snd_max.plus(acknowledgment as u32),
            flags: TcpFlags::from_bits(flags),
            window,
            mss: Some(window),
            window_scale: None,
            sack_permitted: false,
            sack: [connection.snd_una, connection.snd_nxt]
                .map(|from| (from.plus(u32::from(window)), from.plus(length as u32)))
                .into_iter()
                .collect(),
            payload: &payload,
        };
        let fresh = connection.state() == State::SynSent;
        let arrival = connection.on_segment(self.lab.now, &segment, self.lab.board.as_mut());
        self.lab.batch += arrival.data.len();
        self.lab.host_consumed += arrival.acked as usize;
        self.unsettled = true;
        if fresh {
            self.rcv_adv = connection.rcv_adv;
        }
    }

    fn settle(&mut self, untaken: u32) {
        if self.lab.connection.state() != State::Closed {
            let untaken = untaken.min(self.lab.batch as u32);
            self.lab.connection.settle(self.lab.now, untaken);
        }
        self.lab.batch = 0;
        self.unsettled = false;
    }

    fn apply(&mut self, step: &Step) {
        let now = self.lab.now;
        match *step {
            Step::Segment(flags, sequence, acknowledgment, window, length) => {
                return self.segment((flags, sequence, acknowledgment, window, length));
            }
            Step::Settle(untaken) => return self.settle(untaken),
            _ if self.unsettled => self.settle(0),
            _ => {}
        }
        let connection = &mut self.lab.connection;
        match *step {
            Step::HostConnects => connection.host_connected(),
            Step::HostWrites(length) if !self.lab.host_end => {
                self.lab.host_writes(usize::from(length));
            }
            Step::HostEnds => self.lab.host_ends(),
            Step::HostFails => connection.host_failed(),
            Step::Promise(bytes) => {
                connection.promise(bytes);
                if connection.owes_window_update() {
                    connection.owe_ack();
                }
            }
            Step::Wait(millis) => self.lab.wait(millis),
            Step::Timer => self.timer(),
            Step::Postpone => connection.postpone(now),
            Step::LimitMss(mss) => connection.limit_mss(mss),
            _ => {}
        }
        self.lab.output();
        self.waits_for_something();
    }

    fn timer(&mut self) {
        if let Some(deadline) = self.lab.connection.deadline() {
            self.lab.now = self.lab.now.max(deadline);
            if self.lab.connection.on_timer(self.lab.now, self.lab.board.as_mut())
                == TimerOutcome::GiveUp
            {
                let _ = self.lab.connection.abort();
            }
        }
    }

    fn holds(&mut self) {
        let connection = &self.lab.connection;
        let outstanding = connection.snd_max.since(connection.snd_una);
        assert!(connection.snd_nxt.since(connection.snd_una) <= outstanding, "{connection:?}");
        let ahead = connection.snd_nxt.since(connection.snd_una);
        assert!(connection.out_of_pipe <= ahead, "{connection:?}");
        let held = self.lab.host_written.checked_sub(self.lab.host_consumed).unwrap();
        if connection.state().is_synchronized() {
            assert!(connection.data_outstanding() as usize <= held, "{connection:?}");
            assert!(!connection.rcv_adv.is_before(self.rcv_adv), "{connection:?}");
            assert!(connection.receive_window() <= (u32::from(u16::MAX) << 14), "{connection:?}");
        }
        // A FIN may lie beyond the edge of a full window.
        assert!(!connection.rcv_adv.is_before(connection.rcv_nxt.minus(1)), "{connection:?}");
        self.rcv_adv = connection.rcv_adv;
        assert_eq!(connection.deadline().is_none(), connection.timer == timer::Timer::Off);
    }

    /// After all output is out.
    fn waits_for_something(&self) {
        let connection = &self.lab.connection;
        let waits = connection.snd_max != connection.snd_una || connection.is_blocked();
        if connection.state() != State::Closed && waits {
            assert!(connection.deadline().is_some(), "{connection:?}");
        }
        if connection.state().is_synchronized() {
            assert!(connection.deadline().is_some(), "{connection:?}");
            assert!(!connection.flags.ack_owed && connection.duplicates_owed == 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn invariants_hold_whatever_comes(
        steps in prop::collection::vec(step(), 1..80), kind in 0..3u8, board: bool,
        irs: u32, iss: u32, window_scale in 0..15u8, receive_window in 0..200_000u32, mss: u16,
    ) {
        let limits = Limits { mss, window_scale, receive_window, sack: false };
        let syn = if window_scale > 7 { "S 0 win 8000 mss 1000 ws 2" } else { SYN };
        let mut lab = Lab::asked_with_numbers(irs, iss, syn, &limits);
        match kind {
            0 => lab.connection = Connection::open(lab.now, SeqNumber(iss), &limits),
            1 => {}
            _ => {
                lab.connection.host_connected();
                lab.output();
                lab.guest(ACK);
            }
        }
        lab.board = board.then_some(Scoreboard::EMPTY);
        let rcv_adv = lab.connection.rcv_adv;
        let mut chaos = Chaos { lab, rcv_adv, unsettled: false };
        for step in &steps {
            chaos.apply(step);
            chaos.holds();
        }
    }
}
