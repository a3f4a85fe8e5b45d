//! Socket options that no crate wraps, under the safe interface that `nix` gives to its own.

use std::os::fd::AsFd;

use nix::sys::socket::{GetSockOpt, SetSockOpt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use rustix::io::Errno;

sockopt_impl!(PeekOffset, SetOnly, libc::SOL_SOCKET, libc::SO_PEEK_OFF, i32);
sockopt_impl!(MemInfo, GetOnly, libc::SOL_SOCKET, SO_MEMINFO, [u32; 9]);
sockopt_impl!(Ipv4RecvTtl, SetOnly, libc::IPPROTO_IP, libc::IP_RECVTTL, bool);
sockopt_impl!(Ipv6RecvHopLimit, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, bool);
sockopt_impl!(IcmpFilter, SetOnly, libc::SOL_RAW, ICMP_FILTER, u32);
sockopt_impl!(AttachFilter, SetOnly, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, libc::sock_fprog);

/// The kernel's number on every architecture but SPARC and PA-RISC; not in `libc`.
const SO_MEMINFO: libc::c_int = 55;
/// From `linux/icmp.h`; not in `libc`.
const ICMP_FILTER: libc::c_int = 1;

pub(super) fn set<O: SetSockOpt>(fd: impl AsFd, option: O, value: &O::Val) -> Result<(), Errno> {
    nix::sys::socket::setsockopt(&fd, option, value).map_err(convert)
}

/// One instruction of a socket filter (the kernel's `networking/filter`): its code, how many
/// instructions are skipped if a comparison holds and if not, and its operand.
pub(super) const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    #[expect(clippy::cast_possible_truncation, reason = "codes of the filter machine have 8 bits")]
    let code = code as u16;
    libc::sock_filter { code, jt, jf, k }
}

/// Lets the kernel queue only what `program` keeps, from now on.
pub(super) fn attach_filter(fd: impl AsFd, program: &mut [libc::sock_filter]) -> Result<(), Errno> {
    let len = u16::try_from(program.len()).map_err(|_| Errno::INVAL)?;
    set(fd, AttachFilter, &libc::sock_fprog { len, filter: program.as_mut_ptr() })
}

/// Memory of a socket's send queue, in bytes as the kernel accounts them.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendMemory {
    /// What the queue may grow to, for now.
    pub(super) limit: usize,
    /// What it holds, with the kernel's overhead.
    pub(super) queued: usize,
}

pub(super) fn send_memory(fd: impl AsFd) -> Result<SendMemory, Errno> {
    // enum sk_meminfo of linux/sock_diag.h: [3] is SNDBUF, [5] is WMEM_QUEUED.
    let info = MemInfo.get(&fd).map_err(convert)?;
    Ok(SendMemory { limit: info[3] as usize, queued: info[5] as usize })
}

/// `nix` and `rustix` both wrap the kernel's error numbers.
pub(super) fn convert(errno: nix::errno::Errno) -> Errno {
    Errno::from_raw_os_error(errno as i32)
}
