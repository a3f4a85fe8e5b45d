//! Resets and challenges (RFC 9293 3.5.2 and 3.5.3, RFC 5961).

use super::*;

/// A connection in each synchronized state, whose next expected number is as given.
fn synchronized() -> Vec<(Lab, i64)> {
    let end_of_guest = "FA 1 ack 1 win 8000";
    let steps: [&[&str]; 7] = [
        &[],
        &["host"],
        &["host", "A 1 ack 2 win 8000"],
        &[end_of_guest],
        &["host", end_of_guest],
        &[end_of_guest, "host"],
        &["host", "FA 1 ack 2 win 8000"],
    ];
    let states = [
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::Closing,
        State::LastAck,
        State::TimeWait,
    ];
    let make = |(steps, state): (&[&str], State)| {
        let mut lab = Lab::ethernet();
        for step in steps {
            match *step {
                "host" => lab.host_ends(),
                text => assert_eq!(lab.guest(text).1, Fate::Taken),
            }
            lab.output();
        }
        lab.expect_state(state);
        let next = if lab.guest_end { 2 } else { 1 };
        (lab, next)
    };
    steps.into_iter().zip(states).map(make).collect()
}

/// RFC 5961 3.2; RFC 9293 3.10.7.4, second check: it breaks nothing that both have ended.
#[test]
fn a_reset_at_the_expected_number_ends_every_synchronized_state() {
    for (mut lab, next) in synchronized() {
        let state = lab.connection.state();
        let over = matches!(state, State::Closing | State::LastAck | State::TimeWait);
        let event = if over { Event::Closed } else { Event::Reset };
        assert_eq!(lab.guest(&format!("R {next} win 0")), (event, Fate::Taken), "{state:?}");
        lab.expect_state(State::Closed);
        assert_eq!(lab.connection.deadline(), None);
        lab.expect(&[]);
    }
}

/// RFC 5961 3.2: in the window, but not exact. RFC 9293 3.10.7.4, second check.
#[test]
fn a_reset_elsewhere_in_the_window_is_challenged() {
    for (mut lab, next) in synchronized() {
        let state = lab.connection.state();
        assert_eq!(lab.guest(&format!("R {} win 0", next + 5)), (Event::None, Fate::Challenged));
        let answer = lab.output();
        assert!(answer.len() == 1 && answer[0].contains(&format!(" ack {next} ")), "{answer:?}");
        lab.expect_state(state);
    }
}

/// RFC 9293 3.10.7.4, first check; RFC 5961 3.2.
#[test]
fn a_reset_outside_the_window_is_dropped() {
    for (mut lab, next) in synchronized() {
        let state = lab.connection.state();
        for text in [format!("R {} win 0", next - 1), String::from("RA 8001 ack 1 win 0")] {
            assert_eq!(lab.guest(&text), (Event::None, Fate::StrayReset), "{text}");
        }
        lab.expect(&[]);
        lab.expect_state(state);
    }
}

/// RFC 5961 4.2: whatever its number. RFC 9293 3.10.7.4, fourth check.
#[test]
fn a_syn_in_a_synchronized_state_is_challenged() {
    for (mut lab, next) in synchronized() {
        let state = lab.connection.state();
        for sequence in [-1000, 0, next, 500, 90_000] {
            if state == State::TimeWait && sequence > next {
                continue;
            }
            lab.wait(100);
            let text = format!("S {sequence} win 8000");
            assert_eq!(lab.guest(&text), (Event::None, Fate::Challenged), "{text}");
            assert_eq!(lab.output().len(), 1);
        }
        lab.expect_state(state);
    }
}

/// RFC 5961 7.
#[test]
fn challenges_are_limited() {
    let mut lab = Lab::ethernet();
    lab.exchange("R 9 win 0", &["A 1 ack 1 win 8000"]);
    lab.exchange("R 9 win 0", &[]);
    lab.wait(100);
    lab.exchange("S 9 win 0", &["A 1 ack 1 win 8000"]);
}

/// gvisor-tap-vsock #127. RFC 9293 3.10.7.4, second check.
#[test]
fn a_reset_ends_a_half_open_connection() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    assert_eq!(lab.guest("R 1 win 0"), (Event::Reset, Fate::Taken));
    lab.expect_state(State::Closed);
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
    assert_eq!(lab.guest("R 0 win 0"), (Event::None, Fate::StrayReset));
    assert_eq!(lab.guest("R 2 win 0"), (Event::None, Fate::Challenged));
    assert_eq!(lab.guest("RA 1 ack 1 win 0"), (Event::Reset, Fate::Taken));
    lab.expect_state(State::Closed);
}

/// RFC 9293 3.10.7.3, second check.
#[test]
fn a_guest_refuses_by_a_reset_that_acknowledges_the_syn() {
    let mut lab = Lab::opened(&ETHERNET);
    assert_eq!(lab.guest("R 0 win 0"), (Event::None, Fate::StrayReset));
    assert_eq!(lab.guest("RA 0 ack 1 win 0"), (Event::Refused, Fate::Taken));
    lab.expect_state(State::Closed);
}

/// RFC 9293 3.10.7.4, second check.
#[test]
fn a_reset_in_simultaneous_open_refuses() {
    let mut lab = Lab::opened(&ETHERNET);
    lab.exchange("S 0 win 4000 mss 1200", &[SYN_ACK]);
    assert_eq!(lab.guest("R 1 win 0"), (Event::Refused, Fate::Taken));
}

/// RFC 9293 3.10.7.1. RFC 9293 3.10.7.2, first and second check.
#[test]
fn strays_are_reset_in_the_form_that_their_sender_believes() {
    let lab = Lab::ethernet();
    let reply = |text: &str, payload: &[u8]| reset_reply(&lab.parse(text, payload));
    let with_ack = reply("A 500 ack 77 win 0", &[]).unwrap();
    assert_eq!(lab.describe(&with_ack, 0), "R 77 win 0");
    let syn = reply("S 500 win 0", &[]).unwrap();
    assert_eq!((syn.sequence, syn.acknowledgment), (SeqNumber(0), SeqNumber(1501)));
    assert_eq!(syn.flags, TcpFlags::RST.with(TcpFlags::ACK));
    let text = reply("F 500 win 0", b"abc").unwrap();
    assert_eq!(text.acknowledgment, SeqNumber(1504));
    assert_eq!(reply("R 500 win 0", &[]), None);
    assert_eq!(reply("RA 500 ack 1 win 0", &[]), None);
}

/// The number is what the guest expects next, or it would not believe the reset.
#[test]
fn an_abort_is_a_reset_that_the_guest_believes() {
    let mut asked = Lab::asked("S 0 win 0", &ETHERNET);
    let reset = asked.connection.abort();
    assert_eq!(asked.describe(&reset, 0), "RA 0 ack 1 win 8000");
    asked.expect_state(State::Closed);
    let mut answered = Lab::asked("S 0 win 0", &ETHERNET);
    answered.connection.host_connected();
    answered.output();
    let reset = answered.connection.abort();
    assert_eq!(answered.describe(&reset, 0), "RA 1 ack 1 win 8000");
    let mut opened = Lab::opened(&ETHERNET);
    let reset = opened.connection.abort();
    assert_eq!(opened.describe(&reset, 0), "R 1 win 8000");
    let mut lab = Lab::ethernet();
    lab.host_writes(10);
    lab.output();
    let reset = lab.connection.abort();
    assert_eq!(lab.describe(&reset, 0), "RA 11 ack 1 win 8000");
}

#[test]
fn a_host_that_refuses_resets_the_guest() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_failed();
    lab.expect(&["RA 0 ack 1 win 8000"]);
    lab.expect_state(State::Closed);
}

/// virtualbox #621: what was received before the failure is delivered first.
#[test]
fn a_host_that_fails_resets_the_guest_after_it_has_what_came_before() {
    let mut lab = Lab::ethernet();
    lab.host_writes(1500);
    lab.expect(&["A 1+1000 ack 1 win 8000", "PA 1001+500 ack 1 win 8000"]);
    lab.connection.host_failed();
    lab.expect(&[]);
    lab.timeout(TimerOutcome::Retransmit);
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 1001 win 8000", &["PA 1001+500 ack 1 win 8000"]);
    lab.exchange("A 1 ack 1501 win 8000", &["RA 1501 ack 1 win 8000"]);
    lab.expect_state(State::Closed);
    assert_eq!(lab.host_consumed, 1500);
}

/// RFC 9293 3.10.7.1.
#[test]
fn nothing_happens_in_closed() {
    let mut lab = Lab::ethernet();
    lab.guest("R 1 win 0");
    assert_eq!(lab.guest("A 1+5 ack 1 win 8000"), (Event::None, Fate::Flags));
    lab.host_writes(10);
    lab.connection.host_failed();
    lab.expect(&[]);
    assert_eq!(lab.connection.on_timer(lab.now, None), TimerOutcome::Early);
}
