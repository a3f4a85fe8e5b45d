//! The guest's driver as the device of its network stack.

use std::collections::VecDeque;

use ne2000::MAX_FRAME_LEN;
use ne2000::driver::{Driver, Ports};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use super::resent::Resent;

/// Bytes of the longest frame that the guest makes: an MTU of 1,500.
const FRAME_LEN: usize = 1514;

/// Sees each frame between the guest's driver and its stack, and may take it away.
pub trait Tap {
    /// The guest is about to send a frame. Whether it goes on.
    fn sends(&mut self, frame: &[u8]) -> bool;

    /// The guest's driver has fetched a frame from the card. Whether it goes on.
    fn receives(&mut self, frame: &[u8]) -> bool;
}

/// Nobody looks.
impl Tap for () {
    fn sends(&mut self, _frame: &[u8]) -> bool {
        true
    }

    fn receives(&mut self, _frame: &[u8]) -> bool {
        true
    }
}

/// What of a network interface outlives the calls on the stack.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) driver: Driver,
    pub(super) resent: Resent,
    received: [u8; MAX_FRAME_LEN],
    sent: [u8; FRAME_LEN],
    /// Answers of the stack that came while the transmitter was busy or the ring recovered from an
    /// overflow: no more than the ring had frames.
    held: VecDeque<Vec<u8>>,
}

impl Interface {
    pub(super) fn new(driver: Driver) -> Self {
        let (received, sent) = ([0; MAX_FRAME_LEN], [0; FRAME_LEN]);
        Self { driver, resent: Resent::default(), received, sent, held: VecDeque::new() }
    }

    /// Sends what was held, as far as the transmitter is free.
    pub(super) fn send_held(&mut self, ports: &mut impl Ports) {
        while let Some(frame) = self.held.front()
            && self.driver.send(ports, frame)
        {
            self.held.pop_front();
        }
    }
}

/// The interface at its ports.
pub(super) struct Nic<'a, P, T> {
    pub(super) interface: &'a mut Interface,
    pub(super) ports: &'a mut P,
    pub(super) tap: &'a mut T,
}

impl<P: Ports, T: Tap> Nic<'_, P, T> {
    /// The length of the next frame that the tap lets through.
    fn fetch(&mut self) -> Option<usize> {
        loop {
            let Interface { driver, received, .. } = self.interface;
            let length = driver.receive(self.ports, received)?;
            if self.tap.receives(received.get(..length)?) {
                return Some(length);
            }
        }
    }
}

impl<P: Ports, T: Tap> Device for Nic<'_, P, T> {
    type RxToken<'b>
        = Received<'b>
    where
        Self: 'b;
    type TxToken<'b>
        = Sender<'b, P, T>
    where
        Self: 'b;

    fn receive(&mut self, _now: Instant) -> Option<(Received<'_>, Sender<'_, P, T>)> {
        let length = self.fetch()?;
        let Interface { driver, resent, received, sent, held } = self.interface;
        let sender =
            Sender { driver, resent, buffer: sent, held, ports: self.ports, tap: self.tap };
        Some((Received(received.get(..length)?), sender))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sender<'_, P, T>> {
        self.interface.send_held(self.ports);
        let Interface { driver, resent, sent, held, .. } = self.interface;
        if !held.is_empty() || !driver.can_send(self.ports) {
            return None;
        }
        Some(Sender { driver, resent, buffer: sent, held, ports: self.ports, tap: self.tap })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_LEN;
        capabilities
    }
}

/// A frame for the stack.
pub(super) struct Received<'a>(&'a [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.0)
    }
}

/// The transmitter, for one frame.
pub(super) struct Sender<'a, P, T> {
    driver: &'a mut Driver,
    resent: &'a mut Resent,
    buffer: &'a mut [u8; FRAME_LEN],
    held: &'a mut VecDeque<Vec<u8>>,
    ports: &'a mut P,
    tap: &'a mut T,
}

impl<P: Ports, T: Tap> TxToken for Sender<'_, P, T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, make: F) -> R {
        // The stack keeps to the MTU that it was told.
        let frame = self.buffer.get_mut(..length).unwrap_or_default();
        frame.fill(0);
        let result = make(frame);
        self.resent.watch(frame);
        if self.tap.sends(frame) && (!self.held.is_empty() || !self.driver.send(self.ports, frame))
        {
            self.held.push_back(frame.to_vec());
        }
        result
    }
}
