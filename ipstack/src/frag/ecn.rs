//! The ECN field of a datagram from those of its fragments (RFC 3168 5.3).

const NOT_ECT: u8 = 0b00;
const ECT_1: u8 = 0b01;
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;

/// The set of ECN codepoints that the fragments of one datagram carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnMix(u8);

impl EcnMix {
    /// No fragment yet.
    pub(super) const NONE: Self = Self(0);

    /// Adds a codepoint; bits above the lower two are ignored.
    pub(super) const fn add(&mut self, codepoint: u8) {
        self.0 |= 1 << (codepoint & CE);
    }

    /// The codepoint of the whole datagram, or `None` if it must be dropped: congestion was
    /// experienced, but not all fragments were ECN-capable.
    pub(super) const fn combined(self) -> Option<u8> {
        match (self.has(CE), self.has(NOT_ECT)) {
            (true, true) => None,
            (true, false) => Some(CE),
            (false, true) => Some(NOT_ECT),
            (false, false) if self.has(ECT_0) => Some(ECT_0),
            (false, false) if self.has(ECT_1) => Some(ECT_1),
            (false, false) => Some(NOT_ECT),
        }
    }

    const fn has(self, codepoint: u8) -> bool {
        self.0 & (1 << codepoint) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mixture_combines_as_rfc_3168_5_3_says() {
        let table = [
            (&[][..], Some(NOT_ECT)),
            (&[NOT_ECT], Some(NOT_ECT)),
            (&[ECT_1], Some(ECT_1)),
            (&[ECT_0], Some(ECT_0)),
            (&[CE], Some(CE)),
            (&[NOT_ECT, ECT_1], Some(NOT_ECT)),
            (&[NOT_ECT, ECT_0], Some(NOT_ECT)),
            (&[ECT_1, ECT_0], Some(ECT_0)),
            (&[NOT_ECT, ECT_1, ECT_0], Some(NOT_ECT)),
            (&[CE, ECT_0], Some(CE)),
            (&[CE, ECT_1], Some(CE)),
            (&[CE, ECT_0, ECT_1], Some(CE)),
            (&[CE, NOT_ECT], None),
            (&[CE, NOT_ECT, ECT_0], None),
            (&[CE, NOT_ECT, ECT_1], None),
            (&[CE, NOT_ECT, ECT_0, ECT_1], None),
        ];
        for (codepoints, combined) in table {
            let mut mix = EcnMix::NONE;
            for codepoint in codepoints {
                mix.add(*codepoint);
            }
            assert_eq!(mix.combined(), combined, "{codepoints:?}");
        }
    }

    #[test]
    fn the_dscp_above_the_field_is_ignored() {
        let mut mix = EcnMix::NONE;
        mix.add(0xb8 | ECT_0);
        assert_eq!(mix.combined(), Some(ECT_0));
    }
}
