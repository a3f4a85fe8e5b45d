//! UDP and ping sockets: datagrams with their metadata, and the errors that come back.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg, sendmsg,
    sockopt as nix_sockopt,
};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{Protocol, SocketFlags, SocketType, ipproto};
use slirp_nat::host::{DatagramError, DatagramKind, DatagramMeta, HostError, Ready};

use super::calls::SystemCalls;
use super::errors::{from_bind_errno, from_errno, from_icmpv4, from_icmpv6, too_big};
use super::options::{self, Ipv4RecvTtl, Ipv6RecvHopLimit};
use super::ping::{self, PingMode, RawPing, RawSockets};
use crate::poller::EventFlags;

/// What a datagram socket is registered for; errors come unasked.
pub(super) const INTEREST: EventFlags = EventFlags::IN.union(EventFlags::ET);

/// Slices of one datagram handed to the kernel without copying.
const SLICES: usize = 16;

/// Bytes quoted with an error that are looked at: an ICMP echo header.
const QUOTED_BYTES: usize = 8;

#[derive(Debug)]
pub(super) struct Datagram {
    fd: OwnedFd,
    ipv6: bool,
    /// Set if this is a raw socket, which hears the pings of the whole host.
    raw: Option<RawPing>,
    /// For control messages.
    control: Vec<u8>,
}

impl Datagram {
    pub(super) fn open(
        kind: DatagramKind,
        remote: SocketAddr,
        ping: Option<PingMode>,
        raw_sockets: &RawSockets,
        calls: &mut SystemCalls,
    ) -> Result<Self, HostError> {
        let icmp = if remote.is_ipv6() { ipproto::ICMPV6 } else { ipproto::ICMP };
        match (kind, ping) {
            (DatagramKind::Udp, _) => {
                Self::with(remote, SocketType::DGRAM, ipproto::UDP, None, calls)
            }
            (DatagramKind::Ping, Some(PingMode::Datagram)) => {
                Self::with(remote, SocketType::DGRAM, icmp, None, calls)
            }
            (DatagramKind::Ping, Some(PingMode::Raw)) => {
                let raw = raw_sockets.take().ok_or(HostError::NoResources)?;
                let datagram = Self::with(remote, SocketType::RAW, icmp, Some(raw), calls)?;
                calls.option += 1;
                ping::let_only_replies_in(&datagram.fd, remote.is_ipv6());
                Ok(datagram)
            }
            (DatagramKind::Ping, None) => Err(HostError::Unsupported),
        }
    }

    pub(super) fn bind(address: SocketAddr, calls: &mut SystemCalls) -> Result<Self, HostError> {
        let datagram = Self::with(address, SocketType::DGRAM, ipproto::UDP, None, calls)?;
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&datagram.fd, true).map_err(from_errno)?;
        }
        rustix::net::bind(&datagram.fd, &address).map_err(from_bind_errno)?;
        Ok(datagram)
    }

    fn with(
        address: SocketAddr,
        socket_type: SocketType,
        protocol: Protocol,
        raw: Option<RawPing>,
        calls: &mut SystemCalls,
    ) -> Result<Self, HostError> {
        calls.open += 1;
        calls.option += 5;
        let fd = rustix::net::socket_with(
            super::family_of(address),
            socket_type,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            Some(protocol),
        )
        .map_err(from_errno)?;
        let ipv6 = address.is_ipv6();
        set_options(&fd, ipv6).map_err(from_errno)?;
        Ok(Self { fd, ipv6, raw, control: control_space() })
    }

    pub(super) const fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(super) fn on_event(flags: EventFlags) -> Ready {
        let error = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        Ready { readable: flags.contains(EventFlags::IN), writable: false, error }
    }

    pub(super) fn send(
        &mut self,
        meta: &DatagramMeta,
        data: &[&[u8]],
        calls: &mut SystemCalls,
    ) -> Result<(), HostError> {
        let mut gathered = [IoSlice::new(&[]); SLICES];
        let joined;
        let slices = if let Some(places) = gathered.get_mut(..data.len()) {
            places.iter_mut().zip(data).for_each(|(place, slice)| *place = IoSlice::new(slice));
            &*places
        } else {
            joined = [data.concat()];
            gathered[0] = IoSlice::new(&joined[0]);
            &gathered[..1]
        };
        if let (Some(raw), Some(first)) = (&mut self.raw, slices.first()) {
            calls.option += u64::from(raw.sends(&self.fd, self.ipv6, first));
        }
        // An error that an earlier datagram met is reported once by the next call, whatever it
        // is; its details are in the error queue.
        let mut result = self.send_once(meta, slices, calls);
        if matches!(result, Err(error) if is_reported_late(error)) {
            result = self.send_once(meta, slices, calls);
        }
        result.map_err(from_errno)
    }

    fn send_once(
        &self,
        meta: &DatagramMeta,
        slices: &[IoSlice<'_>],
        calls: &mut SystemCalls,
    ) -> Result<(), Errno> {
        calls.send_datagram += 1;
        // The kernel refuses an IPv4 TOS that is no byte, and an IPv6 traffic class out of -1..=255.
        let (ttl, tos, class) = (i32::from(meta.ttl), meta.ecn & 3, i32::from(meta.ecn & 3));
        let (info4, info6) = source_info(meta.local);
        let mut messages = [const { None }; 3];
        if meta.ttl != 0 {
            messages[0] = Some(if self.ipv6 {
                ControlMessage::Ipv6HopLimit(&ttl)
            } else {
                ControlMessage::Ipv4Ttl(&ttl)
            });
        }
        if tos != 0 {
            messages[1] = Some(if self.ipv6 {
                ControlMessage::Ipv6TClass(&class)
            } else {
                ControlMessage::Ipv4Tos(&tos)
            });
        }
        messages[2] = match (&info4, &info6) {
            (Some(info), _) if !self.ipv6 => Some(ControlMessage::Ipv4PacketInfo(info)),
            (_, Some(info)) if self.ipv6 => Some(ControlMessage::Ipv6PacketInfo(info)),
            _ => None,
        };
        let mut present: heapless::Vec<ControlMessage<'_>, 3> = heapless::Vec::new();
        present.extend(messages.into_iter().flatten());
        let remote = SockaddrStorage::from(meta.remote);
        let flags = MsgFlags::MSG_NOSIGNAL;
        sendmsg(self.fd.as_raw_fd(), slices, &present, flags, Some(&remote))
            .map(drop)
            .map_err(options::convert)
    }

    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        calls: &mut SystemCalls,
    ) -> Result<Option<(usize, DatagramMeta)>, HostError> {
        loop {
            calls.receive_datagram += 1;
            match self.receive_once(buffer) {
                Ok(Some((length, meta))) => {
                    let Some(raw) = &self.raw else { return Ok(Some((length, meta))) };
                    if let Some(length) = raw.accept(self.ipv6, buffer, length) {
                        return Ok(Some((length, meta)));
                    }
                }
                // A datagram without a usable sender.
                Ok(None) => {}
                Err(Errno::AGAIN) => return Ok(None),
                // The kernel has forgotten the error by reporting it.
                Err(error) if is_reported_late(error) => {}
                Err(error) => return Err(from_errno(error)),
            }
        }
    }

    fn receive_once(&mut self, buffer: &mut [u8]) -> Result<Option<(usize, DatagramMeta)>, Errno> {
        let mut slices = [IoSliceMut::new(buffer)];
        let message: RecvMsg<'_, '_, SockaddrStorage> =
            recvmsg(self.fd.as_raw_fd(), &mut slices, Some(&mut self.control), MsgFlags::empty())
                .map_err(options::convert)?;
        let Some(remote) = message.address.as_ref().and_then(socket_address) else {
            return Ok(None);
        };
        let mut meta = DatagramMeta::new(remote);
        meta.truncated = message.flags.contains(MsgFlags::MSG_TRUNC);
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    meta.local =
                        Some(Ipv4Addr::from_bits(u32::from_be(info.ipi_spec_dst.s_addr)).into());
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    meta.local = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => {
                    meta.ttl = u8::try_from(ttl).unwrap_or(0);
                }
                ControlMessageOwned::Ipv4Tos(tos) => meta.ecn = tos & 3,
                ControlMessageOwned::Ipv6TClass(class) => meta.ecn = class.to_le_bytes()[0] & 3,
                _ => {}
            }
        }
        Ok(Some((message.bytes, meta)))
    }

    /// The next error in the queue. If there is none although the kernel reported one, the pending
    /// error number is taken off the socket, or the event would come again and again.
    pub(super) fn error(&mut self, calls: &mut SystemCalls) -> Option<DatagramError> {
        loop {
            calls.receive_datagram += 1;
            match self.error_once() {
                Ok(Some(error)) => return Some(error),
                Ok(None) => {}
                Err(_) => {
                    calls.option += 1;
                    let _ = sockopt::socket_error(&self.fd);
                    return None;
                }
            }
        }
    }

    /// `None` for an error that is not about a datagram of this socket.
    fn error_once(&mut self) -> Result<Option<DatagramError>, Errno> {
        let mut quoted = [0; QUOTED_BYTES];
        let mut slices = [IoSliceMut::new(&mut quoted)];
        let message: RecvMsg<'_, '_, SockaddrStorage> = recvmsg(
            self.fd.as_raw_fd(),
            &mut slices,
            Some(&mut self.control),
            MsgFlags::MSG_ERRQUEUE,
        )
        .map_err(options::convert)?;
        let remote = message.address.as_ref().and_then(socket_address);
        let mut found = None;
        for control in message.cmsgs().into_iter().flatten() {
            let (error, offender) = match control {
                ControlMessageOwned::Ipv4RecvErr(error, from) => {
                    let from =
                        from.map(|from| Ipv4Addr::from_bits(u32::from_be(from.sin_addr.s_addr)));
                    (error, from.map(IpAddr::V4))
                }
                ControlMessageOwned::Ipv6RecvErr(error, from) => {
                    (error, from.map(|from| IpAddr::V6(from.sin6_addr.s6_addr.into())))
                }
                _ => continue,
            };
            let offender = offender.filter(|offender| !offender.is_unspecified());
            found = Some((verdict(&error), offender));
        }
        let bytes = message.bytes;
        let (Some(remote), Some((error, offender))) = (remote, found) else { return Ok(None) };
        let quoted = (bytes >= QUOTED_BYTES).then_some(quoted);
        if self.raw.as_ref().is_some_and(|raw| !raw.is_own_request(quoted.as_ref())) {
            return Ok(None);
        }
        Ok(Some(DatagramError { error, offender, remote, quoted }))
    }
}

fn set_options(fd: &OwnedFd, ipv6: bool) -> Result<(), Errno> {
    let convert = options::convert;
    if ipv6 {
        nix::sys::socket::setsockopt(fd, nix_sockopt::Ipv6RecvErr, &true).map_err(convert)?;
        nix::sys::socket::setsockopt(fd, nix_sockopt::Ipv6RecvPacketInfo, &true)
            .map_err(convert)?;
        options::set(fd, Ipv6RecvHopLimit, &true)?;
        sockopt::set_ipv6_recvtclass(fd, true)?;
        return sockopt::set_ipv6_mtu_discover(fd, Ipv6PathMtuDiscovery::DONT);
    }
    nix::sys::socket::setsockopt(fd, nix_sockopt::Ipv4RecvErr, &true).map_err(convert)?;
    nix::sys::socket::setsockopt(fd, nix_sockopt::Ipv4PacketInfo, &true).map_err(convert)?;
    options::set(fd, Ipv4RecvTtl, &true)?;
    sockopt::set_ip_recvtos(fd, true)?;
    // Datagrams beyond the path's MTU are fragmented on the way, as the guest's own would be.
    sockopt::set_ip_mtu_discover(fd, Ipv4PathMtuDiscovery::DONT)
}

/// Room for every control message that [`set_options`] asks for, of either family.
fn control_space() -> Vec<u8> {
    cmsg_space!(
        libc::in6_pktinfo,
        i32,
        i32,
        [u8; size_of::<libc::sock_extended_err>() + size_of::<libc::sockaddr_in6>()]
    )
}

/// Source addresses for the control messages of both families.
fn source_info(local: Option<IpAddr>) -> (Option<libc::in_pktinfo>, Option<libc::in6_pktinfo>) {
    match local {
        Some(IpAddr::V4(address)) => {
            let any = libc::in_addr { s_addr: 0 };
            let source = libc::in_addr { s_addr: address.to_bits().to_be() };
            let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: any };
            (Some(info), None)
        }
        Some(IpAddr::V6(address)) => {
            let ipi6_addr = libc::in6_addr { s6_addr: address.octets() };
            (None, Some(libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 }))
        }
        None => (None, None),
    }
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some((*v4).into());
    }
    address.as_sockaddr_in6().map(|v6| (*v6).into())
}

fn verdict(error: &libc::sock_extended_err) -> HostError {
    match error.ee_origin {
        libc::SO_EE_ORIGIN_ICMP => from_icmpv4(error.ee_type, error.ee_code, error.ee_info),
        libc::SO_EE_ORIGIN_ICMP6 => from_icmpv6(error.ee_type, error.ee_code, error.ee_info),
        _ => match Errno::from_raw_os_error(error.ee_errno.cast_signed()) {
            Errno::MSGSIZE => too_big(error.ee_info),
            errno => from_errno(errno),
        },
    }
}

/// Errors that a call may report although they belong to a datagram sent before.
fn is_reported_late(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::HOSTDOWN
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::OPNOTSUPP
    )
}
