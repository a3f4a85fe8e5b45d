//! The command line: options, their meaning and their help.

use core::net::SocketAddr;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{ArgAction, ArgGroup, CommandFactory as _, Parser, Subcommand};
use host_shim::sockets::PeekMode;
use ipstack::wire::MacAddr;
use ne2000::Model;
use slirp_nat::{Forward, MAX_MTU, MIN_MTU};

use super::boot::Boot;
use super::cidr::Cidr;
use super::{Failure, forward, mac, resolv};
use crate::netns::InterfaceName;

/// Default MTU of a namespace: the largest that Linux's own loopback-like links use. Big packets
/// cost a tap one system call each, whatever their size.
pub(crate) const NAMESPACE_MTU: u16 = 65_520;
/// Default MTU of a QEMU guest, and the largest that the card of `nic` can have: Ethernet's.
pub(crate) const QEMU_MTU: u16 = 1500;

const EXAMPLES: &str = "\
Examples:
  slirpkit run -- curl https://example.org      a command behind its own NAT
  slirpkit run --map-root -- bash               a shell that is root in there
  slirpkit run --forward 127.0.0.1:8080-:80 -- ./server
                                                reach its port 80 at 127.0.0.1:8080
  slirpkit attach --pid $PID                    a network for a container that has none
  slirpkit qemu --socket /tmp/net.sock          a network for QEMU, see 'slirpkit qemu --help'
  slirpkit nic --socket /tmp/nic.sock           a network card for QEMU, see 'slirpkit nic --help'
  slirpkit replay session.rec                   what --record wrote, once more: for bug reports
  slirpkit demo                                 a guest with an NE2000, all in one process

The guest's network is 10.0.2.0/24 unless --cidr says otherwise: router .2, name server .3, first
DHCP lease .15, and .100 for a namespace. No privileges are needed.

Exit status: that of COMMAND for 'run' (128+n if signal n ended it, 127 if it was not found, 126 if
it could not be executed); else 0; 1 if something failed; 2 if the command line was wrong.";

const RUN_HELP: &str = "\
COMMAND gets new user, network and mount namespaces with lo, tap0 (address .100, default route
via .2), and an /etc/resolv.conf that names the router's DNS relay. It may ping and listen on any
port. Signals sent to slirpkit go on to COMMAND, except those of the terminal, which COMMAND
receives anyway. If slirpkit dies, so does COMMAND.

Examples:
  slirpkit run -- ping -c1 10.0.2.2
  slirpkit run --host-loopback -- curl http://10.0.2.2:8000/   the host's 127.0.0.1:8000
  slirpkit run --pcap /tmp/out.pcap --stats -- git fetch";

const ATTACH_HELP: &str = "\
The namespace may belong to root or to a user namespace of yours. The interface vanishes when
slirpkit ends, which it does on SIGINT, SIGTERM, SIGHUP, SIGQUIT, a hangup of --exit-fd, the end of
PID, or the removal of PATH. An existing persistent tap of that name is used as it is configured, and
stays.

Examples:
  unshare -rn sleep 1000 & slirpkit attach --pid $!
  ip netns add box; slirpkit attach --netns /run/netns/box --tap eth0";

const QEMU_HELP: &str = "\
With --socket PATH, give QEMU (8.0 or later)
  -netdev stream,id=n0,server=off,addr.type=unix,addr.path=PATH -device virtio-net-pci,netdev=n0
It may come back to the same socket after it ends. With --socket PATH --dgram PEER, give it
  -netdev dgram,id=n0,local.type=unix,local.path=PEER,remote.type=unix,remote.path=PATH \\
  -device virtio-net-pci,netdev=n0

The guest configures itself by DHCP; its first lease is .15.";

const NIC_HELP: &str = "\
Give QEMU (10.1 or later)
  -device '{\"driver\":\"vfio-user-pci\",\"rombar\":0,\"socket\":{\"type\":\"unix\",\"path\":\"PATH\"}}'
It may come back to the same socket after it ends. The guest finds an RTL8029AS, which every driver
for the NE2000 on PCI drives, and configures itself by DHCP; its first lease is .15.

Each access of its driver to the card is a message over the socket and back, and a frame takes
hundreds. This is for a guest that has no other driver; 'slirpkit qemu' serves the rest.";

const REPLAY_HELP: &str = "\
Nothing is sent to anybody: the recording has what the host answered. At the first difference, both
sides are printed, '-' for what was recorded and '+' for what this version does.

Exit status: 0 if all is the same, 1 if not, 2 if the recording is broken or cut off.";

const DEMO_HELP: &str = "\
The guest is a network stack in this process, with a driver that knows the card by its registers.
It gets a lease, pings its gateway, and moves bytes to and from servers on this host's 127.0.0.1,
each of which is compared. Nothing else is reached, and no privileges are needed.

Exit status: 0 if every byte was right, else 1.";

/// A user-mode network for a command, a namespace or a QEMU guest, without privileges.
#[derive(Debug, Parser)]
#[command(name = "slirpkit", version, after_help = EXAMPLES, arg_required_else_help = false)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Args {
    /// What to serve.
    #[command(subcommand)]
    pub(crate) command: Subcommands,
}

/// The program's ways.
#[derive(Debug, Subcommand)]
pub(crate) enum Subcommands {
    /// Run a command in new namespaces behind the NAT
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Give an existing network namespace a tap behind the NAT
    #[command(after_help = ATTACH_HELP)]
    #[command(group = ArgGroup::new("target").required(true))]
    Attach(Attach),
    /// Serve a QEMU guest over a unix socket
    #[command(after_help = QEMU_HELP)]
    Qemu(Qemu),
    /// Serve a QEMU guest as a network card, an RTL8029AS, over vfio-user
    #[command(after_help = NIC_HELP)]
    Nic(Nic),
    /// Feed what --record wrote to a fresh NAT, and compare what it does
    #[command(after_help = REPLAY_HELP)]
    Replay(Replay),
    /// Show it all in one process: a guest, an NE2000, the NAT, and a transfer each way
    #[command(after_help = DEMO_HELP)]
    Demo(Demo),
}

/// `slirpkit run`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "slirpkit run [OPTIONS] -- COMMAND [ARGUMENT]...")]
pub(crate) struct Run {
    /// Be root within the namespaces, not the same user
    #[arg(long)]
    pub(crate) map_root: bool,
    /// Options of all that serve.
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to run, found by PATH
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `slirpkit attach`.
#[derive(Debug, clap::Args)]
pub(crate) struct Attach {
    /// Serve the network namespace of this process, until it ends
    #[arg(long, value_name = "PID", group = "target", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Option<i32>,
    /// Serve the network namespace of this file, as /run/netns/NAME or /proc/PID/ns/net
    #[arg(long, value_name = "PATH", group = "target")]
    pub(crate) netns: Option<PathBuf>,
    /// Name of the tap
    #[arg(long, value_name = "NAME", default_value = "tap0")]
    #[arg(value_parser = |name: &str| name.parse::<InterfaceName>())]
    pub(crate) tap: InterfaceName,
    /// Leave address, MTU and route of the tap to somebody else, as a DHCP client within
    #[arg(long)]
    pub(crate) no_configure: bool,
    /// Options of all that serve.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `slirpkit qemu`.
#[derive(Debug, clap::Args)]
pub(crate) struct Qemu {
    /// Unix socket to make; gone again at the end
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// Exchange datagrams, one a frame, with the unix socket PEER, instead of a stream
    #[arg(long, value_name = "PEER")]
    pub(crate) dgram: Option<PathBuf>,
    /// Options of all that serve.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `slirpkit nic`.
#[derive(Debug, clap::Args)]
pub(crate) struct Nic {
    /// Unix socket to make; gone again at the end
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// Station address of the card
    #[arg(long, value_name = "ADDRESS", default_value = "52:54:00:12:34:56")]
    #[arg(value_parser = mac::parse)]
    pub(crate) mac: MacAddr,
    /// Options of all that serve.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `slirpkit replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    /// Write the frames, both ways, to FILE, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Say more: -vv every flow, -vvv every frame
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// The recording
    #[arg(value_name = "RECORDING")]
    pub(crate) recording: PathBuf,
}

/// `slirpkit demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// The guest's card: ne1000 and ne2000-8bit have a data port of 8 bits, ne2000 of 16, rtl8029as
    /// of 32
    #[arg(long, value_name = "CARD", default_value = "rtl8029as", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(CARDS.map(|(name, _)| name)).map(model))]
    pub(crate) card: Model,
    /// How much to download, and to upload
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub(crate) size: u64,
    /// Write every frame, as the guest sees it, to FILE, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Print counters of the NAT to stderr at the end
    #[arg(long)]
    pub(crate) stats: bool,
    /// Say more: -vv every flow, -vvv every frame
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The cards that there are.
const CARDS: [(&str, Model); 4] = [
    ("ne1000", Model::Ne1000),
    ("ne2000", Model::Ne2000),
    ("ne2000-8bit", Model::Ne2000EightBit),
    ("rtl8029as", Model::Rtl8029As),
];

/// Options of every subcommand that serves a guest.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Largest IP packet on the guest's link, 68 to 65521 bytes [default: 65520, for QEMU 1500]
    #[arg(long, value_name = "BYTES")]
    #[arg(value_parser = clap::value_parser!(u16).range(i64::from(MIN_MTU)..=i64::from(MAX_MTU)))]
    pub(crate) mtu: Option<u16>,
    /// The guest's network, with a prefix of 8 to 25
    #[arg(long, value_name = "NETWORK/PREFIX", default_value = "10.0.2.0/24")]
    #[arg(value_parser = |text: &str| text.parse::<Cidr>())]
    pub(crate) cidr: Cidr,
    /// Resolver of the DNS relay, with a port if not 53; up to 4 [default: those of the host's
    /// /etc/resolv.conf]
    #[arg(long, value_name = "ADDRESS", value_parser = resolv::parse_resolver)]
    pub(crate) dns: Vec<SocketAddr>,
    /// Let the guest reach the host's 127.0.0.1 at the router's address, and the host's own
    /// addresses
    #[arg(long)]
    pub(crate) host_loopback: bool,
    /// What the guest boots.
    #[command(flatten)]
    pub(crate) boot: Boot,
    /// Lead a port of the host to the guest. An empty HOSTADDR is every IPv4 address, as with
    /// QEMU; write 127.0.0.1 to keep others out. May be given often
    #[arg(long, value_name = "[udp:]HOSTADDR:PORT-[GUEST]:PORT", value_parser = forward::parse)]
    pub(crate) forward: Vec<Forward>,
    /// Write every frame to FILE, for Wireshark
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write all that goes into the NAT and comes out of it to FILE, for bug reports and 'slirpkit
    /// replay'. It holds payload and the NAT's keys in the clear: show it to none but those who may
    /// see both
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write "1" to this open file once the network is up
    #[arg(long, value_name = "FD", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) ready_fd: Option<i32>,
    /// End when the other side of this pipe or socket is closed
    #[arg(long, value_name = "FD", value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) exit_fd: Option<i32>,
    /// How to look ahead in the host's sockets: by offset (SO_PEEK_OFF, for TCP since Linux 6.9) or
    /// by discarding what lies before [default: offset, if the kernel has it]
    #[arg(long, value_name = "MODE")]
    #[arg(value_parser = PossibleValuesParser::new(["offset", "discard"]).map(peek_mode))]
    pub(crate) peek: Option<PeekMode>,
    /// Print counters to stderr at the end and on SIGUSR1
    #[arg(long)]
    pub(crate) stats: bool,
    /// Connections and datagram flows at once, at most
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) flows: u32,
    /// Say more: -v what is set up, -vv every flow, -vvv every frame
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Subcommands {
    /// The options of those that serve a guest.
    const fn common(&self) -> Option<&Common> {
        match self {
            Self::Run(run) => Some(&run.common),
            Self::Attach(attach) => Some(&attach.common),
            Self::Qemu(qemu) => Some(&qemu.common),
            Self::Nic(nic) => Some(&nic.common),
            Self::Replay(_) | Self::Demo(_) => None,
        }
    }

    /// How much to say.
    pub(crate) fn verbose(&self) -> u8 {
        match self {
            Self::Replay(replay) => replay.verbose,
            Self::Demo(demo) => demo.verbose,
            serving => serving.common().map_or(0, |common| common.verbose),
        }
    }
}

/// Reads the command line.
///
/// # Errors
/// One line that says what is wrong, or the text that was asked for by `--help` or `--version`.
pub(crate) fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Args, Failure> {
    let line: Vec<OsString> = line.into_iter().collect();
    let args = Args::try_parse_from(&line).map_err(|error| explain(&error, &line))?;
    args.command.common().map_or(Ok(()), check)?;
    if let Subcommands::Nic(nic) = &args.command
        && nic.common.mtu.is_some_and(|mtu| mtu > QEMU_MTU)
    {
        return Err(usage("--mtu", "an Ethernet card takes no more than 1500"));
    }
    Ok(args)
}

/// What no parser of a single option can tell.
fn check(common: &Common) -> Result<(), Failure> {
    if common.dns.len() > slirp_nat::MAX_RESOLVERS {
        return Err(usage("--dns", &format!("at most {} resolvers", slirp_nat::MAX_RESOLVERS)));
    }
    if common.ready_fd.is_some() && common.ready_fd == common.exit_fd {
        return Err(usage("--ready-fd", "must differ from --exit-fd"));
    }
    if common.record.is_some() && common.record == common.pcap {
        return Err(usage("--record", "must differ from --pcap"));
    }
    for (index, rule) in common.forward.iter().enumerate() {
        let text = forward::format(rule);
        let outside = match rule.guest.ip() {
            core::net::IpAddr::V4(guest) => !guest.is_unspecified() && !common.cidr.contains(guest),
            core::net::IpAddr::V6(_) => true,
        };
        if outside {
            return Err(usage("--forward", &format!("{text} leads out of the guest's network")));
        }
        let same = |other: &Forward| (other.protocol, other.host) == (rule.protocol, rule.host);
        if common.forward.iter().take(index).any(same) {
            return Err(usage(
                "--forward",
                &format!("{text} uses the same port of the host twice"),
            ));
        }
    }
    Ok(())
}

/// One of the two words that the option takes.
fn peek_mode(word: impl AsRef<str>) -> PeekMode {
    if word.as_ref() == "discard" { PeekMode::Discard } else { PeekMode::Offset }
}

/// One of the names in [`CARDS`].
fn model(name: impl AsRef<str>) -> Model {
    let card = CARDS.iter().find(|(known, _)| *known == name.as_ref());
    card.map_or(Model::Rtl8029As, |(_, model)| *model)
}

fn usage(option: &str, what: &str) -> Failure {
    Failure::Usage(format!("{option}: {what}"))
}

/// One line out of clap's several, for the command `line`.
fn explain(error: &clap::Error, line: &[OsString]) -> Failure {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Failure::Help(text);
    }
    if error.kind() == ErrorKind::MissingSubcommand {
        return Failure::Usage(
            "give one of run, attach, qemu, nic, replay and demo; see 'slirpkit --help'".to_owned(),
        );
    }
    // The first paragraph says what is wrong; tips and usage follow it.
    let words =
        text.lines().take_while(|line| !line.trim().is_empty()).flat_map(str::split_whitespace);
    let what = words.collect::<Vec<_>>().join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let command = Args::command();
    let named = |word: &OsString| word.to_str().and_then(|name| command.find_subcommand(name));
    let place = line.get(1).and_then(named).map_or("", clap::Command::get_name);
    let see = ["slirpkit", place, "--help"].into_iter().filter(|word| !word.is_empty());
    Failure::Usage(format!("{what}; see '{}'", see.collect::<Vec<_>>().join(" ")))
}

#[cfg(test)]
mod tests;
