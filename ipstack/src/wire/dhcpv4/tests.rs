#![expect(clippy::std_instead_of_alloc, reason = "tests have std, and no alloc is linked")]

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x12, 0x34, 0x56]);

/// The fixed part of a request, with something of its own in every field.
fn fixed() -> [u8; FIXED_LEN] {
    let mut fixed = [0; FIXED_LEN];
    fixed[..4].copy_from_slice(&[1, 1, 6, 0]);
    fixed[4..8].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    fixed[8..12].copy_from_slice(&[0x01, 0x02, 0x80, 0]);
    fixed[12..28].copy_from_slice(&[10, 0, 2, 15, 10, 0, 2, 16, 10, 0, 2, 2, 10, 0, 2, 9]);
    fixed[28..34].copy_from_slice(&MAC.0);
    fixed
}

fn with_options(options: &[u8]) -> Vec<u8> {
    [&fixed()[..], &MAGIC_COOKIE, options].concat()
}

fn reply<'a>(options: &'a [DhcpOption<'a>]) -> DhcpReply<'a> {
    DhcpReply {
        xid: 7,
        broadcast: true,
        ciaddr: Ipv4Addr::new(10, 0, 2, 20),
        yiaddr: Ipv4Addr::new(10, 0, 2, 15),
        siaddr: Ipv4Addr::new(10, 0, 2, 2),
        giaddr: Ipv4Addr::new(10, 0, 2, 9),
        chaddr: MAC,
        server_name: "",
        boot_file: "",
        options,
    }
}

#[test]
fn every_field_of_the_fixed_part_is_read() {
    let bytes = fixed();
    let message = DhcpMessage::parse(&bytes).unwrap();
    assert!(message.is_request() && message.broadcast());
    assert_eq!((message.xid(), message.secs()), (0xdead_beef, 0x0102));
    assert_eq!(message.ciaddr(), Ipv4Addr::new(10, 0, 2, 15));
    assert_eq!(message.yiaddr(), Ipv4Addr::new(10, 0, 2, 16));
    assert_eq!(message.siaddr(), Ipv4Addr::new(10, 0, 2, 2));
    assert_eq!(message.giaddr(), Ipv4Addr::new(10, 0, 2, 9));
    assert_eq!(message.chaddr(), Some(MAC));
}

#[test]
fn every_option_a_server_looks_at_is_read() {
    let bytes = with_options(&[
        53, 1, 3, 50, 4, 10, 0, 2, 17, 54, 4, 10, 0, 2, 2, 55, 2, 1, 3, 57, 2, 5, 0xdc, 0, 0, 61,
        3, 0xff, 1, 2, 12, 2, b'h', b'i', 255, 9, 9,
    ]);
    let message = DhcpMessage::parse(&bytes).unwrap();
    assert_eq!(message.message_type(), Some(MessageType::Request));
    assert_eq!(message.requested_ip(), Some(Ipv4Addr::new(10, 0, 2, 17)));
    assert_eq!(message.server_identifier(), Some(Ipv4Addr::new(10, 0, 2, 2)));
    assert_eq!(message.parameter_request_list(), Some(&[1, 3][..]));
    assert_eq!(message.max_message_size(), Some(1500));
    assert_eq!(message.client_identifier(), Some(&[0xff, 1, 2][..]));
    assert_eq!(message.host_name(), Some(&b"hi"[..]));
    assert_eq!(message.options().into_iter().count(), 7);
}

/// libslirp #48, #51: the vendor area may be short or missing.
#[test]
fn short_bootp_requests_are_taken() {
    for vendor in [&[][..], &MAGIC_COOKIE[..3], &MAGIC_COOKIE, &[0; 10], &[1, 2, 3, 4, 53, 9]] {
        let bytes = [&fixed()[..], vendor].concat();
        let message = DhcpMessage::parse(&bytes).unwrap();
        assert_eq!(message.options().into_iter().next(), None);
        assert_eq!(message.message_type(), None);
    }
}

/// CVE-2021-3592: nothing is read past a short packet.
#[test]
fn a_message_without_its_whole_fixed_part_is_refused() {
    for len in 0..FIXED_LEN {
        assert_eq!(DhcpMessage::parse(&fixed()[..len]).unwrap_err(), WireError::Truncated);
    }
}

/// CVE-2017-11434.
#[test]
fn an_option_that_passes_the_end_is_refused() {
    for options in [&[53, 2, 1][..], &[53, 255], &[53], &[53, 1, 1, 61, 10, 1], &[0, 0, 12]] {
        let bytes = with_options(options);
        assert_eq!(DhcpMessage::parse(&bytes).unwrap_err(), WireError::BadLength);
    }
}

#[test]
fn the_end_mark_may_be_missing_and_ends_the_options_if_there() {
    let bytes = with_options(&[53, 1, 1]);
    assert_eq!(DhcpMessage::parse(&bytes).unwrap().message_type(), Some(MessageType::Discover));
    let bytes = with_options(&[255, 53, 1, 1, 12, 200]);
    assert_eq!(DhcpMessage::parse(&bytes).unwrap().message_type(), None);
}

#[test]
fn options_of_a_wrong_length_count_as_absent() {
    let bytes = with_options(&[53, 0, 50, 3, 1, 2, 3, 54, 5, 1, 2, 3, 4, 5, 57, 1, 9]);
    let message = DhcpMessage::parse(&bytes).unwrap();
    assert_eq!(message.message_type(), None);
    assert_eq!(message.requested_ip(), None);
    assert_eq!(message.server_identifier(), None);
    assert_eq!(message.max_message_size(), None);
}

#[test]
fn message_types_are_one_to_eight() {
    for number in 0..=255_u8 {
        let kind = MessageType::from_number(number);
        assert_eq!(kind.map(|kind| kind as u8), (1..=8).contains(&number).then_some(number));
    }
}

#[test]
fn only_ethernet_hardware_addresses_are_given_out() {
    for (index, value) in [(1, 6), (2, 16), (2, 0), (2, 255)] {
        let mut bytes = fixed();
        bytes[index] = value;
        assert_eq!(DhcpMessage::parse(&bytes).unwrap().chaddr(), None);
    }
}

#[test]
fn options_go_on_in_file_and_server_name_when_overloaded() {
    for (overload, expected) in
        [(1, vec![52, 12]), (2, vec![52, 15]), (3, vec![52, 12, 15]), (0, vec![52]), (4, vec![52])]
    {
        let mut bytes = with_options(&[52, 1, overload, 255]);
        bytes[108..112].copy_from_slice(&[12, 1, b'f', 255]);
        bytes[44..48].copy_from_slice(&[15, 1, b's', 255]);
        let message = DhcpMessage::parse(&bytes).unwrap();
        let codes: Vec<_> = message.options().into_iter().map(|(code, _)| code).collect();
        assert_eq!(codes, expected, "overload {overload}");
    }
}

#[test]
fn an_overloaded_field_is_checked_like_the_options() {
    let mut bytes = with_options(&[52, 1, 2]);
    bytes[107] = 12;
    assert_eq!(DhcpMessage::parse(&bytes).unwrap_err(), WireError::BadLength);
}

#[test]
fn a_reply_is_these_bytes() {
    let options = [
        DhcpOption::MessageType(MessageType::Ack),
        DhcpOption::ServerIdentifier(Ipv4Addr::new(10, 0, 2, 2)),
        DhcpOption::LeaseTime(86_400),
        DhcpOption::InterfaceMtu(1500),
        DhcpOption::HostName("box"),
    ];
    let mut out = [0xaa; 548];
    assert_eq!(reply(&options).emit(&mut out), Ok(MIN_REPLY_LEN));
    let mut expected = vec![2, 1, 6, 0, 0, 0, 0, 7, 0, 0, 0x80, 0];
    expected.extend([10, 0, 2, 20, 10, 0, 2, 15, 10, 0, 2, 2, 10, 0, 2, 9]);
    expected.extend(MAC.0);
    expected.resize(FIXED_LEN, 0);
    expected.extend([99, 130, 83, 99, 53, 1, 5, 54, 4, 10, 0, 2, 2, 51, 4, 0, 1, 0x51, 0x80]);
    expected.extend([26, 2, 5, 0xdc, 12, 3, b'b', b'o', b'x', 255]);
    expected.resize(MIN_REPLY_LEN, 0);
    assert_eq!(&out[..MIN_REPLY_LEN], expected);
    assert!(out[MIN_REPLY_LEN..].iter().all(|byte| *byte == 0xaa));
}

/// openvmm #3996: clients drop replies below BOOTP's size.
#[test]
fn a_reply_without_options_is_padded_to_300_bytes() {
    let mut out = [0xaa; MIN_REPLY_LEN];
    assert_eq!(reply(&[]).emit(&mut out), Ok(300));
    assert_eq!(out[240], 255);
    assert!(out[241..].iter().all(|byte| *byte == 0));
    assert_eq!(reply(&[]).emit(&mut out[..299]), Err(WireError::Truncated));
}

/// libslirp #96: no reply outgrows what it may be.
#[test]
fn an_option_without_room_is_left_out_whole_and_the_end_mark_stays() {
    let id = [7; 255];
    let fitting = [9; 300 - 241 - 2 - 3];
    let options = [
        DhcpOption::ClientIdentifier(&id),
        DhcpOption::MessageType(MessageType::Offer),
        DhcpOption::ClientIdentifier(&fitting),
        DhcpOption::InterfaceMtu(576),
    ];
    let mut out = [0; MIN_REPLY_LEN];
    assert_eq!(reply(&options).emit(&mut out), Ok(300));
    assert_eq!(out[299], 255);
    let message = DhcpMessage::parse(&out).unwrap();
    assert_eq!(message.client_identifier(), Some(&fitting[..]));
    assert_eq!(message.options().into_iter().count(), 2);
}

#[test]
fn an_option_longer_than_its_length_byte_can_say_is_left_out() {
    let text = std::string::String::from_utf8(vec![b'x'; 256]).unwrap();
    let mut out = [0; 1000];
    let options = [DhcpOption::Message(&text), DhcpOption::Message(&text[..255])];
    assert_eq!(reply(&options).emit(&mut out), Ok(240 + 257 + 1));
}

proptest! {
    #[test]
    fn parsing_any_bytes_ends_without_panic(mut bytes: Vec<u8>, cookie: bool, pad in 0..300_usize) {
        let mut payload = vec![52; pad];
        payload.append(&mut bytes);
        if let Some(area) = payload.get_mut(FIXED_LEN..).filter(|_| cookie)
            && let Some(first) = area.first_chunk_mut()
        {
            *first = MAGIC_COOKIE;
        }
        if let Ok(message) = DhcpMessage::parse(&payload) {
            let total: usize = message.options().into_iter().map(|(_, value)| value.len()).sum();
            prop_assert!(total <= payload.len());
            let _ = (message.message_type(), message.chaddr(), message.max_message_size());
        }
    }

    #[test]
    fn parse_reads_what_emit_wrote(
        xid: u32, broadcast: bool, addresses: [u32; 4], mac: [u8; 6], mtu: u16, seconds: u32,
        name in "[a-z]{0,255}", id in proptest::collection::vec(any::<u8>(), 0..=255), room in 0..650_usize,
    ) {
        let [ciaddr, yiaddr, siaddr, giaddr] = addresses.map(Ipv4Addr::from_bits);
        let options = [
            DhcpOption::MessageType(MessageType::Offer),
            DhcpOption::SubnetMask(ciaddr),
            DhcpOption::Router(yiaddr),
            DhcpOption::DnsServer(siaddr),
            DhcpOption::ServerIdentifier(giaddr),
            DhcpOption::HostName(&name),
            DhcpOption::DomainName("lan"),
            DhcpOption::InterfaceMtu(mtu),
            DhcpOption::LeaseTime(seconds),
            DhcpOption::Message(""),
            DhcpOption::RenewalTime(seconds / 2),
            DhcpOption::RebindingTime(seconds / 8),
            DhcpOption::VendorClass("HTTPClient"),
            DhcpOption::ClientIdentifier(&id),
            DhcpOption::TftpServerName("tftp"),
            DhcpOption::BootFile("boot.ipxe"),
        ];
        let chaddr = MacAddr(mac);
        let reply = DhcpReply {
            xid, broadcast, ciaddr, yiaddr, siaddr, giaddr, chaddr,
            server_name: &name, boot_file: &name, options: &options,
        };
        let mut out = vec![0xaa; MIN_REPLY_LEN + room];
        let len = reply.emit(&mut out).unwrap();
        prop_assert!(len >= MIN_REPLY_LEN);
        let message = DhcpMessage::parse(&out[..len]).unwrap();
        prop_assert!(!message.is_request());
        prop_assert_eq!((message.xid(), message.broadcast()), (xid, broadcast));
        let read = [message.ciaddr(), message.yiaddr(), message.siaddr(), message.giaddr()];
        prop_assert_eq!(read.map(Ipv4Addr::to_bits), addresses);
        prop_assert_eq!(message.chaddr(), Some(chaddr));
        let field = |len| if name.len() < len { name.as_bytes() } else { &[] };
        prop_assert_eq!(message.server_name(), field(SERVER_NAME_LEN));
        prop_assert_eq!(message.boot_file(), field(BOOT_FILE_LEN));
        let mut codes = message.options().into_iter().map(|(code, _)| code);
        let mut wanted = options.iter().map(DhcpOption::code);
        prop_assert!(codes.all(|code| wanted.any(|option| option == code)));
        if room > 590 {
            prop_assert_eq!(message.options().into_iter().count(), options.len());
            prop_assert_eq!(message.host_name(), Some(name.as_bytes()));
            prop_assert_eq!(message.client_identifier(), Some(&id[..]));
            prop_assert_eq!(message.option(code::INTERFACE_MTU), Some(&mtu.to_be_bytes()[..]));
        }
    }
}
