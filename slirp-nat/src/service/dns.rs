//! The DNS relay: which resolver gets a query, and when the next one is tried.
//!
//! The relay passes messages on unchanged, so this module only decides. For a datagram of the
//! guest to [`Config::dns`](crate::Config::dns), port 53:
//!
//! 1. [`query_id`]; `None` is a drop.
//! 2. [`Resolvers::pick`]. `None`: there is no resolver, so answer with
//!    [`servfail`](ipstack::wire::dns::servfail).
//! 3. Send it, by a socket of the resolver's family. If the host refuses at once,
//!    [`Resolvers::failed`] and pick again, at most as often as there are resolvers; then SERVFAIL.
//!
//! For a datagram of a resolver: [`reply_id`], then [`Resolvers::answered`], and on it goes to the
//! guest from the name server's address. For an error that the host reports later about a
//! datagram to a resolver: [`Resolvers::failed`]; the guest asks again, and the next one gets it.
//!
//! A flow to the name server has a host socket of its own, so whatever a resolver's address sends
//! to it belongs to the relay.

use core::net::SocketAddr;
use core::time::Duration;

use ipstack::Instant;
use ipstack::wire::dns::DnsMessage;

use crate::host::FlowId;

#[cfg(test)]
mod tests;

/// Longest message passed on: EDNS lets a client take more than 512 bytes, and this is as much as
/// resolvers commonly offer (RFC 6891 6.2.5).
pub(crate) const MAX_MESSAGE_LEN: usize = 4096;

/// Queries remembered to notice that one is asked again.
const OUTSTANDING: usize = 64;

/// How long a resolver that is asked may answer nothing at all. Some clients take a new port and
/// id when they ask again, so that only the silence tells. They do so after five seconds.
const PATIENCE: Duration = Duration::from_secs(4);

/// The id of a plausible query.
pub(crate) fn query_id(payload: &[u8]) -> Option<u16> {
    plausible(payload).filter(|message| !message.is_response()).map(|message| message.id())
}

/// The id of a plausible response.
pub(crate) fn reply_id(payload: &[u8]) -> Option<u16> {
    plausible(payload).filter(DnsMessage::is_response).map(|message| message.id())
}

fn plausible(payload: &[u8]) -> Option<DnsMessage<'_>> {
    DnsMessage::parse(payload).ok().filter(|_| payload.len() <= MAX_MESSAGE_LEN)
}

/// A query that a resolver has not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Outstanding {
    flow: FlowId,
    id: u16,
    /// Index of the resolver.
    resolver: usize,
}

/// Which resolver of the list is in use. It stays the same as long as it answers.
#[derive(Clone, Debug)]
pub(crate) struct Resolvers {
    current: usize,
    /// When the current one got the first query since it last answered.
    asked_at: Option<Instant>,
    outstanding: [Option<Outstanding>; OUTSTANDING],
    /// The entry of `outstanding` that is used next.
    next: usize,
}

impl Resolvers {
    /// The first of the list is in use. To be called anew when the list is replaced.
    pub(crate) const fn new() -> Self {
        Self { current: 0, asked_at: None, outstanding: [None; OUTSTANDING], next: 0 }
    }

    /// The resolver for a query of `flow`; `None` if the list is empty. If the one in use has not
    /// answered the very same query, or nothing for long, it is the next one's turn.
    pub(crate) fn pick(
        &mut self,
        now: Instant,
        list: &[SocketAddr],
        flow: FlowId,
        id: u16,
    ) -> Option<SocketAddr> {
        let again = Some(Outstanding { flow, id, resolver: self.current });
        let silent = self.asked_at.is_some_and(|at| now.since(at) >= PATIENCE);
        if silent || self.outstanding.contains(&again) {
            self.advance(list);
        }
        let resolver = self.in_use(list)?;
        self.asked_at.get_or_insert(now);
        self.forget(flow, id);
        if let Some(entry) = self.outstanding.get_mut(self.next) {
            *entry = Some(Outstanding { flow, id, resolver: self.current });
        }
        let next = self.next.wrapping_add(1);
        self.next = if next < OUTSTANDING { next } else { 0 };
        Some(resolver)
    }

    /// The resolver in use, for a query over TCP, which the client repeats by itself.
    pub(crate) fn in_use(&self, list: &[SocketAddr]) -> Option<SocketAddr> {
        list.get(self.current).copied()
    }

    /// Takes note that the host could not reach `resolver`, or that it refused.
    pub(crate) fn failed(&mut self, list: &[SocketAddr], resolver: SocketAddr) {
        if list.get(self.current) == Some(&resolver) {
            self.advance(list);
        }
    }

    /// Takes note of an answer. Returns whether the query was outstanding: `false` for a second
    /// answer, for one to nothing, and for one to a query pushed out by many newer ones.
    pub(crate) fn answered(
        &mut self,
        list: &[SocketAddr],
        resolver: SocketAddr,
        flow: FlowId,
        id: u16,
    ) -> bool {
        let known = self.forget(flow, id);
        if known && list.get(self.current) == Some(&resolver) {
            self.asked_at = None;
        }
        known
    }

    fn advance(&mut self, list: &[SocketAddr]) {
        let next = self.current.wrapping_add(1);
        self.current = if next < list.len() { next } else { 0 };
        self.asked_at = None;
    }

    fn forget(&mut self, flow: FlowId, id: u16) -> bool {
        let same = |entry: &&mut Option<Outstanding>| {
            entry.is_some_and(|entry| entry.flow == flow && entry.id == id)
        };
        self.outstanding.iter_mut().find(same).and_then(Option::take).is_some()
    }
}
