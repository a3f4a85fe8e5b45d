use std::io::Read;
use std::net::TcpListener;

use nix::sys::socket::sockopt::TcpMaxSeg;

use super::super::options::{self, SendMemory};
use super::super::slab::Kind;
use super::*;

/// A connection whose far end takes segments of `segment_size` bytes at most. The smaller they
/// are, the smaller is the send buffer that the kernel begins with.
fn pair_with_segments_of(segment_size: u32) -> Pair {
    let listener = TcpListener::bind(loopback(0)).unwrap();
    nix::sys::socket::setsockopt(&listener, TcpMaxSeg, &segment_size).unwrap();
    Pair::with(host(PeekMode::Discard), &listener)
}

fn send_memory(pair: &mut Pair) -> SendMemory {
    let socket = pair.host.sockets.get(pair.token).unwrap();
    let Kind::Stream(stream) = &socket.kind else { panic!("not a stream") };
    options::send_memory(stream.fd()).unwrap()
}

/// Sends by what the host says it takes, until that is nothing. Returns how much was sent.
fn fill_by_room(pair: &mut Pair, data: &[u8]) -> usize {
    let mut total = 0;
    while total < data.len() {
        let room = pair.host.send_room(pair.token);
        if room == 0 {
            break;
        }
        let chunk = &data[total..data.len().min(total + room)];
        assert_eq!(pair.host.send(pair.token, &[chunk]), Ok(chunk.len()), "after {total} bytes");
        total += chunk.len();
    }
    total
}

#[test]
fn what_room_promises_is_taken_whatever_the_segment_size() {
    for segment_size in [88, 536, 1448, 32_767] {
        let mut pair = pair_with_segments_of(segment_size);
        let total = fill_by_room(&mut pair, &vec![0; 8 << 20]);
        assert!(total > 20_000, "segments of {segment_size}: {total} bytes");
        let memory = send_memory(&mut pair);
        assert!(memory.queued > memory.limit / 2, "segments of {segment_size}: {memory:?}");
    }
}

#[test]
fn a_short_send_is_followed_by_an_event_once_there_is_room() {
    let mut pair = pair_with_segments_of(1448);
    let sent = pattern(16 << 20);
    let mut taken = 0;
    // The far end's kernel goes on to acknowledge what it has room for.
    loop {
        match pair.host.send(pair.token, &[&sent[taken..]]).unwrap() {
            0 if events_now(&mut pair.host).is_empty() => break,
            more => taken += more,
        }
    }
    assert!(taken < sent.len());
    assert_eq!(pair.host.send_room(pair.token), 0);
    let reader = read_in_background(&pair, taken);
    wait_ready(&mut pair.host, |ready| ready.writable);
    assert!(pair.host.send_room(pair.token) > 0);
    assert_eq!(reader.join().unwrap(), sent[..taken]);
}

#[test]
fn an_armed_flow_that_never_overfills_the_socket_is_woken_and_its_buffer_grows() {
    let mut pair = pair_with_segments_of(536);
    let first = send_memory(&mut pair).limit;
    let sent = pattern(16 << 20);
    let reader = read_in_background(&pair, sent.len());
    let mut done = 0;
    loop {
        done += fill_by_room(&mut pair, &sent[done..]);
        if done == sent.len() {
            break;
        }
        pair.host.arm_write(pair.token);
        // Room may be back before the kernel could take note that it is waited for.
        if pair.host.send_room(pair.token) == 0 {
            wait_ready(&mut pair.host, |ready| ready.writable);
        }
    }
    assert_eq!(reader.join().unwrap(), sent);
    let grown = send_memory(&mut pair).limit;
    assert!(grown > 2 * first, "from {first} to {grown}");
}

#[test]
fn arming_a_socket_with_much_room_makes_no_event() {
    let mut pair = Pair::new(PeekMode::Discard);
    for _ in 0..3 {
        pair.host.arm_write(pair.token);
        assert_eq!(events_now(&mut pair.host), []);
    }
}

fn read_in_background(pair: &Pair, count: usize) -> std::thread::JoinHandle<Vec<u8>> {
    let mut peer = pair.peer.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut heard = vec![0; count];
        peer.read_exact(&mut heard).unwrap();
        heard
    })
}
