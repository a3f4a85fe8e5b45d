//! Round-trip time and retransmission timeout (RFC 6298).

use core::time::Duration;

/// The timeout before the first measurement (RFC 6298 2.1).
const INITIAL_RTO_MICROS: u32 = 1_000_000;

/// The timeout for the first data after a SYN that had to be sent again (RFC 6298 5.7).
const AFTER_LOST_SYN_MICROS: u32 = 3_000_000;

/// The floor. RFC 6298 2.4 asks for one second, meant for the open Internet; the guest is on a
/// local link, where the only long delay is its own delayed ACK, at most 200 ms in practice.
const MIN_RTO_MICROS: u32 = 200_000;

/// The ceiling, also of the backed-off timeout (RFC 6298 2.5).
const MAX_RTO_MICROS: u32 = 60_000_000;

/// The least before a tail loss probe: what holds up a busy guest for a while is no loss.
const MIN_PROBE_MICROS: u32 = 10_000;

/// Smoothed round-trip time and its variation, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RttEstimator {
    /// 0 before the first measurement.
    srtt: u32,
    /// Before the first measurement, the timeout itself.
    rttvar: u32,
}

impl RttEstimator {
    pub(super) const NEW: Self = Self { srtt: 0, rttvar: INITIAL_RTO_MICROS };

    /// Takes one measurement, which by Karn's rule is of a segment sent only once.
    pub(super) fn sample(&mut self, micros: u32) {
        let rtt = micros.clamp(1, MAX_RTO_MICROS);
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = self.rttvar - self.rttvar / 4 + self.srtt.abs_diff(rtt) / 4;
            self.srtt = (self.srtt - self.srtt / 8 + rtt / 8).max(1);
        }
    }

    /// The handshake is done, and a SYN had to be sent again.
    pub(super) fn lost_syn(&mut self) {
        if self.srtt == 0 {
            self.rttvar = AFTER_LOST_SYN_MICROS;
        }
    }

    /// How long the ACK of several segments may take before one of them is sent again
    /// (RFC 8985 7.2).
    pub(super) fn probe_timeout(&self) -> Duration {
        let twice = self.srtt.saturating_mul(2).max(MIN_PROBE_MICROS);
        Duration::from_micros(twice.into()).min(self.timeout(0))
    }

    /// The timeout doubled `backoffs` times.
    pub(super) fn timeout(&self, backoffs: u8) -> Duration {
        let base = if self.srtt == 0 {
            self.rttvar
        } else {
            self.srtt.saturating_add(self.rttvar.saturating_mul(4)).max(MIN_RTO_MICROS)
        };
        let factor = 1u32.checked_shl(u32::from(backoffs)).unwrap_or(u32::MAX);
        Duration::from_micros(u64::from(base.saturating_mul(factor).min(MAX_RTO_MICROS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_at_one_second_and_doubles_to_the_ceiling() {
        let rtt = RttEstimator::NEW;
        assert_eq!(rtt.timeout(0), Duration::from_secs(1));
        assert_eq!(rtt.timeout(3), Duration::from_secs(8));
        assert_eq!(rtt.timeout(40), Duration::from_secs(60));
    }

    #[test]
    fn follows_measurements_down_to_the_floor() {
        let mut rtt = RttEstimator::NEW;
        rtt.sample(400_000);
        assert_eq!(rtt.timeout(0), Duration::from_micros(1_200_000));
        for _ in 0..100 {
            rtt.sample(100);
        }
        assert_eq!(rtt.timeout(0), Duration::from_micros(u64::from(MIN_RTO_MICROS)));
    }
}
