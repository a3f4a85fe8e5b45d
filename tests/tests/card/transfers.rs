//! 64 MiB each way through card and NAT, every byte right.

use core::time::Duration;

use ne2000::{Options, ReceiveMode, TransmitTiming};
use slirp_nat::{RingHost, RingSlot};
use slirpkit_tests::World;
use slirpkit_tests::host::{Checked, LabHost, Peeking, RING_LEN};

use crate::simulation::{Pace, Plan, Simulation};

const LENGTH: u64 = 64 << 20;

/// Pages of eight frames of 1,514 bytes.
const FULL_RING: u8 = 8 * 6;

const INSTANT: Options = Options { timing: TransmitTiming::Instant, ..Options::DEFAULT };

/// A guest that comes late and leaves frames behind, so that the ring is full most of the time.
fn drain_slowly(host: impl LabHost) {
    let plan = Plan {
        options: INSTANT,
        pace: Pace { micros: 200..=5000, frames: 1..=10 },
        loses_one_in: 0,
        limit: Duration::from_secs(60),
    };
    let mut simulation = Simulation::new(host, plan);
    simulation.download(LENGTH);
    simulation.upload(LENGTH);

    let nat = simulation.counters();
    assert_eq!((nat.tcp_bytes_out, nat.tcp_bytes_in), (LENGTH, LENGTH), "nothing was sent twice");
    assert_eq!(
        (nat.tcp_bytes_retransmitted, nat.tcp_timeouts, nat.tcp_fast_retransmits),
        (0, 0, 0)
    );
    assert_eq!(simulation.guest.retransmissions(), 0);
    assert_eq!((nat.tcp_opened, nat.tcp_closed), (2, 2));
    assert_eq!(simulation.machine.nat().stats().dropped_total(), 0);
    let (card, driver) = (simulation.machine.card_stats(), simulation.guest.driver_stats());
    assert_eq!(card.no_room, 0);
    assert_eq!((driver.received, driver.sent), (card.stored, card.transmitted));
    assert_eq!((driver.overflows, driver.bogus, driver.too_long), (0, 0, 0));
    assert_eq!(driver.ring_high_water, FULL_RING, "the ring has been full, and no more than that");
}

#[test]
fn a_guest_that_drains_slowly_costs_no_retransmission_on_a_peeking_host() {
    drain_slowly(Checked::new(Peeking::default()));
}

#[test]
fn a_guest_that_drains_slowly_costs_no_retransmission_on_a_ring_host() {
    let (rings, memory) = (vec![RingSlot::EMPTY; 2], vec![0; 2 * RING_LEN]);
    drain_slowly(Checked::new(RingHost::new(World::default(), rings, memory)));
}

/// A card that overflows as hardware does, with its driver's recovery, and frames that get lost
/// both ways: all of it is made good again.
#[test]
fn overflows_and_lost_frames_cost_time_and_no_byte() {
    let plan = Plan {
        options: Options { receive_mode: ReceiveMode::Strict, ..INSTANT },
        pace: Pace { micros: 200..=2000, frames: 1..=20 },
        loses_one_in: 100,
        limit: Duration::from_secs(1800),
    };
    let mut simulation = Simulation::new(Checked::new(Peeking::default()), plan);
    simulation.download(LENGTH);
    simulation.upload(LENGTH);

    let nat = simulation.counters();
    assert_eq!(nat.tcp_bytes_in, LENGTH, "each byte went to the server once");
    assert_eq!(nat.tcp_bytes_out, LENGTH + nat.tcp_bytes_retransmitted);
    assert!(nat.tcp_bytes_retransmitted > 0 && nat.tcp_fast_retransmits > 0, "{nat:?}");
    assert!(simulation.guest.retransmissions() > 0);
    assert_eq!((nat.tcp_opened, nat.tcp_closed), (2, 2));
    assert!(simulation.loss.lost.iter().all(|lost| *lost > 0), "{:?}", simulation.loss.lost);
    let (card, driver) = (simulation.machine.card_stats(), simulation.guest.driver_stats());
    assert!(driver.overflows > 0 && card.no_room > driver.overflows, "{driver:?} {card:?}");
    // What is in the ring when it overflows is not lost (DP8390D datasheet, section 9).
    assert_eq!((driver.received, driver.sent), (card.stored, card.transmitted));
    assert_eq!((driver.bogus, driver.too_long), (0, 0));
}
