//! What the virtual router answers itself, on its way to the guest: the decisions are those of
//! [`service`](crate::service).

use core::net::IpAddr;

use ipstack::wire::dhcpv4::SERVER_PORT;
use ipstack::wire::{
    ArpPacket, EthernetFrame, IpProtocol, Ipv4Header, MacAddr, UdpHeader, dns, udp,
};

use crate::egress::copy_padded;
use crate::flow::{Endpoint, FlowKey};
use crate::fmt::trace;
use crate::host::Host;
use crate::input::Inbound;
use crate::link::Link;
use crate::nat::{Core, Io};
use crate::service::{arp, dhcp};
use crate::stats::DropReason;

/// Longest DHCP reply made: what every client takes (RFC 2131 2), with some room.
pub(crate) const DHCP_REPLY_LEN: usize = 1024;

/// Longest answer to a DNS query made here (RFC 1035 2.3.4).
const DNS_ANSWER_LEN: usize = 512;

impl Core<'_> {
    pub(crate) fn on_arp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        ethernet: &EthernetFrame<'_>,
    ) -> Result<(), DropReason> {
        let packet = ArpPacket::parse(ethernet.payload()).map_err(|_| DropReason::Arp)?;
        self.learn(io.now, packet.sender_ip, packet.sender_mac);
        match arp::respond(&self.config, &packet) {
            Some(reply) => {
                let to = ethernet.source();
                let sent = self.egress.reply_arp(&mut self.stats, io.link, to, &reply);
                self.stats.counters.arp_replies += u64::from(sent);
            }
            None => trace!("arp that needs no answer"),
        }
        Ok(())
    }

    pub(crate) fn on_dhcp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        packet: &Inbound<'_>,
        request: &[u8],
    ) -> Result<(), DropReason> {
        let mut buffer = [0; DHCP_REPLY_LEN];
        let reply = dhcp::respond(io.now, &self.config, &mut self.leases, request, &mut buffer);
        let reply = match reply {
            Ok(Some(reply)) => reply,
            Ok(None) => return Ok(()),
            Err(_) => return Err(DropReason::Dhcp),
        };
        let message = buffer.get(..reply.len).unwrap_or_default();
        let to = reply.delivery.destination_ip;
        let mac = reply.delivery.destination_mac.unwrap_or(packet.mac);
        let source = Endpoint::v4(self.config.gateway, SERVER_PORT);
        let sent =
            self.reply_udp(io, source, Endpoint::v4(to, reply.delivery.port), Some(mac), message);
        self.stats.counters.dhcp_replies += u64::from(sent);
        Ok(())
    }

    /// Sends a UDP datagram of the router's own.
    fn reply_udp<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        from: Endpoint,
        to: Endpoint,
        mac: Option<MacAddr>,
        data: &[u8],
    ) -> bool {
        let (source, destination) = (from.ipv4(), to.ipv4());
        let header = Ipv4Header::new(IpProtocol::Udp, source, destination);
        let length = data.len().saturating_add(udp::HEADER_LEN);
        self.egress.reply_ip(
            &self.config,
            &mut self.stats,
            io.link,
            (header, mac),
            length,
            |buffer| {
                let Some((udp, payload)) = buffer.split_first_chunk_mut() else { return };
                UdpHeader {
                    source_port: from.port,
                    destination_port: to.port,
                    payload_len: u16::try_from(data.len()).unwrap_or(u16::MAX),
                }
                .emit(udp, IpAddr::V4(source), IpAddr::V4(destination), data);
                copy_padded(payload, data);
            },
        )
    }

    /// Answers a DNS query that no resolver took.
    pub(crate) fn answer_servfail<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        key: &FlowKey,
        query: &[u8],
    ) {
        let mut buffer = [0; DNS_ANSWER_LEN];
        let Some(length) = dns::servfail(query, &mut buffer) else { return };
        let answer = buffer.get(..length).unwrap_or_default();
        let sent = self.reply_udp(io, key.remote, key.guest, None, answer);
        self.stats.counters.dns_failures += u64::from(sent);
    }
}
