//! The guest: smoltcp, a stack that nobody here wrote, over the driver of the card. It goes through
//! its stages one after the other, and says so.

use core::fmt::Write;
use core::net::Ipv4Addr;

use ne2000::Width;
use ne2000::driver::{Driver, Ports};
use smoltcp::iface::{Config, Interface};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::{dhcpv4, tcp};
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetAddress, Icmpv4Packet, Icmpv4Repr, IpAddress, IpCidr, IpEndpoint, Ipv4Cidr,
};

use crate::device::Adapter;
use crate::pattern::{self, Check, DOWNLOAD_LEN, RECEIPT_LEN, UPLOAD_LEN};
use crate::server;
use crate::sockets::{GuestMemory, Sockets};

const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const LEASE: Ipv4Cidr = Ipv4Cidr::new(Ipv4Addr::new(10, 0, 2, 15), 24);
const PING_IDENT: u16 = 0x4e45;
const PING_DATA: &[u8] = b"from the registers";
const DATAGRAM_LEN: usize = 1472;
const LOCAL_PORT: u16 = 49152;

/// No stage takes longer, in microseconds.
const STAGE_LIMIT: u64 = 30_000_000;

/// How a guest stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It is to be called again, as [`Guest::poll_at`] says.
    Running,
    /// All was as it should be.
    Passed,
}

/// What was not as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure(pub &'static str);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Lease,
    Ping,
    Datagram,
    Stream,
    Done,
}

impl Stage {
    const fn next(self) -> Self {
        match self {
            Self::Lease => Self::Ping,
            Self::Ping => Self::Datagram,
            Self::Datagram => Self::Stream,
            Self::Stream | Self::Done => Self::Done,
        }
    }

    /// What there is to say if it does not end.
    const fn complaint(self) -> &'static str {
        match self {
            Self::Lease => "no lease",
            Self::Ping => "no answer to the ping",
            Self::Datagram => "the datagram did not come back",
            Self::Stream | Self::Done => "the stream does not end",
        }
    }
}

/// A guest, who reaches the network by the card's ports and in no other way.
pub struct Guest {
    adapter: Adapter,
    interface: Interface,
    sockets: Sockets,
    stage: Stage,
    /// When the stage has failed, in microseconds.
    stage_end: u64,
    uploaded: u32,
    download: Check,
}

/// What the guest receives on its stream if all is right.
const fn expected(place: u32) -> u8 {
    pattern::download_and_receipt(place, UPLOAD_LEN)
}

impl Guest {
    /// Starts the card, whose data port is accessed by `width`.
    ///
    /// # Errors
    /// What the driver says of the card.
    pub fn new(
        ports: &mut impl Ports,
        width: Width,
        memory: &'static mut GuestMemory,
    ) -> Result<Self, Failure> {
        let driver = Driver::start(ports, width).map_err(|_| Failure("the card does not start"))?;
        let config = Config::new(EthernetAddress(driver.mac()).into());
        let mut adapter = Adapter::new(driver);
        let interface = Interface::new(config, &mut adapter.at(ports), Instant::ZERO);
        Ok(Self {
            adapter,
            interface,
            sockets: Sockets::new(memory),
            stage: Stage::Lease,
            stage_end: STAGE_LIMIT,
            uploaded: 0,
            download: Check::new(expected),
        })
    }

    /// Handles the frames that have come, goes on as far as it can, and writes a line to `log` for
    /// each stage that is over. `now` is in microseconds.
    ///
    /// # Errors
    /// What went wrong.
    pub fn poll(
        &mut self,
        now: u64,
        ports: &mut impl Ports,
        log: &mut impl Write,
    ) -> Result<Progress, Failure> {
        let instant = instant(now);
        self.interface.poll(instant, &mut self.adapter.at(ports), &mut self.sockets.set);
        while self.is_stage_over(log)? {
            self.stage = self.stage.next();
            self.stage_end = now.saturating_add(STAGE_LIMIT);
            self.begin_stage()?;
        }
        self.interface.poll(instant, &mut self.adapter.at(ports), &mut self.sockets.set);
        match self.stage {
            Stage::Done => Ok(Progress::Passed),
            late if now >= self.stage_end => Err(Failure(late.complaint())),
            _ => Ok(Progress::Running),
        }
    }

    /// When to call [`Guest::poll`] even if the card does not interrupt, in microseconds.
    pub fn poll_at(&mut self, now: u64) -> u64 {
        let at = self.interface.poll_at(instant(now), &self.sockets.set);
        let micros = at.and_then(|at| u64::try_from(at.total_micros()).ok());
        micros.map_or(self.stage_end, |micros| micros.clamp(now, self.stage_end))
    }

    /// Writes what passed the card's ports to `log`.
    pub fn report(&self, log: &mut impl Write) {
        let Adapter { driver, sent, received, .. } = &self.adapter;
        let _ = writeln!(log, "sent       {sent}");
        let _ = writeln!(log, "received   {received}");
        let high_water = driver.stats().ring_high_water;
        let _ = writeln!(log, "ring       {high_water} of {} pages at most", driver.ring_pages());
    }

    fn begin_stage(&mut self) -> Result<(), Failure> {
        match self.stage {
            Stage::Lease | Stage::Done => Ok(()),
            Stage::Ping => self.send_ping(),
            Stage::Datagram => self.send_datagram(),
            Stage::Stream => self.connect(),
        }
    }

    fn is_stage_over(&mut self, log: &mut impl Write) -> Result<bool, Failure> {
        match self.stage {
            Stage::Lease => self.is_leased(log),
            Stage::Ping => self.is_ping_answered(log),
            Stage::Datagram => self.is_datagram_back(log),
            Stage::Stream => self.is_stream_over(log),
            Stage::Done => Ok(false),
        }
    }

    fn is_leased(&mut self, log: &mut impl Write) -> Result<bool, Failure> {
        let Some(dhcpv4::Event::Configured(lease)) = self.sockets.dhcp().poll() else {
            return Ok(false);
        };
        if lease.address != LEASE || lease.router != Some(GATEWAY) {
            return Err(Failure("a lease of other addresses"));
        }
        let _ = writeln!(log, "lease      {LEASE} by {GATEWAY}");
        let is_routed = self.interface.routes_mut().add_default_ipv4_route(GATEWAY).is_ok();
        self.interface.update_ip_addrs(|addresses| {
            // There is room for two, and there was none.
            let _ = addresses.push(IpCidr::Ipv4(LEASE));
        });
        is_routed.then_some(true).ok_or(Failure("no room for a route"))
    }

    fn send_ping(&mut self) -> Result<(), Failure> {
        let ping = Icmpv4Repr::EchoRequest { ident: PING_IDENT, seq_no: 1, data: PING_DATA };
        let socket = self.sockets.ping();
        let bound = socket.bind(smoltcp::socket::icmp::Endpoint::Ident(PING_IDENT)).is_ok();
        let buffer = socket.send(ping.buffer_len(), GATEWAY.into());
        let Ok(buffer) = buffer else { return Err(Failure("smoltcp does not ping")) };
        ping.emit(&mut Icmpv4Packet::new_unchecked(buffer), &ChecksumCapabilities::default());
        bound.then_some(()).ok_or(Failure("smoltcp does not ping"))
    }

    fn is_ping_answered(&mut self, log: &mut impl Write) -> Result<bool, Failure> {
        let Ok((bytes, from)) = self.sockets.ping().recv() else { return Ok(false) };
        let packet = Icmpv4Packet::new_checked(bytes).map_err(|_| Failure("no echo reply"))?;
        let reply = Icmpv4Repr::parse(&packet, &ChecksumCapabilities::default());
        let wanted = Icmpv4Repr::EchoReply { ident: PING_IDENT, seq_no: 1, data: PING_DATA };
        if reply != Ok(wanted) || from != IpAddress::Ipv4(GATEWAY) {
            return Err(Failure("an answer to another ping"));
        }
        let _ = writeln!(log, "ping       {} bytes answered by {from}", PING_DATA.len());
        Ok(true)
    }

    fn send_datagram(&mut self) -> Result<(), Failure> {
        let socket = self.sockets.datagram();
        let bound = socket.bind(LOCAL_PORT).is_ok();
        let sent = socket.send(DATAGRAM_LEN, IpEndpoint::from(server::ADDRESS)).map(|buffer| {
            pattern::fill(buffer, &mut 0, u32::MAX, pattern::upload);
        });
        (bound && sent.is_ok()).then_some(()).ok_or(Failure("smoltcp sends no datagram"))
    }

    fn is_datagram_back(&mut self, log: &mut impl Write) -> Result<bool, Failure> {
        let Ok((bytes, from)) = self.sockets.datagram().recv() else { return Ok(false) };
        let mut check = Check::new(pattern::upload);
        check.take(bytes);
        let is_whole = bytes.len() == DATAGRAM_LEN && !check.is_wrong();
        if !is_whole || from.endpoint != IpEndpoint::from(server::ADDRESS) {
            return Err(Failure("another datagram than was sent"));
        }
        let _ = writeln!(log, "datagram   {DATAGRAM_LEN} bytes echoed by {}", server::ADDRESS);
        Ok(true)
    }

    fn connect(&mut self) -> Result<(), Failure> {
        let context = self.interface.context();
        let connected = self.sockets.stream().connect(context, server::ADDRESS, LOCAL_PORT);
        connected.map_err(|_| Failure("smoltcp does not connect"))
    }

    /// Moves the stream on, both ways at once.
    fn is_stream_over(&mut self, log: &mut impl Write) -> Result<bool, Failure> {
        let socket = self.sockets.stream();
        while socket.can_send() && self.uploaded < UPLOAD_LEN {
            let uploaded = &mut self.uploaded;
            let fill =
                |room: &mut [u8]| (pattern::fill(room, uploaded, UPLOAD_LEN, pattern::upload), ());
            socket.send(fill).map_err(|_| Failure("the stream takes nothing"))?;
        }
        if self.uploaded == UPLOAD_LEN && socket.may_send() {
            socket.close();
        }
        while socket.can_recv() {
            let download = &mut self.download;
            let check = |bytes: &mut [u8]| {
                download.take(bytes);
                (bytes.len(), ())
            };
            socket.recv(check).map_err(|_| Failure("the stream gives nothing"))?;
        }
        if self.download.is_wrong() {
            return Err(Failure(if self.download.right() < DOWNLOAD_LEN {
                "a wrong byte in the download"
            } else {
                "the server received something else than was sent"
            }));
        }
        match socket.state() {
            tcp::State::Closed if self.download.right() == DOWNLOAD_LEN + RECEIPT_LEN => {
                let _ =
                    writeln!(log, "upload     {UPLOAD_LEN} bytes right, says {}", server::ADDRESS);
                let _ = writeln!(log, "download   {DOWNLOAD_LEN} bytes right");
                Ok(true)
            }
            tcp::State::Closed => Err(Failure("the stream ended early")),
            _ => Ok(false),
        }
    }
}

fn instant(micros: u64) -> Instant {
    Instant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
