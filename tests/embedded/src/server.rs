//! The scripted host: a network of one server, which checks an upload, serves a download and
//! echoes datagrams.

use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use heapless::Vec;
use slirp_nat::HostEvent;
use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, Ready, Token,
};
use slirp_nat::ring_host::{PushHost, Received};

use crate::machine::Events;
use crate::pattern::{self, Check, DOWNLOAD_LEN, RECEIPT_LEN};

/// Where the server is.
pub const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 5), 80);

const STREAM: Token = Token(1);
const DATAGRAMS: Token = Token(2);

/// Bytes that the server takes before it has to say that it takes more.
const SEND_ROOM: usize = 6000;

/// The longest datagram that the guest sends.
const MAX_DATAGRAM: usize = 1472;

/// A host that reaches one server: one stream at a time, and one datagram.
#[derive(Debug, Default)]
pub struct Server {
    stream: Option<Stream>,
    echo: Option<Echo>,
}

#[derive(Debug)]
struct Stream {
    flow: FlowId,
    upload: Check,
    upload_ended: bool,
    /// Bytes of download and receipt handed out.
    served: u32,
    room: usize,
    /// What has happened since [`Events::next_event`] was asked.
    ready: Ready,
}

#[derive(Debug)]
struct Echo {
    flow: FlowId,
    datagram: Option<(Vec<u8, MAX_DATAGRAM>, SocketAddr)>,
    ready: bool,
}

impl Stream {
    const fn new(flow: FlowId) -> Self {
        Self {
            flow,
            upload: Check::new(pattern::upload),
            upload_ended: false,
            served: 0,
            room: SEND_ROOM,
            ready: Ready { readable: false, writable: true, error: false },
        }
    }

    /// Serves the download, and the receipt once the upload has ended.
    fn serve(&mut self, buffer: &mut [u8]) -> Received {
        let right = self.upload.right();
        let end = if self.upload_ended { DOWNLOAD_LEN + RECEIPT_LEN } else { DOWNLOAD_LEN };
        let pattern = |place| pattern::download_and_receipt(place, right);
        match pattern::fill(buffer, &mut self.served, end, pattern) {
            0 if self.upload_ended => Received::End,
            0 => Received::WouldBlock,
            count => Received::Data(count),
        }
    }

    fn take_event(&mut self) -> Option<HostEvent> {
        let ready = core::mem::take(&mut self.ready);
        if ready.writable {
            self.room = SEND_ROOM;
        }
        (ready != Ready::default()).then_some(HostEvent::Flow(self.flow, ready))
    }
}

impl Echo {
    fn take_event(&mut self) -> Option<HostEvent> {
        let ready = Ready { readable: core::mem::take(&mut self.ready), ..Ready::default() };
        ready.readable.then_some(HostEvent::Flow(self.flow, ready))
    }
}

impl Server {
    /// A server that nobody has asked anything.
    #[must_use]
    pub const fn new() -> Self {
        Self { stream: None, echo: None }
    }
}

impl Events for Server {
    fn next_event(&mut self) -> Option<HostEvent> {
        let stream = self.stream.as_mut().and_then(Stream::take_event);
        stream.or_else(|| self.echo.as_mut().and_then(Echo::take_event))
    }
}

impl PushHost for Server {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn is_own_address(&mut self, _: IpAddr) -> bool {
        false
    }

    fn connect(&mut self, flow: FlowId, to: SocketAddr, _: u16) -> Result<Token, HostError> {
        if to != SocketAddr::V4(ADDRESS) {
            return Err(HostError::NetUnreachable);
        }
        if self.stream.is_some() {
            return Err(HostError::NoResources);
        }
        self.stream = Some(Stream::new(flow));
        Ok(STREAM)
    }

    fn connect_result(&mut self, _: Token) -> Result<Connected, HostError> {
        let local = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 40000));
        Ok(Connected { local, remote: ADDRESS.into() })
    }

    fn receive(&mut self, _: Token, buffer: &mut [u8]) -> Result<Received, HostError> {
        let stream = self.stream.as_mut().ok_or(HostError::Other)?;
        Ok(stream.serve(buffer))
    }

    fn send(&mut self, _: Token, data: &[&[u8]]) -> Result<usize, HostError> {
        let stream = self.stream.as_mut().ok_or(HostError::Other)?;
        let mut taken = 0;
        for piece in data {
            let piece = piece.get(..stream.room).unwrap_or(piece);
            stream.upload.take(piece);
            stream.room -= piece.len();
            taken += piece.len();
        }
        stream.ready.writable |= stream.room == 0;
        Ok(taken)
    }

    fn send_room(&mut self, _: Token) -> usize {
        self.stream.as_ref().map_or(0, |stream| stream.room)
    }

    fn arm_write(&mut self, _: Token) {
        if let Some(stream) = &mut self.stream {
            stream.ready.writable |= stream.room < SEND_ROOM;
        }
    }

    fn shutdown_write(&mut self, _: Token) {
        if let Some(stream) = &mut self.stream {
            stream.upload_ended = true;
            stream.ready.readable = true;
        }
    }

    fn close(&mut self, token: Token) {
        match token {
            STREAM => self.stream = None,
            _ => self.echo = None,
        }
    }

    fn reset(&mut self, token: Token) {
        self.close(token);
    }

    fn listen(&mut self, _: ForwardId, _: SocketAddr) -> Result<Token, HostError> {
        Err(HostError::Unsupported)
    }

    fn accept(&mut self, _: Token, _: FlowId) -> Result<Option<Accepted>, HostError> {
        Ok(None)
    }

    fn open_datagram(
        &mut self,
        flow: FlowId,
        kind: DatagramKind,
        _: SocketAddr,
    ) -> Result<Token, HostError> {
        if kind == DatagramKind::Ping {
            return Err(HostError::Unsupported);
        }
        if self.echo.is_some() {
            return Err(HostError::NoResources);
        }
        self.echo = Some(Echo { flow, datagram: None, ready: false });
        Ok(DATAGRAMS)
    }

    fn bind_datagram(&mut self, _: ForwardId, _: SocketAddr) -> Result<Token, HostError> {
        Err(HostError::Unsupported)
    }

    fn send_datagram(
        &mut self,
        _: Token,
        meta: &DatagramMeta,
        data: &[&[u8]],
    ) -> Result<(), HostError> {
        let echo = self.echo.as_mut().ok_or(HostError::Other)?;
        let mut bytes = Vec::new();
        for piece in data {
            bytes.extend_from_slice(piece).map_err(|_| HostError::TooBig { mtu: 1500 })?;
        }
        echo.datagram = Some((bytes, meta.remote));
        echo.ready = true;
        Ok(())
    }

    fn receive_datagram(
        &mut self,
        _: Token,
        buffer: &mut [u8],
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        let echo = self.echo.as_mut().ok_or(HostError::Other)?;
        let Some((bytes, remote)) = echo.datagram.take() else { return Ok(None) };
        let to = buffer.get_mut(..bytes.len()).ok_or(HostError::Other)?;
        to.copy_from_slice(&bytes);
        Ok(Some((bytes.len(), DatagramMeta::new(remote))))
    }

    fn datagram_error(&mut self, _: Token) -> Option<DatagramError> {
        None
    }
}
