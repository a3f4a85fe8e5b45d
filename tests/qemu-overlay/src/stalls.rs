//! Whether a retransmission timeout came while the guest had no CPU to answer on.
//!
//! The kernel keeps the time that each thread was ready to run and waited for a CPU. A guest that
//! had one for all of a timeout has lost a frame, or its driver has; one that waited for a large
//! part of it had no chance to answer.

use core::time::Duration;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use ipstack::Instant;

/// The shortest timeout of the NAT's.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Samples kept. They are taken about once a timeout.
const SAMPLES: usize = 8;

/// The waiting time of a thread, which it opens itself.
struct Thread(Option<File>);

/// What the threads had waited for in all, at a time.
#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    waited: Duration,
}

/// Looks at the processor's thread and at that of the main loop, for whose lock it may wait.
#[derive(Default)]
pub(crate) struct Stalls {
    processor: Option<Thread>,
    main_loop: Option<Thread>,
    samples: VecDeque<Sample>,
    timeouts_seen: u64,
    /// Timeouts in which the guest waited for a CPU, for half of the shortest one or longer.
    pub(crate) timeouts_off_the_cpu: u64,
}

impl Stalls {
    /// To be called in the thread of the processor.
    pub(crate) fn in_processor(&mut self) {
        self.processor.get_or_insert_with(Thread::this);
    }

    /// To be called in the thread of the main loop.
    pub(crate) fn in_main_loop(&mut self) {
        self.main_loop.get_or_insert_with(Thread::this);
    }

    /// Looks at the clock: whenever the alarm is set anew, and when it goes off.
    pub(crate) fn sample(&mut self, now: Instant, timeouts: u64) {
        let threads = [&self.processor, &self.main_loop];
        let waited = threads.into_iter().flatten().map(Thread::waited).sum();
        let before = self.samples.iter().rev().find(|sample| now.since(sample.at) >= TIMEOUT);
        let stalled = before.is_some_and(|sample| waited >= sample.waited + TIMEOUT / 2);
        if stalled {
            self.timeouts_off_the_cpu += timeouts - self.timeouts_seen;
        }
        self.timeouts_seen = timeouts;
        self.samples.push_back(Sample { at: now, waited });
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }
}

impl Thread {
    fn this() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Its second field, in nanoseconds (the kernel's Documentation/scheduler/sched-stats.rst).
    fn waited(&self) -> Duration {
        let mut buffer = [0; 64];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut buffer, 0).ok());
        let text = read.and_then(|count| str::from_utf8(buffer.get(..count)?).ok());
        let field = text.and_then(|text| text.split_whitespace().nth(1));
        Duration::from_nanos(field.and_then(|field| field.parse().ok()).unwrap_or(0))
    }
}
