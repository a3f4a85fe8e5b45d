//! TCP as written exchanges against virtual time, one file per behaviour.
//!
//! A segment is written `FLAGS SEQ[+LEN] [ack ACK] win WINDOW [mss MSS] [ws SHIFT] [sackok]
//! [sack START-END,...]`, with flags of
//! `SFRPUA`, sequence numbers relative to the SYN of its sender and the window as it stands in the
//! header. Text in either direction repeats [`PATTERN`], and each byte is checked.

#![expect(clippy::std_instead_of_alloc, reason = "tests have std, and no alloc is linked")]
#![expect(clippy::cast_possible_truncation, reason = "sequence numbers, and small counts")]

mod close;
mod data_in;
mod data_out;
mod handshake;
mod link;
mod loss;
mod options;
mod random;
mod reset;
mod runs;
mod sack;
mod timer_table;
mod timers;
mod window;
mod wrap;

use core::time::Duration;
use std::format;
use std::string::String;
use std::vec::Vec;

use super::*;
use crate::Instant;
use crate::wire::tcp::TcpFlags;

const PATTERN: u8 = 251;

/// Limits of a connection over Ethernet, without window scale.
const ETHERNET: Limits = Limits { mss: 1460, window_scale: 0, receive_window: 8000, sack: false };

/// A SYN of a guest without window scale, and the ACK that ends the handshake.
const SYN: &str = "S 0 win 8000 mss 1000";
const SYN_ACK: &str = "SA 0 ack 1 win 8000 mss 1460";
const ACK: &str = "A 1 ack 1 win 8000";

const FLAGS: [(char, TcpFlags); 6] = [
    ('S', TcpFlags::SYN),
    ('F', TcpFlags::FIN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('U', TcpFlags::URG),
    ('A', TcpFlags::ACK),
];

/// Byte number `position` of either stream.
fn pattern(position: usize) -> u8 {
    (position % usize::from(PATTERN)) as u8
}

/// A connection, its clock and its host.
struct Lab {
    connection: Connection,
    now: Instant,
    /// Initial sequence numbers of the guest and of the connection.
    irs: SeqNumber,
    iss: SeqNumber,
    /// Bytes the host has written, how many of them the guest acknowledged, and its end.
    host_written: usize,
    host_consumed: usize,
    host_end: bool,
    /// Bytes of the guest handed on to the host, and how many more it takes.
    host_taken: usize,
    host_room: usize,
    /// Bytes of the batch that are not handed on yet.
    batch: usize,
    /// What the last [`Lab::settle`] said of the guest's end.
    guest_end: bool,
    /// What the guest has told of by SACK, if that is kept.
    board: Option<Scoreboard>,
}

impl Lab {
    fn new(irs: u32, iss: u32, connection: Connection) -> Self {
        Self {
            connection,
            now: Instant::from_millis(1000),
            irs: SeqNumber(irs),
            iss: SeqNumber(iss),
            host_written: 0,
            host_consumed: 0,
            host_end: false,
            host_taken: 0,
            host_room: usize::MAX,
            batch: 0,
            guest_end: false,
            board: None,
        }
    }

    /// The guest has sent `syn`, and the host is not connected yet.
    fn asked(syn: &str, limits: &Limits) -> Self {
        Self::asked_with_numbers(1000, 5000, syn, limits)
    }

    fn asked_with_numbers(irs: u32, iss: u32, syn: &str, limits: &Limits) -> Self {
        let placeholder = Connection::open(Instant::ZERO, SeqNumber(iss), limits);
        let mut lab = Self::new(irs, iss, placeholder);
        let segment = lab.parse(syn, &[]);
        lab.connection = Connection::accept(lab.now, &segment, lab.iss, limits);
        lab
    }

    /// A connection established by the guest.
    fn established(syn: &str, ack: &str, limits: &Limits) -> Self {
        let mut lab = Self::asked(syn, limits);
        lab.connection.host_connected();
        assert_eq!(lab.output().len(), 1);
        assert_eq!(lab.guest(ack), (Event::Established, Fate::Taken));
        lab.expect(&[]);
        lab
    }

    /// A connection established by the guest over Ethernet, with 8,000 bytes of window both ways
    /// and segments of 1,000 bytes to the guest.
    fn ethernet() -> Self {
        Self::established(SYN, ACK, &ETHERNET)
    }

    /// A connection asked of the guest; its SYN is out.
    fn opened(limits: &Limits) -> Self {
        let iss = 5000;
        let connection = Connection::open(Instant::from_millis(1000), SeqNumber(iss), limits);
        let mut lab = Self::new(1000, iss, connection);
        assert_eq!(lab.output().len(), 1);
        lab
    }

    fn parse<'a>(&self, text: &str, payload: &'a [u8]) -> SegmentIn<'a> {
        let mut words = text.split(' ');
        let flags = words.next().unwrap().chars().fold(TcpFlags::NONE, |flags, letter| {
            flags.with(FLAGS.iter().find(|(known, _)| *known == letter).unwrap().1)
        });
        let position = words.next().unwrap();
        let (sequence, _) = split_position(position);
        let mut segment = SegmentIn {
            sequence: relative(self.irs, sequence),
            acknowledgment: SeqNumber(0),
            flags,
            window: 0,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            sack: SackBlocks::NONE,
            payload,
        };
        while let Some(name) = words.next() {
            if name == "sackok" {
                segment.sack_permitted = true;
                continue;
            }
            if name == "sack" {
                let blocks = words.next().unwrap().split(',').map(|block| {
                    let (start, end) = block.split_once('-').unwrap();
                    let number = |text: &str| relative(self.iss, text.parse().unwrap());
                    (number(start), number(end))
                });
                segment.sack = blocks.collect();
                continue;
            }
            let value: i64 = words.next().unwrap().parse().unwrap();
            match name {
                "ack" => segment.acknowledgment = relative(self.iss, value),
                "win" => segment.window = value as u16,
                "mss" => segment.mss = Some(value as u16),
                "ws" => segment.window_scale = Some(value as u8),
                _ => panic!("{name}"),
            }
        }
        segment
    }

    /// One segment of a batch: [`Lab::settle`] ends the batch.
    fn in_batch(&mut self, text: &str) -> (Event, Fate) {
        let (sequence, length) = split_position(text.split(' ').nth(1).unwrap());
        let payload: Vec<u8> = (0..length)
            .map(|i| pattern((sequence - 1 + i as i64).rem_euclid(1 << 32) as usize))
            .collect();
        let segment = self.parse(text, &payload);
        let arrival = self.connection.on_segment(self.now, &segment, self.board.as_mut());
        for (i, byte) in arrival.data.iter().enumerate() {
            assert_eq!(*byte, pattern(self.host_taken + self.batch + i));
        }
        self.batch += arrival.data.len();
        self.host_consumed += arrival.acked as usize;
        assert!(self.host_consumed <= self.host_written);
        (arrival.event, arrival.fate)
    }

    /// Ends a batch: the host takes what it has room for.
    fn settle(&mut self) {
        let taken = self.batch.min(self.host_room);
        let untaken = self.batch - taken;
        self.host_taken += taken;
        self.host_room = self.host_room.saturating_sub(taken);
        self.batch = 0;
        if self.connection.state() != State::Closed {
            self.guest_end |= self.connection.settle(self.now, untaken as u32);
        }
    }

    /// One segment as a batch.
    fn guest(&mut self, text: &str) -> (Event, Fate) {
        let result = self.in_batch(text);
        self.settle();
        result
    }

    /// The host's stream grows by `length` bytes.
    fn host_writes(&mut self, length: usize) {
        self.host_written += length;
        self.connection.host_readable();
    }

    fn host_ends(&mut self) {
        self.host_end = true;
        self.connection.host_readable();
    }

    /// The next segment that goes out, if any.
    fn next_output(&mut self) -> Option<String> {
        for _ in 0..4 {
            match self.connection.poll_transmit(self.now, self.board.as_ref()) {
                Transmit::Nothing => return None,
                Transmit::Segment(header) => return Some(self.describe(&header, 0)),
                Transmit::Data { offset, limit } => {
                    assert!(limit > 0);
                    let from = self.host_consumed + offset as usize;
                    let available = self.host_written.checked_sub(from).unwrap();
                    if available == 0 && self.host_end {
                        self.connection.host_ended();
                    } else if available == 0 {
                        self.connection.host_drained();
                    } else {
                        return Some(self.send_text(from, limit as usize, available));
                    }
                }
            }
        }
        panic!("polled for text that is not there, again and again");
    }

    fn send_text(&mut self, from: usize, limit: usize, available: usize) -> String {
        let length = available.min(limit).min(usize::from(self.connection.mss()));
        let drained = length == available;
        let end = drained && self.host_end;
        let header =
            self.connection.data_sent(self.now, length as u32, drained, end, self.board.as_mut());
        // Byte 0 of the stream has the number after the SYN.
        assert_eq!(header.sequence.since(self.iss), (from as u32).wrapping_add(1));
        self.describe(&header, length)
    }

    fn describe(&self, header: &SegmentOut, length: usize) -> String {
        let mut text: String = FLAGS
            .iter()
            .filter(|(_, flag)| header.flags.contains(*flag))
            .map(|(letter, _)| *letter)
            .collect();
        text += &format!(" {}", header.sequence.since(self.iss) as i32);
        if length > 0 {
            text += &format!("+{length}");
        }
        if header.flags.contains(TcpFlags::ACK) {
            text += &format!(" ack {}", header.acknowledgment.since(self.irs) as i32);
        }
        text += &format!(" win {}", header.window);
        text += &header.mss.map(|mss| format!(" mss {mss}")).unwrap_or_default();
        text += &header.window_scale.map(|shift| format!(" ws {shift}")).unwrap_or_default();
        text + if header.sack_permitted { " sackok" } else { "" }
    }

    /// Everything that goes out now.
    fn output(&mut self) -> Vec<String> {
        let segments: Vec<String> = core::iter::from_fn(|| self.next_output()).take(999).collect();
        assert!(segments.len() < 999, "output without end: {:?}", segments.last());
        segments
    }

    #[track_caller]
    fn expect(&mut self, segments: &[&str]) {
        assert_eq!(self.output(), segments);
    }

    /// A segment and everything that it makes go out.
    #[track_caller]
    fn exchange(&mut self, text: &str, segments: &[&str]) {
        self.guest(text);
        self.expect(segments);
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }

    /// Lets the timer run out; returns how many milliseconds that took.
    fn timeout(&mut self, outcome: TimerOutcome) -> u64 {
        let deadline = self.connection.deadline().unwrap();
        let waited = deadline.since(self.now).as_millis() as u64;
        self.now = self.now.max(deadline);
        assert_eq!(self.connection.on_timer(self.now, self.board.as_mut()), outcome);
        waited
    }

    #[track_caller]
    fn expect_state(&self, state: State) {
        assert_eq!(self.connection.state(), state);
    }
}

fn split_position(text: &str) -> (i64, usize) {
    let (sequence, length) = text.split_once('+').unwrap_or((text, "0"));
    (sequence.parse().unwrap(), length.parse().unwrap())
}

fn relative(start: SeqNumber, number: i64) -> SeqNumber {
    start.plus(number as u32)
}

#[test]
fn a_connection_is_small() {
    assert!(size_of::<Connection>() <= 128, "{}", size_of::<Connection>());
}
