//! Records what goes over a link, as a pcap file.

use core::time::Duration;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;

use ipstack::Instant;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, PcapError, TsResolution};
use slirp_nat::Link;
use slirp_nat::link::{Room, TxMeta, for_each_frame};

use super::{Batch, GuestLink, LinkCounters, LinkError, MAX_FRAME_LEN};
use crate::clock;

/// A pcap file with nanosecond stamps, open for writing.
#[derive(Debug)]
pub struct Capture<W = File> {
    sink: W,
    header: PcapHeader,
    /// Encodes the records of one batch, so that the file sees one write for all of them.
    encoder: PcapWriter<Vec<u8>>,
    /// Bytes of [`Self::encoder`]'s output that the file has already: the file header.
    skip: usize,
    dirty: bool,
}

impl Capture {
    /// Creates the file, replacing one that is there. Of every frame `snaplen` bytes are kept.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: &Path, snaplen: u32) -> io::Result<Self> {
        Self::to(File::create(path)?, snaplen)
    }
}

impl<W: Write> Capture<W> {
    /// Records to `sink`, which is written to once a batch.
    ///
    /// # Errors
    /// The file header cannot be written.
    pub fn to(mut sink: W, snaplen: u32) -> io::Result<Self> {
        let header = PcapHeader {
            snaplen,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let first = encoder(header)?.into_writer();
        sink.write_all(&first)?;
        Ok(Self { sink, header, encoder: encoder(header)?, skip: first.len(), dirty: false })
    }

    /// Adds a frame as it is. `stamp` is the time since 1970.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn record(&mut self, stamp: Duration, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let kept = frame.get(..self.header.snaplen as usize).unwrap_or(frame);
        self.encoder.write_packet(&PcapPacket::new(stamp, length, kept)).map_err(io_error)?;
        self.dirty = true;
        Ok(())
    }

    /// Adds a frame for the guest as it is on the wire: finished, and cut as `meta` says.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn record_sent(&mut self, stamp: Duration, frame: &[u8], meta: &TxMeta) -> io::Result<()> {
        let mut result = Ok(());
        for_each_frame(frame, meta, |pieces| {
            if result.is_ok() {
                result = self.record(stamp, &pieces.concat());
            }
        });
        result
    }

    /// Writes what was added.
    ///
    /// # Errors
    /// What the write reports.
    pub fn write_out(&mut self) -> io::Result<()> {
        if !core::mem::take(&mut self.dirty) {
            return Ok(());
        }
        let records = core::mem::replace(&mut self.encoder, encoder(self.header)?).into_writer();
        self.sink.write_all(records.get(self.skip..).unwrap_or_default())
    }
}

fn encoder(header: PcapHeader) -> io::Result<PcapWriter<Vec<u8>>> {
    PcapWriter::with_header(Vec::new(), header).map_err(io_error)
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// Does `work` for the capture, if there is one. When it fails, it ends with a warning.
pub(crate) fn note<W>(
    capture: &mut Option<Capture<W>>,
    work: impl FnOnce(&mut Capture<W>) -> io::Result<()>,
) {
    if let Some(Err(error)) = capture.as_mut().map(work) {
        log::warn!("the capture has ended: {error}");
        *capture = None;
    }
}

/// A link whose frames, both ways, are recorded as they are on the wire. When the capture fails,
/// it ends with a warning; the link goes on.
#[derive(Debug)]
pub struct Captured<L, W = File> {
    link: L,
    capture: Option<Capture<W>>,
    scratch: Vec<u8>,
}

impl<L: GuestLink, W: Write> Captured<L, W> {
    /// Records what goes over `link`.
    #[must_use]
    pub fn new(link: L, capture: Capture<W>) -> Self {
        Self { link, capture: Some(capture), scratch: vec![0; MAX_FRAME_LEN] }
    }

    /// The link.
    #[must_use]
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// Takes the two apart again. A capture that failed is no more.
    #[must_use]
    pub fn into_parts(self) -> (L, Option<Capture<W>>) {
        (self.link, self.capture)
    }

    fn with_capture(&mut self, work: impl FnOnce(&mut Capture<W>, &[u8]) -> io::Result<()>) {
        note(&mut self.capture, |capture| work(capture, &self.scratch));
    }
}

impl<L: GuestLink, W: Write> Link for Captured<L, W> {
    fn room(&mut self) -> Room {
        self.link.room()
    }

    fn guest_queue_frames(&self) -> usize {
        self.link.guest_queue_frames()
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        let length = self.link.reserve(wanted)?.len().min(self.scratch.len());
        self.scratch.get_mut(..length)
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        let stamp = clock::wall();
        self.with_capture(|capture, scratch| {
            capture.record_sent(stamp, scratch.get(..length).unwrap_or_default(), meta)
        });
        let frame = self.scratch.get(..length).unwrap_or_default();
        if let Some(buffer) = self.link.reserve(frame.len()) {
            buffer.iter_mut().zip(frame).for_each(|(to, from)| *to = *from);
            self.link.commit(length, meta);
        }
    }
}

impl<L: GuestLink, W: Write> GuestLink for Captured<L, W> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    fn receive_batch(&mut self, batch: &mut Batch) -> Result<(), LinkError> {
        self.link.receive_batch(batch)?;
        let stamp = clock::wall();
        self.with_capture(|capture, _| {
            batch.iter().try_for_each(|frame| capture.record(stamp, frame))
        });
        Ok(())
    }

    fn flush(&mut self) -> Result<bool, LinkError> {
        self.with_capture(|capture, _| capture.write_out());
        self.link.flush()
    }

    fn wants_write(&self) -> bool {
        self.link.wants_write()
    }

    fn wants_read(&self) -> bool {
        self.link.wants_read()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.link.poll_at()
    }

    fn counters(&self) -> LinkCounters {
        self.link.counters()
    }
}
