//! The link of the moment: one type for all, so that a guest may come and go under one NAT.

use std::os::fd::BorrowedFd;

use host_shim::link::absent::AbsentLink;
use host_shim::link::capture::{Capture, Captured};
use host_shim::link::dgram::DgramLink;
use host_shim::link::stream::StreamLink;
use host_shim::link::tap::TapLink;
use host_shim::link::vfio_user::{Device, VfioUserLink};
use host_shim::link::{Batch, GuestLink, LinkCounters, LinkError};
use ipstack::Instant;
use slirp_nat::Link;
use slirp_nat::link::{Room, TxMeta};

/// Any link, captured or not.
#[derive(Debug)]
pub(crate) enum Wire {
    /// None at the moment.
    Absent(AbsentLink),
    /// A tap.
    Tap(TapLink),
    /// QEMU's stream socket.
    Stream(StreamLink),
    /// QEMU's datagram socket.
    Dgram(DgramLink),
    /// A card served over vfio-user.
    Nic(VfioUserLink),
    /// A tap, captured.
    CapturedTap(Captured<TapLink>),
    /// QEMU's stream socket, captured.
    CapturedStream(Captured<StreamLink>),
    /// QEMU's datagram socket, captured.
    CapturedDgram(Captured<DgramLink>),
    /// A card served over vfio-user, captured.
    CapturedNic(Captured<VfioUserLink>),
}

/// What a link that is at its end leaves for the next.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// Where its frames were written to.
    pub(crate) capture: Option<Capture>,
    /// The card that it served.
    pub(crate) device: Option<Box<Device>>,
}

impl Wire {
    /// The same link with its frames written to `capture`, if there is one. Without a guest there
    /// is nothing to write, and it is kept for the next.
    pub(crate) fn captured(self, capture: &mut Option<Capture>) -> Self {
        if matches!(self, Self::Absent(_)) {
            return self;
        }
        let Some(capture) = capture.take() else { return self };
        match self {
            Self::Tap(link) => Self::CapturedTap(Captured::new(link, capture)),
            Self::Stream(link) => Self::CapturedStream(Captured::new(link, capture)),
            Self::Dgram(link) => Self::CapturedDgram(Captured::new(link, capture)),
            Self::Nic(link) => Self::CapturedNic(Captured::new(link, capture)),
            other => other,
        }
    }

    /// Ends the link.
    pub(crate) fn into_remains(self) -> Remains {
        match self {
            Self::CapturedTap(link) => Remains { capture: link.into_parts().1, device: None },
            Self::CapturedStream(link) => Remains { capture: link.into_parts().1, device: None },
            Self::CapturedDgram(link) => Remains { capture: link.into_parts().1, device: None },
            Self::CapturedNic(link) => {
                let (link, capture) = link.into_parts();
                Remains { capture, device: Some(link.into_device()) }
            }
            Self::Nic(link) => Remains { capture: None, device: Some(link.into_device()) },
            Self::Absent(_) | Self::Tap(_) | Self::Stream(_) | Self::Dgram(_) => Remains::default(),
        }
    }

    /// The card, if one is served.
    pub(crate) const fn device(&self) -> Option<&Device> {
        match self {
            Self::Nic(link) => Some(link.device()),
            Self::CapturedNic(link) => Some(link.link().device()),
            _ => None,
        }
    }
}

macro_rules! each {
    ($wire:expr, $link:ident => $call:expr) => {
        match $wire {
            Wire::Absent($link) => $call,
            Wire::Tap($link) => $call,
            Wire::Stream($link) => $call,
            Wire::Dgram($link) => $call,
            Wire::Nic($link) => $call,
            Wire::CapturedTap($link) => $call,
            Wire::CapturedStream($link) => $call,
            Wire::CapturedDgram($link) => $call,
            Wire::CapturedNic($link) => $call,
        }
    };
}

impl Link for Wire {
    fn room(&mut self) -> Room {
        each!(self, link => link.room())
    }

    fn guest_queue_frames(&self) -> usize {
        each!(self, link => link.guest_queue_frames())
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        each!(self, link => link.reserve(wanted))
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        each!(self, link => link.commit(length, meta));
    }
}

impl GuestLink for Wire {
    fn fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.fd())
    }

    fn receive_batch(&mut self, batch: &mut Batch) -> Result<(), LinkError> {
        each!(self, link => link.receive_batch(batch))
    }

    fn flush(&mut self) -> Result<bool, LinkError> {
        each!(self, link => link.flush())
    }

    fn wants_write(&self) -> bool {
        each!(self, link => link.wants_write())
    }

    fn wants_read(&self) -> bool {
        each!(self, link => link.wants_read())
    }

    fn poll_at(&self) -> Option<Instant> {
        each!(self, link => link.poll_at())
    }

    fn counters(&self) -> LinkCounters {
        each!(self, link => link.counters())
    }
}
