//! Sequence numbers that pass 2^32 and 2^31 (RFC 9293 3.4; ipstack #56).

use super::*;

const ORIGINS: [u32; 6] =
    [u32::MAX, u32::MAX - 1, u32::MAX - 700, 0x7fff_ffff, 0x8000_0000, 0x7fff_fe00];

#[test]
fn every_exchange_is_the_same_wherever_the_numbers_begin() {
    for irs in ORIGINS {
        for iss in ORIGINS {
            let mut lab = Lab::asked_with_numbers(irs, iss, SYN, &ETHERNET);
            lab.connection.host_connected();
            lab.expect(&[SYN_ACK]);
            lab.exchange(ACK, &[]);
            receive(&mut lab);
            send(&mut lab);
            probe(&mut lab);
            end(&mut lab);
        }
    }
}

fn receive(lab: &mut Lab) {
    lab.exchange("A 1+500 ack 1 win 8000", &["A 1 ack 501 win 7500"]);
    lab.exchange("A 1001+500 ack 1 win 8000", &["A 1 ack 501 win 7500"]);
    lab.exchange("A 301+700 ack 1 win 8000", &["A 1 ack 1001 win 7000"]);
    assert_eq!(lab.guest("A 501+500 ack 1 win 8000"), (Event::None, Fate::Duplicate));
    lab.expect(&["A 1 ack 1001 win 7000"]);
}

fn send(lab: &mut Lab) {
    lab.host_writes(3000);
    assert_eq!(lab.output().len(), 3);
    for _ in 0..3 {
        lab.guest("A 1001 ack 1 win 8000");
    }
    lab.expect(&["A 1+1000 ack 1001 win 7000"]);
    lab.exchange("A 1001 ack 1001 win 8000", &["A 1001+1000 ack 1001 win 7000"]);
    lab.timeout(TimerOutcome::Retransmit);
    lab.expect(&["A 1001+1000 ack 1001 win 7000"]);
    lab.exchange("A 1001 ack 3001 win 8000", &[]);
    assert_eq!(lab.host_consumed, 3000);
}

fn probe(lab: &mut Lab) {
    lab.exchange("A 1001 ack 3001 win 0", &[]);
    lab.host_writes(100);
    lab.expect(&[]);
    lab.timeout(TimerOutcome::Probe);
    lab.expect(&["A 3001+1 ack 1001 win 7000"]);
    lab.exchange("A 1001 ack 3002 win 8000", &["PA 3002+99 ack 1001 win 7000"]);
    lab.exchange("A 1001 ack 3101 win 8000", &[]);
}

fn end(lab: &mut Lab) {
    lab.exchange("FA 1001 ack 3101 win 8000", &["A 3101 ack 1002 win 6999"]);
    lab.host_ends();
    lab.expect(&["FA 3101 ack 1002 win 6999"]);
    assert_eq!(lab.guest("A 1002 ack 3102 win 8000"), (Event::Closed, Fate::Taken));
}
