use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};

use super::*;
use rustix::net::SendFlags;

const WOULD_BLOCK: Result<Vec<u8>, Result<Peek, HostError>> = Err(Ok(Peek::WouldBlock));
const END: Result<Vec<u8>, Result<Peek, HostError>> = Err(Ok(Peek::End));
const RESET: Result<Vec<u8>, Result<Peek, HostError>> = Err(Err(HostError::Reset));

fn reset(peer: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
    drop(peer);
}

#[test]
fn bytes_peek_at_any_offset_and_stay() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        pair.peer.write_all(b"abcdefgh").unwrap();
        wait_readable(&mut pair.host);
        for (offset, length, expected) in [
            (0, 3, &b"abc"[..]),
            (3, 9, b"defgh"),
            (1, 2, b"bc"),
            (7, 5, b"h"),
            (0, 8, b"abcdefgh"),
        ] {
            assert_eq!(pair.peek(offset, length).unwrap(), expected, "{mode:?} at {offset}");
        }
        assert_eq!(pair.peek(8, 1), WOULD_BLOCK);
    });
}

#[test]
fn offsets_count_from_the_last_byte_consumed() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        let sent = pattern(60_000);
        pair.peer.write_all(&sent).unwrap();
        assert_eq!(pair.peek_all(0, sent.len()), sent);
        let mut consumed = 0;
        // Small counts are gathered before the kernel hears of them, large ones are not.
        for count in [1, 1460, 7, 20_000, 3, 1, 30_000] {
            pair.host.consume(pair.token, count);
            consumed += count;
            assert_eq!(pair.peek(0, 100).unwrap(), sent[consumed..consumed + 100], "{mode:?}");
            assert_eq!(pair.peek(77, 9).unwrap(), sent[consumed + 77..consumed + 86], "{mode:?}");
        }
        let left = sent.len() - consumed;
        assert_eq!(pair.peek_all(0, left), sent[consumed..]);
        assert_eq!(pair.peek(left, 1), WOULD_BLOCK);
        pair.peer.write_all(b"more").unwrap();
        assert_eq!(pair.peek_all(left, left + 4), b"more");
    });
}

/// Bytes left behind keep a buffer of the kernel alive and with it the window shut: a download to a
/// guest with small segments stood still for good.
#[test]
fn even_small_consumes_reach_the_kernel_at_once() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        pair.peer.write_all(&pattern(30_000)).unwrap();
        pair.peek_all(0, 30_000);
        for consumed in 1..=300 {
            pair.host.consume(pair.token, 100);
            assert_eq!(pair.host.calls().consume, consumed);
        }
    });
}

#[test]
fn sequential_peeks_by_offset_set_no_option() {
    let mut pair = Pair::new(PeekMode::Offset);
    if pair.host.peek_mode() != PeekMode::Offset {
        return eprintln!("left out: this kernel does not peek at TCP by offset (Linux 6.9)");
    }
    pair.peer.write_all(&pattern(30_000)).unwrap();
    wait_readable(&mut pair.host);
    let before = pair.host.calls().option;
    let mut offset = 0;
    while offset < 30_000 {
        offset += pair.peek(offset, 1460).unwrap().len();
    }
    pair.host.consume(pair.token, 20_000);
    assert_eq!(pair.peek(10_000, 1), WOULD_BLOCK);
    assert_eq!(pair.host.calls().option, before);
}

#[test]
fn a_short_peek_needs_no_call_to_know_that_nothing_follows() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        pair.peer.write_all(b"abc").unwrap();
        wait_readable(&mut pair.host);
        assert_eq!(pair.peek(0, 10).unwrap(), b"abc");
        let before = pair.host.calls().peek;
        for _ in 0..3 {
            assert_eq!(pair.peek(3, 10), WOULD_BLOCK);
        }
        assert_eq!(pair.host.calls().peek, before);
        // What lies before is still to be had, as for a retransmission.
        assert_eq!(pair.peek(1, 10).unwrap(), b"bc");
        pair.host.consume(pair.token, 2);
        assert_eq!(pair.peek(1, 10), WOULD_BLOCK);
        assert_eq!(pair.peek(0, 10).unwrap(), b"c");
    });
}

#[test]
fn an_event_comes_once_for_each_arrival() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        for round in 0..3 {
            pair.peer.write_all(b"x").unwrap();
            wait_readable(&mut pair.host);
            assert_eq!(pair.peek(round, 10).unwrap(), b"x");
            assert_eq!(pair.peek(round + 1, 10), WOULD_BLOCK);
            // The bytes are still in the queue, and yet nothing is announced again.
            assert_eq!(events_now(&mut pair.host), []);
        }
    });
}

#[test]
fn an_urgent_byte_is_one_byte_of_the_stream() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        let mut sent: Vec<u8> = Vec::new();
        for (bytes, flags) in [
            (&b"before"[..], SendFlags::empty()),
            (b"mU", SendFlags::OOB),
            (b"after", SendFlags::empty()),
            (b"V", SendFlags::OOB),
            (b"end", SendFlags::empty()),
        ] {
            rustix::net::send(&pair.peer, bytes, flags).unwrap();
            sent.extend(bytes);
        }
        // The end is there, too, and must not be seen before the bytes behind an urgent one.
        pair.peer.shutdown(Shutdown::Write).unwrap();
        wait_readable(&mut pair.host);
        let (mut seen, mut held) = (Vec::new(), 0);
        while seen.len() < sent.len() {
            match pair.peek(held, 100) {
                Ok(bytes) => {
                    held += bytes.len();
                    seen.extend(bytes);
                }
                // As when the guest has acknowledged all that it was given.
                Err(Ok(Peek::WouldBlock)) if held > 0 => {
                    pair.host.consume(pair.token, core::mem::take(&mut held));
                }
                Err(Ok(Peek::WouldBlock)) => wait_readable(&mut pair.host),
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, sent, "{mode:?}");
        pair.host.consume(pair.token, held);
        assert_eq!(pair.peek(0, 9), END, "{mode:?}");
    });
}

#[test]
fn what_lies_behind_an_urgent_byte_is_announced_once_it_can_be_peeked() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        pair.peer.write_all(b"abc").unwrap();
        rustix::net::send(&pair.peer, b"U", SendFlags::OOB).unwrap();
        wait_readable(&mut pair.host);
        assert_eq!(pair.peek(0, 9).unwrap(), b"abc");
        if pair.peek(3, 9) == WOULD_BLOCK {
            pair.host.consume(pair.token, 3);
            wait_readable(&mut pair.host);
            assert_eq!(pair.peek(0, 9).unwrap(), b"U");
        }
    });
}

#[test]
fn the_end_is_told_from_a_pause() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        pair.peer.write_all(b"last words").unwrap();
        wait_readable(&mut pair.host);
        assert_eq!(pair.peek(4, 10).unwrap(), b" words");
        assert_eq!(pair.peek(10, 10), WOULD_BLOCK);
        pair.peer.shutdown(Shutdown::Write).unwrap();
        wait_readable(&mut pair.host);
        assert_eq!(pair.peek(10, 10), END);
        assert_eq!(pair.peek(0, 10).unwrap(), b"last words");
        pair.host.consume(pair.token, 10);
        assert_eq!(pair.peek(0, 10), END);
        // The other direction is still open.
        assert_eq!(pair.host.send(pair.token, &[b"so ", b"long"]), Ok(7));
        pair.host.shutdown_write(pair.token);
        let mut heard = String::new();
        pair.peer.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "so long");
    });
}

#[test]
fn the_end_may_come_with_the_last_bytes_and_before_any_event_is_taken() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        pair.peer.write_all(b"bye").unwrap();
        pair.peer.shutdown(Shutdown::Write).unwrap();
        wait_readable(&mut pair.host);
        assert_eq!(pair.peek(0, 3).unwrap(), b"bye");
        assert_eq!(pair.peek(3, 3), END);
        assert_eq!(pair.peek(3, 3), END);
    });
}

#[test]
fn data_before_a_reset_peeks_and_then_the_reset_stays() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        let sent = pattern(5000);
        pair.peer.write_all(&sent).unwrap();
        reset(pair.peer.try_clone().unwrap());
        drop(core::mem::replace(&mut pair.peer, dead_stream()));
        wait_ready(&mut pair.host, |ready| ready.readable && ready.error);
        assert_eq!(pair.peek(0, 2000).unwrap(), sent[..2000], "{mode:?}");
        pair.host.consume(pair.token, 1000);
        assert_eq!(pair.peek(1000, 9000).unwrap(), sent[2000..], "{mode:?}");
        for _ in 0..3 {
            assert_eq!(pair.peek(4000, 10), RESET, "{mode:?}");
        }
        assert_eq!(pair.host.send(pair.token, &[b"x"]), Err(HostError::Reset));
        assert_eq!(pair.peek(0, 5).unwrap(), sent[1000..1005], "{mode:?}");
        pair.host.consume(pair.token, 4000);
        assert_eq!(pair.peek(0, 10), RESET, "{mode:?}");
        assert_eq!(events_now(&mut pair.host), [], "an error event came again");
    });
}

/// A stream that only stands in for one that was closed.
fn dead_stream() -> TcpStream {
    let listener = TcpListener::bind(loopback(0)).unwrap();
    TcpStream::connect(listener.local_addr().unwrap()).unwrap()
}

#[test]
fn a_reset_that_a_send_meets_does_not_hide_what_was_received() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        pair.peer.write_all(b"data").unwrap();
        // A peer that closes with unread bytes resets.
        assert_eq!(pair.host.send(pair.token, &[b"unread"]), Ok(6));
        reset(core::mem::replace(&mut pair.peer, dead_stream()));
        assert_eq!(pair.host.send(pair.token, &[b"x"]), Err(HostError::Reset));
        assert_eq!(pair.peek(0, 9).unwrap(), b"data", "{mode:?}");
        assert_eq!(pair.peek(4, 9), RESET, "{mode:?}");
    });
}

#[test]
fn reset_makes_the_peer_see_a_reset_and_close_does_not() {
    in_both_modes(|mode| {
        let mut pair = Pair::new(mode);
        pair.host.reset(pair.token);
        let error = pair.peer.read(&mut [0; 9]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);

        let mut pair = Pair::new(mode);
        pair.peer.write_all(b"never read").unwrap();
        let sent = pattern(100_000);
        assert_eq!(pair.host.send(pair.token, &[&sent]), Ok(sent.len()));
        pair.host.close(pair.token);
        let mut heard = Vec::new();
        pair.peer.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, sent, "{mode:?}");
        assert_eq!(pair.host.socket_count(), 0);
    });
}

#[test]
fn a_gathered_send_keeps_the_order_of_many_slices() {
    let mut pair = Pair::new(PeekMode::Discard);
    let sent = pattern(15_000);
    let slices: Vec<&[u8]> = sent.chunks(100).collect();
    let before = pair.host.calls().send;
    assert_eq!(pair.host.send(pair.token, &slices), Ok(sent.len()));
    assert_eq!(pair.host.calls().send - before, 3);
    let mut heard = vec![0; sent.len()];
    pair.peer.read_exact(&mut heard).unwrap();
    assert_eq!(heard, sent);
}

#[test]
fn a_refused_connect_says_so() {
    let mut host = host(PeekMode::Discard);
    let closed = TcpListener::bind(loopback(0)).unwrap().local_addr().unwrap();
    let result = host.connect(FLOW, closed, 0).and_then(|token| {
        wait_ready(&mut host, |ready| ready.writable && ready.error);
        assert_eq!(host.connect_result(token), Err(HostError::Refused));
        assert_eq!(host.peek(token, 0, &mut [0; 9]), Err(HostError::Refused));
        assert_eq!(events_now(&mut host), [], "an error event came again");
        host.connect_result(token)
    });
    assert_eq!(result, Err(HostError::Refused));
}

#[test]
fn an_event_of_a_dead_flow_is_not_told_of_its_successor() {
    let mut host = host(PeekMode::Discard);
    let listener = TcpListener::bind(loopback(0)).unwrap();
    let first = host.connect(FLOW, listener.local_addr().unwrap(), 0).unwrap();
    host.close(first);
    let other = FlowId { slot: 1, generation: 1 };
    let second = host.connect(other, listener.local_addr().unwrap(), 0).unwrap();
    assert_eq!(second, first, "the slot is used again");
    wait_for(&mut host, |event| match event {
        HostEvent::Flow(flow, ready) => {
            assert_eq!(*flow, other);
            ready.writable
        }
        HostEvent::Forward(..) => false,
    });
}

#[test]
fn a_connect_under_way_would_block() {
    let mut host = host(PeekMode::Discard);
    // A full backlog leaves a SYN without an answer.
    let listener = TcpListener::bind(loopback(0)).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let tokens: Vec<_> = (0..8).map(|_| host.connect(FLOW, address, 0).unwrap()).collect();
    let results: Vec<_> = tokens.iter().map(|token| host.connect_result(*token)).collect();
    assert!(results.contains(&Err(HostError::WouldBlock)), "{results:?}");
    assert!(results.iter().any(Result::is_ok), "{results:?}");
}

#[test]
fn an_unroutable_address_is_unreachable() {
    let mut host = host(PeekMode::Discard);
    // Class E is never routed, and 0/8 is no destination.
    let result = host.connect(FLOW, (Ipv4Addr::new(240, 0, 0, 1), 80).into(), 0);
    assert!(
        matches!(
            result,
            Ok(_) | Err(HostError::NetUnreachable | HostError::HostUnreachable | HostError::Denied)
        ),
        "{result:?}"
    );
    assert_eq!(
        super::super::errors::from_errno(rustix::io::Errno::NETUNREACH),
        HostError::NetUnreachable
    );
}

#[test]
fn streams_over_ipv6_work_alike() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        return eprintln!("left out: this machine has no IPv6");
    };
    in_both_modes(|mode| {
        let mut pair = Pair::with(host(mode), &listener);
        let sent = pattern(5000);
        pair.peer.write_all(&sent).unwrap();
        pair.peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(pair.peek_all(0, 5000), sent);
        pair.host.consume(pair.token, 10);
        assert_eq!(pair.peek(90, 10).unwrap(), sent[100..110]);
        pair.host.consume(pair.token, 4990);
        wait_for_end(&mut pair);
    });
}

fn wait_for_end(pair: &mut Pair) {
    while pair.peek(0, 9) == WOULD_BLOCK {
        wait_readable(&mut pair.host);
    }
    assert_eq!(pair.peek(0, 9), END);
}

#[test]
fn tokens_of_closed_sockets_do_no_harm() {
    let mut pair = Pair::new(PeekMode::Discard);
    pair.host.close(pair.token);
    assert_eq!(pair.peek(0, 1), Err(Err(HostError::Other)));
    assert_eq!(pair.host.send(pair.token, &[b"x"]), Err(HostError::Other));
    assert_eq!(pair.host.send_room(pair.token), 0);
    pair.host.consume(pair.token, 1);
    pair.host.arm_write(pair.token);
    pair.host.reset(pair.token);
}

#[test]
fn the_hosts_own_addresses_are_known() {
    let mut host = host(PeekMode::Discard);
    assert!(host.is_own_address(Ipv4Addr::LOCALHOST.into()));
    assert!(host.is_own_address(Ipv4Addr::UNSPECIFIED.into()));
    assert!(host.is_own_address("::ffff:127.0.0.1".parse().unwrap()));
    assert!(!host.is_own_address(Ipv4Addr::new(192, 0, 2, 77).into()));
}
