//! `slirpkit qemu`: a guest of QEMU over a unix socket.

use std::path::Path;
use std::process::ExitCode;

use host_shim::link::absent::AbsentLink;
use host_shim::link::dgram::DgramLink;
use host_shim::link::stream::StreamLink;

use super::args::{QEMU_MTU, Qemu};
use super::guests::{self, Door};
use super::setup::Setup;
use super::wire::Wire;
use super::{Failure, unix};

/// Serves guests, one after the other, until a signal or a hangup.
///
/// # Errors
/// If the socket or the NAT cannot be made.
pub(crate) fn run(args: &Qemu) -> Result<ExitCode, Failure> {
    let mtu = args.common.mtu.unwrap_or(QEMU_MTU);
    let setup = Setup::new(&args.common)?;
    let path = args.socket.as_path();
    let failed = |cause| guests::socket_failed(path, &cause);
    // Names are bound to variables so that they live, and are removed, with the session.
    let (door, wire, _name) = match &args.dgram {
        None => {
            let (door, name) = Door::open(path)?;
            (Some(door), Wire::Absent(AbsentLink::new().map_err(failed)?), name)
        }
        Some(peer) => {
            let (socket, name) = unix::datagram(path).map_err(failed)?;
            let link = DgramLink::new(socket, Some(peer.clone())).map_err(failed)?;
            (None, Wire::Dgram(link), name)
        }
    };
    let mut session = setup.serve(wire, mtu)?;
    let options = options(path, args.dgram.as_deref());
    guests::serve(&mut session, door, &options, |_, socket| {
        StreamLink::new(socket.into()).map(Wire::Stream)
    })?;
    if args.common.stats {
        session.print_stats();
    }
    Ok(ExitCode::SUCCESS)
}

/// What QEMU is to be given. A comma in a path is doubled, as QEMU's option parser has it.
fn options(path: &Path, peer: Option<&Path>) -> String {
    let quote = |path: &Path| path.display().to_string().replace(',', ",,");
    let netdev = match peer {
        None => format!("stream,id=n0,server=off,addr.type=unix,addr.path={}", quote(path)),
        Some(peer) => format!(
            "dgram,id=n0,local.type=unix,local.path={},remote.type=unix,remote.path={}",
            quote(peer),
            quote(path)
        ),
    };
    format!("-netdev {netdev} -device virtio-net-pci,netdev=n0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_for_qemu_name_both_ends_from_its_side() {
        assert_eq!(
            options(Path::new("/run/a,b"), None),
            "-netdev stream,id=n0,server=off,addr.type=unix,addr.path=/run/a,,b \
             -device virtio-net-pci,netdev=n0"
        );
        assert_eq!(
            options(Path::new("/run/ours"), Some(Path::new("/run/theirs"))),
            "-netdev dgram,id=n0,local.type=unix,local.path=/run/theirs,\
             remote.type=unix,remote.path=/run/ours -device virtio-net-pci,netdev=n0"
        );
    }
}
