//! curl, down and up.

use std::io::{BufRead as _, BufReader, Read as _, Write as _, copy};
use std::net::TcpStream;

use crate::guest::each;
use crate::pattern;
use crate::server::Server;

/// Size of the big transfers.
fn size() -> u64 {
    let mebibytes = std::env::var("SLIRPKIT_TRANSFER_MIB").map_or(64, |text| text.parse().unwrap());
    mebibytes << 20
}

/// A server that gives `/N`, N bytes of the pattern, and answers what is put with its SHA-256.
fn server() -> Server {
    Server::tcp(|client| {
        let mut reader = BufReader::new(client.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let value = |name: &str| {
            let mut lines = head.lines();
            lines.find_map(|line| line.strip_prefix(name)).map(|text| text.trim().to_owned())
        };
        if head.starts_with("PUT ") {
            let length = value("Content-Length:").unwrap().parse().unwrap();
            take(client, &mut reader, length, value("Expect:").is_some());
        } else {
            give(client, head.split(['/', ' ']).nth(2).unwrap().parse().unwrap());
        }
    })
}

fn take(mut client: TcpStream, body: &mut BufReader<TcpStream>, length: u64, expects: bool) {
    if expects {
        client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    }
    let sum = pattern::sha256(|sum| copy(&mut body.take(length), sum).map(drop));
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 65\r\nConnection: close\r\n\r\n";
    writeln!(client, "{head}{sum}").unwrap();
}

fn give(mut client: TcpStream, length: u64) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    pattern::send(&mut client, length).unwrap();
}

fn sum(length: u64) -> String {
    pattern::sha256(|to| pattern::send(&mut { to }, length))
}

#[test]
fn a_download_and_an_upload_have_the_same_digest() {
    let (server, size) = (server(), size());
    let (port, sum) = (server.port(), sum(size));
    each("curl", &["curl"], |setup| {
        let script = format!(
            "set -e; file=$(mktemp); trap 'rm $file' EXIT; url=http://10.0.2.2:{port}; \
             curl -sSf $url/{size} -o $file; sha256sum <$file; curl -sSf -T $file $url/"
        );
        let expected = format!("{sum}  -\n{sum}\n");
        assert_eq!(setup.script(&[], &script), expected, "{}", setup.name());
    });
}

#[test]
fn sixty_four_downloads_at_once_are_intact() {
    const LENGTH: u64 = 300_000;
    let server = server();
    let (port, sum) = (server.port(), sum(LENGTH));
    each("curls", &["curl"], |setup| {
        let script = format!(
            "for _ in $(seq 64); do curl -sSf http://10.0.2.2:{port}/{LENGTH} | sha256sum & done; wait"
        );
        let text = setup.script(&[], &script);
        let whole = text.lines().filter(|line| line.starts_with(&sum)).count();
        assert_eq!((whole, text.lines().count()), (64, 64), "{}: {text}", setup.name());
    });
}
