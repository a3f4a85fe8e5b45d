//! Three-way handshake and simultaneous open (RFC 9293 3.5).

use super::*;

/// RFC 9293 3.10.7.2, third check.
#[test]
fn nothing_is_answered_before_the_host_is_connected() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.expect(&[]);
    assert!(!lab.connection.is_host_connected());
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
    lab.expect_state(State::SynReceived);
    assert_eq!(lab.guest(ACK), (Event::Established, Fate::Taken));
    lab.expect_state(State::Established);
    lab.expect(&[]);
}

#[test]
fn a_syn_sent_again_while_the_host_connects_is_not_answered_twice() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    assert_eq!(lab.guest(SYN), (Event::None, Fate::Taken));
    lab.expect(&[]);
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
}

/// RFC 9293 3.10.7.4, fourth check.
#[test]
fn a_syn_sent_again_after_the_answer_is_answered_again() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
    lab.exchange(SYN, &[SYN_ACK]);
}

/// RFC 9293 3.10.7.4, fourth check.
#[test]
fn a_guest_that_gives_up_asking_and_asks_anew_replaces_the_connection() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    assert_eq!(lab.guest("S 70000 win 8000"), (Event::Replaced, Fate::Taken));
    lab.expect_state(State::Closed);
}

/// RFC 9293 3.10.7.4, fifth check, SYN-RECEIVED.
#[test]
fn an_ack_of_something_never_sent_does_not_end_the_handshake() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    assert_eq!(lab.guest("A 1 ack 1 win 8000"), (Event::None, Fate::BadHandshake));
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
    assert_eq!(lab.guest("A 1 ack 2 win 8000"), (Event::None, Fate::BadHandshake));
    assert_eq!(lab.guest("A 1 ack 0 win 8000"), (Event::None, Fate::BadHandshake));
    lab.expect_state(State::SynReceived);
}

/// RFC 9293 3.10.7.4, fifth check.
#[test]
fn the_ack_that_ends_the_handshake_may_bring_text_and_fin() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
    assert_eq!(lab.guest("FPA 1+5 ack 1 win 8000"), (Event::Established, Fate::Taken));
    assert_eq!(lab.host_taken, 5);
    assert!(lab.guest_end);
    lab.expect(&["A 1 ack 7 win 7994"]);
    lab.expect_state(State::CloseWait);
}

/// RFC 9293 3.10.7.4, fifth check: the window of the SYN counted on if the text began before it.
#[test]
fn the_ack_that_ends_the_handshake_brings_the_window_whatever_its_number() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
    let before = u32::MAX;
    assert_eq!(lab.guest(&format!("A {before}+7 ack 1 win 0")).0, Event::Established);
    lab.expect(&["A 1 ack 6 win 7995"]);
    lab.host_writes(1000);
    lab.expect(&[]);
}

#[test]
fn text_on_a_syn_is_left_to_be_sent_again() {
    let mut lab = Lab::asked("S 0+4 win 8000", &ETHERNET);
    lab.connection.host_connected();
    lab.expect(&["SA 0 ack 1 win 8000"]);
}

/// libslirp: a host's client waits for the guest's handshake. RFC 9293 3.10.7.3, fourth
/// check.
#[test]
fn a_client_of_the_host_is_connected_when_the_guest_answers() {
    let mut lab = Lab::new(1000, 5000, Connection::open(Instant::ZERO, SeqNumber(5000), &ETHERNET));
    lab.expect(&["S 0 win 8000 mss 1460 ws 0"]);
    lab.expect_state(State::SynSent);
    assert!(lab.connection.is_half_open());
    let answer = lab.guest("SA 0 ack 1 win 4000 mss 1200 ws 2");
    assert_eq!(answer, (Event::Established, Fate::Taken));
    lab.expect(&["A 1 ack 1 win 8000"]);
    assert_eq!(lab.connection.mss(), 1200);
}

/// RFC 9293 3.10.7.3: an ACK of anything but the SYN is answered by a reset, unless it is one.
#[test]
fn an_old_ack_in_syn_sent_is_refused() {
    let mut lab = Lab::opened(&ETHERNET);
    for text in ["SA 0 ack 0 win 4000", "SA 0 ack 2 win 4000", "RA 0 ack 2 win 0"] {
        assert_eq!(lab.guest(text), (Event::None, Fate::BadHandshake), "{text}");
    }
    let ack = lab.parse("SA 0 ack 2 win 4000", &[]);
    let reset = reset_reply(&ack).unwrap();
    assert_eq!(lab.describe(&reset, 0), "R 2 win 0");
    lab.expect_state(State::SynSent);
    lab.expect(&[]);
}

/// RFC 9293 3.10.7.3, first check.
#[test]
fn a_syn_that_was_not_sent_yet_cannot_be_acknowledged() {
    let mut lab = Lab::new(1000, 5000, Connection::open(Instant::ZERO, SeqNumber(5000), &ETHERNET));
    assert_eq!(lab.guest("SA 0 ack 0 win 4000"), (Event::None, Fate::BadHandshake));
    lab.expect(&["S 0 win 8000 mss 1460 ws 0"]);
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_connected();
    assert_eq!(lab.guest("A 1 ack 0 win 8000"), (Event::None, Fate::BadHandshake));
    lab.expect(&[SYN_ACK]);
}

/// RFC 9293 3.10.7.3, fifth check.
#[test]
fn a_segment_without_syn_or_reset_changes_nothing_in_syn_sent() {
    let mut lab = Lab::opened(&ETHERNET);
    assert_eq!(lab.guest("A 0 ack 1 win 4000"), (Event::None, Fate::Flags));
    assert_eq!(lab.guest("F 0 win 4000"), (Event::None, Fate::Flags));
    lab.expect_state(State::SynSent);
}

/// RFC 9293 3.5, figure 8. RFC 9293 3.10.7.3, fourth check.
#[test]
fn simultaneous_open() {
    let mut lab = Lab::opened(&ETHERNET);
    assert_eq!(lab.guest("S 0 win 4000 mss 1200"), (Event::None, Fate::Taken));
    lab.expect_state(State::SynReceived);
    lab.expect(&[SYN_ACK]);
    assert_eq!(lab.guest("SA 0 ack 1 win 4000 mss 1200"), (Event::Established, Fate::Taken));
    lab.expect_state(State::Established);
    lab.expect(&["A 1 ack 1 win 8000"]);
}

#[test]
fn simultaneous_open_may_end_with_a_plain_ack() {
    let mut lab = Lab::opened(&ETHERNET);
    lab.exchange("S 0 win 4000 mss 1200", &[SYN_ACK]);
    assert_eq!(lab.guest("A 1 ack 1 win 4000"), (Event::Established, Fate::Taken));
}

/// The ACK field of a SYN without ACK may hold anything (RFC 9293 3.1).
#[test]
fn the_ack_field_of_a_crossing_syn_does_not_age_its_window() {
    let mut lab = Lab::opened(&ETHERNET);
    lab.exchange("S 0 ack 90000 win 0 mss 1000", &[SYN_ACK]);
    lab.exchange("SA 0 ack 1 win 4000 mss 1000", &["A 1 ack 1 win 8000"]);
    lab.host_writes(1000);
    lab.expect(&["PA 1+1000 ack 1 win 8000"]);
}

/// RFC 9293 3.10.7.4, fourth check.
#[test]
fn a_crossing_syn_sent_again_is_answered_again() {
    let mut lab = Lab::opened(&ETHERNET);
    lab.exchange("S 0 win 4000", &[SYN_ACK]);
    lab.exchange("S 0 win 4000", &[SYN_ACK]);
    lab.expect_state(State::SynReceived);
}

/// A segment out of the window before the handshake is done is answered by the SYN-ACK, if at all.
#[test]
fn strays_in_syn_received_do_no_harm() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
    assert_eq!(lab.guest("A 90000+5 ack 1 win 8000"), (Event::None, Fate::Unacceptable));
    assert_eq!(lab.guest("P 1+5 win 8000"), (Event::None, Fate::Flags));
    lab.expect(&[]);
    lab.expect_state(State::SynReceived);
}
