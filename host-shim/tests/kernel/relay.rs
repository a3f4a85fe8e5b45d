//! A slow wire: two taps in two namespaces, and a thread between them.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use host_shim::clock;
use ipstack::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::namespace::Namespace;

/// How soon the thread notices that it is to end.
const TICK: Duration = Duration::from_millis(50);

/// One direction of the wire.
struct Way {
    from: File,
    to: File,
    delay: Duration,
    /// Frames under way, and when they arrive.
    frames: VecDeque<(Instant, Vec<u8>)>,
}

impl Way {
    /// Takes what has been sent and hands over what has arrived.
    fn turn(&mut self, buffer: &mut [u8]) {
        loop {
            match self.from.read(buffer) {
                Ok(length) => {
                    self.frames
                        .push_back((clock::now().after(self.delay), buffer[..length].to_vec()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let now = clock::now();
        while let Some((_, frame)) = self.frames.pop_front_if(|(due, _)| *due <= now) {
            // A tap that is down loses it, as a wire would.
            let _ = self.to.write(&frame);
        }
    }
}

/// The wire, up as long as this value.
pub(crate) struct Relay {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Connects two namespaces; each frame takes `delay`.
    pub(crate) fn new(ends: [(&Namespace, &str); 2], delay: Duration) -> Self {
        let [left, right] = ends.map(|(namespace, address)| {
            let tap = namespace.enter(open_tap);
            namespace.script(&format!(
                "ip addr add {address}/24 dev wire; ip link set wire txqueuelen 20000 up"
            ));
            tap
        });
        let copy = |file: &File| file.try_clone().unwrap();
        let there = Way { from: copy(&left), to: copy(&right), delay, frames: VecDeque::new() };
        let back = Way { from: right, to: left, delay, frames: VecDeque::new() };
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        Self { stop, thread: Some(thread::spawn(move || carry([there, back], &theirs))) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn carry(mut ways: [Way; 2], stop: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        let due = ways.iter().filter_map(|way| way.frames.front()).map(|(due, _)| due.since(now));
        let timeout = due.min().unwrap_or(TICK).min(TICK);
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() };
        let mut fds =
            ways.each_ref().map(|way| PollFd::from_borrowed_fd(way.from.as_fd(), PollFlags::IN));
        poll(&mut fds, Some(&timeout)).unwrap();
        for way in &mut ways {
            way.turn(&mut buffer);
        }
    }
}

/// A tap named `wire` in the namespace of this thread.
fn open_tap() -> File {
    use std::os::unix::fs::OpenOptionsExt as _;
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .unwrap();
    // SAFETY: ifreq is plain data, for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"wire") {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_TAP | libc::IFF_NO_PI).unwrap();
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    device
}
