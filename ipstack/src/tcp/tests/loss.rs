//! Loss towards the guest: fast retransmit and NewReno (RFC 5681 3.2, RFC 6582), timeouts and what
//! they learn (RFC 6298).

use super::*;

const DUPLICATE: &str = "A 1 ack 1 win 8000";

/// Five segments are out.
fn five_segments() -> Lab {
    let mut lab = Lab::ethernet();
    lab.host_writes(5000);
    assert_eq!(lab.output().len(), 5);
    lab
}

#[test]
fn the_first_duplicate_ack_sends_the_first_segment_again() {
    let mut lab = five_segments();
    lab.exchange(DUPLICATE, &["A 1+1000 ack 1 win 8000"]);
    lab.exchange(DUPLICATE, &[]);
    lab.exchange(DUPLICATE, &[]);
    lab.exchange("A 1 ack 5001 win 8000", &[]);
    assert_eq!(lab.host_consumed, 5000);
}

/// RFC 6582 3.2, step 3.
#[test]
fn a_partial_ack_sends_the_next_hole() {
    let mut lab = five_segments();
    for _ in 0..3 {
        lab.guest(DUPLICATE);
    }
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 2001 win 8000", &["A 2001+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 4001 win 8000", &["PA 4001+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 5001 win 8000", &[]);
}

#[test]
fn recovery_sends_new_text_as_duplicates_show_that_some_has_left() {
    let mut lab = five_segments();
    for _ in 0..3 {
        lab.guest(DUPLICATE);
    }
    lab.host_writes(9000);
    // Half of the flight and three segments are 5,500 bytes, not worth a segment beyond the five.
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange(DUPLICATE, &["A 5001+1000 ack 1 win 8000"]);
    lab.exchange(DUPLICATE, &["A 6001+1000 ack 1 win 8000"]);
}

/// Past its threshold the window grows by parts of a segment, and the last of a super-segment is not
/// made of one (RFC 9293 3.8.6.2.1).
#[test]
fn parts_of_a_segment_in_the_window_make_no_small_segments() {
    let mut lab = five_segments();
    lab.exchange(DUPLICATE, &["A 1+1000 ack 1 win 8000"]);
    lab.host_writes(20_000);
    lab.guest("A 1 ack 5001 win 8000");
    assert_eq!(lab.output().len(), 2);
    lab.guest("A 1 ack 6001 win 8000");
    assert_eq!(lab.output().len(), 2);
    for acked in [7001, 8001, 9001] {
        lab.guest(&format!("A 1 ack {acked} win 8000"));
        let wanted = lab.connection.poll_transmit(lab.now, None);
        assert_eq!(wanted, Transmit::Data { offset: 2000, limit: 1000 });
        assert_eq!(lab.output().len(), 1);
    }
    lab.guest("A 1 ack 10001 win 8000");
    let wanted = lab.connection.poll_transmit(lab.now, None);
    assert_eq!(wanted, Transmit::Data { offset: 2000, limit: 2000 });
}

/// passt bug 125: nor is an ACK while only a FIN is out.
#[test]
fn what_is_not_a_duplicate_ack_sends_nothing_again() {
    let strays = [
        // Text, another window, a keep-alive probe: RFC 5681 2.
        "A 1+0 ack 1 win 7999",
        "A 0 ack 1 win 8000",
        "A 0+1 ack 1 win 8000",
    ];
    for text in strays {
        let mut lab = five_segments();
        lab.guest(text);
        assert!(!lab.output().iter().any(|text| text.contains('+')), "{text}");
    }
    let mut lab = five_segments();
    for sequence in [1, 2, 3, 4] {
        let text = format!("A {sequence}+1 ack 1 win 8000");
        let number = sequence + 1;
        let window = 8001 - number;
        lab.exchange(&text, &[&format!("A 5001 ack {number} win {window}")]);
    }
    let mut lab = Lab::ethernet();
    lab.host_ends();
    lab.expect(&["FA 1 ack 1 win 8000"]);
    for _ in 0..4 {
        lab.exchange(DUPLICATE, &[]);
    }
}

#[test]
fn a_timeout_goes_back_to_the_first_byte_and_starts_slowly() {
    let mut lab = five_segments();
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 200);
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange(
        "A 1 ack 1001 win 8000",
        &["A 1001+1000 ack 1 win 8000", "A 2001+1000 ack 1 win 8000"],
    );
    // The rest had arrived the first time.
    lab.exchange("A 1 ack 5001 win 8000", &[]);
    assert_eq!(lab.host_consumed, 5000);
}

#[test]
fn new_text_follows_on_what_is_sent_again() {
    let mut lab = Lab::ethernet();
    lab.host_writes(500);
    lab.expect(&["PA 1+500 ack 1 win 8000"]);
    lab.timeout(TimerOutcome::Retransmit);
    lab.host_writes(600);
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 1001 win 8000", &["PA 1001+100 ack 1 win 8000"]);
}

/// passt bug 195.
#[test]
fn a_lost_fin_is_sent_again() {
    let mut lab = Lab::ethernet();
    lab.host_ends();
    lab.expect(&["FA 1 ack 1 win 8000"]);
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 200);
    lab.expect(&["FA 1 ack 1 win 8000"]);
    lab.exchange("A 1 ack 2 win 8000", &[]);
    lab.expect_state(State::FinWait2);
}

#[test]
fn a_fin_is_sent_again_behind_the_text_before_it() {
    let mut lab = Lab::ethernet();
    lab.host_writes(1500);
    lab.host_ends();
    assert_eq!(lab.output().len(), 2);
    lab.timeout(TimerOutcome::Retransmit);
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 1001 win 8000", &["FPA 1001+500 ack 1 win 8000"]);
}

#[test]
fn a_fin_that_is_all_a_partial_ack_leaves_out_is_sent_again_at_once() {
    let mut lab = Lab::ethernet();
    lab.host_writes(1500);
    lab.host_ends();
    assert_eq!(lab.output().len(), 2);
    for _ in 0..3 {
        lab.guest(DUPLICATE);
    }
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 1501 win 8000", &["FA 1501 ack 1 win 8000"]);
}

/// RFC 6298 5.3: new ACKs restart the timer, and duplicates do not.
#[test]
fn the_timer_starts_over_with_progress() {
    let mut lab = five_segments();
    lab.wait(150);
    lab.exchange("A 1 ack 1001 win 8000", &[]);
    lab.wait(150);
    lab.exchange("A 1 ack 1001 win 8000", &["A 1001+1000 ack 1 win 8000"]);
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 50);
}

/// Karn: the backed-off timeout stays until something sent once is acknowledged
/// (RFC 6298 5.7 and section 3).
#[test]
fn an_ack_of_something_sent_twice_does_not_undo_the_backoff() {
    let mut lab = Lab::ethernet();
    lab.host_writes(1000);
    assert_eq!(lab.output().len(), 1);
    for timeout in [200, 400] {
        assert_eq!(lab.timeout(TimerOutcome::Retransmit), timeout);
        assert_eq!(lab.output().len(), 1);
    }
    lab.exchange("A 1 ack 1001 win 8000", &[]);
    lab.host_writes(1000);
    assert_eq!(lab.output().len(), 1);
    assert_eq!(lab.connection.deadline(), Some(lab.now.after(Duration::from_millis(800))));
    lab.wait(1);
    lab.exchange("A 1 ack 2001 win 8000", &[]);
    lab.host_writes(1000);
    assert_eq!(lab.output().len(), 1);
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 200);
}

#[test]
fn a_guest_slower_than_the_first_timeout_is_measured_after_all() {
    let mut lab = Lab::ethernet();
    let mut timeouts = Vec::new();
    for number in 1..6 {
        lab.host_writes(1000);
        lab.output();
        let answer = lab.now.after(Duration::from_millis(500));
        let mut count = 0;
        while lab.connection.deadline().unwrap() < answer {
            lab.timeout(TimerOutcome::Retransmit);
            assert_eq!(lab.output().len(), 1);
            count += 1;
        }
        lab.now = answer;
        lab.exchange(&format!("A 1 ack {} win 8000", 1000 * number + 1), &[]);
        timeouts.push(count);
    }
    assert_eq!(timeouts, [1, 1, 0, 0, 0]);
}

/// Five segments, of which one had to be repaired, and two more that are out.
fn two_segments_after_a_loss() -> Lab {
    let mut lab = five_segments();
    lab.exchange(DUPLICATE, &["A 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 5001 win 8000", &[]);
    lab.host_writes(2000);
    lab.expect(&["A 5001+1000 ack 1 win 8000", "PA 6001+1000 ack 1 win 8000"]);
    lab
}

/// RFC 8985 7: nothing else tells of the end of a flight.
#[test]
fn the_tail_of_a_flight_is_probed_for_long_before_the_timeout() {
    let mut lab = two_segments_after_a_loss();
    assert_eq!(lab.timeout(TimerOutcome::Probe), 10);
    lab.expect(&["A 5001+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 6001 win 8000", &["PA 6001+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 7001 win 8000", &[]);
}

#[test]
fn a_probe_that_is_lost_is_followed_by_the_timeout() {
    let mut lab = two_segments_after_a_loss();
    assert_eq!(lab.timeout(TimerOutcome::Probe), 10);
    lab.expect(&["A 5001+1000 ack 1 win 8000"]);
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 200);
    lab.expect(&["A 5001+1000 ack 1 win 8000"]);
}

/// The guest may delay the ACK of a single segment, and one that has lost nothing may be slow.
#[test]
fn a_single_segment_or_a_link_without_loss_is_not_probed() {
    let mut lab = two_segments_after_a_loss();
    lab.exchange("A 1 ack 6001 win 8000", &[]);
    assert_eq!(lab.timeout(TimerOutcome::Retransmit), 200);
    assert_eq!(five_segments().timeout(TimerOutcome::Retransmit), 200);
}
