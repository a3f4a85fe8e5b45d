//! Echo requests: those for the router are answered here, the others go out by ping sockets.

use core::net::SocketAddr;

use ipstack::wire::icmpv4::{self, Icmpv4Kind, Icmpv4Message};
use ipstack::wire::{IpProtocol, Ipv4Header, ipv4};

use super::datagram_in::reply_ttl;
use super::udp::Outgoing;
use super::{Endpoint, FlowKey, FlowKind};
use crate::host::{DatagramKind, DatagramMeta, FlowId, Host, HostError};
use crate::input::Inbound;
use crate::link::Link;
use crate::nat::{Core, Io};
use crate::policy::{NoRoute, translate_out};
use crate::stats::DropReason;
use crate::train::Consist;

impl Core<'_> {
    /// Takes an echo request of the guest; `message` is the whole ICMP message.
    pub(crate) fn on_guest_echo<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'_>,
        echo: (u16, u16, &[u8]),
    ) {
        if self.config.is_router(packet.destination) {
            return self.answer_echo(io, packet, echo);
        }
        let remote = match translate_out(&self.config, io.host, packet.destination, 0) {
            Ok(remote) => remote,
            Err(NoRoute::Silent) => return self.stats.drop(DropReason::IpDestination),
            Err(NoRoute::Error(error)) => {
                self.stats.drop(DropReason::Denied);
                return self.report(io, error, None, packet.quoted);
            }
        };
        if !io.host.capabilities().ping {
            self.stats.drop(DropReason::HostError);
            return self.report(io, HostError::Unsupported, None, packet.quoted);
        }
        let (ident, _, _) = echo;
        let guest = Endpoint::v4(packet.source, ident);
        let key = FlowKey { guest, remote: Endpoint::ANY, kind: FlowKind::Ping };
        match self.find_or_open(io, key, DatagramKind::Ping, remote) {
            Ok(id) => {
                let seen = Endpoint::v4(packet.destination, 0);
                self.permits.add(io.now, id, seen.address);
                let outgoing = Outgoing { packet, data: packet.payload };
                self.send_out(io, id, remote, &outgoing);
            }
            Err(error) => self.report(io, error, None, packet.quoted),
        }
    }

    fn answer_echo<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'_>,
        (ident, sequence, payload): (u16, u16, &[u8]),
    ) {
        let (source, destination) = (packet.destination, packet.source);
        let length = payload.len().saturating_add(icmpv4::HEADER_LEN);
        if length.saturating_add(ipv4::HEADER_LEN) <= usize::from(self.config.mtu) {
            let header = Ipv4Header::new(IpProtocol::Icmp, source, destination);
            let sent = self.egress.reply_ip(
                &self.config,
                &mut self.stats,
                io.link,
                (header, None),
                length,
                |buffer| {
                    let _ = icmpv4::emit_echo(buffer, true, ident, sequence, payload);
                },
            );
            self.stats.counters.echo_replies += u64::from(sent);
            return;
        }
        let busy = self.egress.train.is_moving();
        let buffer = self.egress.train.buffer();
        if icmpv4::emit_echo(buffer, true, ident, sequence, payload).is_none() {
            let reason = if busy { DropReason::ReplyQueueFull } else { DropReason::TooLong };
            return self.stats.drop(reason);
        }
        let consist = Consist {
            source,
            destination,
            ports: None,
            ttl: Ipv4Header::DEFAULT_TTL,
            ecn: 0,
            identification: self.egress.identification(source, destination),
            segment_size: 0,
        };
        let sent = self.egress.depart(&self.config, &mut self.stats, io.link, consist, length);
        self.stats.counters.echo_replies += u64::from(sent);
    }

    /// Sends the echo reply in the train's buffer to the guest, under the guest's own identifier.
    pub(crate) fn deliver_echo_reply<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
        key: &FlowKey,
        length: usize,
        meta: &DatagramMeta,
    ) {
        let message = self.egress.train.buffer().get_mut(..length).unwrap_or_default();
        let kind = Icmpv4Message::parse(message).map(|message| message.kind());
        let Ok(Icmpv4Kind::EchoReply { ident, .. }) = kind else {
            return self.stats.drop(DropReason::IcmpType);
        };
        icmpv4::set_echo_ident(message, ident, key.guest.port);
        let remote = SocketAddr::new(meta.remote.ip(), 0);
        let Some(source) = self.admit(io, id, key, length, remote) else { return };
        self.touch(io.now, id, true);
        let (source, destination) = (source.ipv4(), key.guest.ipv4());
        let consist = Consist {
            source,
            destination,
            ports: None,
            ttl: reply_ttl(meta.ttl),
            ecn: meta.ecn,
            identification: self.egress.identification(source, destination),
            segment_size: 0,
        };
        let sent = self.egress.depart(&self.config, &mut self.stats, io.link, consist, length);
        self.stats.counters.datagrams_out += u64::from(sent);
    }
}
