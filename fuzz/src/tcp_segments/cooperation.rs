//! Guest, host and link do their best from now on: what is under way comes to its end.

use core::time::Duration;

use slirpkit_tests::link::UNLIMITED;

use super::CONNECTIONS;
use super::bench::Bench;
use super::connection::{Connection, Socket};

/// Time without progress after which a stream counts as stalled: that of three timeouts that are
/// backed off as far as they can be (RFC 6298 2.5), and less than it takes to give the guest up.
const PATIENCE: Duration = Duration::from_secs(180);

/// Rounds altogether; what is not through then is under way all the same.
const ROUNDS: usize = 200;

/// The longest that one round takes.
const ROUND: Duration = Duration::from_secs(60);

impl Bench {
    /// Whatever happened before, a stream that guest and NAT both know passes whole.
    pub(super) fn cooperate(&mut self) {
        self.lab.link.set_room(UNLIMITED);
        self.lab.link_ready(usize::MAX);
        self.rest();
        let mut open: Vec<u8> = (0..CONNECTIONS).collect();
        let (mut since, mut best) = (self.lab.now(), 0);
        for _ in 0..ROUNDS {
            self.streams.make_room(&mut self.lab);
            self.rest();
            open.retain(|number| !self.is_through(*number));
            if open.is_empty() {
                return;
            }
            for number in &open {
                self.guest.catch_up(*number, &self.watch, &mut self.batch);
            }
            self.hand_over();
            self.rest();
            // What was parked leaves the pool in pieces as small as the host's writes are short.
            let (came, left) = (self.lab.counters().tcp_bytes_in, self.streams.taken());
            let progress = self.lab.host.consumed() + came + left;
            if progress > best {
                (since, best) = (self.lab.now(), progress);
            }
            let idle = self.lab.now().since(since);
            assert!(idle < PATIENCE, "connections {open:?} have stalled: {:?}", self.streams);
            self.wait_for_deadline(ROUND);
            self.rest();
        }
    }

    /// A connection that stands, and on whose numbers guest and NAT agree.
    fn shared(&self, number: u8) -> Option<(Connection, Socket)> {
        let mut live = self.streams.live(number);
        let shared = live.find(|(connection, _)| {
            let guest_isn = connection.guest_isn(&self.watch);
            guest_isn.is_some_and(|isn| self.guest.knows(number, (isn, connection.isn)))
        });
        shared.map(|(connection, socket)| (*connection, *socket))
    }

    /// Whether all has passed, both ways; or the connection has been given up, after a long silence
    /// before.
    fn is_through(&mut self, number: u8) -> bool {
        let Some((connection, socket)) = self.shared(number) else { return true };
        let all = self.guest.text_sent(number);
        connection.is_through(&mut self.lab, &self.watch, &socket, all)
    }
}
