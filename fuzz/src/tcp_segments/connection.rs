//! A connection and the host's socket behind it: what must hold between them and the guest.

use core::net::SocketAddrV4;

use slirp_nat::host::Token;
use slirpkit_tests::host::State;
use slirpkit_tests::packet::Tcp;
use slirpkit_tests::{Lab, Watch};

use super::content::is_content;
use super::guest;

/// The far end of one socket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Socket {
    /// How many bytes it has sent.
    pub(super) given: u64,
    pub(super) failed: bool,
    /// How many bytes it has got, all of which were right.
    pub(super) taken: usize,
    /// A client has made it.
    pub(super) is_client: bool,
    /// It is known which connection it belongs to.
    pub(super) is_known: bool,
}

/// A connection that the NAT has sent a SYN for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub(super) number: u8,
    pub(super) token: Token,
    /// The guest's end and the far one, as the NAT shows them.
    local: SocketAddrV4,
    remote: SocketAddrV4,
    pub(super) isn: u32,
    /// The number behind the last that was sent.
    sent: u32,
}

/// The position, as content, of what the far end of a socket sends as byte `at` of its stream.
pub(super) fn given_position(token: Token, at: u64) -> u64 {
    u64::from(token.0) * 25_033 + at
}

impl Connection {
    /// The one that a SYN of the NAT's begins.
    pub(super) fn new(number: u8, token: Token, syn: &Tcp) -> Self {
        let (local, remote, sent) = (syn.dst, syn.src, syn.seq_end());
        Self { number, token, local, remote, isn: syn.seq, sent }
    }

    /// Whether a segment for the guest belongs to it.
    pub(super) fn is_of(&self, segment: &Tcp) -> bool {
        (self.local, self.remote) == (segment.dst, segment.src)
    }

    /// The text of a segment for the guest must be what the far end has sent. Returns how much of it
    /// was sent before.
    pub(super) fn note_text(&mut self, segment: &Tcp) -> u64 {
        let length = segment.data.len() as u32;
        let at = segment.seq.wrapping_sub(self.isn).wrapping_sub(1);
        let right = is_content(given_position(self.token, at.into()), &segment.data);
        assert!(right, "{length} wrong bytes at {at} of {self:?}");
        let again = self.sent.wrapping_sub(segment.seq).min(length);
        if again < length {
            self.sent = segment.seq.wrapping_add(length);
        }
        again.into()
    }

    /// What the host has got must be what the guest has sent.
    pub(super) fn take(&self, lab: &mut Lab, watch: &Watch, socket: &mut Socket) {
        let got = lab.world().sent(self.token);
        let (length, fresh) = (got.len(), &got[socket.taken..]);
        let Some(isn) = self.guest_isn(watch).filter(|_| !fresh.is_empty()) else { return };
        let from = isn.wrapping_add(socket.taken as u32).wrapping_add(1);
        let right = is_content(guest::position(self.number, from), fresh);
        assert!(right, "{} wrong bytes at {from} for {self:?}", fresh.len());
        socket.taken = length;
    }

    pub(super) fn guest_isn(&self, watch: &Watch) -> Option<u32> {
        watch.guest_isn(self.local, self.remote)
    }

    /// Whether `all` bytes of the guest have come, or those before its end, and the guest has all
    /// that is for it.
    pub(super) fn is_through(
        &self,
        lab: &mut Lab,
        watch: &Watch,
        socket: &Socket,
        all: u32,
    ) -> bool {
        let uploaded = lab.world().is_write_shut(self.token) || socket.taken as u32 == all;
        uploaded && u64::from(watch.taken(self.local, self.remote)) == socket.given
    }

    /// Nothing is sent or ended but what the far end gave and ended. What is closed in good order
    /// has been taken by the guest, unless that has sent a reset.
    pub(super) fn check_download(
        &self,
        lab: &mut Lab,
        watch: &Watch,
        socket: &Socket,
        guest_has_reset: bool,
    ) {
        let Self { token, local, remote, .. } = *self;
        let sent = u64::from(watch.sent(local, remote));
        assert!(sent <= socket.given, "{sent} bytes sent of {}: {self:?}", socket.given);
        let world = lab.world();
        if watch.has_ended(local, remote) {
            let ended = world.has_ended(token) && !socket.failed && sent == socket.given;
            assert!(ended, "the far end has not ended behind {sent} bytes: {self:?}");
        }
        if world.state(token) == State::Closed && !socket.failed && !guest_has_reset {
            let taken = u64::from(watch.taken(local, remote));
            assert_eq!(taken, socket.given, "closed before the guest had it all: {self:?}");
        }
    }

    /// Nothing is acknowledged but what the host has got, or will get of what is parked; nothing is
    /// ended but what the guest ended. Returns how many bytes must be parked.
    pub(super) fn check_upload(&self, lab: &mut Lab, watch: &Watch, socket: &Socket) -> usize {
        let Self { token, local, remote, .. } = *self;
        let world = lab.world();
        if world.is_write_shut(token) {
            let ended = watch.guest_ends_at(local, remote, socket.taken as u32);
            assert!(ended, "the guest has not ended behind {} bytes: {self:?}", socket.taken);
        }
        let acknowledged = watch.acknowledged(local, remote) as usize;
        let missing = acknowledged.saturating_sub(socket.taken);
        match world.state(token) {
            // Of what has failed everything is acknowledged, since nobody will read it.
            State::Open if !socket.failed => missing,
            State::Closed if !socket.failed => {
                assert_eq!(missing, 0, "closed before the host had it all: {self:?}");
                0
            }
            State::Open | State::Closed | State::Reset => 0,
        }
    }
}
