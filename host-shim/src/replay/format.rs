//! The lines of a recording, and what they stand for in the NAT.

use core::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use slirp_nat::Protocol;
use slirp_nat::host::{
    Accepted, Capabilities, Connected, DatagramError, DatagramKind, DatagramMeta, FlowId,
    ForwardId, HostError, HostEvent, Peek, Ready, Token,
};
use slirp_nat::link::{Frame, Offload, Room, TcpSegmentation, TxMeta};

use super::config::Header;
use super::hex;

/// One line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Header(Box<Header>),
    Input(Input),
    Host { call: HostCall, answer: Answer },
    Link { call: LinkCall, answer: LinkAnswer },
    Sent(Sent),
    Due { at: Option<u64> },
    End {},
}

/// A call on the NAT.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Input {
    /// Microseconds.
    pub(super) at: u64,
    pub(super) call: Call,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Call {
    Receive(Vec<InFrame>),
    FlowEvent { slot: u32, generation: u32, ready: ReadyFlags },
    ForwardEvent { forward: u16, ready: ReadyFlags },
    LinkReady,
    Timer,
    AddForward { udp: bool, host: SocketAddr, guest: SocketAddr },
    RemoveForward { forward: u16 },
    SetResolvers(Vec<SocketAddr>),
}

impl Call {
    pub(super) const fn event(event: HostEvent) -> Self {
        match event {
            HostEvent::Flow(FlowId { slot, generation }, ready) => {
                Self::FlowEvent { slot, generation, ready: ReadyFlags::new(ready) }
            }
            HostEvent::Forward(ForwardId(forward), ready) => {
                Self::ForwardEvent { forward, ready: ReadyFlags::new(ready) }
            }
        }
    }

    pub(super) const fn add_forward(rule: slirp_nat::Forward) -> Self {
        let udp = matches!(rule.protocol, Protocol::Udp);
        Self::AddForward { udp, host: rule.host, guest: rule.guest }
    }
}

/// A frame from the guest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct InFrame {
    #[serde(with = "hex")]
    pub(super) bytes: Vec<u8>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(super) checksum_partial: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) segment_size: u16,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u16) -> bool {
    *number == 0
}

impl InFrame {
    pub(super) fn new(frame: &Frame<'_>) -> Self {
        let Offload { checksum_partial, segment_size } = frame.offload;
        Self { bytes: frame.bytes.to_vec(), checksum_partial, segment_size }
    }

    pub(super) fn frame(&self) -> Frame<'_> {
        let Self { bytes, checksum_partial, segment_size } = self;
        let offload = Offload { checksum_partial: *checksum_partial, segment_size: *segment_size };
        Frame { bytes, offload }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ReadyFlags {
    readable: bool,
    writable: bool,
    error: bool,
}

impl ReadyFlags {
    const fn new(ready: Ready) -> Self {
        let Ready { readable, writable, error } = ready;
        Self { readable, writable, error }
    }

    pub(super) const fn ready(self) -> Ready {
        let Self { readable, writable, error } = self;
        Ready { readable, writable, error }
    }
}

/// A call of the NAT on its host. Data follows from the inputs, so that a digest of it is enough.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HostCall {
    Capabilities,
    IsOwnAddress(IpAddr),
    Connect { slot: u32, generation: u32, remote: SocketAddr, max_segment: u16 },
    ConnectResult(u32),
    Peek { token: u32, offset: usize, len: usize },
    Consume { token: u32, count: usize },
    Send { token: u32, payload: Payload },
    SendRoom(u32),
    ArmWrite(u32),
    ShutdownWrite(u32),
    Close(u32),
    Reset(u32),
    Listen { forward: u16, address: SocketAddr },
    Accept { listener: u32, slot: u32, generation: u32 },
    OpenDatagram { slot: u32, generation: u32, ping: bool, remote: SocketAddr },
    BindDatagram { forward: u16, address: SocketAddr },
    SendDatagram { token: u32, meta: Meta, payload: Payload },
    ReceiveDatagram { token: u32, len: usize },
    DatagramError(u32),
}

impl HostCall {
    pub(super) const fn open_datagram(
        flow: FlowId,
        kind: DatagramKind,
        remote: SocketAddr,
    ) -> Self {
        let ping = matches!(kind, DatagramKind::Ping);
        Self::OpenDatagram { slot: flow.slot, generation: flow.generation, ping, remote }
    }
}

/// Data for the host: its length, and a digest of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Payload {
    len: usize,
    digest: u64,
}

impl Payload {
    pub(super) fn new(data: &[&[u8]]) -> Self {
        let bytes = data.iter().copied().flatten();
        Self { len: data.iter().map(|slice| slice.len()).sum(), digest: digest(bytes) }
    }
}

/// What the host answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Nothing,
    Yes(bool),
    Capabilities {
        ping: bool,
        segmented_send: bool,
    },
    Token(u32),
    Count(usize),
    Connected {
        local: SocketAddr,
        remote: SocketAddr,
    },
    Accepted {
        token: u32,
        peer: SocketAddr,
        local: SocketAddr,
    },
    #[serde(with = "hex")]
    Data(Vec<u8>),
    WouldBlock,
    End,
    Datagram(InDatagram),
    Report(InReport),
    Error(ErrorName),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct InDatagram {
    #[serde(with = "hex")]
    pub(super) data: Vec<u8>,
    pub(super) meta: Meta,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct InReport {
    error: ErrorName,
    offender: Option<IpAddr>,
    remote: SocketAddr,
    quoted: Option<[u8; 8]>,
}

impl InReport {
    pub(super) const fn new(report: &DatagramError) -> Self {
        let DatagramError { error, offender, remote, quoted } = *report;
        Self { error: ErrorName::new(error), offender, remote, quoted }
    }

    pub(super) fn report(&self) -> DatagramError {
        let Self { error, offender, remote, quoted } = *self;
        DatagramError { error: error.error(), offender, remote, quoted }
    }
}

/// Every kind of answer to and from what the trait has. `None` is an answer of another kind.
impl Answer {
    pub(super) const fn error(error: HostError) -> Self {
        Self::Error(ErrorName::new(error))
    }

    pub(super) fn of<T>(result: Result<T, HostError>, found: impl FnOnce(T) -> Self) -> Self {
        result.map_or_else(Self::error, found)
    }

    pub(super) const fn capabilities(capabilities: Capabilities) -> Self {
        let Capabilities { ping, segmented_send } = capabilities;
        Self::Capabilities { ping, segmented_send }
    }

    pub(super) fn peeked(found: Peek, buffer: &[u8]) -> Self {
        match found {
            Peek::Data(count) => Self::Data(buffer.get(..count).unwrap_or(buffer).to_vec()),
            Peek::WouldBlock => Self::WouldBlock,
            Peek::End => Self::End,
        }
    }

    pub(super) const fn connected(connected: Connected) -> Self {
        Self::Connected { local: connected.local, remote: connected.remote }
    }

    pub(super) const fn accepted(accepted: Accepted) -> Self {
        let Accepted { token: Token(token), peer, local } = accepted;
        Self::Accepted { token, peer, local }
    }
}

/// What goes with a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Meta {
    remote: SocketAddr,
    local: Option<IpAddr>,
    ttl: u8,
    ecn: u8,
    segment_size: u16,
    truncated: bool,
}

impl Meta {
    pub(super) const fn new(meta: &DatagramMeta) -> Self {
        let DatagramMeta { remote, local, ttl, ecn, segment_size, truncated } = *meta;
        Self { remote, local, ttl, ecn, segment_size, truncated }
    }

    pub(super) const fn meta(self) -> DatagramMeta {
        let Self { remote, local, ttl, ecn, segment_size, truncated } = self;
        DatagramMeta { remote, local, ttl, ecn, segment_size, truncated }
    }
}

/// A [`HostError`] by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErrorName {
    Refused,
    NetUnreachable,
    HostUnreachable,
    Prohibited,
    TimedOut,
    Reset,
    TooBig { mtu: u16 },
    HopLimit,
    NoResources,
    Denied,
    InUse,
    Unsupported,
    WouldBlock,
    Other,
}

macro_rules! error_names {
    ($($name:ident)*) => {
        impl ErrorName {
            const fn new(error: HostError) -> Self {
                match error {
                    HostError::TooBig { mtu } => Self::TooBig { mtu },
                    $(HostError::$name => Self::$name,)*
                    _ => Self::Other,
                }
            }

            pub(super) const fn error(self) -> HostError {
                match self {
                    Self::TooBig { mtu } => HostError::TooBig { mtu },
                    $(Self::$name => HostError::$name,)*
                    Self::Other => HostError::Other,
                }
            }
        }
    };
}

error_names! {
    Refused NetUnreachable HostUnreachable Prohibited TimedOut Reset HopLimit NoResources Denied
    InUse Unsupported WouldBlock
}

/// A call of the NAT on its link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LinkCall {
    Room,
    GuestQueueFrames,
    Reserve(usize),
}

/// What the link answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LinkAnswer {
    Room { frames: usize, bytes: usize },
    Frames(usize),
    Lent(Option<usize>),
}

impl LinkAnswer {
    pub(super) const fn room(room: Room) -> Self {
        Self::Room { frames: room.frames, bytes: room.bytes }
    }
}

/// A frame for the guest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) len: usize,
    /// TCP offset, header length and segment size, if it is to be finished or cut.
    pub(super) segment: Option<(u16, u16, u16)>,
    pub(super) digest: u64,
    #[serde(with = "hex")]
    pub(super) head: Vec<u8>,
}

/// Bytes of a frame that are written down as they are: all headers, and some more.
pub(super) const HEAD_LEN: usize = 96;

impl Sent {
    pub(super) fn new(frame: &[u8], meta: &TxMeta) -> Self {
        let segment =
            meta.segment.map(|TcpSegmentation { tcp_offset, header_len, segment_size }| {
                (tcp_offset, header_len, segment_size)
            });
        let head = frame.get(..HEAD_LEN).unwrap_or(frame).to_vec();
        Self { len: frame.len(), segment, digest: digest(frame), head }
    }
}

/// FNV-1a, 64 bits: against mistakes, not against malice.
fn digest<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
