//! iPXE by its own driver, out of the ROM that QEMU has for the card.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};

use crate::machine::{Guest, KERNEL_ARGUMENTS, Plan};
use crate::server::Server;
use crate::traffic;

/// The guest whose kernel is one as bootloaders take them.
const GUEST: Guest = Guest::I386;

/// Loads the two files beside this one.
fn script() -> String {
    format!("#!ipxe\nkernel kernel {KERNEL_ARGUMENTS} loaded-by-ipxe\ninitrd initrd\nboot\n")
}

/// Serves one request of a client, and tells of it: its first line, and by whom it was made.
fn serve(client: TcpStream, requests: &Sender<[String; 2]>) {
    let mut head = BufReader::new(&client).lines().map_while(Result::ok);
    let Some(request) = head.next() else { return };
    let agent =
        head.take_while(|line| !line.is_empty()).find(|line| line.starts_with("User-Agent:"));
    let body = match request.split(' ').nth(1).unwrap() {
        "/boot.ipxe" => script().into_bytes(),
        path => fs::read(GUEST.file(&path[1..])).unwrap(),
    };
    requests.send([request, agent.unwrap_or_default()]).unwrap();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    (&client).write_all(&[head.as_bytes(), &body].concat()).unwrap();
}

/// The URL of the script comes by DHCP, script, kernel and initrd over HTTP from the host, and the
/// system booted has the card after iPXE.
#[test]
fn ipxe_boots_a_kernel_over_http_which_has_the_card_then() {
    let (requests, seen) = channel();
    let server = Server::tcp(move |client| serve(client, &requests));
    let url = format!("http://10.0.2.2:{}/boot.ipxe", server.port());
    let plan = Plan::new("ipxe").booting_by_network(GUEST, &url);
    let Some(mut machine) = plan.start("ipxe") else { return };
    machine.wait_for_shell();
    let seen: Vec<_> = seen.try_iter().collect();
    let lines: Vec<_> = seen.iter().map(|[line, _]| line.as_str()).collect();
    assert_eq!(lines, ["GET /boot.ipxe HTTP/1.1", "GET /kernel HTTP/1.1", "GET /initrd HTTP/1.1"]);
    assert!(seen.iter().all(|[_, agent]| agent.contains("iPXE")), "{seen:?}");
    let report = machine.overlay().report();
    assert_eq!(
        (report["card.no_room"], report["nat.tcp_bytes_retransmitted"]),
        (0, 0),
        "{report:?}"
    );
    assert!(machine.run("cat /proc/cmdline").contains("loaded-by-ipxe"));
    machine.run("modprobe ne2k-pci");
    traffic::lease_and_ping(&mut machine);
    traffic::transfer(&mut machine, 1 << 20);
}
