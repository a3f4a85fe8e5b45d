//! `slirpkit demo`: the whole network in this process.

use core::time::Duration;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use host_shim::clock;
use host_shim::demo::{self, Options, Progress};
use host_shim::link::capture::Capture;
use ipstack::Instant;

use super::args::Demo;
use super::setup::{SNAPLEN, create};
use super::{Failure, print, stats};

/// Bytes of a MiB.
const MEBIBYTE: u64 = 1 << 20;

/// Time between two lines of progress.
const INTERVAL: Duration = Duration::from_millis(100);

/// Runs the demonstration, and prints what it came to.
///
/// # Errors
/// What went wrong; nothing if every byte was right.
pub(crate) fn run(args: &Demo) -> Result<ExitCode, Failure> {
    let capture = create(args.pcap.as_deref(), |path| Capture::create(path, SNAPLEN))?;
    let size = args.size.saturating_mul(MEBIBYTE);
    let mut line = Line::new(args.size);
    let options = Options { model: args.card, size, capture };
    let result = demo::run(options, &mut |progress| line.show(progress));
    line.clear();
    let report = result.map_err(|error| Failure::Failed(error.to_string()))?;
    print(&report.to_string()).map_err(|cause| Failure::io("cannot print", cause))?;
    if args.stats {
        let calls = stats::Calls { link: 0, host: report.calls };
        let _ = io::stderr().write_all(stats::table(&report.stats, None, &calls).as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

/// A line on the terminal that says how far things are. Elsewhere there is none.
struct Line {
    is_shown: bool,
    size: u64,
    next: Instant,
}

impl Line {
    /// For transfers of `size` MiB.
    fn new(size: u64) -> Self {
        Self { is_shown: io::stderr().is_terminal(), size, next: Instant::ZERO }
    }

    fn show(&mut self, progress: Progress) {
        if !self.is_shown {
            return;
        }
        let now = clock::now();
        if now >= self.next {
            self.next = now.after(INTERVAL);
            let text = match progress {
                Progress::Transfer(direction, bytes) => {
                    format!("{direction}: {} of {} MiB", bytes / MEBIBYTE, self.size)
                }
                other => other.to_string(),
            };
            self.write(&text);
        }
    }

    fn clear(&self) {
        if self.is_shown {
            self.write("");
        }
    }

    /// Writes over the line (ECMA-48 8.3.41: erase in line).
    fn write(&self, text: &str) {
        let _ = io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
    }
}
