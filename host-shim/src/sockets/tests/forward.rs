use std::io::Write;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slirp_nat::host::ForwardId;

use super::*;

const FORWARD: ForwardId = ForwardId(5);

fn listen(host: &mut OsHost) -> (Token, SocketAddr) {
    let token = host.listen(FORWARD, loopback(0)).unwrap();
    let address = rustix::net::getsockname(host.sockets.get(token).unwrap().kind.fd()).unwrap();
    (token, SocketAddr::try_from(address).unwrap())
}

fn wait_for_connection(host: &mut OsHost) {
    wait_for(host, |event| matches!(event, HostEvent::Forward(FORWARD, ready) if ready.readable));
}

#[test]
fn one_event_may_stand_for_many_connections() {
    in_both_modes(|mode| {
        let mut host = host(mode);
        let (listener, address) = listen(&mut host);
        assert_eq!(host.accept(listener, FLOW), Ok(None));
        let mut clients: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
        wait_for_connection(&mut host);
        for client in &mut clients {
            let accepted = host.accept(listener, FLOW).unwrap().unwrap();
            assert_eq!(accepted.local, address);
            assert_eq!(accepted.peer, client.local_addr().unwrap());
            client.write_all(b"hello").unwrap();
            wait_readable(&mut host);
            let mut buffer = [0; 9];
            assert_eq!(host.peek(accepted.token, 2, &mut buffer), Ok(Peek::Data(3)), "{mode:?}");
            assert_eq!(&buffer[..3], b"llo");
            host.close(accepted.token);
        }
        assert_eq!(host.accept(listener, FLOW), Ok(None));
    });
}

#[test]
fn an_address_in_use_is_refused_and_a_foreign_one_too() {
    let mut host = host(PeekMode::Discard);
    let (_, address) = listen(&mut host);
    assert_eq!(host.listen(ForwardId(6), address), Err(HostError::InUse));
    let foreign = (Ipv4Addr::new(192, 0, 2, 77), 0).into();
    assert_eq!(host.listen(ForwardId(6), foreign), Err(HostError::Other));
    assert_eq!(host.bind_datagram(ForwardId(6), foreign), Err(HostError::Other));
    assert_eq!(host.socket_count(), 1);
}

/// Lowers the process's limit of descriptors, so it runs as a process of its own.
#[test]
fn a_listener_outlives_a_want_of_descriptors() {
    const CHILD: &str = "HOST_SHIM_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let name = "sockets::tests::forward::a_listener_outlives_a_want_of_descriptors";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1"])
            .env(CHILD, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let mut host = host(PeekMode::Discard);
    let (listener, address) = listen(&mut host);
    let client = TcpStream::connect(address).unwrap();
    wait_for_connection(&mut host);
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..limit }).unwrap();
    assert_eq!(host.accept(listener, FLOW), Err(HostError::NoResources));
    assert_eq!(host.connect(FLOW, address, 0), Err(HostError::NoResources));
    assert_eq!(host.calls().accept_starved, 1);
    setrlimit(Resource::Nofile, limit).unwrap();
    // Nobody connects any more, and still the listener is announced again.
    wait_for_connection(&mut host);
    let accepted = host.accept(listener, FLOW).unwrap().unwrap();
    assert_eq!(accepted.peer, client.local_addr().unwrap());
}
