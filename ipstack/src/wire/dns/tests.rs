#![expect(clippy::std_instead_of_alloc, reason = "tests have std, and no alloc is linked")]

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// `example.com` A, with an EDNS record behind it.
const QUERY: &[u8] = b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\x01\x07example\x03com\0\0\x01\0\x01\
    \0\0\x29\x04\xd0\0\0\0\0\0\0";
const QUESTION_END: usize = HEADER_LEN + 13 + 4;

fn message(body: &[u8]) -> Vec<u8> {
    [&QUERY[..HEADER_LEN], body].concat()
}

#[test]
fn header_and_question_of_a_query_are_read() {
    let query = DnsMessage::parse(QUERY).unwrap();
    assert_eq!((query.id(), query.opcode(), query.response_code()), (0x1234, 0, 0));
    assert!(query.recursion_desired());
    assert!(!query.is_response() && !query.is_truncated() && !query.recursion_available());
    assert_eq!(query.counts(), [1, 0, 0, 1]);
    let question = query.question().unwrap();
    assert_eq!(question, Question { name: b"\x07example\x03com\0", kind: 1, class: 1 });
}

#[test]
fn flags_and_counts_of_a_response_are_read() {
    let bytes = [0, 1, 0xaf, 0x83, 1, 2, 3, 4, 5, 6, 7, 8];
    let response = DnsMessage::parse(&bytes).unwrap();
    assert!(response.is_response() && response.is_truncated() && response.recursion_available());
    assert_eq!((response.opcode(), response.response_code()), (5, 3));
    assert_eq!(response.counts(), [0x0102, 0x0304, 0x0506, 0x0708]);
}

#[test]
fn a_header_must_be_whole() {
    for len in 0..HEADER_LEN {
        assert_eq!(DnsMessage::parse(&QUERY[..len]).unwrap_err(), WireError::Truncated);
    }
}

#[test]
fn a_question_that_passes_the_end_is_refused() {
    for len in HEADER_LEN..QUESTION_END {
        let message = DnsMessage::parse(&QUERY[..len]).unwrap();
        assert_eq!(message.question(), Err(WireError::Truncated));
    }
    assert!(DnsMessage::parse(&QUERY[..QUESTION_END]).unwrap().question().is_ok());
}

#[test]
fn compression_pointers_are_refused_so_that_none_can_loop() {
    for body in [&[0xc0, 12, 0, 1, 0, 1][..], &[1, b'a', 0xc0, 12, 0, 1, 0, 1], &[0x40, 0, 0, 0, 0]]
    {
        let bytes = message(body);
        assert_eq!(DnsMessage::parse(&bytes).unwrap().question(), Err(WireError::BadValue));
    }
}

#[test]
fn names_are_at_most_255_bytes() {
    let label = |len: u8| [vec![len], vec![b'x'; usize::from(len)]].concat();
    let longest = [label(63), label(63), label(63), label(61), vec![0, 0, 1, 0, 1]].concat();
    let question = message(&longest);
    assert_eq!(DnsMessage::parse(&question).unwrap().question().unwrap().name.len(), 255);
    let longer = [label(63), label(63), label(63), label(62), vec![0, 0, 1, 0, 1]].concat();
    let question = message(&longer);
    assert_eq!(DnsMessage::parse(&question).unwrap().question(), Err(WireError::BadValue));
}

#[test]
fn there_is_no_question_if_the_header_counts_none() {
    let mut bytes = QUERY.to_vec();
    bytes[5] = 0;
    assert_eq!(DnsMessage::parse(&bytes).unwrap().question(), Err(WireError::BadValue));
}

/// openvmm #3196: a query that cannot be passed on is answered, or the client waits.
#[test]
fn a_server_failure_keeps_id_question_and_the_flags_of_the_query() {
    let mut out = [0xaa; 64];
    assert_eq!(servfail(QUERY, &mut out), Some(QUESTION_END));
    assert_eq!(&out[..HEADER_LEN], b"\x12\x34\x81\x92\0\x01\0\0\0\0\0\0");
    assert_eq!(out[HEADER_LEN..QUESTION_END], QUERY[HEADER_LEN..QUESTION_END]);
    assert_eq!(out[QUESTION_END], 0xaa);
}

#[test]
fn a_refusal_differs_in_its_code_only() {
    let (mut failure, mut refusal) = ([0; 64], [0; 64]);
    assert_eq!(servfail(QUERY, &mut failure), refused(QUERY, &mut refusal));
    assert_eq!((failure[3], refusal[3]), (0x92, 0x95));
    failure[3] = refusal[3];
    assert_eq!(failure, refusal);
}

#[test]
fn a_failure_without_a_readable_question_is_the_header_alone() {
    let bytes = message(&[0xc0, 12, 0, 1, 0, 1]);
    let mut out = [0; 64];
    assert_eq!(servfail(&bytes, &mut out), Some(HEADER_LEN));
    assert_eq!(&out[..HEADER_LEN], b"\x12\x34\x81\x92\0\0\0\0\0\0\0\0");
}

#[test]
fn neither_responses_nor_fragments_of_a_query_are_answered() {
    let mut response = QUERY.to_vec();
    response[2] |= 0x80;
    let mut out = [0; 64];
    assert_eq!(servfail(&response, &mut out), None);
    assert_eq!(servfail(&QUERY[..11], &mut out), None);
    assert_eq!(servfail(QUERY, &mut out[..QUESTION_END - 1]), None);
    assert_eq!(servfail(QUERY, &mut out[..HEADER_LEN - 1]), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_and_answered_without_panic(bytes: Vec<u8>, room in 0..300_usize) {
        let mut out = vec![0; room];
        if let Some(len) = servfail(&bytes, &mut out) {
            let (query, answer) =
                (DnsMessage::parse(&bytes).unwrap(), DnsMessage::parse(&out[..len]).unwrap());
            prop_assert!(len <= bytes.len());
            prop_assert!(answer.is_response());
            prop_assert_eq!(answer.id(), query.id());
            prop_assert_eq!(answer.question().ok(), query.question().ok());
        }
    }

    #[test]
    fn questions_are_read_back(labels in proptest::collection::vec("[a-z0-9-]{1,20}", 0..8), kind: u16) {
        let mut body = Vec::new();
        for label in &labels {
            body.push(u8::try_from(label.len()).unwrap());
            body.extend(label.as_bytes());
        }
        body.push(0);
        let name = body.clone();
        body.extend(kind.to_be_bytes());
        body.extend([0, 1]);
        let bytes = message(&body);
        let question = DnsMessage::parse(&bytes).unwrap().question().unwrap();
        prop_assert_eq!(question, Question { name: &name, kind, class: 1 });
    }
}
