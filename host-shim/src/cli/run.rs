//! `slirpkit run`: a command in namespaces of its own.

use std::process::ExitCode;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::thread::CapabilitySet;

use super::args::{NAMESPACE_MTU, Run};
use super::session::{Event, Session};
use super::setup::Setup;
use super::signals::Received;
use super::wire::Wire;
use super::{Failure, resolv, sandbox};
use crate::netns::fresh::Plan;
use crate::netns::{Fresh, IdMap};

/// What a shell adds to the number of a signal that ended a command.
const SIGNALLED: i32 = 128;

/// Runs the command and returns its exit status.
///
/// # Errors
/// If the namespaces or the NAT cannot be made, before the command has started.
pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    let mtu = args.common.mtu.unwrap_or(NAMESPACE_MTU);
    let mut setup = Setup::new(&args.common)?;
    setup.default_guest(args.common.cidr.guest());
    let fresh = Fresh::make(&Plan {
        id_map: if args.map_root { IdMap::Root } else { IdMap::Same },
        addresses: args.common.cidr.addresses(mtu),
        resolv_conf: resolv::with_nameserver(setup.host_resolv_conf(), args.common.cidr.dns()),
        command: args.command.clone(),
        signal_mask: setup.signal_mask(),
    })?;
    let (tap, waiting) = fresh.into_parts();
    let mut session = setup.serve(Wire::Tap(tap.into_link()?), mtu)?;
    // The command may have become another user, and still has its signals forwarded.
    sandbox::drop_rights(CapabilitySet::KILL);
    session.announce()?;
    let child = waiting.start()?;
    let status = attend(&mut session, child, args.common.stats)?;
    if args.common.stats {
        session.print_stats();
    }
    Ok(ExitCode::from(status))
}

/// Serves the command until it ends, and passes signals on to it.
fn attend(session: &mut Session, child: Pid, stats: bool) -> Result<u8, Failure> {
    loop {
        match session.next()? {
            Event::Signal(Received { signal: Signal::SIGCHLD, .. }) => {
                if let Some(status) = exit_status(child) {
                    return Ok(status);
                }
            }
            Event::Signal(Received { signal: Signal::SIGUSR1, .. }) if stats => {
                session.print_stats()
            }
            // The terminal signals its whole foreground group, the command included.
            Event::Signal(Received { from_kernel: true, .. }) => {}
            Event::Signal(Received { signal, .. }) => forward(child, signal),
            Event::Hangup => forward(child, Signal::SIGTERM),
            Event::LinkLost(error) => log::warn!("the command has no network any more: {error}"),
            Event::Watched => {}
        }
    }
}

fn forward(child: Pid, signal: Signal) {
    match kill(child, signal) {
        Ok(()) => log::debug!("passed {signal} on to the command"),
        Err(errno) => log::warn!("cannot pass {signal} on to the command: {}", errno.desc()),
    }
}

/// The exit status of the command, if it has ended.
fn exit_status(child: Pid) -> Option<u8> {
    let status = match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::Exited(_, status)) => status,
        Ok(WaitStatus::Signaled(_, signal, _)) => SIGNALLED.saturating_add(signal as i32),
        // Somebody else has waited for it; its status is lost.
        Err(Errno::ECHILD) => 1,
        Ok(_) | Err(_) => return None,
    };
    // What the kernel reports has 8 bits.
    Some(u8::try_from(status).unwrap_or(u8::MAX))
}
