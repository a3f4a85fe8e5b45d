//! The headline: how fast a Linux guest with an RTL8029AS downloads and uploads, by which card and
//! which NAT. A measurement, for `.ci/run headline`; it holds bytes, and prints times.

use core::fmt::Write as _;
use core::net::Ipv4Addr;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use host_shim::clock;

use crate::machine::{Guest, Machine, Plan, Slot};
use crate::overlay::Report;
use crate::place::Place;
use crate::program::Program;
use crate::server::Server;
use crate::traffic;

const RUNS: usize = 5;

/// A card with a NAT behind it, in a guest of its own, and how it did.
struct Route {
    name: &'static str,
    machine: Machine,
    /// Bytes of a download: what takes some seconds.
    download: u64,
    downloads: Vec<f64>,
    uploads: Vec<f64>,
}

impl Route {
    fn new(name: &'static str, plan: Plan, download: u64) -> Option<Self> {
        let mut machine = plan.start(name)?;
        machine.wait_for_shell();
        machine.run("modprobe ne2k-pci");
        traffic::lease_and_ping(&mut machine);
        Some(Self { name, machine, download, downloads: vec![], uploads: vec![] })
    }

    /// One download and one upload, in Mbit/s by the host's clock.
    fn measure(&mut self) {
        let length = self.download;
        let source = Server::tcp(move |mut client| {
            let piece = [0x5a; 1 << 16];
            (0..length / (1 << 16)).for_each(|_| client.write_all(&piece).unwrap());
        });
        let command =
            format!("nc 10.0.2.2 {} -e dd of=/dev/null bs=64k iflag=fullblock 2>&1", source.port());
        let speed = self.timed(&command, length);
        self.downloads.push(speed);

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let sink = Server::tcp_on(listener, |mut client| {
            let mut buffer = vec![0; 1 << 20];
            let mut total = 0;
            loop {
                match client.read(&mut buffer).unwrap() {
                    0 => break,
                    count => total += count,
                }
            }
            assert_eq!(total as u64, UPLOAD);
        });
        let blocks = UPLOAD >> 16;
        let command =
            format!("nc 10.0.2.2 {} -e dd if=/dev/zero bs=64k count={blocks} 2>&1", sink.port());
        let speed = self.timed(&command, UPLOAD);
        self.uploads.push(speed);
    }

    /// Mbit/s of a command that moves `length` bytes, as it must say as `dd` does.
    fn timed(&mut self, command: &str, length: u64) -> f64 {
        let start = clock::now();
        let text = self.machine.run(command);
        let seconds = clock::now().since(start).as_secs_f64();
        assert!(text.contains(&format!("{}+0 records in", length >> 16)), "{command}: {text}");
        length as f64 * 8.0 / seconds / 1e6
    }
}

const UPLOAD: u64 = 32 << 20;

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn row(text: &mut String, route: &Route, what: &str, values: &[f64], rival: f64) {
    let runs: Vec<_> = values.iter().map(|value| format!("{value:.1}")).collect();
    let (median, ratio) = (median(values), median(values) / rival);
    let name = route.name;
    writeln!(text, "| {name} | {what} | {} | {median:.1} | {ratio:.2} |", runs.join(" ")).unwrap();
}

fn table(routes: &[Route; 3], report: &Report) -> String {
    let [_, rival, _] = routes;
    let mut text =
        "\n| card and NAT | | Mbit/s | median | times QEMU's and libslirp |\n".to_owned();
    text.push_str("|---|---|---|---|---|\n");
    for route in routes {
        row(&mut text, route, "download", &route.downloads, median(&rival.downloads));
    }
    for route in routes {
        row(&mut text, route, "upload", &route.uploads, median(&rival.uploads));
    }
    text.push_str("\nIn process, all runs together:\n");
    let counters = [
        ("frames stored by the card", "card.stored"),
        ("frames refused by the card", "card.no_room"),
        ("bytes sent again by the NAT", "nat.tcp_bytes_retransmitted"),
        ("fast retransmissions", "nat.tcp_fast_retransmits"),
        ("timeouts", "nat.tcp_timeouts"),
        ("timeouts while the guest waited for a CPU", "timeouts_off_the_cpu"),
        ("accesses", "accesses"),
        ("interrupts", "interrupts"),
        ("peeks", "calls.peek"),
        ("writes", "calls.send"),
    ];
    for (what, name) in counters {
        writeln!(text, "{:>12}  {what}", report[name]).unwrap();
    }
    text
}

#[test]
#[ignore = "a measurement"]
fn headline() {
    let amd64 = |name| Plan::new(name).booting(Guest::Amd64);
    let place = Place::new("headline");
    let socket = place.path("net.sock");
    let _program = Program::serve("qemu", &socket);
    let routes = [
        ("ours, in process", amd64("headline-ours").with_card(Slot::Pci), 32 << 20),
        (
            "QEMU's and libslirp",
            amd64("headline-slirp")
                .with(&["-netdev", "user,id=net", "-device"])
                .with(&["ne2k_pci,netdev=net,romfile="]),
            1 << 20,
        ),
        (
            "QEMU's and ours, -netdev stream",
            amd64("headline-stream").with_qemus_card(&socket),
            8 << 20,
        ),
    ];
    let mut routes = routes.map(|(name, plan, download)| Route::new(name, plan, download).unwrap());
    for _ in 0..RUNS {
        routes.iter_mut().for_each(Route::measure);
    }
    traffic::assert_nothing_lost(&mut routes[0].machine);
    println!("{}", table(&routes, &routes[0].machine.overlay().report()));
}
