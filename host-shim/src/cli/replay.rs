//! `slirpkit replay`: a recording, once more.

use core::time::Duration;
use std::fs::File;
use std::io::{self, BufReader};
use std::process::ExitCode;

use host_shim::link::capture::Capture;
use host_shim::replay::{ReplayError, Traffic, replay};
use ipstack::Instant;

use super::Failure;
use super::args::Replay;
use super::setup::SNAPLEN;
use crate::netns::describe;

/// Replays the recording, and prints what came of it.
///
/// # Errors
/// If it cannot be read or is broken, or the capture cannot be written.
pub(crate) fn run(args: &Replay) -> Result<ExitCode, Failure> {
    let name = args.recording.display();
    let unreadable = |cause: io::Error| Failure::Broken(format!("{name}: {}", describe(&cause)));
    let file = File::open(&args.recording).map_err(unreadable)?;
    let mut copy = Copy::new(args)?;
    let (report, result) = replay(BufReader::new(file), |at, traffic| copy.add(at, traffic));
    copy.finish()?;
    let compared = format!("{} inputs and {} frames compared", report.inputs, report.frames);
    match result {
        Ok(()) => print(&format!("{compared}: identical\n")).map(|()| ExitCode::SUCCESS),
        Err(ReplayError::Diverged(divergence)) => {
            print(&format!("{compared}: different\n{divergence}\n")).map(|()| ExitCode::FAILURE)
        }
        Err(ReplayError::Io(cause)) => Err(unreadable(cause)),
        Err(broken) => {
            print(&format!("{compared}: identical so far\n"))?;
            Err(Failure::Broken(format!("{name}: {broken}")))
        }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    super::print(text)
        .map_err(|cause| Failure::Broken(format!("cannot print: {}", describe(&cause))))
}

/// `--pcap`: what is replayed, as a capture.
struct Copy<'a> {
    args: &'a Replay,
    capture: Option<Capture>,
    result: io::Result<()>,
}

impl<'a> Copy<'a> {
    fn new(args: &'a Replay) -> Result<Self, Failure> {
        let mut copy = Self { args, capture: None, result: Ok(()) };
        let create = |path| Capture::create(path, SNAPLEN);
        match args.pcap.as_deref().map(create).transpose() {
            Ok(capture) => copy.capture = capture,
            Err(cause) => copy.result = Err(cause),
        }
        copy.check()
    }

    fn add(&mut self, at: Instant, traffic: Traffic<'_>) {
        let Some(capture) = self.capture.as_mut().filter(|_| self.result.is_ok()) else { return };
        let stamp = Duration::from_micros(at.micros());
        let added = match traffic {
            Traffic::FromGuest(frame) => capture.record(stamp, frame),
            Traffic::ForGuest(frame, meta) => capture.record_sent(stamp, frame, meta),
        };
        self.result = added.and_then(|()| capture.write_out());
    }

    fn check(self) -> Result<Self, Failure> {
        match (&self.result, &self.args.pcap) {
            (Err(cause), Some(path)) => Err(Failure::Broken(format!(
                "cannot write {}: {}",
                path.display(),
                describe(cause)
            ))),
            _ => Ok(self),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        self.check().map(drop)
    }
}
