//! The one timer, by the table of the module (RFC 9293 3.8.3, 3.8.4; RFC 6298).

use super::*;

const SYN_WAITS: [u64; 6] = [1000, 2000, 4000, 8000, 16_000, 32_000];

/// passt bug 153: a guest that boots while it is asked.
#[test]
fn a_syn_is_sent_again_six_times() {
    let mut lab = Lab::opened(&ETHERNET);
    for wait in SYN_WAITS {
        assert_eq!(lab.timeout(TimerOutcome::Retransmit), wait);
        lab.expect(&["S 0 win 8000 mss 1460 ws 0"]);
    }
    assert_eq!(lab.timeout(TimerOutcome::GiveUp), 60_000);
}

#[test]
fn a_syn_ack_is_sent_again_six_times_even_if_the_guests_window_is_closed() {
    for syn in [SYN, "S 0 win 0 mss 1000"] {
        let mut lab = Lab::asked(syn, &ETHERNET);
        lab.connection.host_connected();
        lab.expect(&[SYN_ACK]);
        for wait in SYN_WAITS {
            assert_eq!(lab.timeout(TimerOutcome::Retransmit), wait);
            lab.expect(&[SYN_ACK]);
        }
        lab.timeout(TimerOutcome::GiveUp);
    }
}

#[test]
fn the_host_has_130_seconds_to_connect() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.guest(SYN);
    assert_eq!(lab.timeout(TimerOutcome::GiveUp), 130_000);
}

#[test]
fn data_is_sent_again_twelve_times() {
    let mut lab = Lab::ethernet();
    lab.host_writes(1000);
    lab.expect(&["PA 1+1000 ack 1 win 8000"]);
    let mut wait = 200;
    for _ in 0..12 {
        assert_eq!(lab.timeout(TimerOutcome::Retransmit), wait);
        lab.expect(&["PA 1+1000 ack 1 win 8000"]);
        wait = (2 * wait).min(60_000);
    }
    assert_eq!(lab.timeout(TimerOutcome::GiveUp), 60_000);
}

/// libslirp #86: every closing state has an end.
#[test]
fn every_closing_state_ends_without_a_word_from_the_guest() {
    let end_of_guest = "FA 1 ack 1 win 8000";
    let nothing: &[&str] = &[];
    for (before, after) in [(nothing, nothing), (&[end_of_guest], &[]), (&[], &[end_of_guest])] {
        let mut lab = Lab::ethernet();
        before.iter().for_each(|text| assert_eq!(lab.guest(text).1, Fate::Taken));
        lab.host_ends();
        lab.output();
        after.iter().for_each(|text| assert_eq!(lab.guest(text).1, Fate::Taken));
        lab.output();
        for _ in 0..12 {
            lab.timeout(TimerOutcome::Retransmit);
            assert_eq!(lab.output().len(), 1);
        }
        lab.timeout(TimerOutcome::GiveUp);
    }
}

/// passt bug 179, libslirp #86.
#[test]
fn fin_wait_2_ends_after_ten_minutes_without_a_segment() {
    let mut lab = Lab::ethernet();
    lab.host_ends();
    lab.output();
    lab.exchange("A 1 ack 2 win 8000", &[]);
    lab.wait(300_000);
    lab.expect(&[]);
    lab.exchange("A 1+5 ack 2 win 8000", &["A 2 ack 6 win 7995"]);
    assert_eq!(lab.timeout(TimerOutcome::GiveUp), 600_000);
}

/// RFC 9293 3.8.4.
#[test]
fn a_guest_that_vanished_is_found_by_nine_keep_alives() {
    let mut lab = Lab::ethernet();
    let mut wait = 7_200_000;
    for _ in 0..9 {
        assert_eq!(lab.timeout(TimerOutcome::Probe), wait);
        lab.expect(&["A 0 ack 1 win 8000"]);
        wait = 75_000;
    }
    assert_eq!(lab.timeout(TimerOutcome::GiveUp), 75_000);
}

#[test]
fn a_guest_that_answers_a_keep_alive_has_two_more_hours() {
    let mut lab = Lab::ethernet();
    lab.timeout(TimerOutcome::Probe);
    lab.expect(&["A 0 ack 1 win 8000"]);
    lab.exchange("A 1 ack 1 win 8000", &[]);
    assert_eq!(lab.timeout(TimerOutcome::Probe), 7_200_000);
}

/// As one restored from a snapshot: RFC 9293 3.5.1 knows no way for two ends to find out that both
/// believe to be established, at different numbers. It is answered, and given up as if it was gone.
#[test]
fn a_guest_that_went_back_keeps_no_connection_alive() {
    let of_before = "A 0+1 ack 1 win 8000";
    for (half_closed, rest) in [(false, 7_200_000), (true, 600_000)] {
        let mut lab = Lab::ethernet();
        lab.exchange("A 1+100 ack 1 win 8000", &["A 1 ack 101 win 7900"]);
        lab.host_writes(100);
        lab.output();
        lab.exchange("A 101 ack 101 win 8000", &[]);
        if half_closed {
            lab.host_ends();
            lab.output();
            lab.exchange("A 101 ack 102 win 8000", &[]);
        }
        let end = if half_closed { 102 } else { 101 };
        for _ in 0..29 {
            lab.wait(20_000);
            lab.exchange(of_before, &[&format!("A {end} ack 101 win 7900")]);
        }
        let outcome = if half_closed { TimerOutcome::GiveUp } else { TimerOutcome::Probe };
        assert_eq!(lab.timeout(outcome), rest - 29 * 20_000);
    }
}

#[test]
fn a_guest_that_went_back_answers_no_window_probe() {
    let mut lab = Lab::ethernet();
    lab.host_writes(100);
    lab.output();
    lab.exchange("A 1 ack 101 win 0", &[]);
    lab.host_writes(100);
    lab.expect(&[]);
    for _ in 0..12 {
        lab.timeout(TimerOutcome::Probe);
        lab.expect(&["A 101+1 ack 1 win 8000"]);
        lab.exchange("A 1 ack 1 win 0", &[]);
    }
    assert_eq!(lab.timeout(TimerOutcome::GiveUp), 60_000);
}

#[test]
fn polling_does_not_put_off_a_keep_alive() {
    let mut lab = Lab::ethernet();
    lab.wait(3_600_000);
    lab.expect(&[]);
    assert_eq!(lab.timeout(TimerOutcome::Probe), 3_600_000);
}

#[test]
fn keep_alives_are_not_tries_of_data() {
    let mut lab = Lab::ethernet();
    for _ in 0..5 {
        lab.timeout(TimerOutcome::Probe);
        lab.output();
    }
    lab.host_writes(10);
    lab.output();
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 200);
    for _ in 0..11 {
        lab.output();
        lab.timeout(TimerOutcome::Retransmit);
    }
}

#[test]
fn the_handshake_is_measured_when_it_ends() {
    let mut lab = Lab::opened(&ETHERNET);
    lab.wait(100);
    lab.exchange("SA 0 ack 1 win 8000 mss 1000", &["A 1 ack 1 win 8000"]);
    lab.wait(50_000);
    lab.exchange("A 1+5 ack 1 win 8000", &["A 1 ack 6 win 7995"]);
    lab.host_writes(10);
    lab.output();
    // 100 ms, and four times half of that.
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 300);
}

/// Karn: which of the two was acknowledged is not known.
#[test]
fn a_syn_ack_sent_twice_is_not_measured() {
    let mut lab = Lab::asked(SYN, &ETHERNET);
    lab.connection.host_connected();
    lab.output();
    lab.wait(700);
    lab.exchange(SYN, &[SYN_ACK]);
    lab.exchange(ACK, &[]);
    lab.host_writes(10);
    lab.output();
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 1000);
}

/// RFC 6298 5.7.
#[test]
fn the_first_data_after_a_lost_syn_waits_three_seconds() {
    let mut lab = Lab::opened(&ETHERNET);
    lab.timeout(TimerOutcome::Retransmit);
    lab.output();
    lab.exchange("SA 0 ack 1 win 8000 mss 1000", &["A 1 ack 1 win 8000"]);
    lab.host_writes(10);
    lab.output();
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 3000);
}

#[test]
fn time_without_room_counts_towards_no_timeout() {
    let mut lab = Lab::ethernet();
    lab.host_writes(10);
    lab.output();
    assert!(lab.connection.awaits_guest());
    for _ in 0..20 {
        lab.wait(150);
        lab.connection.postpone(lab.now);
    }
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 200);
    lab.output();
    lab.wait(300);
    lab.connection.postpone(lab.now);
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 400);
}

#[test]
fn a_wait_that_is_no_wait_for_the_guest_is_not_put_off() {
    let mut lab = Lab::ethernet();
    assert!(!lab.connection.awaits_guest());
    let deadline = lab.connection.deadline();
    lab.wait(1000);
    lab.connection.postpone(lab.now);
    assert_eq!(lab.connection.deadline(), deadline);
}

#[test]
fn an_early_call_and_one_after_the_end_do_nothing() {
    let mut lab = Lab::ethernet();
    lab.host_writes(10);
    lab.output();
    let before = lab.connection;
    lab.wait(199);
    assert_eq!(lab.connection.on_timer(lab.now, None), TimerOutcome::Early);
    assert_eq!(lab.connection, before);
    lab.guest("R 1");
    lab.expect_state(State::Closed);
    lab.wait(10_000);
    assert_eq!(lab.connection.on_timer(lab.now, None), TimerOutcome::Early);
}
