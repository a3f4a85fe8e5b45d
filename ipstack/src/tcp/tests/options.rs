//! Options of a SYN: maximum segment size (RFC 9293 3.7.1) and window scale (RFC 7323 2).

use super::*;

const SCALED: Limits = Limits { mss: 1460, window_scale: 3, receive_window: 100_000, sack: false };

/// A window scale sent unasked cripples old stacks (RFC 7323 2.2).
#[test]
fn no_option_goes_unasked_into_a_syn_ack() {
    let mut lab = Lab::asked("S 0 win 8000 mss 1000", &SCALED);
    lab.connection.host_connected();
    lab.expect(&["SA 0 ack 1 win 65535 mss 1460"]);
    lab.exchange("A 1+10 ack 1 win 8000", &["A 1 ack 11 win 65525"]);
    let mut bare = Lab::asked("S 0 win 8000", &SCALED);
    bare.connection.host_connected();
    bare.expect(&["SA 0 ack 1 win 65535"]);
}

#[test]
fn scale_is_agreed_when_the_guest_offers_it() {
    let mut lab = Lab::asked("S 0 win 8000 mss 1000 ws 7", &SCALED);
    lab.connection.host_connected();
    // openvmm #3780: the window of a SYN is never scaled.
    lab.expect(&["SA 0 ack 1 win 65528 mss 1460 ws 3"]);
    lab.exchange("A 1+10 ack 1 win 100", &["A 1 ack 11 win 12498"]);
    lab.host_writes(20_000);
    // 100 << 7 bytes, the last of them less than a segment, which the window must be worth.
    assert_eq!(lab.output().len(), 12);
}

#[test]
fn scale_offered_to_the_guest_is_used_only_if_it_answers_with_its_own() {
    let mut plain = Lab::opened(&SCALED);
    plain.exchange("SA 0 ack 1 win 8000", &["A 1 ack 1 win 65528"]);
    let mut scaled = Lab::opened(&SCALED);
    scaled.exchange("SA 0 ack 1 win 8000 ws 2", &["A 1 ack 1 win 12500"]);
    let mut crossed = Lab::opened(&SCALED);
    crossed.exchange("S 0 win 8000", &["SA 0 ack 1 win 65535 mss 1460"]);
}

#[test]
fn the_window_of_the_guests_syn_is_not_scaled_either() {
    let mut lab = Lab::opened(&SCALED);
    lab.exchange("SA 0 ack 1 win 1000 mss 1000 ws 2", &["A 1 ack 1 win 12500"]);
    lab.host_writes(5000);
    lab.expect(&["A 1+1000 ack 1 win 12500"]);
}

/// RFC 7323 2.3.
#[test]
fn scales_above_14_count_as_14() {
    let limits = Limits { window_scale: 99, ..SCALED };
    let mut lab = Lab::asked("S 0 win 1 ws 200", &limits);
    lab.connection.host_connected();
    lab.expect(&["SA 0 ack 1 win 49152 ws 14"]);
    lab.guest("A 1 ack 1 win 1");
    lab.host_writes(99_999);
    let sent: usize = lab.output().iter().filter(|text| text.contains("+536 ")).count();
    assert_eq!(sent, (1 << 14) / 536);
}

/// RFC 9293 3.7.1, MUST-15.
#[test]
fn a_guest_that_names_no_segment_size_gets_536() {
    let mut lab = Lab::established("S 0 win 8000", ACK, &ETHERNET);
    lab.host_writes(1000);
    lab.expect(&["A 1+536 ack 1 win 8000", "PA 537+464 ack 1 win 8000"]);
}

/// libslirp: it was forgotten.
#[test]
fn the_guests_segment_size_survives_an_asynchronous_connect() {
    let mut lab = Lab::asked("S 0 win 8000 mss 536", &ETHERNET);
    lab.wait(900);
    lab.connection.host_connected();
    lab.expect(&[SYN_ACK]);
    lab.guest(ACK);
    lab.host_writes(537);
    lab.expect(&["A 1+536 ack 1 win 8000", "PA 537+1 ack 1 win 8000"]);
}

#[test]
fn the_links_mtu_bounds_segments_both_ways() {
    let small = Limits { mss: 100, ..ETHERNET };
    let mut lab = Lab::asked("S 0 win 8000 mss 1460", &small);
    lab.connection.host_connected();
    lab.expect(&["SA 0 ack 1 win 8000 mss 100"]);
    lab.guest(ACK);
    assert_eq!(lab.connection.mss(), 100);
}

/// RFC 791 3.2: the smallest MTU is 68, which leaves 28 bytes.
#[test]
fn an_mtu_of_68_works_and_nothing_smaller_is_believed() {
    let smallest = Limits { mss: 28, ..ETHERNET };
    let mut lab = Lab::established("S 0 win 8000 mss 0", ACK, &smallest);
    lab.host_writes(30);
    lab.expect(&["A 1+28 ack 1 win 8000", "PA 29+2 ack 1 win 8000"]);
    lab.exchange("A 1+28 ack 31 win 8000", &["A 31 ack 29 win 7972"]);
    assert_eq!(Connection::open(lab.now, lab.iss, &Limits { mss: 0, ..ETHERNET }).mss(), MIN_MSS);
}

#[test]
fn a_router_on_the_way_can_lower_the_segment_size_and_not_raise_it() {
    let mut lab = Lab::ethernet();
    lab.connection.limit_mss(500);
    assert_eq!(lab.connection.mss(), 500);
    lab.connection.limit_mss(900);
    assert_eq!(lab.connection.mss(), 500);
    lab.connection.limit_mss(1);
    assert_eq!(lab.connection.mss(), MIN_MSS);
}

/// libslirp: its options were taken.
#[test]
fn a_second_syn_with_other_options_changes_nothing() {
    let mut lab = Lab::ethernet();
    assert_eq!(lab.guest("S 0 win 1 mss 99 ws 9"), (Event::None, Fate::Challenged));
    lab.expect(&["A 1 ack 1 win 8000"]);
    assert_eq!(lab.connection.mss(), 1000);
    lab.host_writes(5000);
    assert_eq!(lab.output().len(), 5);
}
