//! Text to the guest (RFC 9293 3.8).

use super::*;

/// passt bug 107.
#[test]
fn the_last_segment_of_what_is_available_is_pushed() {
    let mut lab = Lab::ethernet();
    lab.host_writes(2500);
    lab.expect(&[
        "A 1+1000 ack 1 win 8000",
        "A 1001+1000 ack 1 win 8000",
        "PA 2001+500 ack 1 win 8000",
    ]);
    lab.host_writes(1);
    lab.expect(&["PA 2501+1 ack 1 win 8000"]);
}

/// passt bug 114: what is acknowledged is forgotten, and the number of a FIN is not a byte.
/// RFC 9293 3.10.7.4, fifth check.
#[test]
fn acknowledged_bytes_are_consumed_and_the_fin_is_none_of_them() {
    let mut lab = Lab::ethernet();
    lab.host_writes(1500);
    lab.host_ends();
    lab.expect(&["A 1+1000 ack 1 win 8000", "FPA 1001+500 ack 1 win 8000"]);
    lab.exchange("A 1 ack 501 win 8000", &[]);
    assert_eq!(lab.host_consumed, 500);
    lab.exchange("A 1 ack 1502 win 8000", &[]);
    assert_eq!(lab.host_consumed, 1500);
    lab.expect_state(State::FinWait2);
}

/// passt 8d2f8c4, ipstack #89.
#[test]
fn fin_goes_behind_the_last_byte_only() {
    let mut lab = Lab::ethernet();
    lab.host_writes(9000);
    lab.host_ends();
    let sent = lab.output();
    assert_eq!(sent.len(), 8);
    assert_eq!(sent.last().unwrap(), "A 7001+1000 ack 1 win 8000");
    lab.expect_state(State::Established);
    lab.exchange("A 1 ack 8001 win 8000", &["FPA 8001+1000 ack 1 win 8000"]);
    lab.expect_state(State::FinWait1);
}

#[test]
fn an_end_that_comes_late_is_a_fin_of_its_own() {
    let mut lab = Lab::ethernet();
    lab.host_writes(10);
    lab.expect(&["PA 1+10 ack 1 win 8000"]);
    lab.host_ends();
    lab.expect(&["FA 11 ack 1 win 8000"]);
    lab.connection.host_readable();
    lab.expect(&[]);
}

/// RFC 9293 3.10.7.4, fifth check, and RFC 5961 5.2.
#[test]
fn acks_of_the_future_and_of_the_far_past_are_challenged() {
    for ack in [2, -8000] {
        let mut lab = Lab::ethernet();
        let text = format!("A 1+5 ack {ack} win 8000");
        assert_eq!(lab.guest(&text), (Event::None, Fate::Challenged));
        lab.expect(&["A 1 ack 1 win 8000"]);
        assert_eq!(lab.host_taken, 0);
    }
    let mut lab = Lab::ethernet();
    assert_eq!(lab.guest("A 1+5 ack -7999 win 8000"), (Event::None, Fate::Taken));
}

/// RFC 9293 3.10.7.4: the window moves with an ACK that is not old.
#[test]
fn an_old_ack_moves_no_window() {
    let mut lab = Lab::ethernet();
    lab.host_writes(1000);
    lab.expect(&["PA 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1+10 ack 1001 win 8000", &["A 1001 ack 11 win 7990"]);
    lab.guest("A 11 ack 501 win 1");
    lab.host_writes(1000);
    lab.expect(&["PA 1001+1000 ack 11 win 7990"]);
}

/// The guest's text sent again has an old number, a new ACK and a new window. RFC 9293 3.10.7.4,
/// fifth check.
#[test]
fn text_sent_again_that_acknowledges_more_moves_the_window() {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1+10 ack 1 win 8000", &["A 1 ack 11 win 7990"]);
    lab.exchange("A 11+10 ack 1 win 8000", &["A 1 ack 21 win 7980"]);
    lab.host_writes(1000);
    lab.expect(&["PA 1+1000 ack 21 win 7980"]);
    assert_eq!(lab.guest("A 1+10 ack 1001 win 0").1, Fate::Duplicate);
    lab.expect(&["A 1001 ack 21 win 7980"]);
    let again = (Event::None, Fate::Overlapped);
    assert_eq!(lab.guest("A 11+11 ack 1001 win 0"), again);
    lab.expect(&["A 1001 ack 22 win 7979"]);
    lab.host_writes(1000);
    lab.expect(&[]);
}

#[test]
fn no_text_goes_out_before_the_handshake_is_done() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_connected();
    lab.host_writes(10);
    lab.expect(&[SYN_ACK]);
    lab.exchange(ACK, &["PA 1+10 ack 1 win 8000"]);
}

/// libslirp #12: the guest's end is not the host's. RFC 9293 3.10.7.4, fifth check.
#[test]
fn text_goes_on_after_the_guests_end() {
    let mut lab = Lab::ethernet();
    lab.exchange("FA 1 ack 1 win 8000", &["A 1 ack 2 win 7999"]);
    lab.host_writes(10);
    lab.expect(&["PA 1+10 ack 2 win 7999"]);
    lab.exchange("A 2 ack 11 win 8000", &[]);
    assert_eq!(lab.host_consumed, 10);
    lab.expect_state(State::CloseWait);
}

/// A host that loses what was sent is a failed host: the guest never gets other bytes in their
/// place, and nobody asks without end.
#[test]
fn bytes_lost_by_the_host_reset_the_guest() {
    for end in [false, true] {
        let mut lab = Lab::ethernet();
        lab.host_writes(1000);
        lab.expect(&["PA 1+1000 ack 1 win 8000"]);
        lab.timeout(TimerOutcome::Retransmit);
        let asked = lab.connection.poll_transmit(lab.now, None);
        assert_eq!(asked, Transmit::Data { offset: 0, limit: 1000 });
        if end {
            lab.connection.host_ended();
        } else {
            lab.connection.host_drained();
        }
        lab.expect(&["RA 1001 ack 1 win 8000"]);
        lab.expect_state(State::Closed);
    }
}
