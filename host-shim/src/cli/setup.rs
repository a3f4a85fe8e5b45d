//! From options to a NAT in service.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use host_shim::link::capture::Capture;
use host_shim::replay::Recorded;
use host_shim::runner::Runner;
use host_shim::sockets::{HostOptions, OsHost, PeekMode};
use host_shim::storage::Sizes;
use host_shim::{limits, secret};
use nix::sys::signal::SigSet;
use slirp_nat::host::HostError;
use slirp_nat::{Config, Forward, ForwardError, MAX_MTU, MIN_MTU, Nat};

use super::args::Common;
use super::session::Session;
use super::signals::Signals;
use super::wire::Wire;
use super::{Failure, fds, forward, recording, resolv};
use crate::netns::describe;

/// Bytes kept of each frame of a capture: all.
pub(crate) const SNAPLEN: u32 = 256 << 10;

/// All that can be made, or found wrong, before there is a link.
#[derive(Debug)]
pub(crate) struct Setup {
    config: Config,
    sizes: Sizes,
    forwards: Vec<Forward>,
    capture: Option<Capture>,
    recording: Option<File>,
    host_resolv_conf: String,
    peek: Option<PeekMode>,
    signals: Signals,
    ready: Option<OwnedFd>,
    exit: Option<OwnedFd>,
}

impl Setup {
    /// From the options. To be called before anything else is opened.
    ///
    /// # Errors
    /// What is wrong with an option, or missing.
    pub(crate) fn new(common: &Common) -> Result<Self, Failure> {
        let ready = common.ready_fd.map(|fd| fds::adopt("--ready-fd", fd)).transpose()?;
        let exit = common.exit_fd.map(|fd| fds::adopt("--exit-fd", fd)).transpose()?;
        let host_resolv_conf = std::fs::read_to_string(resolv::PATH).unwrap_or_default();
        let mut sizes = Sizes::default();
        sizes.flows = usize::try_from(common.flows).unwrap_or(usize::MAX);
        // Permits come in sets of four.
        sizes.permits = sizes.flows.div_ceil(2).saturating_mul(4);
        sizes.forwards = common.forward.len();
        let capture = |path: &Path| Capture::create(path, SNAPLEN);
        Ok(Self {
            config: configuration(common, &host_resolv_conf),
            sizes,
            forwards: common.forward.clone(),
            capture: create(common.pcap.as_deref(), capture)?,
            recording: create(common.record.as_deref(), recording::create)?,
            host_resolv_conf,
            peek: common.peek,
            signals: Signals::queue()?,
            ready,
            exit,
        })
    }

    /// The host's resolv.conf, empty if it has none.
    pub(crate) fn host_resolv_conf(&self) -> &str {
        &self.host_resolv_conf
    }

    /// The signals to be blocked in a command.
    pub(crate) const fn signal_mask(&self) -> SigSet {
        self.signals.mask_before()
    }

    /// Makes the fixed address of namespaces the default for forwards.
    pub(crate) const fn default_guest(&mut self, guest: core::net::Ipv4Addr) {
        self.config.default_guest = guest;
    }

    /// Serves the guest behind `wire`, whose MTU is `mtu` bytes; one that no guest can have is
    /// moved into the range.
    ///
    /// # Errors
    /// What the NAT or the host reports.
    pub(crate) fn serve(mut self, wire: Wire, mtu: u16) -> Result<Session, Failure> {
        self.config.mtu = mtu.clamp(MIN_MTU, MAX_MTU);
        let set_up = |cause: io::Error| Failure::io("cannot set up the NAT", cause);
        match limits::raise_descriptor_limit() {
            Ok(limit) => log::info!("up to {} flows and {limit} open files", self.sizes.flows),
            Err(cause) => log::warn!("cannot raise the limit of open files: {cause}"),
        }
        let secret = secret::draw().map_err(set_up)?;
        let memory = self.sizes.allocate();
        let nat = match self.recording {
            Some(file) => Recorded::new(self.config, secret, memory, file),
            None => Nat::new(self.config, secret, memory).map(Recorded::from),
        };
        let nat = nat.map_err(|error| Failure::Usage(error.to_string()))?;
        let host = OsHost::new(&HostOptions { peek: self.peek }).map_err(set_up)?;
        let wire = wire.captured(&mut self.capture);
        let mut runner = Runner::new(nat, host, wire).map_err(set_up)?;
        for rule in &self.forwards {
            runner.add_forward(*rule).map_err(|error| refused(rule, error))?;
        }
        let mut session =
            Session::new(runner, self.signals, self.ready, self.capture).map_err(set_up)?;
        if let Some(exit) = self.exit {
            session.end_with(exit).map_err(|cause| {
                Failure::Usage(format!(
                    "--exit-fd: {}; it must be a pipe or a socket",
                    describe(&cause)
                ))
            })?;
        }
        Ok(session)
    }
}

/// Makes the file of an option, if it is given.
///
/// # Errors
/// It cannot be made.
pub(crate) fn create<T>(
    path: Option<&Path>,
    make: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<Option<T>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let made = make(path);
    made.map(Some).map_err(|cause| Failure::io(format!("cannot write {}", path.display()), cause))
}

fn configuration(common: &Common, host_resolv_conf: &str) -> Config {
    let mut config = Config::default();
    config.network = common.cidr.network();
    config.prefix_len = common.cidr.prefix_len();
    config.gateway = common.cidr.gateway();
    config.dns = common.cidr.dns();
    config.first_lease = common.cidr.first_lease();
    config.default_guest = common.cidr.first_lease();
    config.host_loopback = common.host_loopback;
    common.boot.apply(&mut config);
    let resolvers = if common.dns.is_empty() {
        resolv::nameservers(host_resolv_conf)
    } else {
        common.dns.clone()
    };
    if resolvers.is_empty() {
        log::warn!("{} names no server: name look-ups will fail; give --dns ADDRESS", resolv::PATH);
    }
    config.resolvers = resolvers.into_iter().take(slirp_nat::MAX_RESOLVERS).collect();
    config
}

fn refused(rule: &Forward, error: ForwardError) -> Failure {
    let hint = match error {
        ForwardError::Host(HostError::Denied) if rule.host.port() < 1024 => {
            "; ports below 1024 are root's: choose another, \
             or lower the sysctl net.ipv4.ip_unprivileged_port_start"
        }
        // Of all errors of a bind only this one has no name of its own.
        ForwardError::Host(HostError::Other) => "; is it an address of this host?",
        ForwardError::Host(HostError::InUse) => "; choose another port of the host",
        _ => "",
    };
    Failure::of(format!("cannot forward {}", forward::format(rule)), format!("{error}{hint}"))
}
