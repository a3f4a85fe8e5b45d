//! The last frames of a simulation, shown if it fails.

use std::collections::VecDeque;

use slirpkit_tests::build::{ACK, FIN, PSH, RST, SYN};
use slirpkit_tests::packet::{Body, Packet, Tcp};

use crate::network::Way;

/// How many frames are kept, unless the environment says otherwise.
const KEPT: u64 = 40;

/// What became of frames.
#[derive(Debug)]
pub(crate) struct Trace {
    kept: usize,
    notes: VecDeque<Note>,
}

#[derive(Debug)]
struct Note {
    at: u64,
    fate: &'static str,
    way: Way,
    frame: Vec<u8>,
}

impl Trace {
    pub(crate) fn new() -> Self {
        let kept = crate::given("SLIRPKIT_TRACE").unwrap_or(KEPT) as usize;
        Self { kept, notes: VecDeque::new() }
    }

    /// Something happens to a frame, which is as it was sent.
    pub(crate) fn note(&mut self, at: u64, fate: &'static str, way: Way, frame: &[u8]) {
        if self.notes.len() == self.kept {
            self.notes.pop_front();
        }
        self.notes.push_back(Note { at, fate, way, frame: frame.to_vec() });
    }
}

impl Note {
    fn line(self) -> String {
        let Self { at, fate, way, frame } = self;
        let arrow = if way == Way::ToNat { '>' } else { '<' };
        let what = match Packet::parse(frame).body {
            Body::Tcp(_, segment) => describe(&segment, way),
            other => format!("{other:?}"),
        };
        format!("{:>12.6} {fate:<6} guest {arrow} {what}", at as f64 / 1e6)
    }
}

fn describe(segment: &Tcp, way: Way) -> String {
    let named = [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (PSH, 'P'), (ACK, '.')];
    let flags: String = named.iter().filter(|(bit, _)| segment.has(*bit)).map(|(_, c)| c).collect();
    let (local, remote) = match way {
        Way::ToNat => (segment.src, segment.dst),
        Way::ToGuest => (segment.dst, segment.src),
    };
    let (port, length) = (local.port(), segment.data.len());
    let Tcp { seq, ack, window, options, .. } = segment;
    format!("{port} {remote} {flags:<3} {seq}+{length} ack {ack} window {window} {options:?}")
}

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lines: Vec<String> = self.notes.drain(..).map(Note::line).collect();
            eprintln!("{}", lines.join("\n"));
        }
    }
}
