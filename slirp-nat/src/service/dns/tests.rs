use core::net::{Ipv4Addr, Ipv6Addr};

use super::*;

const A: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(127, 0, 0, 53)), 53);
const B: SocketAddr = SocketAddr::new(core::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 5353);
const C: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 53);
const ALL: [SocketAddr; 3] = [A, B, C];
const T: Instant = Instant::ZERO;

const fn flow(slot: u32) -> FlowId {
    FlowId { slot, generation: 1 }
}

const fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

/// libslirp is said not to relay to 127.0.0.53 (slirp4netns #280), nor across families (rootlesskit
/// PR 438): both are resolvers like any other here.
#[test]
fn queries_go_to_the_first_resolver_as_long_as_it_answers() {
    let mut resolvers = Resolvers::new();
    for id in 0..200 {
        let now = at(u64::from(id) * 10);
        assert_eq!(resolvers.pick(now, &ALL, flow(1), id), Some(A));
        assert!(resolvers.answered(&ALL, A, flow(1), id));
    }
}

#[test]
fn without_resolvers_there_is_none_to_pick() {
    let mut resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(T, &[], flow(1), 1), None);
    resolvers.failed(&[], A);
    assert!(!resolvers.answered(&[], A, flow(1), 1));
    assert_eq!(resolvers.pick(T, &[C], flow(1), 1), Some(C));
}

/// slirp4netns #347: only the first name server was used.
#[test]
fn a_query_asked_again_goes_to_the_next_resolver_and_so_do_all_after_it() {
    let mut resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 7), Some(A));
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 7), Some(B));
    assert_eq!(resolvers.pick(T, &ALL, flow(2), 9), Some(B));
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 7), Some(C));
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 7), Some(A));
}

/// Both address families are commonly asked for at once from one port.
#[test]
fn several_queries_of_a_flow_are_told_apart() {
    let mut resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 1), Some(A));
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 2), Some(A));
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 1), Some(B));
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 2), Some(B), "was not asked of B yet");
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 2), Some(C));
}

#[test]
fn the_same_id_of_another_flow_or_after_an_answer_is_another_query() {
    let mut resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 1), Some(A));
    assert_eq!(resolvers.pick(T, &ALL, flow(2), 1), Some(A));
    assert!(resolvers.answered(&ALL, A, flow(1), 1));
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 1), Some(A));
}

#[test]
fn a_silent_resolver_is_left_even_if_each_query_has_a_new_id() {
    let mut resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(at(0), &ALL, flow(1), 1), Some(A));
    assert_eq!(resolvers.pick(at(3), &ALL, flow(2), 2), Some(A));
    assert_eq!(resolvers.pick(at(4), &ALL, flow(3), 3), Some(B));
    assert_eq!(resolvers.pick(at(7), &ALL, flow(4), 4), Some(B), "its own time has begun");
    assert_eq!(resolvers.pick(at(8), &ALL, flow(5), 5), Some(C));
}

#[test]
fn one_answer_in_time_is_enough() {
    let mut resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(at(0), &ALL, flow(1), 1), Some(A));
    assert_eq!(resolvers.pick(at(3), &ALL, flow(2), 2), Some(A));
    assert!(resolvers.answered(&ALL, A, flow(2), 2));
    assert_eq!(resolvers.pick(at(60), &ALL, flow(3), 3), Some(A));
}

#[test]
fn a_resolver_that_the_host_cannot_reach_is_left_once() {
    let mut resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 1), Some(A));
    resolvers.failed(&ALL, A);
    resolvers.failed(&ALL, A);
    assert_eq!(resolvers.pick(T, &ALL, flow(1), 1), Some(B));
}

#[test]
fn each_resolver_is_tried_when_all_fail_at_once() {
    let mut resolvers = Resolvers::new();
    let tried = ALL.map(|_| {
        let resolver = resolvers.pick(T, &ALL, flow(1), 1).unwrap();
        resolvers.failed(&ALL, resolver);
        resolver
    });
    assert_eq!(tried, ALL);
}

#[test]
fn a_late_answer_of_a_resolver_left_does_not_excuse_the_one_in_use() {
    let mut resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(at(0), &ALL, flow(1), 1), Some(A));
    resolvers.failed(&ALL, A);
    assert_eq!(resolvers.pick(at(0), &ALL, flow(2), 2), Some(B));
    assert!(resolvers.answered(&ALL, A, flow(1), 1));
    assert_eq!(resolvers.pick(at(4), &ALL, flow(3), 3), Some(C));
}

#[test]
fn an_answer_to_nothing_is_known_as_such() {
    let mut resolvers = Resolvers::new();
    resolvers.pick(T, &ALL, flow(1), 1);
    assert!(!resolvers.answered(&ALL, A, flow(1), 2));
    assert!(!resolvers.answered(&ALL, A, flow(2), 1));
    assert!(resolvers.answered(&ALL, A, flow(1), 1));
    assert!(!resolvers.answered(&ALL, A, flow(1), 1));
}

/// lima #501: many queries at once stop nothing.
#[test]
fn more_queries_at_once_than_are_remembered_push_out_the_oldest() {
    let mut resolvers = Resolvers::new();
    for id in 0..1000 {
        assert_eq!(resolvers.pick(T, &ALL, flow(1), id), Some(A));
    }
    assert!(!resolvers.answered(&ALL, A, flow(1), 935));
    assert!((936..1000).all(|id| resolvers.answered(&ALL, A, flow(1), id)));
}

#[test]
fn a_list_that_became_shorter_is_begun_anew() {
    let mut resolvers = Resolvers::new();
    resolvers.pick(T, &ALL, flow(1), 1);
    resolvers.failed(&ALL, A);
    resolvers.failed(&ALL, B);
    resolvers = Resolvers::new();
    assert_eq!(resolvers.pick(T, &[B], flow(1), 1), Some(B));
}

#[test]
fn queries_and_responses_are_told_apart_and_bounded() {
    let mut message = [0; MAX_MESSAGE_LEN + 1];
    message[..2].copy_from_slice(&[0x12, 0x34]);
    assert_eq!(query_id(&message[..12]), Some(0x1234));
    assert_eq!(query_id(&message[..MAX_MESSAGE_LEN]), Some(0x1234));
    assert_eq!((query_id(&message), query_id(&message[..11])), (None, None));
    assert_eq!(reply_id(&message[..12]), None);
    message[2] = 0x80;
    assert_eq!((query_id(&message[..12]), reply_id(&message[..12])), (None, Some(0x1234)));
}
