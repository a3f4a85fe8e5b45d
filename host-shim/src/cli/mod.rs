//! The program `slirpkit`: its command line, and what each subcommand sets up.

mod args;
mod attach;
mod boot;
mod cidr;
mod demo;
mod fds;
mod forward;
mod guests;
mod mac;
mod nic;
mod qemu;
mod recording;
mod replay;
mod resolv;
mod run;
mod sandbox;
mod session;
mod setup;
mod signals;
mod stats;
mod unix;
mod wire;

use core::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::netns;
use args::{Args, Subcommands};

/// Why the program ends without having served anybody.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Not at all: a text was asked for.
    Help(String),
    /// The command line is wrong.
    Usage(String),
    /// Something did not work.
    Failed(String),
    /// What was to be examined cannot be.
    Broken(String),
}

impl Failure {
    /// A failure of `action`, for the reason `cause`.
    pub(crate) fn of(action: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::Failed(format!("{action}: {cause}"))
    }

    /// A failure of `action`, for the reason that the system gives.
    pub(crate) fn io(action: impl fmt::Display, cause: impl Into<io::Error>) -> Self {
        Self::of(action, netns::describe(&cause.into()))
    }

    /// Prints it, and says with which status to exit.
    fn report(&self) -> ExitCode {
        match self {
            Self::Help(text) => {
                let _ = print(text);
                ExitCode::SUCCESS
            }
            Self::Usage(line) | Self::Broken(line) => {
                complain(line);
                ExitCode::from(2)
            }
            Self::Failed(line) => {
                complain(line);
                ExitCode::FAILURE
            }
        }
    }
}

/// Prints to stdout. A reader that has gone, as `| head`, is no failure.
fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => Err(cause),
        _ => Ok(()),
    }
}

/// Says what is wrong, if there is somebody to hear it: the exit status has to come either way.
fn complain(line: &str) {
    let _ = io::stderr().write_all(format!("slirpkit: {line}\n").as_bytes());
}

impl From<netns::Error> for Failure {
    fn from(error: netns::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    match args::parse(std::env::args_os()).and_then(|args| dispatch(&args)) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn dispatch(args: &Args) -> Result<ExitCode, Failure> {
    start_logging(args.command.verbose());
    match &args.command {
        Subcommands::Run(run) => run::run(run),
        Subcommands::Attach(attach) => attach::run(attach),
        Subcommands::Qemu(qemu) => qemu::run(qemu),
        Subcommands::Nic(nic) => nic::run(nic),
        Subcommands::Replay(replay) => replay::run(replay),
        Subcommands::Demo(demo) => demo::run(demo),
    }
}

/// Messages go to stderr, as `slirpkit: TEXT`; RUST_LOG refines what -v chooses.
fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => log::LevelFilter::Warn,
        1 => log::LevelFilter::Info,
        2 => log::LevelFilter::Debug,
        _ => log::LevelFilter::Trace,
    };
    env_logger::Builder::new()
        .filter_level(level)
        .parse_default_env()
        .format(|out, record| writeln!(out, "slirpkit: {}", record.args()))
        .init();
}
