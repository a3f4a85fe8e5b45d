//! `slirpkit attach`: a tap in a namespace that exists.

use std::os::fd::OwnedFd;
use std::process::ExitCode;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::CapabilitySet;

use super::args::{Attach, NAMESPACE_MTU};
use super::session::{Event, Setup};
use super::wire::Wire;
use super::{Failure, sandbox};
use crate::netns::{Target, join};

/// Serves the namespace until a signal, a hangup or the end of its process.
///
/// # Errors
/// If the tap or the NAT cannot be made.
pub(crate) fn run(args: &Attach) -> Result<ExitCode, Failure> {
    let mtu = args.common.mtu.unwrap_or(NAMESPACE_MTU);
    let mut setup = Setup::new(&args.common)?;
    setup.default_guest(args.common.cidr.guest());
    let (target, process) = match (args.pid, &args.netns) {
        (Some(pid), _) => (Target::Process(pid), Some(watch_process(pid)?)),
        (None, Some(path)) => (Target::Path(path.clone()), None),
        // The group of the two is required.
        (None, None) => return Err(Failure::Usage("give --pid or --netns".to_owned())),
    };
    let addresses = (!args.no_configure).then(|| args.common.cidr.addresses(mtu));
    let tap = join::open_tap(&target, &args.tap, addresses.as_ref())?;
    // Without --mtu, that of an interface which somebody else configures is taken.
    let mtu = args.common.mtu.unwrap_or(tap.mtu);
    let mut session = setup.serve(Wire::Tap(tap.into_link()?), mtu)?;
    process.map_or(Ok(()), |process| session.end_with(process))?;
    sandbox::drop_rights(CapabilitySet::empty());
    session.announce()?;
    log::info!("serving {} with an MTU of {mtu}", args.tap.as_str());
    session.run_until_asked_to_end(|_, event| match event {
        Event::LinkLost(error) => Err(Failure::Failed(error.to_string())),
        _ => Ok(()),
    })?;
    if args.common.stats {
        session.print_stats();
    }
    Ok(ExitCode::SUCCESS)
}

/// A descriptor that becomes readable when the process ends (pidfd_open(2)). The namespace would
/// outlive it, since our tap holds on to it.
fn watch_process(pid: i32) -> Result<OwnedFd, Failure> {
    let failed = |cause: std::io::Error| Failure::of(format!("cannot watch process {pid}"), cause);
    let id = Pid::from_raw(pid).ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
    pidfd_open(id, PidfdFlags::empty()).map_err(|errno| failed(errno.into()))
}
