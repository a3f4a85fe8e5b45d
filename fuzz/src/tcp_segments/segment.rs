//! What a guest sends on a connection, by what it differs in from what would be right.

use arbitrary::Arbitrary;

/// A segment of the guest's.
#[derive(Arbitrary, Clone, Debug)]
pub enum Segment {
    /// A SYN.
    Open {
        /// It is the first of a connection; else the last one again.
        anew: bool,
        /// What it says, if it was not sent before.
        options: SynOptions,
    },
    /// The answer to the NAT's SYN.
    Answer {
        /// As above.
        anew: bool,
        /// As above.
        options: SynOptions,
    },
    /// Text, and a FIN behind it or not.
    Text {
        /// Where in the stream.
        place: Place,
        /// How much; less than 4,096.
        len: u16,
        /// Whether the stream ends behind it.
        fin: bool,
    },
    /// An ACK without text.
    Ack {
        /// Of how much.
        acked: Acked,
        /// What it says of text beyond a gap.
        blocks: Blocks,
    },
    /// The window of this and all later segments; an ACK with it.
    Window(u16),
    /// A reset, at this distance from the right number.
    Reset(i16),
    /// Any flags at any distance from the right numbers.
    Any {
        /// The flags.
        flags: u8,
        /// Added to the sequence number.
        seq_off: i16,
        /// Added to the acknowledgment number.
        ack_off: i16,
    },
    /// What was sent last.
    Again,
}

/// What a SYN says.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct SynOptions {
    /// MSS.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted.
    pub sack: bool,
}

/// Where in its stream a guest sends text.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Place {
    /// Behind all that was sent.
    Next,
    /// Behind a gap of so many bytes and one.
    Beyond(u16),
    /// So many bytes and one before the end of what was sent.
    Before(u16),
    /// Where the NAT says that something is missing.
    Missing,
}

/// What a guest acknowledges.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Acked {
    /// All that has come without a gap.
    All,
    /// So many bytes less.
    Less(u16),
    /// So many bytes more.
    More(u16),
}

/// SACK blocks (RFC 2018 3).
#[derive(Arbitrary, Clone, Debug)]
pub enum Blocks {
    /// No such option.
    None,
    /// What has come beyond a gap.
    Held,
    /// Anything: distance from the right acknowledgment number, and length.
    Any([(i16, u16); 2]),
}
