//! The one request that takes rtnetlink(7): the ioctl for a queue's length asks for rights over
//! the whole machine, this for rights over the namespace only.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use super::InterfaceName;

/// Length of nlmsghdr and of ifinfomsg.
const HEADER_LEN: usize = 16;
/// Where a reply of NLMSG_ERROR has its error number, negated.
const ERROR_OFFSET: usize = HEADER_LEN;

/// Sets how many frames an interface of the current network namespace queues.
///
/// # Errors
/// What the kernel answers.
pub(super) fn set_queue_len(name: &InterfaceName, frames: u16) -> io::Result<()> {
    let index = nix::net::if_::if_nametoindex(name.as_str())?;
    let route = SockProtocol::NetlinkRoute;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, route)?;
    send(socket.as_raw_fd(), &request(index, frames.into()), MsgFlags::empty())?;
    acknowledgement(&socket)
}

/// RTM_NEWLINK with the one attribute IFLA_TXQLEN, all in host byte order.
fn request(index: u32, frames: u32) -> Vec<u8> {
    #[expect(clippy::cast_possible_truncation, reason = "small constants in wider types")]
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let attribute_len: u16 = 8;
    let mut message = Vec::with_capacity(2 * HEADER_LEN + 8);
    let (sequence, port): (u32, u32) = (1, 0);
    let total_len: u32 = 2 * 16 + u32::from(attribute_len);
    message.extend(total_len.to_ne_bytes());
    message.extend(libc::RTM_NEWLINK.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(port.to_ne_bytes());
    // ifinfomsg: family, padding and type stay zero; flags and their mask, too: no change.
    message.extend([0; 4]);
    message.extend(index.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(attribute_len.to_ne_bytes());
    message.extend(libc::IFLA_TXQLEN.to_ne_bytes());
    message.extend(frames.to_ne_bytes());
    message
}

fn acknowledgement(socket: &OwnedFd) -> io::Result<()> {
    let mut reply = [0; 256];
    let len = recv(socket.as_raw_fd(), &mut reply, MsgFlags::empty())?;
    let code = reply
        .get(..len)
        .and_then(|reply| reply.get(ERROR_OFFSET..))
        .and_then(|rest| rest.first_chunk())
        .map(|code| i32::from_ne_bytes(*code));
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(Errno::from_raw(code.saturating_neg()).into()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_long_as_it_says() {
        let message = request(7, 4096);
        assert_eq!(message.len(), 40);
        assert_eq!(message.first_chunk().map(|len| u32::from_ne_bytes(*len)), Some(40));
        assert_eq!(message.last_chunk().map(|frames| u32::from_ne_bytes(*frames)), Some(4096));
    }

    #[test]
    fn an_interface_that_is_missing_is_an_error() {
        assert!(set_queue_len(&"no-such-link".parse().unwrap(), 1).is_err());
    }
}
