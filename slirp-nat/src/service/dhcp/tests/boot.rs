//! What to boot, and from where (RFC 2131 table 3, RFC 2132 9.4, 9.5).

use std::string::String;

use super::*;

const URL: &str = "http://10.0.2.2:8000/boot.ipxe";

fn long(len: usize) -> String {
    core::iter::repeat_n('x', len).collect()
}

fn server(boot_file: &str, name: &str) -> Server {
    let mut server = Server::new(2);
    server.config.boot_file.push_str(boot_file).unwrap();
    server.config.tftp_server_name.push_str(name).unwrap();
    server
}

/// Boot file and server name as the fixed part has them.
fn fields(answer: &Answered) -> (&[u8], &[u8]) {
    (answer.message().boot_file(), answer.message().server_name())
}

/// A DISCOVER of a client that takes long replies.
fn discover() -> Message {
    Message::discover(MAC).option(57, &[5, 0xdc])
}

#[test]
fn every_reply_but_a_refusal_names_file_and_server() {
    let mut server = server(URL, "tftp.example");
    server.config.next_server = Some(Ipv4Addr::new(192, 0, 2, 9));
    let granted = [
        Message::discover(MAC),
        Message::select(MAC, net(15)),
        Message::bootp(mac(1)),
        Message::new(MAC, MessageType::Inform).ciaddr(net(15)),
    ];
    for message in granted {
        let answer = server.ask(&message);
        assert_eq!(fields(&answer), (URL.as_bytes(), &b"tftp.example"[..]));
        assert_eq!(answer.message().siaddr(), Ipv4Addr::new(192, 0, 2, 9));
        assert_eq!((answer.option(66), answer.option(67)), (None, None), "nobody asked");
    }
    let refusal = server.ask(&Message::reboot(MAC, Ipv4Addr::new(192, 0, 2, 1)));
    assert_eq!(fields(&refusal), (&[][..], &[][..]));
    assert_eq!(refusal.message().siaddr(), NONE);
}

#[test]
fn options_66_and_67_are_for_those_who_ask() {
    let ask = Message::discover(MAC).option(55, &[67, 1, 66]);
    let offer = server(URL, "tftp.example").ask(&ask);
    assert_eq!(offer.codes(), [53, 54, 51, 1, 3, 6, 67, 66, 26]);
    assert_eq!(offer.option(67), Some(URL.as_bytes().to_vec()));
    assert_eq!(offer.option(66), Some(b"tftp.example".to_vec()));
    assert_eq!(fields(&offer), (URL.as_bytes(), &b"tftp.example"[..]));
    assert_eq!(server("", "").ask(&ask).codes(), [53, 54, 51, 1, 3, 6, 26]);
}

/// Each field holds a NUL behind its text.
#[test]
fn a_name_too_long_for_its_field_comes_as_an_option() {
    for (file, name) in [(127, 63), (128, 64), (255, 255)] {
        let fits = file == 127;
        let (file, name) = (long(file), long(name));
        let mut server = server(&file, &name);
        let offer = server.ask(&discover());
        let (file, name) = (file.as_bytes(), name.as_bytes());
        let whole = [Some(file.to_vec()), Some(name.to_vec())];
        if fits {
            assert_eq!(fields(&offer), (file, name));
            assert_eq!([offer.option(67), offer.option(66)], [None, None]);
        } else {
            assert_eq!(fields(&offer), (&[][..], &[][..]));
            assert_eq!([offer.option(67), offer.option(66)], whole);
        }
        let asked = server.ask(&discover().option(55, &[66, 67]));
        assert_eq!([asked.option(67), asked.option(66)], whole);
        assert_eq!(fields(&asked), fields(&offer));
    }
}

/// BOOTP has 64 bytes for options, of which a reply of 300 bytes is the whole.
#[test]
fn bootp_is_not_told_of_a_file_too_long_for_its_field() {
    let answer = server(&long(128), "").ask(&Message::bootp(MAC));
    assert_eq!((answer.bytes.len(), fields(&answer)), (300, (&[][..], &[][..])));
    let answer = server(&long(127), "").ask(&Message::bootp(MAC));
    assert_eq!(answer.message().boot_file().len(), 127);
}

/// What a client says in its own fields is not given back, and if it holds options, they count.
#[test]
fn the_clients_own_fields_stay_its_own() {
    let mut server = server("boot", "");
    let named = Message::bootp(MAC).set(44, b"server").set(108, b"generic");
    assert_eq!(fields(&server.ask(&named)), (&b"boot"[..], &[][..]));
    let overloaded = Message::discover(MAC).option(52, &[1]).set(108, &[55, 1, 67, 255]);
    let offer = server.ask(&overloaded);
    assert_eq!((offer.option(67), offer.option(52)), (Some(b"boot".to_vec()), None));
}

/// UEFI 2.10 24.7.3.1: an offer without that vendor class is none for HTTP boot.
#[test]
fn a_client_that_boots_over_http_hears_its_vendor_class() {
    let http = Message::discover(MAC).option(60, b"HTTPClient:Arch:00016:UNDI:003001");
    let pxe = Message::discover(MAC).option(60, b"PXEClient:Arch:00007:UNDI:003001");
    let class = Some(b"HTTPClient".to_vec());
    assert_eq!(server(URL, "").ask(&http).option(60), class);
    assert_eq!(server("https://10.0.2.2/x.efi", "").ask(&http).option(60), class);
    assert_eq!(server("http.efi", "").ask(&http).option(60), None);
    assert_eq!(server(URL, "").ask(&pxe).option(60), None);
}
