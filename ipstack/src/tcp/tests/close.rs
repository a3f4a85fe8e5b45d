//! Both ways of ending a connection, one after the other and at once (RFC 9293 3.6).

use super::*;

/// The host has ended, and the guest has acknowledged that.
fn fin_wait_2() -> Lab {
    let mut lab = Lab::ethernet();
    lab.host_ends();
    lab.expect(&["FA 1 ack 1 win 8000"]);
    lab.expect_state(State::FinWait1);
    lab.exchange("A 1 ack 2 win 8000", &[]);
    lab.expect_state(State::FinWait2);
    lab
}

fn time_wait() -> Lab {
    let mut lab = fin_wait_2();
    lab.exchange("FA 1 ack 2 win 8000", &["A 2 ack 2 win 7999"]);
    lab.expect_state(State::TimeWait);
    assert!(lab.guest_end && lab.connection.is_done_with_host());
    lab
}

/// RFC 9293 3.10.7.4, fifth and eighth check.
#[test]
fn the_guest_ends_first() {
    let mut lab = Lab::ethernet();
    lab.exchange("FA 1 ack 1 win 8000", &["A 1 ack 2 win 7999"]);
    assert!(lab.guest_end);
    lab.expect_state(State::CloseWait);
    lab.host_writes(5);
    lab.host_ends();
    lab.expect(&["FPA 1+5 ack 2 win 7999"]);
    lab.expect_state(State::LastAck);
    assert_eq!(lab.guest("A 2 ack 6 win 8000"), (Event::None, Fate::Taken));
    lab.expect_state(State::LastAck);
    assert_eq!(lab.guest("A 2 ack 7 win 8000"), (Event::Closed, Fate::Taken));
    lab.expect_state(State::Closed);
    assert_eq!(lab.connection.deadline(), None);
    assert_eq!(lab.host_consumed, 5);
}

/// gvisor-tap-vsock #387: half-close the other way. RFC 9293 3.10.7.4, fifth and eighth check.
#[test]
fn the_host_ends_first_and_the_guest_goes_on() {
    let mut lab = fin_wait_2();
    lab.exchange("PA 1+100 ack 2 win 8000", &["A 2 ack 101 win 7900"]);
    assert_eq!((lab.host_taken, lab.guest_end), (100, false));
    lab.exchange("FA 101+10 ack 2 win 8000", &["A 2 ack 112 win 7889"]);
    assert_eq!((lab.host_taken, lab.guest_end), (110, true));
    lab.expect_state(State::TimeWait);
}

/// RFC 9293 3.10.7.4, fifth check.
#[test]
fn the_guest_sends_text_while_the_hosts_end_is_on_its_way() {
    let mut lab = Lab::ethernet();
    lab.host_ends();
    lab.expect(&["FA 1 ack 1 win 8000"]);
    lab.exchange("A 1+100 ack 1 win 8000", &["A 2 ack 101 win 7900"]);
    lab.expect_state(State::FinWait1);
}

/// RFC 9293 3.6, figure 13. RFC 9293 3.10.7.4, fifth and eighth check.
#[test]
fn both_end_at_once() {
    let mut lab = Lab::ethernet();
    lab.host_ends();
    lab.expect(&["FA 1 ack 1 win 8000"]);
    lab.exchange("FA 1 ack 1 win 8000", &["A 2 ack 2 win 7999"]);
    lab.expect_state(State::Closing);
    lab.exchange("FA 1 ack 1 win 8000", &["A 2 ack 2 win 7999"]);
    assert_eq!(lab.guest("A 2 ack 2 win 8000"), (Event::Closed, Fate::Taken));
    lab.expect_state(State::TimeWait);
}

/// RFC 9293 3.10.7.4, eighth check.
#[test]
fn a_fin_that_acknowledges_ours_ends_both_at_once() {
    let mut lab = Lab::ethernet();
    lab.host_ends();
    lab.expect(&["FA 1 ack 1 win 8000"]);
    lab.exchange("FA 1 ack 2 win 8000", &["A 2 ack 2 win 7999"]);
    lab.expect_state(State::TimeWait);
}

#[test]
fn a_fin_is_lost_in_closing_and_sent_again() {
    let mut lab = Lab::ethernet();
    lab.host_ends();
    lab.expect(&["FA 1 ack 1 win 8000"]);
    lab.exchange("FA 1 ack 1 win 8000", &["A 2 ack 2 win 7999"]);
    lab.timeout(TimerOutcome::Retransmit);
    lab.expect(&["FA 1 ack 2 win 7999"]);
}

/// RFC 9293 3.10.7.4, eighth check.
#[test]
fn a_fin_sent_again_in_close_wait_is_acknowledged_again() {
    let mut lab = Lab::ethernet();
    lab.exchange("FA 1+5 ack 1 win 8000", &["A 1 ack 7 win 7994"]);
    assert_eq!(lab.guest("FA 1+5 ack 1 win 8000"), (Event::None, Fate::Duplicate));
    lab.expect(&["A 1 ack 7 win 7994"]);
    assert_eq!(lab.guest("FA 6 ack 1 win 8000"), (Event::None, Fate::Unacceptable));
    lab.expect(&["A 1 ack 7 win 7994"]);
    assert_eq!(lab.host_taken, 5);
    lab.expect_state(State::CloseWait);
}

/// RFC 9293 3.10.7.4, eighth check.
#[test]
fn a_fin_behind_a_gap_ends_nothing() {
    let mut lab = Lab::ethernet();
    assert_eq!(lab.guest("FA 11 ack 1 win 8000"), (Event::None, Fate::Gap));
    lab.expect(&["A 1 ack 1 win 8000"]);
    lab.expect_state(State::Established);
}

/// RFC 9293 3.10.7.4, eighth check, TIME-WAIT.
#[test]
fn a_fin_sent_again_in_time_wait_is_acknowledged_and_starts_the_wait_over() {
    let mut lab = time_wait();
    lab.wait(9000);
    assert_eq!(lab.guest("FA 1 ack 2 win 8000"), (Event::None, Fate::Unacceptable));
    lab.expect(&["A 2 ack 2 win 7999"]);
    assert_eq!(lab.timeout(TimerOutcome::Closed), 10_000);
    lab.expect_state(State::Closed);
}

/// RFC 9293 3.10.7.4, fifth check, and 3.10.8.
#[test]
fn time_wait_ends() {
    let mut lab = time_wait();
    lab.exchange("A 2 ack 2 win 8000", &[]);
    assert_eq!(lab.timeout(TimerOutcome::Closed), 10_000);
}

/// RFC 9293 3.6.1, MAY-2; RFC 6191 without timestamps. RFC 9293 3.10.7.4, fourth check.
#[test]
fn a_newer_syn_ends_time_wait_and_an_older_one_does_not() {
    let mut lab = time_wait();
    for older in ["S 0 win 8000", "S 1 win 8000", "S 2 win 8000"] {
        lab.wait(100);
        assert_eq!(lab.guest(older), (Event::None, Fate::Challenged), "{older}");
        lab.expect(&["A 2 ack 2 win 7999"]);
    }
    assert_eq!(lab.guest("SA 3 ack 2 win 8000"), (Event::None, Fate::ChallengeWithheld));
    assert_eq!(lab.guest("S 3 win 8000"), (Event::Replaced, Fate::Taken));
    lab.expect_state(State::Closed);
}
