//! `--record` and `slirpkit replay`.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::place::Place;
use crate::user::{PROGRAM, User, complaint, everybody};

/// Bytes that each client sends and receives.
const BYTES: usize = 300_000;

/// The caller, if he can run the program here: only he can write where these tests look.
fn caller(test: &str) -> Option<User> {
    everybody(test).into_iter().find(|user| user.name == "the caller")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(user: &User, options: &[&str], script: &str) -> Output {
    let command = ["--", "timeout", "60", "bash", "-c", script];
    user.slirpkit(&[&["run"], options, &command[..]].concat()).output().unwrap()
}

fn replay(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("replay").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Takes `clients` one after the other, each of which sends and is sent [`BYTES`]. Returns the port.
fn serve(clients: usize) -> (u16, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        for _ in 0..clients {
            let (mut client, _) = listener.accept().unwrap();
            let mut upload = vec![0; BYTES];
            client.read_exact(&mut upload).unwrap();
            assert!(upload.iter().all(|byte| *byte == b'u'));
            client.write_all(&[b'd'; BYTES]).unwrap();
        }
    });
    (port, server)
}

/// What a client of [`serve`] does in bash; it prints how much it received.
fn exchange(port: u16) -> String {
    format!(
        "(exec 3<>/dev/tcp/10.0.2.2/{port}; printf '%{BYTES}s' | tr ' ' u >&3; head -c {BYTES} <&3 | wc -c)"
    )
}

/// Records a stream both ways, a name looked up and a port that is refused.
fn record(user: &User, file: &Path) {
    let (port, server) = serve(1);
    let resolver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = resolver.local_addr().unwrap().to_string();
    let answers = thread::spawn(move || {
        let mut message = [0; 512];
        let (length, client) = resolver.recv_from(&mut message).unwrap();
        // The bit that makes a query a response (RFC 1035 4.1.1).
        message[2] |= 0x80;
        resolver.send_to(&message[..length], client).unwrap();
    });
    // A query for the address of "x": 19 bytes, the identifier first.
    let query = r"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01x\x00\x00\x01\x00\x01";
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = format!(
        "{}; exec 4<>/dev/udp/10.0.2.3/53; printf '{query}' >&4; head -c 19 <&4 | wc -c;
         (exec 5<>/dev/tcp/10.0.2.2/{closed}) 2>&1 | grep -om1 'Connection refused'",
        exchange(port)
    );
    let options = ["--host-loopback", "--dns", &address, "--record", &text(file)];
    let output = run(user, &options, &script);
    assert_eq!(printed(&output), format!("{BYTES}\n19\nConnection refused\n"), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    server.join().unwrap();
    answers.join().unwrap();
}

/// The recording of a session, in a place of its own.
fn recording(test: &str) -> Option<(Place, PathBuf, String)> {
    let user = caller(test)?;
    let place = Place::new(test);
    let file = place.path("session.rec");
    record(&user, &file);
    let lines = fs::read_to_string(&file).unwrap();
    Some((place, file, lines))
}

#[test]
fn a_recorded_session_is_replayed_identically() {
    let Some(user) = caller("record") else { return };
    let place = Place::new("record");
    let file = place.path("session.rec");
    fs::write(&file, "what was there before\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    record(&user, &file);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let lines = fs::read_to_string(&file).unwrap();
    assert!(lines.starts_with("{\"header\":") && lines.ends_with("\n{\"end\":{}}\n"));
    let count = |part: &str| lines.lines().filter(|line| line.starts_with(part)).count();
    let (inputs, frames) = (count("{\"input\""), count("{\"sent\""));
    let expected = format!("{inputs} inputs and {frames} frames compared: identical\n");
    assert_eq!(printed(&replay(&[&text(&file)])), expected);
    let (pcap, again) = (place.path("1.pcap"), place.path("2.pcap"));
    for capture in [&pcap, &again] {
        let output = replay(&["--pcap", &text(capture), &text(&file)]);
        assert_eq!((output.status.code(), printed(&output)), (Some(0), expected.clone()));
    }
    let packets = fs::read(pcap).unwrap();
    assert!(packets.len() > 2 * BYTES, "{} bytes", packets.len());
    assert!(packets == fs::read(again).unwrap(), "two replays differ");
}

/// Turns and batches fall otherwise on a machine that is busy; the recording has them all.
#[test]
fn a_session_of_a_busy_machine_is_replayed_identically() {
    const CLIENTS: usize = 12;
    let Some(user) = caller("busy") else { return };
    let place = Place::new("busy");
    let file = place.path("session.rec");
    let (port, server) = serve(CLIENTS);
    let script = format!(
        "for i in 1 2 3 4; do (while :; do :; done) & done; spinners=$(jobs -p);
         for i in $(seq {CLIENTS}); do {} & clients=\"$clients $!\"; done;
         wait $clients; kill $spinners",
        exchange(port)
    );
    let output = run(&user, &["--host-loopback", "--record", &text(&file)], &script);
    assert_eq!(printed(&output), format!("{BYTES}\n").repeat(CLIENTS), "{output:?}");
    server.join().unwrap();
    let outputs = [(); 2].map(|()| replay(&[&text(&file)]));
    assert!(printed(&outputs[0]).ends_with(" compared: identical\n"), "{outputs:?}");
    assert_eq!(printed(&outputs[0]), printed(&outputs[1]));
}

#[test]
fn an_altered_byte_is_found_and_both_frames_are_shown() {
    let Some((place, _, lines)) = recording("altered") else { return };
    let altered = place.path("altered.rec");
    for (from, to) in [("\"data\":\"646464", "\"data\":\"646465"), ("757575757575", "757575757576")]
    {
        let (before, after) = lines.split_once(from).unwrap();
        fs::write(&altered, [before, to, after].concat()).unwrap();
        let output = replay(&[&text(&altered)]);
        assert_eq!(output.status.code(), Some(1), "{from}: {output:?}");
        assert!(printed(&output).contains(" compared: different\ninput "), "{output:?}");
    }
    let sent = lines.lines().position(|line| line.starts_with("{\"sent\"")).unwrap();
    let other: Vec<String> = lines
        .lines()
        .enumerate()
        .map(|(number, line)| match line.split_once("\"head\":\"") {
            Some((before, head)) if number == sent => {
                let digit = if head.starts_with('f') { 'e' } else { 'f' };
                format!("{before}\"head\":\"{digit}{}\n", head.get(1..).unwrap())
            }
            _ => format!("{line}\n"),
        })
        .collect();
    fs::write(&altered, other.concat()).unwrap();
    let shown = printed(&replay(&[&text(&altered)]));
    assert!(shown.contains(&format!(", line {}:\n- frame of ", sent + 1)), "{shown}");
    assert!(shown.contains("\n+ frame of ") && shown.contains("\n- 0000  "), "{shown}");
    assert!(shown.contains("\n+ 0000  ") && !shown.contains("\n  0000  "), "{shown}");
}

#[test]
fn a_broken_recording_is_reported_with_the_line() {
    let Some((place, _, lines)) = recording("broken") else { return };
    let broken = place.path("broken.rec");
    let name = text(&broken);
    let complains = |content: &str, line: usize, what: &str| {
        fs::write(&broken, content).unwrap();
        let output = replay(&[&name]);
        let complaint = complaint(&output);
        let expected = format!("slirpkit: {name}: line {line}: {what}");
        assert!(complaint.starts_with(&expected), "{complaint}\n{expected}");
        assert_eq!(output.status.code(), Some(2), "{complaint}");
    };
    let count = lines.lines().count();
    let cut = "the recording is cut off here";
    complains(lines.get(..lines.len() - 4).unwrap(), count, cut);
    complains(lines.trim_end().rsplit_once('\n').unwrap().0, count - 1, cut);
    complains(&lines.replace("\n{\"end\":{}}\n", "\n"), count, cut);
    complains(&format!("{lines}{{\"end\":{{}}}}\n"), count + 1, "this cannot stand here");
    complains(&lines.replacen("\n{\"input\"", "\n{\"input", 1), 2, "no line of a recording: ");
    complains("", 1, "no header of a recording");
    fs::remove_file(&broken).unwrap();
    let output = replay(&[&name]);
    assert_eq!(complaint(&output), format!("slirpkit: {name}: No such file or directory"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_recording_that_cannot_be_written_ends_and_nothing_else_does() {
    let Some(user) = caller("full") else { return };
    let output = user.slirpkit(&["run", "--record", "/dev/full", "--", "sh", "-c", "exit 7"]);
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(complaint(&output).contains("the recording has ended: "), "{output:?}");
    let place = Place::new("full");
    let file = text(&place.path("session.rec"));
    let (port, server) = serve(1);
    let script = "ulimit -f 64; exec \"$0\" run --host-loopback --record \"$1\" -- bash -c \"$2\"";
    let output = user
        .command("bash")
        .args(["-c", script, PROGRAM, &file, &exchange(port)])
        .output()
        .unwrap();
    assert_eq!(printed(&output), format!("{BYTES}\n"), "{output:?}");
    assert!(complaint(&output).contains("the recording has ended: "), "{output:?}");
    server.join().unwrap();
}
