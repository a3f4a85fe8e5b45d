//! A TCP endpoint (RFC 9293) whose bytes live in somebody else's socket.
//!
//! A [`Connection`] is the guest-facing half of a translated connection. It holds sequence
//! numbers, windows and one timer, and no byte of the stream: what the guest is to be sent stays
//! in the host's socket until the guest acknowledges it, and what the guest sends is handed on in
//! the call that brought it. It is plain data, so that it can be stored in a table and copied.
//!
//! # Order of calls
//!
//! | when | call | then |
//! |---|---|---|
//! | a guest's SYN | [`Connection::accept`] | [`Connection::host_connected`] once the host is connected |
//! | a host's client | [`Connection::open`] | wait for [`Event::Established`] |
//! | a segment | [`Connection::on_segment`] | hand [`Arrival::data`] on, forget [`Arrival::acked`] bytes, store [`Arrival::beyond`] or not |
//! | what was missing before stored text has come | [`Connection::on_stored`] with that text | |
//! | after a batch of segments | [`Connection::settle`] with what could not be handed on | |
//! | the host's socket is readable | [`Connection::host_readable`] | |
//! | [`Connection::deadline`] has come | [`Connection::on_timer`] | |
//! | after each of these | [`Connection::poll_transmit`] until it answers [`Transmit::Nothing`] | |
//!
//! ```
//! use ipstack::Instant;
//! use ipstack::pool::{BLOCK_LEN, Pool};
//! use ipstack::tcp::{
//!     Connection, Event, Limits, Runs, SackBlocks, SegmentIn, SeqNumber, Transmit,
//! };
//! use ipstack::wire::tcp::TcpFlags;
//!
//! let now = Instant::ZERO;
//! // Off the wire, `SegmentIn::new` makes these of what `TcpSegment::parse` has checked.
//! let ack = |sequence, acknowledgment, payload| SegmentIn {
//!     sequence: SeqNumber(sequence),
//!     acknowledgment: SeqNumber(acknowledgment),
//!     flags: TcpFlags::ACK,
//!     window: 8000,
//!     mss: None,
//!     window_scale: None,
//!     sack_permitted: false,
//!     sack: SackBlocks::NONE,
//!     payload,
//! };
//! let sent = |connection: &mut Connection| match connection.poll_transmit(now, None) {
//!     Transmit::Segment(segment) => segment,
//!     other => panic!("{other:?}"),
//! };
//!
//! // The guest asks for a connection, and is answered once the host has made it.
//! let syn = ack(0, 0, b"");
//! let syn = SegmentIn { flags: TcpFlags::SYN, mss: Some(1460), sack_permitted: true, ..syn };
//! let limits = Limits { mss: 1460, window_scale: 0, receive_window: 65_535, sack: true };
//! let mut connection = Connection::accept(now, &syn, SeqNumber(7000), &limits);
//! assert_eq!(connection.poll_transmit(now, None), Transmit::Nothing);
//! connection.host_connected();
//! assert_eq!(sent(&mut connection).acknowledgment, SeqNumber(1));
//! let arrival = connection.on_segment(now, &ack(1, 7001, b""), None);
//! assert_eq!(arrival.event, Event::Established);
//!
//! // "hello " gets lost. What comes behind it is stored, and the guest is told so (RFC 2018).
//! let mut memory = [0; BLOCK_LEN];
//! let (mut pool, mut runs) = (Pool::new(&mut memory[..]), Runs::EMPTY);
//! let arrival = connection.on_segment(now, &ack(7, 7001, b"world"), None);
//! runs.store(&mut pool, &arrival.beyond.unwrap());
//! connection.settle(now, 0);
//! assert!(sent(&mut connection).duplicate);
//! assert!(runs.sack().iter().eq([(SeqNumber(7), SeqNumber(12))]));
//!
//! // It comes again, and both are the host's now.
//! let arrival = connection.on_segment(now, &ack(1, 7001, b"hello "), None);
//! assert_eq!(arrival.data, b"hello ");
//! let stored = runs.take(&mut pool, connection.next_expected().unwrap());
//! assert_eq!(pool.slices(&stored), [b"world"]);
//! connection.on_stored(5, false);
//! connection.settle(now, 0);
//! assert_eq!(sent(&mut connection).acknowledgment, SeqNumber(12));
//!
//! // The host has three bytes. They stay in its socket until the guest has them.
//! connection.host_readable();
//! let wanted = connection.poll_transmit(now, None);
//! assert_eq!(wanted, Transmit::Data { offset: 0, limit: 8000 });
//! let header = connection.data_sent(now, 3, true, false, None);
//! assert_eq!(header.sequence, SeqNumber(7001));
//! let arrival = connection.on_segment(now, &ack(12, 7004, b""), None);
//! assert_eq!(arrival.acked, 3);
//! ```
//!
//! # Loss
//!
//! What the guest sends beyond a gap may be kept in [`Runs`], and [`Runs::sack`] tells the guest of
//! it. What the guest tells goes to a [`Scoreboard`], by which the connection sends again what is
//! missing and nothing else (RFC 6675); without one it goes by duplicate and partial ACKs (RFC 6582).
//! Both are apart from the connection, since few connections need them at a time.
//!
//! A retransmission that gets lost, too, is found by what was sent after it and has arrived. After a
//! timeout what the guest is known to hold is passed over; the second in a row believes nothing. A
//! backed-off timeout stands until something sent once is measured (RFC 6298 5, Karn), which a SACK
//! block allows before the gap is filled.
//!
//! # Timers
//!
//! A connection has one timer at a time. A test measures each row of this table with a guest whose
//! round trip takes no time:
//!
//! | wait for | first | then | over after |
//! |---|---|---|---|
//! | the host's connect | 130 s | | at once |
//! | ACK of SYN | 1 s | doubles to 60 s | 6 retransmissions |
//! | ACK of SYN-ACK | 1 s | doubles to 60 s | 6 retransmissions |
//! | ACK of data | 200 ms | doubles to 60 s | 12 retransmissions |
//! | ACK of data, SYN or SYN-ACK having been sent again | 3 s | doubles to 60 s | 12 retransmissions |
//! | ACK of FIN (FIN-WAIT-1, CLOSING) | 200 ms | doubles to 60 s | 12 retransmissions |
//! | ACK of FIN (LAST-ACK) | 200 ms | doubles to 60 s | 12 retransmissions |
//! | a closed window, probes being answered | 200 ms | doubles to 60 s | never |
//! | a closed window, else | 200 ms | doubles to 60 s | 12 probes |
//! | a window too small to be worth using | 200 ms | | it is used |
//! | anything, all being acknowledged | 2 h | 75 s | 9 probes |
//! | the guest's FIN, all else being done (FIN-WAIT-2) | 10 min | | at once |
//! | the end of TIME-WAIT | 10 s | | at once |
//! | the host to take more of the rest, both having ended | 10 min | | at once |
//!
//! The first wait is the one of RFC 6298, between 200 ms and 60 s, wherever the guest is to answer
//! at once; TIME-WAIT, FIN-WAIT-2 and keep-alives (RFC 9293 3.8.4) count from the last segment of
//! the guest. Time without room on the link counts towards no retransmission and no probe.
//! A guest whose hardware address is not known is asked for it as often as for a better window.
//! Challenge ACKs have no timer: one in 100 ms is sent (RFC 5961 7).
//!
//! A guest that went back to an earlier state of its own, as from a snapshot, counts as one that
//! does not answer: what it misses was forgotten here once it had acknowledged it, and what it sends
//! was received long ago. It is given up in these times however much it sends.
//!
//! # What is not negotiated
//!
//! *Timestamps* (RFC 7323 3). They would cost each full segment of 1,500 bytes twelve, 0.8 % of the
//! throughput, and each flow eight bytes of state. What they are for is had without them: round
//! trips are measured once a window on segments sent once, which is enough on a link whose round
//! trip does not depend on anybody else's traffic; and PAWS (RFC 7323 5) guards against a segment
//! that is overtaken by 2^32 bytes of its own connection. At 10 Gbit/s those take 3.4 s, while a
//! link without routers holds a segment no longer than its queue does, for milliseconds. Should one
//! come later all the same, it lies outside of a window of 8 MiB with a chance of 511 in 512.
//! A SYN that offers timestamps is answered without them, and a guest that sends them all the same
//! is understood (gvisor #11536).
//!
//! *ECN* (RFC 3168). A SYN that offers it is an ordinary one. Congestion on the way to the host is
//! the host's own business, and the link to the guest pushes back instead of marking.

mod ack;
mod arrives;
mod congestion;
mod connection;
mod isn;
mod receive;
mod rtt;
mod runs;
mod sack;
mod scoreboard;
mod segment;
mod send;
mod seq;
mod timer;

#[cfg(test)]
mod tests;

pub use arrives::{Arrival, Event, Fate};
pub use connection::{Connection, Limits, MIN_MSS, State};
pub use isn::initial_sequence_number;
pub use runs::{Beyond, MAX_RUNS, Runs, Stored};
pub use sack::{MAX_SACK_BLOCKS, SackBlocks};
pub use scoreboard::Scoreboard;
pub use segment::SegmentIn;
pub use send::{SegmentOut, Transmit, reset_reply};
pub use seq::SeqNumber;
pub use timer::TimerOutcome;
