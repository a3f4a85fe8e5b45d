//! Servers in this process, for guests.

use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Nothing here waits longer for the other side.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How soon a server notices that it is to end.
const TICK: Duration = Duration::from_millis(50);

/// A server that ends with this value, and with it the threads of its clients.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Has `handle` talk to each client on the host's loopback, in a thread of its own.
    pub(crate) fn tcp(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::tcp_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), handle)
    }

    /// The same behind a listener that may belong to another namespace.
    pub(crate) fn tcp_on(
        listener: TcpListener,
        handle: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let handle = Arc::new(handle);
        Self::start(address, move |stop| {
            let mut clients = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let handle = Arc::clone(&handle);
                        clients.push(thread::spawn(move || handle(patient(stream))));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        thread::park_timeout(Duration::from_millis(1));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            for client in clients {
                client.join().unwrap();
            }
        })
    }

    /// Answers datagrams on the host's loopback by what `answer` makes of them.
    pub(crate) fn udp(answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) -> Self {
        Self::udp_on(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), answer)
    }

    /// The same on a socket that may belong to another namespace.
    pub(crate) fn udp_on(
        socket: UdpSocket,
        answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static,
    ) -> Self {
        Self::answer(socket, move |datagram, _| answer(datagram))
    }

    fn answer(
        socket: UdpSocket,
        answer: impl Fn(&[u8], SocketAddr) -> Option<Vec<u8>> + Send + 'static,
    ) -> Self {
        socket.set_read_timeout(Some(TICK)).unwrap();
        let address = socket.local_addr().unwrap();
        Self::start(address, move |stop| {
            let mut buffer = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((length, client)) = socket.recv_from(&mut buffer)
                    && let Some(reply) = answer(&buffer[..length], client)
                {
                    socket.send_to(&reply, client).unwrap();
                }
            }
        })
    }

    /// Tells whoever sends a datagram by what address it is seen.
    pub(crate) fn mirror(socket: UdpSocket) -> Self {
        Self::answer(socket, |_, client| Some(client.ip().to_string().into_bytes()))
    }

    fn start(address: SocketAddr, serve: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        Self { address, stop, thread: Some(thread::spawn(move || serve(&theirs))) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.thread.take().unwrap().join();
        // What a client's thread found wrong is the test's failure, unless it has one already.
        if !thread::panicking() {
            result.unwrap();
        }
    }
}

/// A stream that waits no longer than [`PATIENCE`].
pub(crate) fn patient(stream: TcpStream) -> TcpStream {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Connects, and waits no longer than [`PATIENCE`] for anything.
pub(crate) fn connect(ip: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&SocketAddr::from((ip, port)), PATIENCE).map(patient)
}
