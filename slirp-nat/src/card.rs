//! The cable between a card and the NAT: whose turn it is, in which order, and when to stop.
//!
//! With the feature `ne2000`. A machine that emulates the card keeps four things side by side, the
//! card, the [`Cable`], the [`Nat`] and its [`Host`], and does this:
//!
//! ```
//! use ipstack::Instant;
//! use ne2000::{Ne2000, Width};
//! use slirp_nat::card::Cable;
//! use slirp_nat::{Host, HostEvent, Nat};
//!
//! struct Network<H> {
//!     card: Ne2000,
//!     cable: Cable<'static>,
//!     nat: Nat<'static>,
//!     host: H,
//! }
//!
//! impl<H: Host> Network<H> {
//!     /// The processor writes to a port of the card. Reading is alike.
//!     fn write(&mut self, now: Instant, port: u8, width: Width, value: u32) {
//!         self.card.write(port, width, value);
//!         // Set the interrupt line to `self.card.irq_level()` here, before the turn: if this was an
//!         // acknowledgment, the turn may raise the line again, and a controller that is triggered
//!         // by edges must see that it was low.
//!         if self.cable.is_due(&self.card) {
//!             self.turn(now);
//!         }
//!     }
//!
//!     /// Something is due: after an access, or since the time of `poll_at` has come.
//!     fn turn(&mut self, now: Instant) {
//!         self.cable.turn(now, &mut self.card, &mut self.nat, &mut self.host);
//!         // And here. With a `RingHost`, hand over first what its `next_event` owes.
//!     }
//!
//!     /// A socket of the host has something to say.
//!     fn on_host_event(&mut self, now: Instant, event: HostEvent) {
//!         self.cable.on_host_event(now, event, &mut self.card, &mut self.nat, &mut self.host);
//!         // And here.
//!     }
//!
//!     /// When to call `turn`, whatever happens until then.
//!     fn poll_at(&self) -> Option<Instant> {
//!         self.cable.poll_at(&self.card, &self.nat)
//!     }
//! }
//! ```
//!
//! # What the cable sees to
//!
//! - **The order.** A frame that the driver has sent reaches the NAT before anything else happens,
//!   and the answer is in the ring when the call returns, so the driver finds it in the interrupt
//!   that tells it of its transmission.
//! - **Room.** The NAT peeks at a socket only when the ring has room for what it would get, and is
//!   told as soon as there is some again. Nothing is lost, and nothing waits for a timer.
//! - **When to stop.** The ring is filled in bursts, each between two accesses of the driver's:
//!   [`Ne2000::receive_room`] says why. So a turn is bounded by what the ring takes, and by one
//!   frame from the driver, which cannot ask for another one meanwhile.
//! - **A card that is stopped** has no room, so what is under way to the guest waits at its source
//!   until the driver starts the card again, however long that is.

use ipstack::Instant;
use managed::ManagedSlice;
use ne2000::Ne2000;

use crate::host::{Host, HostEvent};
use crate::link::{Frame, Link, Room, TxMeta, for_each_frame};
use crate::nat::Nat;

/// The longest frame of an MTU of 1,500, which is the longest that a card's drivers take.
pub const FRAME_LEN: usize = 1514;

/// A buffer of this many bytes holds as many frames as the ring of a card with 16 KiB of RAM, so
/// that one look at a socket fills it.
pub const RING_LEN: usize = 8 * FRAME_LEN;

/// The cable between one card and one NAT, whose MTU is 1,500 at most.
#[derive(Debug)]
pub struct Cable<'a> {
    /// Where frames for the guest are built.
    buffer: ManagedSlice<'a, u8>,
    /// The NAT was told that there is no room.
    short: bool,
    oversize: u64,
}

impl<'a> Cable<'a> {
    /// A cable that builds frames for the guest in `buffer`, of [`FRAME_LEN`] bytes at least and
    /// [`RING_LEN`] at best.
    pub fn new(buffer: impl Into<ManagedSlice<'a, u8>>) -> Self {
        Self { buffer: buffer.into(), short: false, oversize: 0 }
    }

    /// Whether [`Cable::turn`] has something to do for the card. Cheap: ask after each access.
    #[must_use]
    pub fn is_due(&self, card: &Ne2000) -> bool {
        card.transmit_pending() || (self.short && card.can_receive())
    }

    /// Does everything that is due: the time for the card, its frame for the NAT, its room for the
    /// NAT, and the NAT's timers. Calls that are early or repeated are harmless.
    pub fn turn<H: Host + ?Sized>(
        &mut self,
        now: Instant,
        card: &mut Ne2000,
        nat: &mut Nat<'_>,
        host: &mut H,
    ) {
        card.advance(now.micros());
        self.take_transmission(now, card, nat, host);
        if self.shortage_ended(card) {
            nat.on_link_ready(now, host, &mut self.link(card));
        }
        if nat.poll_at().is_some_and(|deadline| deadline.at <= now) {
            nat.on_timer(now, host, &mut self.link(card));
        }
    }

    /// Hands the frame that the driver sends, if any, to the NAT.
    fn take_transmission<H: Host + ?Sized>(
        &mut self,
        now: Instant,
        card: &mut Ne2000,
        nat: &mut Nat<'_>,
        host: &mut H,
    ) {
        // A copy, since the answer may go to the memory in which the frame lies.
        let mut copy = [0; ne2000::MAX_FRAME_LEN];
        let Some(frame) = card.transmit() else { return };
        match gather(&mut copy, frame.pieces()) {
            Some(bytes) => nat.receive(now, &[Frame::new(bytes)], host, &mut self.link(card)),
            // A driver can ask for 65,535 bytes; on a real cable that is jabber.
            None => self.oversize = self.oversize.saturating_add(1),
        }
    }

    /// Hands an event of the host to the NAT, with the card as its link.
    pub fn on_host_event<H: Host + ?Sized>(
        &mut self,
        now: Instant,
        event: HostEvent,
        card: &mut Ne2000,
        nat: &mut Nat<'_>,
        host: &mut H,
    ) {
        nat.on_host_event(now, event, host, &mut self.link(card));
    }

    /// When to call [`Cable::turn`] at the latest. Each call on any of the three can change it.
    #[must_use]
    pub fn poll_at(&self, card: &Ne2000, nat: &Nat<'_>) -> Option<Instant> {
        let card = card.poll_at().map(Instant::from_micros);
        let nat = nat.poll_at().map(|deadline| deadline.at);
        [card, nat].into_iter().flatten().min()
    }

    /// Frames, of either side, that were longer than a card takes, and went nowhere.
    #[must_use]
    pub const fn oversize(&self) -> u64 {
        self.oversize
    }

    /// The card as the NAT's link, for calls on the NAT that are not made by the cable.
    pub const fn link<'l>(&'l mut self, card: &'l mut Ne2000) -> CardLink<'l, 'a> {
        CardLink { cable: self, card }
    }

    /// [`Link::room`], for a link that holds both card and cable.
    pub fn room(&mut self, card: &Ne2000) -> Room {
        let frames = card.receive_room();
        self.short |= frames == 0;
        Room { frames, bytes: frames.saturating_mul(FRAME_LEN) }
    }

    /// [`Link::reserve`], for a link that holds both card and cable.
    pub fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        let length = wanted.min(self.buffer.len());
        self.buffer.get_mut(..length)
    }

    /// [`Link::commit`], for a link that holds both card and cable. What the card makes of each
    /// frame is counted there.
    pub fn commit(&mut self, card: &mut Ne2000, length: usize, meta: &TxMeta) {
        for_each_frame(self.buffer.get(..length).unwrap_or_default(), meta, |pieces| {
            let mut copy = [0; ne2000::MAX_FRAME_LEN];
            match gather(&mut copy, pieces) {
                Some(frame) => {
                    // The room was asked for; whatever else there is, the card counts it.
                    let _outcome = card.receive(frame);
                }
                None => self.oversize = self.oversize.saturating_add(1),
            }
        });
    }

    /// Whether the NAT was told that there is no room, and there is some now: call
    /// [`Nat::on_link_ready`]. For a link that holds both card and cable; [`Cable::turn`] sees to
    /// it by itself.
    pub fn shortage_ended(&mut self, card: &Ne2000) -> bool {
        let ended = self.short && card.can_receive();
        self.short &= !ended;
        ended
    }
}

/// The pieces one behind the other, if `buffer` holds them.
fn gather<'b, 'p>(
    buffer: &'b mut [u8],
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Option<&'b [u8]> {
    let mut filled = 0_usize;
    for piece in pieces {
        let end = filled.checked_add(piece.len())?;
        let to = buffer.get_mut(filled..end)?;
        if to.len() == piece.len() {
            to.copy_from_slice(piece);
        }
        filled = end;
    }
    buffer.get(..filled)
}

/// A card as the NAT's [`Link`]. It keeps the driver away from the card while it lives, as the
/// rules of [`Ne2000::receive_room`] ask for.
#[derive(Debug)]
pub struct CardLink<'l, 'a> {
    cable: &'l mut Cable<'a>,
    card: &'l mut Ne2000,
}

impl Link for CardLink<'_, '_> {
    fn room(&mut self) -> Room {
        self.cable.room(self.card)
    }

    /// A driver waits until its transmitter is free.
    fn guest_queue_frames(&self) -> usize {
        usize::MAX
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        self.cable.reserve(wanted)
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        self.cable.commit(self.card, length, meta);
    }
}
