use super::*;

const MANUAL: &str = include_str!("../../../../docs/slirpkit.1.md");

fn parse_words(words: &str) -> Result<Args, Failure> {
    parse(words.split(' ').map(OsString::from))
}

fn complaint(words: &str) -> String {
    match parse_words(words) {
        Err(Failure::Usage(line)) => line,
        other => panic!("{words}: {other:?}"),
    }
}

#[test]
fn clap_finds_no_fault_in_the_definitions() {
    Args::command().debug_assert();
}

#[test]
fn every_complaint_is_one_line_that_names_the_option() {
    for (words, part) in [
        ("slirpkit", "give one of run, attach, qemu, nic, replay and demo"),
        ("slirpkit walk", "unrecognized subcommand 'walk'"),
        ("slirpkit run", "required arguments were not provided: <COMMAND>..."),
        ("slirpkit run --mtu 67 -- true", "'--mtu <BYTES>': 67 is not in 68..=65521"),
        ("slirpkit run --mtu 65522 -- true", "'--mtu <BYTES>': 65522 is not in 68..=65521"),
        ("slirpkit run --cidr 10.0.2.0/26 -- true", "the prefix must be 8 to 25"),
        ("slirpkit run --speed -- true", "unexpected argument '--speed'"),
        ("slirpkit run --forward 80 -- true", "expected [udp:]HOSTADDR:PORT-[GUEST]:PORT"),
        ("slirpkit attach", "required arguments were not provided"),
        ("slirpkit attach --pid 1 --netns /x", "cannot be used with"),
        ("slirpkit attach --pid 0", "0 is not in 1.."),
        (
            "slirpkit attach --pid 1 --tap a/b",
            "an interface name has no blank, slash, colon or percent sign",
        ),
        ("slirpkit attach --pid 1 --tap tap%d", "percent sign"),
        ("slirpkit qemu", "required arguments were not provided: --socket <PATH>"),
        ("slirpkit nic", "required arguments were not provided: --socket <PATH>"),
        ("slirpkit nic --socket s --mac 1:2:3", "expected six bytes in hexadecimal"),
        ("slirpkit nic --socket s --mtu 1501", "--mtu: an Ethernet card takes no more than 1500"),
        ("slirpkit run --ready-fd 3 --exit-fd 3 -- true", "--ready-fd: must differ from --exit-fd"),
        ("slirpkit run --forward :80-10.0.3.1:80 -- true", "leads out of the guest's network"),
        ("slirpkit run --next-server here -- true", "invalid IPv4 address syntax"),
        ("slirpkit run --pcap f --record f -- true", "--record: must differ from --pcap"),
        ("slirpkit replay", "required arguments were not provided: <RECORDING>"),
        ("slirpkit demo --card ne3000", "ne2000, ne2000-8bit, rtl8029as"),
        ("slirpkit demo --size 0", "0 is not in 1..=65536"),
        (
            "slirpkit run --forward :80-:80 --forward :80-:81 -- true",
            "the same port of the host twice",
        ),
    ] {
        let line = complaint(words);
        assert!(line.contains(part), "{words}: {line}");
        assert!(!line.contains('\n'), "{words}: {line}");
    }
}

#[test]
fn a_command_keeps_its_own_options() {
    let args = parse_words("slirpkit run --map-root -- ls --mtu -v").unwrap();
    let Subcommands::Run(run) = args.command else { panic!("another subcommand") };
    assert!(run.map_root);
    assert_eq!(run.command, ["ls", "--mtu", "-v"]);
    assert_eq!(run.common.verbose, 0);
}

#[test]
fn forwards_of_two_protocols_may_share_a_port() {
    assert!(parse_words("slirpkit run --forward :53-:53 --forward udp::53-:53 -- true").is_ok());
}

#[test]
fn help_is_not_a_complaint() {
    for words in
        ["slirpkit --help", "slirpkit --version", "slirpkit run --help", "slirpkit replay -h"]
    {
        assert!(matches!(parse_words(words), Err(Failure::Help(_))), "{words}");
    }
}

/// The options in the headings of the manual, under the subcommand whose section they are in.
fn manual_options() -> Vec<(String, String)> {
    let mut section = "";
    let mut options = Vec::new();
    // An option begins a paragraph; elsewhere it is only mentioned.
    for (before, line) in MANUAL.lines().zip(MANUAL.lines().skip(1)) {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        } else if !before.is_empty() {
            continue;
        } else if let Some(item) =
            line.strip_prefix("**--").or_else(|| line.split_once(", **--").map(|(_, rest)| rest))
        {
            let name: String =
                item.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            options.push((section.to_owned(), name));
        }
    }
    options.sort();
    options
}

#[test]
fn the_manual_has_every_option_and_no_other() {
    let common = [
        "mtu",
        "cidr",
        "dns",
        "host-loopback",
        "bootfile",
        "next-server",
        "tftp-server-name",
        "forward",
        "pcap",
        "record",
        "ready-fd",
        "exit-fd",
        "peek",
        "stats",
        "flows",
        "verbose",
    ];
    let mut expected = Vec::new();
    for subcommand in Args::command().get_subcommands() {
        let section = format!("slirpkit {}", subcommand.get_name());
        for option in subcommand.get_arguments().filter_map(clap::Arg::get_long) {
            let serves = !["replay", "demo"].contains(&subcommand.get_name());
            let shared = serves && common.contains(&option);
            let section = if shared { "Common options" } else { &section };
            expected.push((section.to_owned(), option.to_owned()));
        }
    }
    expected.sort();
    expected.dedup();
    assert_eq!(manual_options(), expected);
}
