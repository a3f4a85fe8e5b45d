//! Loss towards a guest with SACK: what is sent again, when, and how much is on its way meanwhile
//! (RFC 6675).

use super::*;

/// `count` segments of 1,000 bytes are out to a guest with SACK.
fn out(count: usize) -> Lab {
    let limits = Limits { sack: true, ..ETHERNET };
    let mut lab = Lab::established("S 0 win 60000 mss 1000 sackok", "A 1 ack 1 win 60000", &limits);
    lab.board = Some(Scoreboard::EMPTY);
    lab.host_writes(1000 * count);
    assert_eq!(lab.output().len(), count);
    lab
}

/// The guest's ACK of everything before `ack`, with SACK blocks.
fn told(ack: u32, sack: &str) -> String {
    let option = if sack.is_empty() { String::new() } else { format!(" sack {sack}") };
    format!("A 1 ack {ack} win 60000{option}")
}

#[test]
fn the_third_block_sends_the_first_hole_and_no_other_byte() {
    let mut lab = out(5);
    lab.exchange(&told(1, "1001-2001"), &[]);
    lab.exchange(&told(1, "1001-3001"), &[]);
    lab.exchange(&told(1, "1001-4001"), &["A 1+1000 ack 1 win 8000"]);
    lab.exchange(&told(1, "1001-5001"), &[]);
    lab.exchange("A 1 ack 5001 win 60000", &[]);
    assert_eq!(lab.host_consumed, 5000);
    assert!(lab.board.unwrap().is_empty() && !lab.connection.is_recovering());
}

/// More than two segments beyond the gap are proof enough (`IsLost`), as when ACKs are rare.
#[test]
fn one_block_of_three_segments_is_proof() {
    let mut lab = out(5);
    lab.exchange(&told(1, "1001-3001"), &[]);
    lab.exchange(&told(1, "1001-4001"), &["A 1+1000 ack 1 win 8000"]);
}

/// RFC 5827: nothing can follow the second that tells of a third.
#[test]
fn two_blocks_are_proof_if_the_flight_has_no_third() {
    let mut lab = out(3);
    lab.exchange(&told(1, "1001-2001"), &[]);
    lab.exchange(&told(1, "1001-3001"), &["A 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 3001 win 60000", &[]);
    let mut more = out(3);
    more.exchange(&told(1, "1001-2001"), &[]);
    more.host_writes(1000);
    more.exchange(&told(1, "1001-3001"), &["PA 3001+1000 ack 1 win 8000"]);
    more.exchange(&told(1, "1001-4001"), &["A 1+1000 ack 1 win 8000"]);
}

/// Two holes are repaired in one round trip, where NewReno takes two.
#[test]
fn all_holes_are_sent_again_in_one_round_trip() {
    let mut lab = out(10);
    lab.exchange(&told(1, "1001-2001"), &[]);
    lab.exchange(&told(1, "3001-4001,1001-2001"), &[]);
    // Half of ten segments may be on their way: six are, then seven, then five, then four.
    lab.exchange(&told(1, "3001-5001,1001-2001"), &["A 1+1000 ack 1 win 8000"]);
    lab.exchange(&told(1, "3001-6001,1001-2001"), &[]);
    lab.exchange(&told(1, "3001-7001,1001-2001"), &["A 2001+1000 ack 1 win 8000"]);
    for end in [8001, 9001] {
        lab.exchange(&told(1, &format!("3001-{end},1001-2001")), &[]);
    }
    lab.exchange("A 1 ack 2001 win 60000 sack 3001-10001", &[]);
    lab.exchange("A 1 ack 10001 win 60000", &[]);
    assert!(!lab.connection.is_recovering());
}

/// RFC 6675 5 (C): new text follows as what the guest tells of leaves the pipe.
#[test]
fn new_text_goes_out_while_a_hole_is_repaired() {
    let mut lab = out(10);
    lab.exchange(&told(1, "1001-4001"), &["A 1+1000 ack 1 win 8000"]);
    lab.host_writes(5000);
    lab.exchange(&told(1, "1001-5001"), &[]);
    lab.exchange(&told(1, "1001-6001"), &[]);
    lab.exchange(&told(1, "1001-7001"), &["A 10001+1000 ack 1 win 8000"]);
    lab.exchange(&told(1, "1001-8001"), &["A 11001+1000 ack 1 win 8000"]);
}

/// A repair that gets lost shows when text sent after it arrives, and needs no timer.
#[test]
fn a_repair_that_is_lost_is_made_again() {
    let mut lab = out(10);
    lab.exchange(&told(1, "1001-4001"), &["A 1+1000 ack 1 win 8000"]);
    lab.host_writes(9000);
    lab.exchange(
        &told(1, "1001-10001"),
        &[
            "A 10001+1000 ack 1 win 8000",
            "A 11001+1000 ack 1 win 8000",
            "A 12001+1000 ack 1 win 8000",
            "A 13001+1000 ack 1 win 8000",
        ],
    );
    lab.exchange(
        &told(1, "1001-12001"),
        &["A 14001+1000 ack 1 win 8000", "A 15001+1000 ack 1 win 8000"],
    );
    lab.guest(&told(1, "1001-13001"));
    assert_eq!(lab.output().first().unwrap(), "A 1+1000 ack 1 win 8000");
}

/// The first timeout keeps what the guest has told, and what it holds is not sent again.
#[test]
fn a_timeout_sends_what_is_missing_and_nothing_else() {
    let mut lab = out(6);
    lab.exchange(&told(1, "2001-3001"), &[]);
    lab.exchange(&told(1, "2001-4001"), &[]);
    lab.timeout(TimerOutcome::Retransmit);
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange(
        &told(1001, "2001-4001"),
        &["A 1001+1000 ack 1 win 8000", "A 4001+1000 ack 1 win 8000"],
    );
    lab.exchange("A 1 ack 5001 win 60000", &["PA 5001+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 6001 win 60000", &[]);
}

/// RFC 2018 8: a guest may throw away what it has told of. The second timeout in a row, or one
/// while the guest claims to hold what comes next, believes nothing of it.
#[test]
fn a_guest_may_go_back_on_its_word() {
    let mut lab = out(4);
    lab.exchange(&told(1, "1001-3001"), &[]);
    lab.timeout(TimerOutcome::Retransmit);
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.timeout(TimerOutcome::Retransmit);
    lab.expect(&["A 1+1000 ack 1 win 8000"]);
    lab.exchange(
        "A 1 ack 1001 win 60000",
        &["A 1001+1000 ack 1 win 8000", "A 2001+1000 ack 1 win 8000"],
    );
}

/// RFC 6298 3: what the guest tells of was sent once, and is measured, whatever else is missing.
/// That ends the backoff, long before the first hole is repaired.
#[test]
fn a_block_is_a_measurement_and_ends_the_backoff() {
    let mut lab = out(10);
    lab.connection.backoffs = 3;
    lab.exchange(&told(1, "1001-4001"), &["A 1+1000 ack 1 win 8000"]);
    lab.host_writes(1000);
    lab.exchange(&told(1, "1001-7001"), &["PA 10001+1000 ack 1 win 8000"]);
    assert_eq!(lab.connection.backoffs, 3);
    lab.wait(10);
    lab.guest(&told(1, "10001-11001,1001-7001"));
    assert_eq!(lab.connection.backoffs, 0);
}

/// Blocks that say nothing: of what was never sent, is acknowledged, or makes no sense.
#[test]
fn senseless_blocks_are_passed_over() {
    let mut lab = out(5);
    for blocks in ["5001-6001", "4001-6001", "3001-2001", "2001-2001", "0-1", "1-2001"] {
        for _ in 0..4 {
            lab.exchange(&told(1, blocks), &[]);
        }
        assert!(lab.board.unwrap().is_empty(), "{blocks}");
    }
}

/// RFC 2883 4: a first block tells of text that came twice, be it acknowledged or in the block
/// behind. That is no news of the gap, and no proof of a loss.
#[test]
fn a_guest_may_tell_of_what_came_twice() {
    let mut lab = out(5);
    lab.exchange("A 1 ack 2001 win 60000 sack 1-1001", &[]);
    lab.exchange("A 1 ack 2001 win 60000 sack 1001-2001", &[]);
    assert!(lab.board.unwrap().is_empty() && !lab.connection.is_recovering());
    lab.exchange("A 1 ack 2001 win 60000 sack 3001-4001", &[]);
    let known = lab.board;
    for _ in 0..3 {
        lab.exchange("A 1 ack 2001 win 60000 sack 3001-4001,3001-4001", &[]);
    }
    assert_eq!(lab.board, known);
    assert!(!lab.connection.is_recovering());
    lab.exchange("A 1 ack 5001 win 60000", &[]);
    assert_eq!(lab.host_consumed, 5000);
}

/// Without blocks in them, duplicate ACKs count as ever.
#[test]
fn duplicate_acks_without_blocks_are_proof_as_well() {
    let mut lab = out(5);
    for _ in 0..2 {
        lab.exchange("A 1 ack 1 win 60000", &[]);
    }
    lab.exchange("A 1 ack 1 win 60000", &["A 1+1000 ack 1 win 8000"]);
    lab.exchange("A 1 ack 2001 win 60000", &["A 2001+1000 ack 1 win 8000"]);
}

/// More ranges than there is room for: the lowest count, and all is repaired in the end, by a
/// guest that tells of its three highest ranges each time.
#[test]
fn more_ranges_than_are_known_of_are_repaired_in_order() {
    let mut lab = out(59);
    let mut held: Vec<bool> = (0..59).map(|n| n % 2 == 1).collect();
    let mut told_again = 0;
    for end in (2..59).step_by(2) {
        lab.guest(&told(1, &format!("{}-{}", 1000 * end - 999, 1000 * end + 1)));
    }
    for _ in 0..200 {
        let output = lab.output();
        for sent in &output {
            let start: usize = sent.split([' ', '+']).nth(1).unwrap().parse().unwrap();
            told_again += usize::from(held[start / 1000]);
            held[start / 1000] = true;
        }
        let Some(first) = held.iter().position(|held| !held) else { break };
        let beyond = (first..59).rev().filter(|n| held[*n] && !held[*n - 1]).take(3);
        let blocks: Vec<String> = beyond
            .map(|n| {
                let run = held[n..].iter().take_while(|held| **held).count();
                format!("{}-{}", 1000 * n + 1, 1000 * (n + run) + 1)
            })
            .collect();
        lab.guest(&told(1000 * first as u32 + 1, &blocks.join(",")));
        if output.is_empty() {
            lab.timeout(TimerOutcome::Retransmit);
        }
    }
    assert!(held.iter().all(|held| *held));
    assert!(told_again <= 12, "{told_again} segments were sent in vain");
}

/// RFC 8985 7.4: whether a probe has repaired something is told by D-SACK (RFC 2883).
#[test]
fn a_lost_ack_costs_a_probe_and_a_lost_tail_some_of_the_window() {
    for (sack, segments) in [("5001-6001", 3), ("", 2)] {
        let mut lab = out(5);
        lab.exchange(&told(1, "1001-4001"), &["A 1+1000 ack 1 win 8000"]);
        lab.exchange(&told(5001, ""), &[]);
        lab.host_writes(2000);
        assert_eq!(lab.output().len(), 2);
        assert_eq!(lab.timeout(TimerOutcome::Probe), 10);
        lab.expect(&["A 5001+1000 ack 1 win 8000"]);
        lab.exchange(&told(7001, sack), &[]);
        lab.host_writes(9000);
        assert_eq!(lab.output().len(), segments, "{sack}");
    }
}
