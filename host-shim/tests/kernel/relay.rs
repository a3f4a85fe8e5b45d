//! A wire that is slow, or bad: a thread that carries frames between two ends.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use host_shim::clock;
use ipstack::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::namespace::Namespace;
use crate::numbers::Numbers;

/// How soon the thread notices that it is to end.
const TICK: Duration = Duration::from_millis(50);

/// What a wire does to frames. What becomes of the nth frame of either direction follows from the
/// seed and n alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// How long every frame takes.
    pub(crate) delay: Duration,
    /// How many of a thousand frames get lost.
    pub(crate) lost: usize,
    /// How many of a thousand take twice as long, so that others overtake them.
    pub(crate) late: usize,
    pub(crate) seed: u64,
}

impl Conditions {
    /// A good wire of some length.
    pub(crate) const fn long(delay: Duration) -> Self {
        Self { delay, lost: 0, late: 0, seed: 0 }
    }

    /// How long the next frame takes; `None` if it gets lost.
    fn next(&self, numbers: &mut Numbers) -> Option<Duration> {
        let [lost, late] = [self.lost, self.late].map(|share| numbers.below(1000) < share);
        (!lost).then(|| self.delay * if late { 2 } else { 1 })
    }
}

/// What became of the frames of one direction.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub(crate) frames: u64,
    pub(crate) lost: u64,
}

/// One direction of the wire.
struct Way {
    from: File,
    to: File,
    conditions: Conditions,
    numbers: Numbers,
    tally: Tally,
    /// Frames under way, by when they arrive and which they are.
    frames: BTreeMap<(Instant, u64), Vec<u8>>,
}

impl Way {
    /// One of the two directions, which differ in what happens.
    fn new(from: File, to: File, conditions: &Conditions, direction: u64) -> Self {
        let mut seeds = Numbers(conditions.seed);
        let seed = (0..=direction).fold(0, |_, _| seeds.next());
        Self {
            from,
            to,
            conditions: *conditions,
            numbers: Numbers(seed),
            tally: Tally::default(),
            frames: BTreeMap::new(),
        }
    }

    /// Takes what has been sent and hands over what has arrived.
    fn turn(&mut self, buffer: &mut [u8]) {
        loop {
            match self.from.read(buffer) {
                Ok(length) => self.take(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let now = clock::now();
        while let Some(first) = self.frames.first_entry().filter(|first| first.key().0 <= now) {
            hand_over(&mut self.to, &first.remove());
        }
    }

    fn take(&mut self, frame: &[u8]) {
        self.tally.frames += 1;
        match self.conditions.next(&mut self.numbers) {
            Some(delay) => {
                let arrival = (clock::now().after(delay), self.tally.frames);
                self.frames.insert(arrival, frame.to_vec());
            }
            None => self.tally.lost += 1,
        }
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.frames.first_key_value().map(|((arrival, _), _)| *arrival)
    }
}

/// Waits for a reader that is slow: what it loses is not up to it, but to the conditions.
fn hand_over(to: &mut File, frame: &[u8]) {
    while let Err(error) = to.write(frame)
        && error.kind() == ErrorKind::WouldBlock
    {
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        poll(&mut [PollFd::new(&*to, PollFlags::OUT)], Some(&tick)).unwrap();
    }
    // A tap that is down loses it, as a wire would, and so does a socket whose reader has gone.
}

/// The wire, up as long as this value.
pub(crate) struct Relay {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<[Tally; 2]>>,
}

impl Relay {
    /// Connects two namespaces by a wire of this length.
    pub(crate) fn between(ends: [(&Namespace, &str); 2], delay: Duration) -> Self {
        let taps = ends.map(|(namespace, address)| tap(namespace, address, 1500));
        Self::new(taps, &Conditions::long(delay))
    }

    /// Connects two ends, at each of which a read or write moves one frame and none ever waits.
    pub(crate) fn new(ends: [File; 2], conditions: &Conditions) -> Self {
        let [left, right] = ends;
        let copy = |file: &File| file.try_clone().unwrap();
        let there = Way::new(copy(&left), copy(&right), conditions, 0);
        let back = Way::new(right, left, conditions, 1);
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        Self { stop, thread: Some(thread::spawn(move || carry([there, back], &theirs))) }
    }

    /// Cuts it, and returns what became of the frames from the first end and from the second.
    pub(crate) fn end(mut self) -> [Tally; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn carry(mut ways: [Way; 2], stop: &AtomicBool) -> [Tally; 2] {
    let mut buffer = vec![0; 1 << 17];
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        let due = ways.iter().filter_map(Way::next_arrival).map(|arrival| arrival.since(now));
        let timeout = due.min().unwrap_or(TICK).min(TICK);
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() };
        let mut fds =
            ways.each_ref().map(|way| PollFd::from_borrowed_fd(way.from.as_fd(), PollFlags::IN));
        poll(&mut fds, Some(&timeout)).unwrap();
        for way in &mut ways {
            way.turn(&mut buffer);
        }
    }
    ways.map(|way| way.tally)
}

/// A tap named `wire` with an address in a namespace. Its queue is longer than any window.
pub(crate) fn tap(namespace: &Namespace, address: &str, mtu: u16) -> File {
    let tap = namespace.enter(open_tap);
    namespace.script(&format!(
        "ip addr add {address}/24 dev wire; ip link set wire mtu {mtu} txqueuelen 20000 up"
    ));
    tap
}

/// A tap in the namespace of this thread.
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

#[test]
fn what_becomes_of_a_frame_follows_from_the_seed() {
    let fates = |seed, direction| {
        let bad = Conditions { lost: 50, late: 20, seed, ..Conditions::long(TICK) };
        let null = || File::open("/dev/null").unwrap();
        let mut way = Way::new(null(), null(), &bad, direction);
        (0..2000).map(|_| bad.next(&mut way.numbers)).collect::<Vec<_>>()
    };
    assert_eq!(fates(7, 0), fates(7, 0));
    assert_ne!(fates(7, 0), fates(7, 1));
    assert_ne!(fates(7, 0), fates(8, 0));
    let count = |wanted| fates(7, 0).iter().filter(|fate| **fate == wanted).count();
    assert!((60..140).contains(&count(None)), "{} of 2000 lost", count(None));
    assert!((20..60).contains(&count(Some(2 * TICK))), "{} of 2000 late", count(Some(2 * TICK)));
}
