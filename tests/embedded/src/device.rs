//! The card as smoltcp's device: its driver, and a buffer each way.

use ne2000::driver::{Driver, Ports};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

/// The longest frame of an MTU of 1,500.
const FRAME_LEN: usize = 1514;

/// What passed one way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    frames: u32,
    /// A checksum of them all and their order (FNV-1a), so that two runs can be compared.
    digest: u32,
}

impl core::fmt::Display for Traffic {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} frames, digest {:08x}", self.frames, self.digest)
    }
}

impl Traffic {
    const NONE: Self = Self { frames: 0, digest: 0x811c_9dc5 };

    fn count(&mut self, frame: &[u8]) {
        self.frames += 1;
        for byte in frame {
            self.digest = (self.digest ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
}

/// The driver of the card with a buffer each way, without the ports.
#[derive(Debug)]
pub(crate) struct Adapter {
    pub(crate) driver: Driver,
    pub(crate) sent: Traffic,
    pub(crate) received: Traffic,
    outgoing: [u8; FRAME_LEN],
    incoming: [u8; FRAME_LEN],
}

impl Adapter {
    pub(crate) const fn new(driver: Driver) -> Self {
        Self {
            driver,
            sent: Traffic::NONE,
            received: Traffic::NONE,
            outgoing: [0; FRAME_LEN],
            incoming: [0; FRAME_LEN],
        }
    }

    /// The device, for as long as the ports are at hand.
    pub(crate) const fn at<'d, P: Ports>(&'d mut self, ports: &'d mut P) -> Device<'d, P> {
        Device { adapter: self, ports }
    }
}

/// See [`Adapter::at`].
#[derive(Debug)]
pub(crate) struct Device<'d, P> {
    adapter: &'d mut Adapter,
    ports: &'d mut P,
}

impl<P: Ports> phy::Device for Device<'_, P> {
    type RxToken<'t>
        = RxToken<'t>
    where
        Self: 't;
    type TxToken<'t>
        = TxToken<'t, P>
    where
        Self: 't;

    fn receive(&mut self, _: Instant) -> Option<(RxToken<'_>, TxToken<'_, P>)> {
        let Self { adapter: Adapter { driver, sent, received, outgoing, incoming }, ports } = self;
        if !driver.can_send(*ports) {
            return None;
        }
        let length = driver.receive(*ports, incoming)?;
        let frame = incoming.get(..length)?;
        received.count(frame);
        Some((RxToken { frame }, TxToken { driver, sent, outgoing, ports }))
    }

    fn transmit(&mut self, _: Instant) -> Option<TxToken<'_, P>> {
        let Self { adapter: Adapter { driver, sent, outgoing, .. }, ports } = self;
        driver.can_send(*ports).then_some(TxToken { driver, sent, outgoing, ports })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_LEN;
        capabilities
    }
}

/// A frame that was received.
pub(crate) struct RxToken<'t> {
    frame: &'t [u8],
}

impl phy::RxToken for RxToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.frame)
    }
}

/// Leave to send a frame.
pub(crate) struct TxToken<'t, P> {
    driver: &'t mut Driver,
    sent: &'t mut Traffic,
    outgoing: &'t mut [u8; FRAME_LEN],
    ports: &'t mut P,
}

impl<P: Ports> phy::TxToken for TxToken<'_, P> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let frame = self.outgoing.get_mut(..len).unwrap_or_default();
        let result = f(frame);
        if self.driver.send(self.ports, frame) {
            self.sent.count(frame);
        }
        result
    }
}
