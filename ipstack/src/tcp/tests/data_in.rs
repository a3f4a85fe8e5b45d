//! Text from the guest (RFC 9293 3.10.7.4, RFC 5681 4.2).

use super::*;

/// RFC 9293 3.10.7.4, seventh check.
#[test]
fn text_in_order_is_handed_on_and_acknowledged_at_once() {
    let mut lab = Lab::ethernet();
    lab.exchange("PA 1+100 ack 1 win 8000", &["A 1 ack 101 win 7900"]);
    assert_eq!(lab.host_taken, 100);
}

#[test]
fn one_ack_covers_a_batch() {
    let mut lab = Lab::ethernet();
    lab.in_batch("A 1+100 ack 1 win 8000");
    lab.in_batch("A 101+100 ack 1 win 8000");
    lab.in_batch("PA 201+100 ack 1 win 8000");
    lab.settle();
    lab.expect(&["A 1 ack 301 win 7700"]);
    assert_eq!(lab.host_taken, 300);
}

#[test]
fn the_ack_rides_on_text_of_the_host() {
    let mut lab = Lab::ethernet();
    lab.host_writes(10);
    lab.exchange("PA 1+100 ack 1 win 8000", &["PA 1+10 ack 101 win 7900"]);
}

/// RFC 5681 4.2: a segment behind a gap is answered at once, one for one.
#[test]
fn each_segment_behind_a_gap_is_a_duplicate_ack() {
    let mut lab = Lab::ethernet();
    assert_eq!(lab.guest("A 101+100 ack 1 win 8000"), (Event::None, Fate::Gap));
    lab.expect(&["A 1 ack 1 win 8000"]);
    lab.in_batch("A 201+100 ack 1 win 8000");
    lab.in_batch("FA 301+100 ack 1 win 8000");
    lab.settle();
    lab.expect(&["A 1 ack 1 win 8000"; 2]);
    lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 101 win 7900"]);
    assert_eq!((lab.host_taken, lab.guest_end), (100, false));
}

#[test]
fn no_more_than_three_duplicate_acks_answer_a_batch() {
    let mut lab = Lab::ethernet();
    for _ in 0..5 {
        lab.in_batch("A 101+100 ack 1 win 8000");
    }
    lab.settle();
    lab.expect(&["A 1 ack 1 win 8000"; 3]);
}

/// A duplicate ACK with another window would not count as one (RFC 5681 2).
#[test]
fn a_duplicate_ack_keeps_its_window_while_more_is_promised() {
    let mut lab = Lab::ethernet();
    lab.connection.promise(20_000);
    lab.exchange("A 101+100 ack 1 win 8000", &["A 1 ack 1 win 8000"]);
    lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 101 win 19900"]);
}

/// RFC 9293 3.10.7.4, first check.
#[test]
fn what_was_received_before_is_acknowledged_again() {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 101 win 7900"]);
    assert_eq!(lab.guest("A 1+100 ack 1 win 8000"), (Event::None, Fate::Duplicate));
    lab.expect(&["A 1 ack 101 win 7900"]);
    assert_eq!(lab.host_taken, 100);
}

/// RFC 9293 3.10.7.4, seventh check.
#[test]
fn of_a_segment_that_overlaps_only_the_new_part_is_taken() {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 101 win 7900"]);
    lab.exchange("A 51+100 ack 1 win 8000", &["A 1 ack 151 win 7850"]);
    assert_eq!(lab.host_taken, 150);
}

/// RFC 9293 3.10.7.4, seventh check.
#[test]
fn text_and_fin_beyond_the_window_are_cut_off() {
    let mut lab = Lab::ethernet();
    lab.connection.promise(0);
    lab.exchange("FA 1+8001 ack 1 win 8000", &["A 1 ack 8001 win 0"]);
    assert_eq!((lab.host_taken, lab.guest_end), (8000, false));
}

/// RFC 9293 3.4, table 6, with `RCV.NXT` = 101 and a window of 7,900 bytes. RFC 9293 3.10.7.4,
/// first check.
#[test]
fn the_window_decides_what_is_acceptable() {
    let cases = [
        ("A 100 ack 1 win 8000", Fate::Unacceptable),
        ("A 101 ack 1 win 8000", Fate::Taken),
        ("A 8000 ack 1 win 8000", Fate::Taken),
        ("A 8002 ack 1 win 8000", Fate::Unacceptable),
        ("A 50+51 ack 1 win 8000", Fate::Duplicate),
        ("A 50+52 ack 1 win 8000", Fate::Overlapped),
        ("A 8000+1 ack 1 win 8000", Fate::Gap),
        ("A 8001+1 ack 1 win 8000", Fate::Unacceptable),
        ("A 2147483800+1 ack 1 win 8000", Fate::Unacceptable),
    ];
    for (text, fate) in cases {
        let mut lab = Lab::ethernet();
        lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 101 win 7900"]);
        assert_eq!(lab.guest(text), (Event::None, fate), "{text}");
    }
}

/// Where a guest stands that has filled the window while some of it got lost. RFC 9293 3.10.7.4,
/// first check.
#[test]
fn an_ack_at_the_right_edge_counts() {
    let mut lab = Lab::ethernet();
    lab.host_writes(500);
    lab.expect(&["PA 1+500 ack 1 win 8000"]);
    assert_eq!(lab.guest("A 8001 ack 501 win 8000"), (Event::None, Fate::Taken));
    assert_eq!(lab.host_consumed, 500);
}

/// RFC 9293 3.10.7.4, fifth check.
#[test]
fn text_without_ack_is_dropped() {
    let mut lab = Lab::ethernet();
    assert_eq!(lab.guest("P 1+5 win 8000"), (Event::None, Fate::Flags));
    lab.expect(&[]);
    assert_eq!(lab.host_taken, 0);
}

/// libslirp #93: the urgent pointer is not looked at. RFC 9293 3.10.7.4, sixth check.
#[test]
fn urgent_text_is_text() {
    let mut lab = Lab::ethernet();
    lab.exchange("UA 1+5 ack 1 win 8000", &["A 1 ack 6 win 7995"]);
    assert_eq!(lab.host_taken, 5);
}

/// passt, the stall of an upload after a short write: what the host did not take is asked for at
/// once, loudly enough for a sender that knows no SACK.
#[test]
fn what_the_host_does_not_take_is_asked_for_with_three_duplicates() {
    let mut lab = Lab::ethernet();
    lab.host_room = 300;
    for text in
        ["A 1+1000 ack 1 win 8000", "A 1001+1000 ack 1 win 8000", "PA 2001+9 ack 1 win 8000"]
    {
        lab.in_batch(text);
    }
    lab.settle();
    lab.expect(&["A 1 ack 301 win 7700"; 4]);
    lab.host_room = 5000;
    lab.exchange("A 301+1000 ack 1 win 8000", &["A 1 ack 1301 win 6700"]);
    assert_eq!(lab.host_taken, 1300);
}

/// A sender without SACK sends again one segment in a round trip. What it sent beyond meanwhile, had
/// its window moved on, would be refused unnoticed.
#[test]
fn the_right_edge_stays_until_what_was_refused_has_come_again() {
    let mut lab = Lab::ethernet();
    lab.host_room = 0;
    lab.exchange("A 1+4000 ack 1 win 8000", &["A 1 ack 1 win 8000"; 4]);
    lab.exchange("A 1+1000 ack 1 win 8000", &["A 1 ack 1 win 8000"; 4]);
    lab.host_room = usize::MAX;
    lab.connection.promise(20_000);
    lab.exchange("A 1+1000 ack 1 win 8000", &["A 1 ack 1001 win 7000"]);
    lab.connection.promise(20_000);
    assert!(!lab.connection.owes_window_update());
    lab.exchange("A 1001+2999 ack 1 win 8000", &["A 1 ack 4000 win 4001"]);
    lab.connection.promise(20_000);
    lab.exchange("A 4000+1 ack 1 win 8000", &["A 1 ack 4001 win 19999"]);
}

/// Nothing may be left to be sent, or less than a sender would use.
#[test]
fn the_right_edge_does_not_stay_for_less_than_a_segment() {
    for (beyond, window) in [(0, 8000), (1000, 8000)] {
        let mut lab = Lab::ethernet();
        lab.host_room = 0;
        let all = 8000 - beyond;
        lab.exchange(&format!("A 1+{all} ack 1 win 8000"), &["A 1 ack 1 win 8000"; 4]);
        lab.host_room = usize::MAX;
        lab.guest(&format!("A 1+{all} ack 1 win 8000"));
        lab.connection.promise(8000);
        lab.expect(&[&format!("A 1 ack {} win {window}", all + 1)]);
    }
}

/// RFC 9293 3.10.7.4, eighth check.
#[test]
fn a_fin_behind_what_was_not_taken_comes_again() {
    let mut lab = Lab::ethernet();
    lab.host_room = 40;
    lab.exchange("FA 1+100 ack 1 win 8000", &["A 1 ack 41 win 7960"; 4]);
    lab.expect_state(State::Established);
    assert!(!lab.guest_end);
    lab.host_room = 100;
    lab.exchange("FA 1+100 ack 1 win 8000", &["A 1 ack 102 win 7899"]);
    assert!(lab.guest_end);
    assert_eq!(lab.host_taken, 100);
}

/// passt 8efa80b. RFC 9293 3.10.7.4, seventh check.
#[test]
fn text_beyond_a_fin_is_ignored() {
    let mut lab = Lab::ethernet();
    lab.in_batch("FA 1+10 ack 1 win 8000");
    assert_eq!(lab.in_batch("A 12+10 ack 1 win 8000"), (Event::None, Fate::Unacceptable));
    lab.settle();
    lab.expect(&["A 1 ack 12 win 7989"]);
    assert_eq!(lab.guest("A 12+10 ack 1 win 8000"), (Event::None, Fate::Unacceptable));
    lab.expect(&["A 1 ack 12 win 7989"]);
    assert_eq!(lab.host_taken, 10);
}

/// RFC 9293 3.8.4: with and without an octet of garbage.
#[test]
fn keep_alives_are_answered() {
    let mut lab = Lab::ethernet();
    let probes =
        [("A 0 ack 1 win 8000", Fate::Unacceptable), ("A 0+1 ack 1 win 8000", Fate::Duplicate)];
    for (text, fate) in probes {
        lab.wait(1000);
        assert_eq!(lab.guest(text), (Event::None, fate));
        lab.expect(&["A 1 ack 1 win 8000"]);
    }
}

/// RFC 5961 7: two ends that disagree do not answer each other for ever.
#[test]
fn empty_strays_are_answered_ten_times_a_second_at_most() {
    let mut lab = Lab::ethernet();
    lab.exchange("A 0 ack 1 win 8000", &["A 1 ack 1 win 8000"]);
    lab.wait(99);
    lab.exchange("A 0 ack 1 win 8000", &[]);
    lab.wait(1);
    lab.exchange("A 0 ack 1 win 8000", &["A 1 ack 1 win 8000"]);
}
