//! What inputs reach, and that each thing that must hold is looked at.

use core::time::Duration;

use slirp_nat::Counters;
use slirp_nat::host::Token;
use slirpkit_tests::build::{self, FIN};
use slirpkit_tests::packet::Tcp;

use super::bench::{check_counters, check_work};
use super::streams::Output;
use super::*;

const SIZES: Sizes =
    Sizes { ring_host: false, pool: Pool::Tiny(7), recoveries: 2, mtu: 1500, queue: 0 };

const OPTIONS: SynOptions = SynOptions { mss: Some(1460), window_scale: Some(2), sack: true };

const ACK: Event = guest(Segment::Ack { acked: Acked::All, blocks: Blocks::Held });

const fn guest(segment: Segment) -> Event {
    Event::Guest(0, segment)
}

const fn text(place: Place, len: u16) -> Event {
    guest(Segment::Text { place, len, fin: false })
}

const fn host(event: HostEvent) -> Event {
    Event::Host(0, event)
}

/// What has come of some events, before the silence.
fn after(sizes: Sizes, events: &[Event]) -> Bench {
    let mut bench = Bench::new(sizes);
    events.iter().for_each(|event| bench.take(event));
    bench
}

/// A connection that stands, and what happens to it.
fn established(sizes: Sizes, events: &[Event]) -> Bench {
    let open = guest(Segment::Open { anew: true, options: OPTIONS });
    let mut bench = after(sizes, &[open, Event::Batch, ACK, Event::Batch]);
    events.iter().for_each(|event| bench.take(event));
    bench
}

/// An input that reaches nothing proves nothing.
#[test]
fn events_reach_streams_both_ways_and_their_ends() {
    let mut bench = established(
        SIZES,
        &[
            text(Place::Next, 3000),
            text(Place::Beyond(49), 100),
            Event::Batch,
            text(Place::Missing, 50),
            Event::Batch,
            host(HostEvent::Send { len: 5000 }),
            ACK,
            guest(Segment::Text { place: Place::Next, len: 10, fin: true }),
            Event::Batch,
            host(HostEvent::End),
            ACK,
            Event::Batch,
        ],
    );
    let counters = bench.lab.counters();
    assert_eq!((counters.tcp_bytes_in, counters.tcp_bytes_stored), (3160, 100));
    assert_eq!((counters.tcp_bytes_out, counters.tcp_closed), (5000, 1));
    bench.fall_silent();
}

#[test]
fn a_client_is_answered() {
    let dial = Event::Host(CLIENT, HostEvent::Dial);
    let answer = Event::Guest(CLIENT, Segment::Answer { anew: true, options: OPTIONS });
    let text = Segment::Text { place: Place::Next, len: 10, fin: false };
    let text = Event::Guest(CLIENT, text);
    for ring_host in [false, true] {
        let sizes = Sizes { ring_host, ..SIZES };
        let events = [dial.clone(), answer.clone(), Event::Batch, text.clone(), Event::Batch];
        let mut bench = after(sizes, &events);
        assert_eq!((bench.lab.counters().tcp_bytes_in, bench.streams.taken()), (10, 10));
        bench.fall_silent();
    }
}

/// Which of two clients with one address a SYN asks for, nobody could tell.
#[test]
fn a_client_connects_again_only_once_it_is_gone() {
    let dial = Event::Host(CLIENT, HostEvent::Dial);
    let refuse = Event::Guest(CLIENT, Segment::Reset(0));
    let answer = Event::Guest(CLIENT, Segment::Answer { anew: true, options: OPTIONS });
    let mut bench = after(SIZES, &[dial.clone(), dial.clone(), answer, Event::Batch]);
    assert_eq!(bench.lab.counters().tcp_accepted, 1);
    [refuse, Event::Batch, dial].iter().for_each(|event| bench.take(event));
    assert_eq!((bench.lab.counters().tcp_aborted, bench.lab.counters().tcp_accepted), (1, 2));
    bench.fall_silent();
}

#[test]
fn a_guest_that_loses_a_segment_tells_what_it_holds_and_gets_the_rest() {
    let mut bench = established(
        SIZES,
        &[
            Event::Lose(0, 1),
            host(HostEvent::Send { len: 5840 }),
            ACK,
            Event::Batch,
            ACK,
            Event::Batch,
        ],
    );
    let counters = bench.lab.counters();
    assert_eq!((counters.tcp_bytes_retransmitted, bench.lab.host.consumed()), (1460, 5840));
    bench.fall_silent();
}

#[test]
fn what_a_full_host_does_not_take_is_parked() {
    let room = host(HostEvent::Room(10));
    let bench = established(SIZES, &[room, text(Place::Next, 2000), Event::Batch]);
    assert_eq!((bench.streams.taken(), bench.lab.nat.pool_blocks_in_use()), (10, 1));
}

/// A connection on which both sides have sent 1,000 bytes, and have acknowledged them.
fn busy() -> (Bench, Token) {
    let send = host(HostEvent::Send { len: 1000 });
    let mut bench = established(SIZES, &[text(Place::Next, 1000), send, ACK, Event::Batch]);
    let token = bench.lab.world().stream_to(guest::ends(0).1);
    assert_eq!((bench.streams.taken(), bench.lab.host.consumed()), (1000, 1000));
    (bench, token)
}

/// A segment for the guest with this text, which the NAT could send next on that connection.
fn forged(bench: &Bench, flags: u8, ack: u32, data: &[u8]) -> Tcp {
    let (connection, _) = bench.streams.live(0).next().expect("a connection");
    let isn = connection.guest_isn(&bench.watch).expect("a SYN");
    let (seq, ack) = (connection.isn.wrapping_add(1001), isn.wrapping_add(1001 + ack));
    let (dst, src) = guest::ends(0);
    let flags = build::ACK | flags;
    let (window, options, data) = (0xffff, vec![], data.to_vec());
    Tcp { src, dst, seq, ack, flags, window, options, data }
}

#[test]
fn what_is_right_passes() {
    let (mut bench, _) = busy();
    bench.rest();
    bench.cooperate();
    bench.fall_silent();
}

#[test]
#[should_panic(expected = "10 wrong bytes at 1000")]
fn a_wrong_byte_for_the_guest_is_noticed() {
    let (mut bench, _) = busy();
    let segment = forged(&bench, 0, 0, &[0; 10]);
    bench.streams.note(&mut bench.lab, &segment);
}

#[test]
#[should_panic(expected = "10 wrong bytes")]
fn a_wrong_byte_for_the_host_is_noticed() {
    let (mut bench, token) = busy();
    bench.lab.host.send(token, &[&[0; 10]]).expect("room");
    bench.rest();
}

#[test]
#[should_panic(expected = "1010 bytes sent of 1000")]
fn text_that_the_host_did_not_give_is_noticed() {
    let (mut bench, _) = busy();
    let segment = forged(&bench, 0, 0, &[0; 10]);
    bench.watch.on_nat_segment(&segment);
    bench.rest();
}

#[test]
#[should_panic(expected = "10 bytes are acknowledged, and nobody has them")]
fn an_ack_of_what_nobody_has_is_noticed() {
    let (mut bench, _) = busy();
    let frame = bench.guest.send(0, &Segment::Text { place: Place::Next, len: 10, fin: false });
    let packet = slirpkit_tests::Packet::parse(frame.expect("a frame"));
    bench.watch.on_guest_segment(packet.tcp().expect("a segment"));
    let segment = forged(&bench, 0, 10, &[]);
    bench.watch.on_nat_segment(&segment);
    bench.rest();
}

#[test]
#[should_panic(expected = "1001 bytes are forgotten, and the guest has 1000")]
fn bytes_that_are_forgotten_too_early_are_noticed() {
    let (mut bench, token) = busy();
    bench.take(&host(HostEvent::Send { len: 10 }));
    bench.lab.host.consume(token, 1);
    bench.rest();
}

#[test]
#[should_panic(expected = "the far end has not ended behind 1000 bytes")]
fn a_fin_that_the_host_did_not_ask_for_is_noticed() {
    let (mut bench, _) = busy();
    let segment = forged(&bench, FIN, 0, &[]);
    bench.watch.on_nat_segment(&segment);
    bench.rest();
}

#[test]
#[should_panic(expected = "the guest has not ended behind 1000 bytes")]
fn an_end_for_the_host_that_the_guest_did_not_ask_for_is_noticed() {
    let (mut bench, token) = busy();
    bench.lab.host.shutdown_write(token);
    bench.rest();
}

#[test]
#[should_panic(expected = "closed before the guest had it all")]
fn a_socket_closed_with_bytes_for_the_guest_is_noticed() {
    let (mut bench, token) = busy();
    bench.take(&host(HostEvent::Send { len: 10 }));
    bench.lab.host.close(token);
    bench.rest();
}

#[test]
#[should_panic(expected = "closed before the host had it all")]
fn a_socket_closed_with_bytes_for_the_host_is_noticed() {
    let (mut bench, token) = busy();
    for event in [host(HostEvent::Room(0)), text(Place::Next, 10), Event::Batch] {
        bench.take(&event);
    }
    bench.lab.host.close(token);
    bench.rest();
}

#[test]
#[should_panic(expected = "1 opened or accepted, 0 over and 0 open")]
fn a_connection_that_ends_and_is_not_counted_is_noticed() {
    let (mut bench, token) = busy();
    bench.lab.host.reset(token);
    let counters = bench.lab.counters();
    bench.check_flows(&counters);
}

#[test]
#[should_panic(expected = "1000 bytes came of 999")]
fn bytes_that_come_and_are_not_counted_are_noticed() {
    let (mut bench, _) = busy();
    let mut counters = bench.lab.counters();
    counters.tcp_bytes_in -= 1;
    bench.check_flows(&counters);
}

#[test]
#[should_panic(expected = "1 bytes went nowhere")]
fn bytes_that_are_counted_and_never_come_are_noticed() {
    let (mut bench, _) = busy();
    let mut counters = bench.lab.counters();
    counters.tcp_bytes_in += 1;
    bench.check_flows(&counters);
}

#[test]
#[should_panic(expected = "have stalled")]
fn a_stream_that_stalls_is_noticed() {
    let (mut bench, _) = busy();
    bench.streams.act(&mut bench.lab, 0, HostEvent::Send { len: 10 });
    assert!(bench.lab.host.next_event().is_some(), "the NAT never hears of it");
    bench.cooperate();
}

#[test]
#[should_panic(expected = "what is left")]
fn a_flow_that_stays_is_noticed() {
    busy().0.check_nothing_is_left();
}

#[test]
fn counters_that_differ_from_what_was_seen_are_noticed() {
    let wrong: [fn(&mut Counters); 5] = [
        |counters| counters.tcp_bytes_out += 1,
        |counters| counters.tcp_bytes_retransmitted += 1,
        |counters| counters.tcp_acks_out += 1,
        |counters| counters.frames_in += 1,
        |counters| counters.tcp_segments_in -= 1,
    ];
    let mut right = Counters::default();
    (right.frames_in, right.tcp_segments_in) = (2, 1);
    check_counters(&right, 0, &Output::default(), 2);
    for change in wrong {
        let mut counters = right;
        change(&mut counters);
        let check = || check_counters(&counters, 0, &Output::default(), 2);
        assert!(std::panic::catch_unwind(check).is_err(), "{counters:?}");
    }
}

#[test]
#[should_panic(expected = "visits where")]
fn work_without_end_is_noticed() {
    let mut after = Counters::default();
    after.flow_visits = 100;
    check_work(&Counters::default(), &after, Duration::ZERO);
}
