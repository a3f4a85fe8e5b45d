//! DHCP and DNS messages: parsed from any bytes, and written into buffers of any length.

use ipstack::wire::dhcpv4::MessageType;
use ipstack::wire::{DhcpMessage, DhcpOption, DhcpReply, DnsMessage, MacAddr, dns};
use slirpkit_nopanic::{any, any_bytes, hidden, keep, one_of};

pub(crate) fn parse_dhcp() {
    let Ok(message) = DhcpMessage::parse(any_bytes()) else { return };
    keep((message.is_request(), message.xid(), message.secs(), message.broadcast()));
    keep((message.ciaddr(), message.yiaddr(), message.siaddr(), message.giaddr()));
    keep((message.chaddr(), message.message_type(), message.requested_ip()));
    keep((message.server_identifier(), message.client_identifier(), message.host_name()));
    keep((message.parameter_request_list(), message.max_message_size(), message.option(any())));
    keep((message.vendor_class(), message.server_name(), message.boot_file()));
    for option in message.options() {
        keep(option);
    }
}

fn any_text() -> &'static str {
    *hidden(&mut "text")
}

fn any_option() -> DhcpOption<'static> {
    let kind = MessageType::from_number(any()).unwrap_or(MessageType::Nak);
    one_of(
        DhcpOption::SubnetMask(any()),
        &[
            DhcpOption::Router(any()),
            DhcpOption::DnsServer(any()),
            DhcpOption::HostName(any_text()),
            DhcpOption::DomainName(any_text()),
            DhcpOption::InterfaceMtu(any()),
            DhcpOption::LeaseTime(any()),
            DhcpOption::MessageType(kind),
            DhcpOption::ServerIdentifier(any()),
            DhcpOption::Message(any_text()),
            DhcpOption::RenewalTime(any()),
            DhcpOption::RebindingTime(any()),
            DhcpOption::VendorClass(any_text()),
            DhcpOption::ClientIdentifier(any_bytes()),
            DhcpOption::TftpServerName(any_text()),
            DhcpOption::BootFile(any_text()),
        ],
    )
}

pub(crate) fn emit_dhcp() {
    let mut memory = [0; 2048];
    let mut options = [any_option(), any_option()];
    keep(any_option().code());
    let reply = DhcpReply {
        xid: any(),
        broadcast: any(),
        ciaddr: any(),
        yiaddr: any(),
        siaddr: any(),
        giaddr: any(),
        chaddr: MacAddr(any()),
        server_name: any_text(),
        boot_file: any_text(),
        options: hidden(&mut options[..]),
    };
    keep(reply.emit(hidden(&mut memory[..])));
}

pub(crate) fn dns() {
    if let Ok(message) = DnsMessage::parse(any_bytes()) {
        keep((message.id(), message.is_response(), message.opcode(), message.is_truncated()));
        keep((message.recursion_desired(), message.recursion_available()));
        keep((message.response_code(), message.counts(), message.question()));
    }
    let mut memory = [0; 2048];
    keep(dns::servfail(any_bytes(), hidden(&mut memory[..])));
    keep(dns::refused(any_bytes(), hidden(&mut memory[..])));
}
