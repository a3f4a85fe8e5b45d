//! Interfaces of the current network namespace, by the ioctls of netdevice(7).

use core::ffi::CStr;
use core::net::Ipv4Addr;
use core::str::FromStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::{Addresses, Error};

/// The name of an interface: 1 to 15 bytes, and none that would mean something in a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InterfaceName([u8; libc::IFNAMSIZ]);

impl InterfaceName {
    /// The loopback interface.
    pub(crate) const LOOPBACK: Self = Self(*b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    /// The usual tap.
    pub(crate) const TAP0: Self = Self(*b"tap0\0\0\0\0\0\0\0\0\0\0\0\0");

    /// The name as text.
    pub(crate) fn as_str(&self) -> &str {
        CStr::from_bytes_until_nul(&self.0).ok().and_then(|name| name.to_str().ok()).unwrap_or("")
    }

    /// A request about the interface, everything else zero.
    pub(super) fn request(&self) -> libc::ifreq {
        // SAFETY: ifreq is plain data, for which all zeros is a valid value.
        let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.0) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request
    }
}

impl FromStr for InterfaceName {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        // What the kernel's dev_valid_name() takes, less what is not ASCII, and less `%`: of tap%d
        // the kernel makes a name of its own.
        let valid = |byte: u8| byte.is_ascii_graphic() && !b"/:%".contains(&byte);
        let mut bytes = [0; libc::IFNAMSIZ];
        if name.is_empty() || name.len() >= bytes.len() {
            return Err("an interface name has 1 to 15 characters");
        }
        if matches!(name, "." | "..") || !name.bytes().all(valid) {
            return Err(
                "an interface name has no blank, slash, colon or percent sign, and is not . or ..",
            );
        }
        for (to, from) in bytes.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        Ok(Self(bytes))
    }
}

/// Changes interfaces of the network namespace in which it was made.
#[derive(Debug)]
pub(super) struct Control(OwnedFd);

impl Control {
    /// For the current network namespace.
    ///
    /// # Errors
    /// If the kernel has no IPv4.
    pub(super) fn new() -> Result<Self, Error> {
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map(Self)
            .map_err(|errno| Error::new("cannot open an IPv4 socket", errno))
    }

    /// Gives the interface its addresses and MTU, sets it up and leads the default route to it.
    ///
    /// # Errors
    /// The first step that fails.
    pub(super) fn configure(&self, name: &InterfaceName, to: &Addresses) -> Result<(), Error> {
        let step = |what: &str, result: io::Result<()>| {
            result.map_err(|cause| Error::new(format!("cannot {what} of {}", name.as_str()), cause))
        };
        step("set the MTU", self.set_mtu(name, to.mtu))?;
        step("set the address", self.set_address(name, libc::SIOCSIFADDR, to.guest))?;
        let mask = Ipv4Addr::from_bits(netmask(to.prefix_len));
        step("set the network mask", self.set_address(name, libc::SIOCSIFNETMASK, mask))?;
        self.set_up(name)?;
        self.add_default_route(to.gateway).map_err(|cause| {
            Error::new(format!("cannot make a default route via {}", to.gateway), cause).hint(
                &[Errno::EEXIST],
                "the namespace has one already: remove it, or configure by hand and give --no-configure",
            )
        })
    }

    /// Sets an interface up.
    ///
    /// # Errors
    /// If there is none of that name, or it belongs to somebody else.
    pub(super) fn set_up(&self, name: &InterfaceName) -> Result<(), Error> {
        self.try_set_up(name)
            .map_err(|cause| Error::new(format!("cannot set {} up", name.as_str()), cause))
    }

    fn try_set_up(&self, name: &InterfaceName) -> io::Result<()> {
        let mut request = name.request();
        self.ioctl(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: SIOCGIFFLAGS has just filled this member of the union.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        #[expect(clippy::cast_possible_truncation, reason = "the flags of ifreq are 16 bits wide")]
        let up = libc::IFF_UP as libc::c_short;
        request.ifr_ifru.ifru_flags = flags | up;
        self.ioctl(libc::SIOCSIFFLAGS, &mut request)
    }

    /// The largest IP packet of an interface, in bytes.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(super) fn mtu(&self, name: &InterfaceName) -> io::Result<u32> {
        let mut request = name.request();
        self.ioctl(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: SIOCGIFMTU has just filled this member of the union.
        Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
    }

    /// How many frames an interface queues.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(super) fn queue_len(&self, name: &InterfaceName) -> io::Result<u32> {
        let mut request = name.request();
        self.ioctl(libc::SIOCGIFTXQLEN, &mut request)?;
        // SAFETY: SIOCGIFTXQLEN has just filled the integer of the union, which shares its place
        // with the metric.
        Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_metric }).unwrap_or(0))
    }

    fn set_mtu(&self, name: &InterfaceName, mtu: u16) -> io::Result<()> {
        let mut request = name.request();
        request.ifr_ifru.ifru_mtu = mtu.into();
        self.ioctl(libc::SIOCSIFMTU, &mut request)
    }

    fn set_address(
        &self,
        name: &InterfaceName,
        code: libc::Ioctl,
        address: Ipv4Addr,
    ) -> io::Result<()> {
        let mut request = name.request();
        request.ifr_ifru.ifru_addr = sockaddr(address);
        self.ioctl(code, &mut request)
    }

    /// Makes a default route (route(8) `add default gw`); the interface follows from the gateway.
    fn add_default_route(&self, gateway: Ipv4Addr) -> io::Result<()> {
        // SAFETY: rtentry is plain data and a null device pointer, for which zeros are valid.
        let mut route: libc::rtentry = unsafe { core::mem::zeroed() };
        route.rt_dst = sockaddr(Ipv4Addr::UNSPECIFIED);
        route.rt_genmask = sockaddr(Ipv4Addr::UNSPECIFIED);
        route.rt_gateway = sockaddr(gateway);
        route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
        // SAFETY: SIOCADDRT reads one rtentry, which outlives the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCADDRT, &raw const route) };
        Errno::result(result).map(drop).map_err(Into::into)
    }

    fn ioctl(&self, code: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: every code used here takes one ifreq, which outlives the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), code, &raw mut *request) };
        Errno::result(result).map(drop).map_err(Into::into)
    }
}

/// The mask of a prefix, as a number.
pub(crate) const fn netmask(prefix_len: u8) -> u32 {
    match u32::MAX.checked_shl(32_u32.saturating_sub(prefix_len as u32)) {
        Some(mask) => mask,
        None => 0,
    }
}

/// An IPv4 socket address without a port, in the general form.
fn sockaddr(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: sockaddr is plain data, for which all zeros is a valid value.
    let mut general: libc::sockaddr = unsafe { core::mem::zeroed() };
    #[expect(clippy::cast_possible_truncation, reason = "AF_INET is 2")]
    let family = libc::AF_INET as libc::sa_family_t;
    general.sa_family = family;
    // sockaddr_in: two bytes of port, then four of address.
    for (to, from) in general.sa_data.iter_mut().skip(2).zip(address.octets()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    general
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_kernel_would_refuse_are_refused() {
        for bad in ["", "0123456789abcdef", "a/b", "a b", "eth0:1", ".", ".."] {
            assert!(bad.parse::<InterfaceName>().is_err(), "{bad:?}");
        }
        assert_eq!("0123456789abcde".parse::<InterfaceName>().unwrap().as_str(), "0123456789abcde");
        assert_eq!("tap0".parse(), Ok(InterfaceName::TAP0));
    }

    #[test]
    fn masks_cover_every_prefix() {
        assert_eq!(netmask(0), 0);
        assert_eq!(netmask(1), 0x8000_0000);
        assert_eq!(netmask(24), 0xffff_ff00);
        assert_eq!(netmask(32), u32::MAX);
    }

    #[test]
    fn loopback_has_an_mtu_and_a_strange_name_has_none() {
        let control = Control::new().unwrap();
        assert!(control.mtu(&InterfaceName::LOOPBACK).unwrap() >= 1500);
        assert!(control.mtu(&"no-such-link".parse().unwrap()).is_err());
    }
}
