use core::net::IpAddr;
use std::net::UdpSocket;

use slirp_nat::host::{DatagramError, DatagramKind, DatagramMeta, ForwardId};

use super::*;

fn open(host: &mut OsHost) -> Token {
    host.open_datagram(FLOW, DatagramKind::Udp, loopback(9)).unwrap()
}

fn peer() -> (UdpSocket, SocketAddr) {
    let peer = UdpSocket::bind(loopback(0)).unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = peer.local_addr().unwrap();
    (peer, address)
}

fn receive(host: &mut OsHost, token: Token, length: usize) -> Option<(Vec<u8>, DatagramMeta)> {
    let mut buffer = vec![0; length];
    let (count, meta) = host.receive_datagram(token, &mut buffer).unwrap()?;
    buffer.truncate(count);
    Some((buffer, meta))
}

#[test]
fn datagrams_carry_remote_local_ttl_and_ecn_both_ways() {
    let mut host = host(PeekMode::Discard);
    let token = open(&mut host);
    let (peer, address) = peer();
    let mut peer_host = super::host(PeekMode::Discard);
    let other = peer_host.bind_datagram(ForwardId(2), loopback(0)).unwrap();
    let port = peer_host.datagram(other).unwrap().0.fd().try_clone().map(UdpSocket::from).unwrap();
    let destination = port.local_addr().unwrap();

    let local = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 5));
    let meta =
        DatagramMeta { local: Some(local), ttl: 7, ecn: 2, ..DatagramMeta::new(destination) };
    host.send_datagram(token, &meta, &[b"in ", b"three ", b"parts"]).unwrap();
    wait_for(
        &mut peer_host,
        |event| matches!(event, HostEvent::Forward(ForwardId(2), ready) if ready.readable),
    );
    let (bytes, meta) = receive(&mut peer_host, other, 100).unwrap();
    assert_eq!(bytes, b"in three parts");
    assert_eq!((meta.remote.ip(), meta.local), (local, Some(Ipv4Addr::LOCALHOST.into())));
    assert_eq!((meta.ttl, meta.ecn, meta.truncated), (7, 2, false));
    assert_eq!(receive(&mut peer_host, other, 100), None);

    // The same socket reaches another remote, from the same port.
    host.send_datagram(token, &DatagramMeta::new(address), &[b"hello"]).unwrap();
    let mut buffer = [0; 9];
    let (count, from) = peer.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..count], from.port()), (&b"hello"[..], meta.remote.port()));
}

#[test]
fn the_local_address_of_a_datagram_is_the_one_it_was_sent_to() {
    let mut host = host(PeekMode::Discard);
    let any = (Ipv4Addr::UNSPECIFIED, 0).into();
    let token = host.bind_datagram(ForwardId(1), any).unwrap();
    let port = UdpSocket::from(host.datagram(token).unwrap().0.fd().try_clone().unwrap())
        .local_addr()
        .unwrap()
        .port();
    let (peer, address) = peer();
    for last in [1, 9] {
        let local = Ipv4Addr::new(127, 0, 0, last);
        peer.send_to(b"?", (local, port)).unwrap();
        let event = wait_for(&mut host, |_| true);
        assert!(matches!(event, HostEvent::Forward(ForwardId(1), ready) if ready.readable));
        let (_, mut meta) = receive(&mut host, token, 9).unwrap();
        assert_eq!((meta.local, meta.remote), (Some(local.into()), address));
        meta.ttl = 0;
        host.send_datagram(token, &meta, &[b"!"]).unwrap();
        assert_eq!(peer.recv_from(&mut [0; 9]).unwrap(), (1, (local, port).into()));
    }
}

#[test]
fn ipv6_datagrams_carry_the_same() {
    let mut host = host(PeekMode::Discard);
    let address = (Ipv6Addr::LOCALHOST, 0).into();
    let Ok(token) = host.bind_datagram(ForwardId(1), address) else {
        return eprintln!("left out: this machine has no IPv6");
    };
    let port = UdpSocket::from(host.datagram(token).unwrap().0.fd().try_clone().unwrap());
    let other = host.open_datagram(FLOW, DatagramKind::Udp, address).unwrap();
    let local = Some(IpAddr::V6(Ipv6Addr::LOCALHOST));
    let destination = port.local_addr().unwrap();
    let meta = DatagramMeta { local, ttl: 7, ecn: 1, ..DatagramMeta::new(destination) };
    host.send_datagram(other, &meta, &[b"hello"]).unwrap();
    wait_for(&mut host, |_| true);
    let (bytes, meta) = receive(&mut host, token, 9).unwrap();
    assert_eq!(bytes, b"hello");
    assert_eq!((meta.local, meta.ttl, meta.ecn), (local, 7, 1));
    drop(port);
    host.close(token);
    host.send_datagram(other, &DatagramMeta::new(destination), &[b"?"]).unwrap();
    wait_ready(&mut host, |ready| ready.error);
    let (error, remote) = (HostError::Refused, destination);
    // One byte was sent, which is no whole header.
    let expected = DatagramError { error, offender: local, remote, quoted: None };
    assert_eq!(host.datagram_error(other), Some(expected));
}

#[test]
fn a_datagram_longer_than_the_buffer_is_marked() {
    let mut host = host(PeekMode::Discard);
    let token = open(&mut host);
    let (peer, address) = peer();
    host.send_datagram(token, &DatagramMeta::new(address), &[b"?"]).unwrap();
    let (_, from) = peer.recv_from(&mut [0; 9]).unwrap();
    peer.send_to(b"longer", from).unwrap();
    peer.send_to(b"", from).unwrap();
    wait_readable(&mut host);
    let (bytes, meta) = receive(&mut host, token, 4).unwrap();
    assert_eq!((&bytes[..], meta.truncated), (&b"long"[..], true));
    let (bytes, meta) = receive(&mut host, token, 4).unwrap();
    assert_eq!((&bytes[..], meta.truncated), (&b""[..], false));
    assert_eq!(receive(&mut host, token, 4), None);
}

#[test]
fn the_largest_datagram_goes_both_ways_and_a_larger_one_is_too_big() {
    let mut host = host(PeekMode::Discard);
    let token = open(&mut host);
    let (peer, address) = peer();
    let sent = pattern(65_507);
    let slices: Vec<&[u8]> = sent.chunks(1000).collect();
    host.send_datagram(token, &DatagramMeta::new(address), &slices).unwrap();
    let mut buffer = vec![0; 70_000];
    let (count, from) = peer.recv_from(&mut buffer).unwrap();
    assert_eq!(buffer[..count], sent);
    peer.send_to(&sent, from).unwrap();
    wait_readable(&mut host);
    assert_eq!(receive(&mut host, token, 70_000).unwrap().0, sent);
    let result = host.send_datagram(token, &DatagramMeta::new(address), &[&sent, b"!"]);
    assert_eq!(result, Err(HostError::TooBig { mtu: 0 }));
}

#[test]
fn a_refused_datagram_is_reported_with_its_destination_and_offender() {
    let mut host = host(PeekMode::Discard);
    let token = open(&mut host);
    let ((peer, address), (gone, closed)) = (peer(), peer());
    drop(gone);
    host.send_datagram(token, &DatagramMeta::new(closed), &[b"anybody?"]).unwrap();
    wait_ready(&mut host, |ready| ready.error);
    let error = host.datagram_error(token).unwrap();
    let offender = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let quoted = Some(*b"anybody?");
    let expected = DatagramError { error: HostError::Refused, offender, remote: closed, quoted };
    assert_eq!(error, expected);
    assert_eq!(host.datagram_error(token), None);
    assert_eq!(events_now(&mut host), [], "the error event came again");
    // What one remote refused does not disturb another.
    host.send_datagram(token, &DatagramMeta::new(closed), &[b"anybody?"]).unwrap();
    host.send_datagram(token, &DatagramMeta::new(address), &[b"hello"]).unwrap();
    assert_eq!(peer.recv(&mut [0; 9]).unwrap(), 5);
    assert_eq!(receive(&mut host, token, 9), None);
    assert_eq!(host.datagram_error(token), Some(expected));
}

#[test]
fn ping_answers_with_this_flows_identifier_only() {
    let mut host = host(PeekMode::Discard);
    let remote = (Ipv4Addr::LOCALHOST, 0).into();
    let opened = host.open_datagram(FLOW, DatagramKind::Ping, remote);
    if !host.capabilities().ping {
        assert_eq!(opened, Err(HostError::Unsupported));
        return eprintln!("left out: this process may open neither ping nor raw sockets");
    }
    let token = opened.unwrap();
    let other = FlowId { slot: 1, generation: 0 };
    let second = host.open_datagram(other, DatagramKind::Ping, remote).unwrap();
    let meta = DatagramMeta { ttl: 9, ..DatagramMeta::new(remote) };
    host.send_datagram(token, &meta, &[&echo_request(0x1234), b"payload"]).unwrap();
    wait_readable(&mut host);
    let (reply, meta) = receive(&mut host, token, 100).unwrap();
    assert_eq!((reply[0], reply[1], &reply[6..8]), (0, 0, &[0, 1][..]));
    assert_eq!(&reply[8..], b"payload");
    assert_eq!(meta.remote.ip(), remote.ip());
    assert_eq!(receive(&mut host, token, 100), None);
    assert_eq!(receive(&mut host, second, 100), None, "another flow's reply");
}

/// Raw sockets deliver the IP header, too, for which there must be room in the memory of the NAT.
#[test]
fn the_longest_ping_is_answered_whole() {
    let mut host = host(PeekMode::Discard);
    if !host.capabilities().ping {
        return eprintln!("left out: this process may open neither ping nor raw sockets");
    }
    let remote = (Ipv4Addr::LOCALHOST, 0).into();
    let token = host.open_datagram(FLOW, DatagramKind::Ping, remote).unwrap();
    let mut request = [8, 0, 0, 0, 0x12, 0x34, 0, 1];
    let sum = 0x0800_u16 + 0x1234 + 1;
    request[2..4].copy_from_slice(&(!sum).to_be_bytes());
    let zeros = vec![0; 65_507];
    host.send_datagram(token, &DatagramMeta::new(remote), &[&request, &zeros]).unwrap();
    wait_readable(&mut host);
    let udp_header = 8;
    let room = crate::storage::Sizes::default().allocate().datagram.len() - udp_header;
    let (reply, meta) = receive(&mut host, token, room).unwrap();
    assert_eq!((reply.len(), meta.truncated), (8 + 65_507, false));
}

/// With raw sockets each flow's would hear the replies to all, and a guest that pings a lot would
/// make each reply cost as many reads as there are such flows.
#[test]
fn no_flow_reads_the_replies_to_others() {
    const FLOWS: u16 = 20;
    let mut host = host(PeekMode::Discard);
    if !host.capabilities().ping {
        return eprintln!("left out: this process may open neither ping nor raw sockets");
    }
    let remote = (Ipv4Addr::LOCALHOST, 0).into();
    let tokens: Vec<_> = (0..FLOWS)
        .map(|number| {
            let flow = FlowId { slot: number.into(), generation: 0 };
            let token = host.open_datagram(flow, DatagramKind::Ping, remote).unwrap();
            let request = echo_request(0x4100 + number);
            host.send_datagram(token, &DatagramMeta::new(remote), &[&request, b"payload"]).unwrap();
            token
        })
        .collect();
    for token in tokens {
        assert!(receive(&mut host, token, 100).is_some(), "loopback answers at once");
        assert_eq!(receive(&mut host, token, 100), None);
    }
    assert_eq!(host.calls().receive_datagram, 2 * u64::from(FLOWS));
}

/// An echo request with sequence number 1 and "payload" to follow.
fn echo_request(identifier: u16) -> [u8; 8] {
    let mut message = [8, 0, 0, 0, 0, 0, 0, 1];
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    let payload = b"payload\0";
    let words = message.chunks(2).chain(payload.chunks(2));
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    message[2..4].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    message
}
