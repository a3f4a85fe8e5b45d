//! The table of timers in the documentation of the module says what is measured here.

use super::*;

const MODULE: &str = include_str!("../mod.rs");

/// Waits of a connection whose guest says nothing, and how it ends.
struct Measured {
    millis: Vec<u64>,
    retransmissions: usize,
    probes: usize,
}

/// Lets the timer run out again and again, at most 40 times; `answer` is what the guest says each
/// time.
fn measure(lab: &mut Lab, answer: Option<&str>) -> Measured {
    let mut measured = Measured { millis: Vec::new(), retransmissions: 0, probes: 0 };
    for _ in 0..40 {
        let Some(deadline) = lab.connection.deadline() else { break };
        measured.millis.push(deadline.since(lab.now).as_millis() as u64);
        lab.now = deadline;
        match lab.connection.on_timer(lab.now, None) {
            TimerOutcome::Retransmit => measured.retransmissions += 1,
            TimerOutcome::Probe => measured.probes += 1,
            TimerOutcome::GiveUp | TimerOutcome::Closed => return measured,
            TimerOutcome::Early => panic!("early"),
        }
        assert_eq!(lab.output().len(), 1, "something is sent");
        answer.iter().for_each(|answer| {
            lab.guest(answer);
            lab.expect(&[]);
        });
    }
    measured
}

fn duration(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..300_000 => format!("{} s", millis / 1000),
        300_000..3_600_000 => format!("{} min", millis / 60_000),
        _ => format!("{} h", millis / 3_600_000),
    }
}

impl Measured {
    /// The row of the table, without its first cell.
    fn cells(&self) -> [String; 3] {
        let (first, later) = self.millis.split_first().unwrap();
        let most = later.iter().max().copied().unwrap_or(0);
        let doubles = self.millis.is_sorted()
            && self.millis.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(most));
        let then = match later {
            [] => String::new(),
            _ if doubles => format!("doubles to {}", duration(most)),
            _ => {
                assert!(later.iter().all(|wait| *wait == most), "{later:?}");
                duration(most)
            }
        };
        let end = match (self.retransmissions, self.probes) {
            (0, 0) => "at once".into(),
            (0, 40) => "never".into(),
            (0, probes) => format!("{probes} probes"),
            (retransmissions, 0) => format!("{retransmissions} retransmissions"),
            both => panic!("{both:?}"),
        };
        [duration(*first), then, end]
    }
}

/// The host has ended, and the guest too if it says so.
fn ended(guest: &[&str], after: &[&str]) -> Lab {
    let mut lab = Lab::ethernet();
    guest.iter().for_each(|text| assert_eq!(lab.guest(text).1, Fate::Taken));
    lab.host_ends();
    lab.output();
    after.iter().for_each(|text| assert_eq!(lab.guest(text).1, Fate::Taken));
    lab.output();
    lab
}

fn closed_window() -> Lab {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1 ack 1 win 0", &[]);
    lab.host_writes(100);
    lab.expect(&[]);
    lab
}

/// A connection that waits for what a row of the table names.
fn waiting_for(what: &str) -> Option<Lab> {
    Some(match what {
        "the host's connect" => Lab::asked(SYN, &ETHERNET),
        "ACK of SYN" => Lab::opened(&ETHERNET),
        "ACK of SYN-ACK" => {
            let mut lab = Lab::asked(SYN, &ETHERNET);
            lab.connection.host_connected();
            lab.expect(&[SYN_ACK]);
            lab
        }
        "ACK of data" => {
            let mut lab = Lab::ethernet();
            lab.host_writes(1000);
            assert_eq!(lab.output().len(), 1);
            lab
        }
        "ACK of data, SYN or SYN-ACK having been sent again" => {
            let mut lab = Lab::opened(&ETHERNET);
            lab.timeout(TimerOutcome::Retransmit);
            lab.output();
            lab.exchange("SA 0 ack 1 win 8000 mss 1000", &["A 1 ack 1 win 8000"]);
            lab.host_writes(1000);
            assert_eq!(lab.output().len(), 1);
            lab
        }
        "ACK of FIN (FIN-WAIT-1, CLOSING)" => {
            let closing = ended(&[], &["FA 1 ack 1 win 8000"]);
            closing.expect_state(State::Closing);
            let lab = ended(&[], &[]);
            lab.expect_state(State::FinWait1);
            lab
        }
        "ACK of FIN (LAST-ACK)" => {
            let lab = ended(&["FA 1 ack 1 win 8000"], &[]);
            lab.expect_state(State::LastAck);
            lab
        }
        "a closed window, probes being answered" | "a closed window, else" => closed_window(),
        "anything, all being acknowledged" => Lab::ethernet(),
        "the guest's FIN, all else being done (FIN-WAIT-2)" => {
            let lab = ended(&[], &["A 1 ack 2 win 8000"]);
            lab.expect_state(State::FinWait2);
            lab
        }
        "the end of TIME-WAIT" => {
            let lab = ended(&[], &["FA 1 ack 2 win 8000"]);
            lab.expect_state(State::TimeWait);
            lab
        }
        "the host to take more of the rest, both having ended" => {
            let mut lab = ended(&[], &["FA 1 ack 2 win 8000"]);
            lab.timeout(TimerOutcome::Closed);
            lab.connection.await_host(lab.now);
            lab
        }
        _ => return None,
    })
}

/// A window that is not worth using is used in the end.
fn small_window() -> [String; 3] {
    let mut lab = Lab::ethernet();
    lab.exchange("A 1 ack 1 win 300", &[]);
    lab.host_writes(500);
    lab.expect(&[]);
    let first = lab.timeout(TimerOutcome::Probe);
    lab.expect(&["A 1+300 ack 1 win 8000"]);
    [duration(first), String::new(), "it is used".into()]
}

#[test]
fn the_table_of_timers_holds() {
    let table = MODULE.split("# Timers").nth(1).unwrap().split("# What").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | ")).skip(1);
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
        let what = cells[0];
        let answer =
            (what == "a closed window, probes being answered").then_some("A 1 ack 1 win 0");
        let measured = if what == "a window too small to be worth using" {
            small_window()
        } else {
            let mut lab = waiting_for(what).unwrap_or_else(|| panic!("nobody measures: {what}"));
            measure(&mut lab, answer).cells()
        };
        assert_eq!(cells[1..], measured, "{what}");
        count += 1;
    }
    assert_eq!(count, 14, "a row is missing");
}
