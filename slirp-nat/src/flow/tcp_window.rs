//! The window that a TCP flow offers to the guest.

use ipstack::wire::tcp_options::MAX_WINDOW_SCALE;

use super::Body;
use super::share::UploadShare;
use super::tcp::IP_AND_TCP;
use crate::host::{FlowId, Host, Token};
use crate::link::Link;
use crate::nat::{Core, Io};

/// The window of a new flow, before it has shown that it moves data.
pub(super) const INITIAL_WINDOW: u32 = 65_535;

impl Core<'_> {
    /// The largest segment that the guest's link carries.
    pub(super) fn link_mss(&self) -> u16 {
        self.config.mtu.saturating_sub(IP_AND_TCP)
    }

    /// The largest window that any flow can ever offer.
    pub(super) fn largest_window<L: Link + ?Sized>(&self, link: &L) -> u32 {
        UploadShare::default()
            .window(link.guest_queue_frames(), self.link_mss())
            .min(self.config.max_window)
    }

    /// The largest window that one of the flows that send may offer now.
    fn window_share<L: Link + ?Sized>(&self, link: &L) -> u32 {
        let share = self.share.window(link.guest_queue_frames(), self.link_mss());
        share.min(self.config.max_window)
    }

    /// Looks for more room if the guest may be in want of it, and has the guest told of what is worth
    /// it.
    pub(super) fn tell_of_room<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        if !self.tcp(id).is_some_and(|tcp| tcp.connection.is_receive_limited()) {
            return;
        }
        self.promise_window(io, id);
        if let Some(tcp) = self.tcp(id)
            && tcp.connection.owes_window_update()
        {
            tcp.connection.owe_ack();
        }
    }

    /// Offers the guest what the host takes for certain, and no more than the link can queue.
    fn promise_window<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        if let Some(token) = self.promise_room(io, id) {
            io.host.arm_write(token);
            // Of room that came before that, no event will tell.
            self.promise_room(io, id);
        }
    }

    /// Promises the room that there is now; returns the host's token if the guest is to wait for
    /// more.
    fn promise_room<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) -> Option<Token> {
        let segment = u32::from(self.link_mss());
        let reserve = self.share.of(self.pool_room());
        let share = self.window_share(io.link);
        let flow = self.table.get_mut(id)?;
        let (Some(token), Body::Tcp(tcp)) = (flow.token, &mut flow.body) else { return None };
        let room = io.host.send_room(token).saturating_sub(tcp.parked.len());
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let reserve = if tcp.parked.is_empty() { reserve } else { 0 };
        tcp.connection.promise(at_least_a_segment(room, segment, reserve).min(share));
        (room < share && tcp.connection.stays_receive_limited()).then_some(token)
    }

    /// The first window of a flow, which has not shown yet that it moves data.
    pub(crate) fn promise_first_window<H: Host + ?Sized, L: Link + ?Sized>(
        &mut self,
        io: &mut Io<'_, H, L>,
        id: FlowId,
    ) {
        let share = self.window_share(io.link);
        let Some(flow) = self.table.get_mut(id) else { return };
        let (Some(token), Body::Tcp(tcp)) = (flow.token, &mut flow.body) else { return };
        let room = u32::try_from(io.host.send_room(token)).unwrap_or(u32::MAX);
        tcp.connection.promise(room.min(share).min(INITIAL_WINDOW));
    }
}

/// The scale in which a window of so many bytes can be told, and no larger one (RFC 7323 2.3).
pub(super) fn window_scale(most: u32) -> u8 {
    let said = |shift: &u8| most.checked_shr(u32::from(*shift)).unwrap_or(0) <= u16::MAX.into();
    (0..MAX_WINDOW_SCALE).find(said).unwrap_or(MAX_WINDOW_SCALE)
}

/// What to promise if the host has `room`: a segment at least, as long as the pool has `reserve`
/// for what the host does not take of it. A host need not say that it has more room before it was
/// full, so that with a window of less than a segment the guest would only go on at its next
/// probe. One that has next to none will say so.
const fn at_least_a_segment(room: u32, segment: u32, reserve: usize) -> u32 {
    if room < segment && room >= segment / 8 && reserve >= segment as usize {
        segment
    } else {
        room
    }
}
