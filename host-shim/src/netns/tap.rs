//! Taps: one Ethernet frame a read or write (the kernel's `networking/tuntap`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;

use super::channel::Tap;
use super::interface::Control;
use super::{Addresses, Error, InterfaceName, QUEUE_FRAMES, netlink};

const DEVICE: &str = "/dev/net/tun";

/// Opens the tap `name` of the current network namespace.
///
/// One that does not exist is made, given `addresses` if there are any, and goes when the last
/// copy of its descriptor is closed. One that exists is somebody else's and is left as it is.
///
/// # Errors
/// The first step that fails.
pub(super) fn open(name: &InterfaceName, addresses: Option<&Addresses>) -> Result<Tap, Error> {
    let control = Control::new()?;
    let exists = control.mtu(name).is_ok();
    let device = OpenOptions::new().read(true).write(true).open(DEVICE).map_err(|cause| {
        Error::new(format!("cannot open {DEVICE}"), cause)
            .hint(&[Errno::ENOENT, Errno::ENODEV], "load the kernel module tun")
            .hint(&[Errno::EACCES, Errno::EPERM], "its mode is usually 0666: ask root for it")
    })?;
    attach(&device, name).map_err(|cause| {
        Error::new(format!("cannot make or use the tap {}", name.as_str()), cause)
            .hint(&[Errno::EPERM], "that takes CAP_NET_ADMIN in the network namespace")
            .hint(&[Errno::EBUSY], "another program uses it: choose another name with --tap")
            .hint(&[Errno::EINVAL], "that interface is no tap: choose another name with --tap")
    })?;
    if !exists {
        if let Err(cause) = netlink::set_queue_len(name, QUEUE_FRAMES) {
            log::warn!(
                "cannot lengthen the queue of {}, frames may be lost: {cause}",
                name.as_str()
            );
        }
        if let Some(addresses) = addresses {
            control.configure(name, addresses)?;
        }
    }
    describe(device.into(), &control, name)
}

/// Ties the open device to the interface, with bare frames: no protocol header before each.
fn attach(device: &File, name: &InterfaceName) -> io::Result<()> {
    let mut request = name.request();
    #[expect(clippy::cast_possible_truncation, reason = "the flags of ifreq are 16 bits wide")]
    let flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    request.ifr_ifru.ifru_flags = flags;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    Errno::result(result).map(drop).map_err(Into::into)
}

fn describe(fd: OwnedFd, control: &Control, name: &InterfaceName) -> Result<Tap, Error> {
    let number = |result: io::Result<u32>| {
        result.map(|value| u16::try_from(value).unwrap_or(u16::MAX)).map_err(|cause| {
            Error::new(format!("cannot read the state of {}", name.as_str()), cause)
        })
    };
    Ok(Tap { fd, mtu: number(control.mtu(name))?, queue_frames: number(control.queue_len(name))? })
}
