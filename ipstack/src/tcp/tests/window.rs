//! Windows both ways: probes (RFC 9293 3.8.6.1), silly windows (3.8.6.2), edges.

use super::*;

/// The guest's window is closed, and the host has text for it.
fn closed_window() -> Lab {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1 ack 1 win 0", &[]);
    lab.host_writes(100);
    lab.expect(&[]);
    assert!(lab.connection.is_window_limited());
    lab
}

#[test]
fn a_full_window_waits_for_an_ack() {
    let mut lab = Lab::ethernet();
    lab.host_writes(9500);
    assert_eq!(lab.output().len(), 8);
    lab.exchange("A 1 ack 1001 win 7000", &[]);
    lab.exchange("A 1 ack 1001 win 8000", &["A 8001+1000 ack 1 win 8000"]);
}

/// ipstack #56.
#[test]
fn a_closed_window_is_probed_with_an_octet_that_may_be_refused() {
    let mut lab = closed_window();
    for interval in [200, 400, 800] {
        assert_eq!(lab.timeout(TimerOutcome::Probe), interval);
        lab.expect(&["A 1+1 ack 1 win 8000"]);
        lab.exchange("A 1 ack 1 win 0", &[]);
    }
    lab.exchange("A 1 ack 1 win 8000", &["PA 1+100 ack 1 win 8000"]);
}

#[test]
fn a_closed_window_is_probed_with_an_octet_that_may_be_accepted() {
    let mut lab = closed_window();
    lab.timeout(TimerOutcome::Probe);
    lab.expect(&["A 1+1 ack 1 win 8000"]);
    lab.exchange("A 1 ack 2 win 0", &[]);
    assert_eq!(lab.host_consumed, 1);
    lab.timeout(TimerOutcome::Probe);
    lab.expect(&["A 2+1 ack 1 win 8000"]);
    lab.exchange("A 1 ack 3 win 8000", &["PA 3+98 ack 1 win 8000"]);
}

/// A host may have said that there is text where there is none.
#[test]
fn a_probe_without_an_octet_to_send_is_not_sent() {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1 ack 1 win 0", &[]);
    lab.connection.host_readable();
    lab.expect(&[]);
    lab.timeout(TimerOutcome::Probe);
    lab.expect(&[]);
    assert!(!lab.connection.awaits_guest(), "there is nothing to probe for");
    lab.host_writes(100);
    lab.expect(&[]);
    lab.timeout(TimerOutcome::Probe);
    lab.expect(&["A 1+1 ack 1 win 8000"]);
}

/// RFC 9293 3.8.6.1, MUST-37.
#[test]
fn probes_go_on_while_they_are_answered() {
    let mut lab = closed_window();
    for _ in 0..50 {
        assert!(lab.timeout(TimerOutcome::Probe) <= 60_000);
        lab.expect(&["A 1+1 ack 1 win 8000"]);
        lab.exchange("A 1 ack 1 win 0", &[]);
    }
    for _ in 0..4 {
        lab.timeout(TimerOutcome::Probe);
        lab.expect(&["A 1+1 ack 1 win 8000"]);
    }
    lab.timeout(TimerOutcome::GiveUp);
}

#[test]
fn a_guest_that_answers_no_probe_is_given_up() {
    let mut lab = closed_window();
    for _ in 0..12 {
        lab.timeout(TimerOutcome::Probe);
        lab.expect(&["A 1+1 ack 1 win 8000"]);
    }
    lab.timeout(TimerOutcome::GiveUp);
}

#[test]
fn a_fin_before_a_closed_window_is_a_probe_and_goes_on_while_answered() {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1 ack 1 win 0", &[]);
    lab.host_ends();
    lab.expect(&[]);
    for _ in 0..20 {
        lab.timeout(TimerOutcome::Probe);
        lab.expect(&["FA 1 ack 1 win 8000"]);
        lab.exchange("A 1 ack 1 win 0", &[]);
    }
    lab.exchange("A 1 ack 2 win 0", &[]);
    lab.expect_state(State::FinWait2);
}

/// libslirp: of two segments with equal numbers the later counts. RFC 9293 3.10.7.4,
/// fifth check.
#[test]
fn a_window_shrunk_to_nothing_with_equal_numbers_is_closed() {
    let mut lab = Lab::ethernet();
    lab.host_writes(3000);
    assert_eq!(lab.output().len(), 3);
    lab.exchange("A 1 ack 1 win 0", &[]);
    assert_eq!(lab.timeout(TimerOutcome::Probe), 200);
    lab.expect(&["A 1+1 ack 1 win 8000"]);
    // It is asked from where it stands, or it would not look at the ACK.
    lab.exchange("A 1+10 ack 1 win 0", &["A 1 ack 11 win 7990"]);
    lab.exchange("A 11+10 ack 1 win 1500", &["A 1501 ack 21 win 7980"]);
    lab.timeout(TimerOutcome::Retransmit);
    lab.expect(&["A 1+1000 ack 21 win 7980"]);
}

/// RFC 9293 3.8.6.2.1; slirp4netns #128.
#[test]
fn a_window_below_a_segment_is_used_from_half_of_its_best() {
    let mut lab = Lab::established("S 0 win 800 mss 1000", "A 1 ack 1 win 800", &ETHERNET);
    lab.host_writes(5000);
    lab.expect(&["A 1+800 ack 1 win 8000"]);
    lab.exchange("A 1 ack 801 win 399", &[]);
    lab.exchange("A 1 ack 801 win 400", &["A 801+400 ack 1 win 8000"]);
}

/// RFC 9293 3.8.6.2.1, the override timeout.
#[test]
fn a_silly_window_is_used_after_a_while_and_once() {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1 ack 1 win 300", &[]);
    lab.host_writes(500);
    lab.expect(&[]);
    assert_eq!(lab.timeout(TimerOutcome::Probe), 200);
    lab.expect(&["A 1+300 ack 1 win 8000"]);
    lab.exchange("A 1 ack 301 win 8000", &["PA 301+200 ack 1 win 8000"]);
}

/// The override timeout counts from when the window opened, whatever the wait was before.
#[test]
fn a_closed_window_that_opens_a_little_waits_for_the_override_timeout_only() {
    let mut lab = Lab::opened(&ETHERNET);
    lab.timeout(TimerOutcome::Retransmit);
    lab.output();
    lab.exchange("SA 0 ack 1 win 8000 mss 1000", &["A 1 ack 1 win 8000"]);
    lab.exchange("A 1 ack 1 win 0", &[]);
    lab.host_writes(100);
    lab.expect(&[]);
    assert_eq!(lab.connection.deadline(), Some(lab.now.after(Duration::from_secs(3))));
    lab.exchange("A 1 ack 1 win 50", &[]);
    assert_eq!(lab.timeout(TimerOutcome::Probe), 200);
    lab.expect(&["A 1+50 ack 1 win 8000"]);
}

/// The guest has filled its window of 8,000 bytes, and nothing more is promised.
fn full() -> Lab {
    let mut lab = Lab::ethernet();
    lab.connection.promise(0);
    lab.exchange("A 1+8000 ack 1 win 8000", &["A 1 ack 8001 win 0"]);
    lab
}

/// passt bug 74, openvmm #3780.
#[test]
fn a_window_that_reopens_is_told_once() {
    let mut lab = full();
    assert!(!lab.connection.owes_window_update());
    lab.connection.promise(8000);
    assert!(lab.connection.owes_window_update());
    lab.connection.owe_ack();
    lab.expect(&["A 1 ack 8001 win 8000"]);
    assert!(!lab.connection.owes_window_update());
}

/// RFC 9293 3.8.6.2.2.
#[test]
fn a_window_that_opens_by_less_than_a_segment_is_not_told() {
    let mut lab = full();
    lab.connection.promise(1459);
    assert!(!lab.connection.owes_window_update());
    lab.connection.owe_ack();
    lab.expect(&["A 1 ack 8001 win 0"]);
    lab.connection.promise(1460);
    assert!(lab.connection.owes_window_update());
}

#[test]
fn the_right_edge_stays_when_less_is_promised() {
    let mut lab = Lab::ethernet();
    lab.connection.promise(10);
    lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 101 win 7900"]);
    lab.exchange("A 101+7900 ack 1 win 8000", &["A 1 ack 8001 win 0"]);
    assert_eq!(lab.host_taken, 8000);
}

/// passt bug 183: a send buffer below a segment.
#[test]
fn a_promise_smaller_than_a_segment_opens_the_window() {
    let limits = Limits { mss: 65_480, window_scale: 0, receive_window: 46_080, sack: false };
    let mut lab = Lab::established("S 0 win 8000 mss 65480", ACK, &limits);
    lab.connection.promise(0);
    lab.exchange("A 1+46080 ack 1 win 8000", &["A 1 ack 46081 win 0"]);
    lab.connection.promise(46_080);
    assert!(lab.connection.owes_window_update());
    lab.connection.owe_ack();
    lab.expect(&["A 1 ack 46081 win 46080"]);
}

/// What was promised once may never be again. The guest's probe settles it, whichever kind it is.
#[test]
fn a_probe_opens_the_window_as_far_as_is_promised_now() {
    for (probe, acknowledged) in [("A 8001+1", 8001), ("A 8000", 8001), ("A 8000+1", 8001)] {
        let mut lab = full();
        lab.connection.promise(500);
        assert!(!lab.connection.owes_window_update());
        lab.wait(200);
        lab.guest(&format!("{probe} ack 1 win 8000"));
        let answer = lab.output();
        assert_eq!(answer, [format!("A 1 ack {acknowledged} win 500")], "{probe}");
    }
}

/// The last byte of a window looks like a probe once the rest of its batch has been taken. It must
/// not make the window stay closed.
#[test]
fn a_window_used_up_to_its_last_byte_is_limited() {
    let limits = Limits { window_scale: 7, ..ETHERNET };
    let mut lab = Lab::established("S 0 win 8000 mss 1000 ws 0", ACK, &limits);
    lab.guest("A 1+7935 ack 1 win 8000");
    lab.guest("PA 7936+1 ack 1 win 8000");
    assert_eq!(lab.connection.receive_window(), 0);
    assert!(lab.connection.is_receive_limited(), "room is looked for");
    lab.connection.promise(0);
    assert!(lab.connection.stays_receive_limited(), "and waited for");
}

/// Less than one unit of a scaled window cannot be said. Probes while there is no more than that
/// must not make it the measure: the guest would be told of no room ever after.
#[test]
fn room_is_looked_for_after_probes_of_a_window_that_cannot_be_said() {
    for crumbs in [60, 500] {
        let limits = Limits { window_scale: 7, ..ETHERNET };
        let mut lab = Lab::established("S 0 win 8000 mss 1000 ws 0", ACK, &limits);
        lab.connection.promise(0);
        lab.exchange("A 1+7936 ack 1 win 8000", &["A 1 ack 7937 win 0"]);
        lab.connection.promise(crumbs);
        for _ in 0..2 {
            lab.wait(200);
            lab.guest("A 7936 ack 1 win 8000");
            let _answer = lab.output();
        }
        assert!(lab.connection.is_receive_limited(), "{crumbs}");
        lab.connection.promise(8000);
        assert!(lab.connection.owes_window_update(), "{crumbs}");
    }
}

#[test]
fn a_probe_of_a_window_that_stays_closed_is_answered() {
    let mut lab = full();
    assert_eq!(lab.guest("A 8001+1 ack 1 win 8000"), (Event::None, Fate::Unacceptable));
    lab.expect(&["A 1 ack 8001 win 0"]);
    assert_eq!(lab.host_taken, 8000);
}

#[test]
fn a_promise_beyond_what_the_header_says_owes_no_update_for_ever() {
    let large = Limits { receive_window: 1 << 20, ..ETHERNET };
    let mut lab = Lab::established(SYN, ACK, &large);
    lab.exchange("A 1+9000 ack 1 win 8000", &["A 1 ack 9001 win 65535"]);
    assert!(!lab.connection.owes_window_update());
    assert_eq!(lab.connection.receive_window(), 65_535);
}

/// A bare FIN needs no room, and takes the number beyond the right edge.
#[test]
fn a_fin_at_the_edge_of_a_full_window_is_taken_and_the_window_stays_closed() {
    let mut lab = full();
    assert_eq!(lab.guest("FA 8001 ack 1 win 8000"), (Event::None, Fate::Taken));
    assert_eq!(lab.connection.receive_window(), 0);
    lab.expect(&["A 1 ack 8002 win 0"]);
    assert!(lab.guest_end);
}

/// A connection whose windows go in units of 128 bytes, and whose guest has 7,936 bytes of room.
fn scaled() -> Lab {
    let limits = Limits { window_scale: 7, ..ETHERNET };
    Lab::established("S 0 win 8000 mss 1000 ws 0", ACK, &limits)
}

#[test]
fn a_scaled_window_is_rounded_up_within_what_is_promised() {
    let mut lab = scaled();
    assert_eq!(lab.connection.receive_window(), 62 * 128);
    lab.connection.promise(8000);
    lab.exchange("A 1+50 ack 1 win 8000", &["A 1 ack 51 win 62"]);
    assert_eq!(lab.connection.receive_window(), 62 * 128);
}

/// RFC 7323 2.4 would have the edge move back by 28 bytes here.
#[test]
fn what_is_neither_promised_nor_to_be_said_is_not_acknowledged_yet() {
    let mut lab = scaled();
    lab.connection.promise(0);
    lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 1 win 62"]);
    assert_eq!(lab.host_taken, 100);
    assert!(lab.connection.is_receive_limited() && lab.connection.stays_receive_limited());
    lab.exchange("A 101+100 ack 1 win 8000", &["A 1 ack 129 win 61"]);
    // Small segments do not push the edge on: it is where it was.
    lab.exchange("A 201+7736 ack 1 win 8000", &["A 1 ack 7937 win 0"]);
    assert_eq!(lab.guest("A 7937+1 ack 1 win 8000"), (Event::None, Fate::Unacceptable));
}

/// A guest that has forgotten the connection takes the number of its reset from an ACK
/// (RFC 9293 3.5.2 and 3.10.7.4, second check; RFC 5961 3.2).
#[test]
fn a_reset_at_the_number_acknowledged_is_believed_though_more_was_received() {
    let mut lab = scaled();
    lab.connection.promise(0);
    lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 1 win 62"]);
    assert_eq!(lab.guest("R 2 win 0"), (Event::None, Fate::StrayReset));
    assert_eq!(lab.guest("R 1 win 0"), (Event::Reset, Fate::Taken));
}

#[test]
fn the_guest_is_told_as_soon_as_it_can_be_of_what_was_not_acknowledged() {
    let mut lab = scaled();
    lab.connection.promise(0);
    lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 1 win 62"]);
    lab.connection.promise(62 * 128 - 1);
    assert!(!lab.connection.owes_window_update());
    lab.connection.promise(62 * 128);
    assert!(lab.connection.owes_window_update());
    lab.connection.owe_ack();
    lab.expect(&["A 1 ack 101 win 62"]);
    assert!(!lab.connection.owes_window_update());
}

/// A guest that gets no ACK for ever gives the connection up.
#[test]
fn what_is_sent_again_is_acknowledged_whatever_is_promised() {
    for again in ["A 1+100", "A 51+60"] {
        let mut lab = scaled();
        lab.connection.promise(0);
        lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 1 win 62"]);
        lab.guest(&format!("{again} ack 1 win 8000"));
        let end = lab.connection.next_expected().expect("no end").since(lab.irs);
        lab.expect(&[&format!("A 1 ack {end} win 62")]);
    }
}

/// Who has ended sends nothing more, so that nothing is promised by a window rounded up.
#[test]
fn an_end_is_acknowledged_whatever_is_promised() {
    let mut lab = scaled();
    lab.connection.promise(0);
    lab.exchange("FA 1+100 ack 1 win 8000", &["A 1 ack 102 win 62"]);
    assert!(!lab.connection.is_receive_limited());
}
