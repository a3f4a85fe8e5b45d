//! `slirpkit nic`: a network card for QEMU over vfio-user.

use std::path::Path;
use std::process::ExitCode;

use host_shim::link::absent::AbsentLink;
use host_shim::link::vfio_user::{Device, VfioUserLink};
use serde_json::json;

use super::Failure;
use super::args::{Nic, QEMU_MTU};
use super::guests::{self, Door};
use super::setup::Setup;
use super::wire::Wire;

/// Serves guests, one after the other, until a signal or a hangup.
///
/// # Errors
/// If the socket or the NAT cannot be made.
pub(crate) fn run(args: &Nic) -> Result<ExitCode, Failure> {
    let mtu = args.common.mtu.unwrap_or(QEMU_MTU);
    let setup = Setup::new(&args.common)?;
    // Bound to a variable so that it lives, and is removed, with the session.
    let (door, _name) = Door::open(&args.socket)?;
    let absent = AbsentLink::new().map_err(|cause| guests::socket_failed(&args.socket, &cause))?;
    let mut session = setup.serve(Wire::Absent(absent), mtu)?;
    guests::serve(&mut session, Some(door), &options(&args.socket), |session, socket| {
        let device = session.take_device();
        let device = device.unwrap_or_else(|| Box::new(Device::new(args.mac.0)));
        VfioUserLink::new(socket.into(), device).map(Wire::Nic)
    })?;
    if args.common.stats {
        session.print_stats();
    }
    Ok(ExitCode::SUCCESS)
}

/// What QEMU is to be given, quoted for a shell: only as JSON does it take a structure, which the
/// socket is.
fn options(path: &Path) -> String {
    let socket = json!({ "type": "unix", "path": path.display().to_string() });
    // Without a ROM of the device's, which it has not, QEMU would otherwise complain.
    let device = json!({ "driver": "vfio-user-pci", "rombar": 0, "socket": socket });
    format!("-device '{}'", device.to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_for_qemu_are_json_for_a_shell() {
        assert_eq!(
            options(Path::new(r#"/run/a"b'c"#)),
            r#"-device '{"driver":"vfio-user-pci","rombar":0,"socket":{"path":"/run/a\"b'\''c","type":"unix"}}'"#
        );
    }
}
