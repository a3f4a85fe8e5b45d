//! The guest's ends of all connections: what they send, and what has come to them.

use core::net::{Ipv4Addr, SocketAddrV4};

use slirpkit_tests::Watch;
use slirpkit_tests::build::{ACK, FIN, PSH, RST, SYN, TcpBuilder};
use slirpkit_tests::guest::GUEST_IP;
use slirpkit_tests::packet::{Tcp, is_after};

use super::content::content;
use super::received::Received;
use super::segment::{Acked, Blocks, Place, Segment, SynOptions};
use super::{CLIENT, CONNECTIONS};

/// Most bytes that a guest sends again at once.
const CATCH_UP: u32 = 16_384;

/// The guest's ends, one a connection.
#[derive(Debug)]
pub(super) struct Guest {
    ends: Vec<End>,
}

/// One end.
#[derive(Debug)]
struct End {
    connection: u8,
    /// The far end as the NAT shows it.
    remote: SocketAddrV4,
    iss: u32,
    snd_nxt: u32,
    /// The number behind the last FIN.
    fin: Option<u32>,
    window: u16,
    /// What each SYN says, however often it is sent.
    syns: Vec<(u32, SynOptions)>,
    received: Received,
    /// As many of the next segments for it get lost.
    losses: u8,
    /// What was sent last.
    last: Option<Vec<u8>>,
    has_reset: bool,
}

/// The guest's end of a connection, and the far one as it is at first.
pub(super) fn ends(connection: u8) -> (SocketAddrV4, SocketAddrV4) {
    let far = Ipv4Addr::new(203, 0, 113, connection);
    let (local, remote) = if connection == CLIENT { (80, 7777) } else { (5000, 80) };
    (SocketAddrV4::new(GUEST_IP, local), SocketAddrV4::new(far, remote))
}

/// The connection of a segment for the guest.
pub(super) fn connection_of(segment: &Tcp) -> Option<u8> {
    let [.., connection] = segment.src.ip().octets();
    (connection < CONNECTIONS).then_some(connection)
}

/// How far the numbers of a connection are from those of the next one between the same ends.
const STEP: u32 = 1 << 26;

/// The initial sequence number of the first connection between two ends. That of one is such that
/// its numbers wrap soon.
const fn first_isn(connection: u8) -> u32 {
    if connection == 1 { u32::MAX - 2000 } else { 1_000_000 }
}

/// The position of what the guest sends at `seq`, for [`content`]. It wraps where no text is.
pub(super) fn position(connection: u8, seq: u32) -> u64 {
    let at = seq.wrapping_sub(first_isn(connection)).wrapping_add(STEP / 2);
    u64::from(connection) * 40_503 + u64::from(at)
}

/// The text that the guest sends at `seq`.
fn text(connection: u8, seq: u32, len: usize) -> &'static [u8] {
    content(position(connection, seq), len)
}

impl Guest {
    pub(super) fn new() -> Self {
        Self { ends: (0..CONNECTIONS).map(End::new).collect() }
    }

    /// The next frame of a connection, if there is one.
    pub(super) fn send(&mut self, connection: u8, segment: &Segment) -> Option<Vec<u8>> {
        let end = self.ends.get_mut(usize::from(connection))?;
        if !matches!(segment, Segment::Again) {
            end.last = Some(end.build(segment).frame());
        }
        end.last.clone()
    }

    pub(super) fn lose(&mut self, connection: u8, count: u8) {
        if let Some(end) = self.ends.get_mut(usize::from(connection)) {
            end.losses = count;
        }
    }

    /// Takes a segment of the NAT's.
    pub(super) fn take(&mut self, segment: &Tcp) {
        let connection = connection_of(segment);
        if let Some(end) = connection.and_then(|number| self.ends.get_mut(usize::from(number))) {
            end.take(segment);
        }
    }

    /// Whether the connection is the one that began with these numbers of guest and NAT.
    pub(super) fn knows(&self, connection: u8, (isn, irs): (u32, u32)) -> bool {
        let end = self.ends.get(usize::from(connection));
        end.is_some_and(|end| end.iss == isn && end.received.irs() == Some(irs))
    }

    /// How many bytes it has sent, a FIN in their midst included.
    pub(super) fn text_sent(&self, connection: u8) -> u32 {
        let end = self.ends.get(usize::from(connection));
        end.map_or(0, |end| end.text_end().wrapping_sub(end.iss).wrapping_sub(1))
    }

    /// Adds to a batch what a guest sends that has lost nothing more, and has all room: an ACK, and
    /// again what is missing, as far as the window allows.
    pub(super) fn catch_up(&mut self, connection: u8, watch: &Watch, batch: &mut Vec<Vec<u8>>) {
        if let Some(end) = self.ends.get_mut(usize::from(connection)) {
            end.catch_up(watch, batch);
        }
    }

    /// Whether it has ever sent a reset there.
    pub(super) fn has_reset(&self, connection: u8) -> bool {
        self.ends.get(usize::from(connection)).is_some_and(|end| end.has_reset)
    }
}

impl End {
    fn new(connection: u8) -> Self {
        let iss = first_isn(connection);
        Self {
            connection,
            remote: ends(connection).1,
            iss,
            snd_nxt: iss.wrapping_add(1),
            fin: None,
            window: u16::MAX,
            syns: Vec::new(),
            received: Received::default(),
            losses: 0,
            last: None,
            has_reset: false,
        }
    }

    fn build(&mut self, segment: &Segment) -> TcpBuilder {
        let (local, _) = ends(self.connection);
        let next = self.received.next();
        let builder = TcpBuilder::new(local, self.remote).seq(self.snd_nxt).ack(next);
        let builder = builder.window(self.window);
        match *segment {
            Segment::Open { anew, options } => {
                self.begin(anew, options);
                self.with_options(builder.flags(SYN).seq(self.iss).ack(0))
            }
            Segment::Answer { anew, options } => {
                self.begin(anew, options);
                self.with_options(builder.flags(SYN | ACK).seq(self.iss))
            }
            Segment::Text { place, len, fin } => self.text(builder, place, len % 4096, fin),
            Segment::Ack { acked, ref blocks } => self.acknowledge(builder, acked, blocks),
            Segment::Window(window) => {
                self.window = window;
                builder.flags(ACK).window(window)
            }
            Segment::Reset(off) => {
                self.has_reset = true;
                builder.flags(RST).seq(self.snd_nxt.wrapping_add_signed(off.into()))
            }
            Segment::Any { flags, seq_off, ack_off } => {
                self.has_reset |= flags & RST != 0;
                let seq = self.snd_nxt.wrapping_add_signed(seq_off.into());
                let ack = next.wrapping_add_signed(ack_off.into());
                if flags & (SYN | FIN) == FIN {
                    self.note_sent(seq.wrapping_add(1), true);
                }
                self.with_options(builder.flags(flags).seq(seq).ack(ack))
            }
            // What was sent last goes out as it is.
            Segment::Again => builder,
        }
    }

    fn begin(&mut self, anew: bool, options: SynOptions) {
        if anew {
            self.iss = self.iss.wrapping_add(STEP);
            self.snd_nxt = self.iss.wrapping_add(1);
        }
        if !self.syns.iter().any(|(number, _)| *number == self.iss) {
            self.syns.push((self.iss, options));
        }
    }

    /// A SYN of the same number always says the same.
    fn with_options(&mut self, builder: TcpBuilder) -> TcpBuilder {
        if builder.flags & SYN == 0 {
            return builder;
        }
        let known = self.syns.iter().find(|(number, _)| *number == builder.seq);
        let (_, options) = known.copied().unwrap_or((builder.seq, SynOptions::NONE));
        if known.is_none() {
            self.syns.push((builder.seq, options));
        }
        options.add_to(builder)
    }

    /// Something that ends at `end` is sent, with a FIN last or not.
    fn note_sent(&mut self, end: u32, fin: bool) {
        self.fin = if fin { Some(end) } else { self.fin };
        if is_after(end, self.snd_nxt) {
            self.snd_nxt = end;
        }
    }

    fn text(&mut self, builder: TcpBuilder, place: Place, len: u16, fin: bool) -> TcpBuilder {
        let seq = match place {
            Place::Next => self.snd_nxt,
            Place::Beyond(gap) => self.snd_nxt.wrapping_add(u32::from(gap) + 1),
            Place::Before(back) => self.snd_nxt.wrapping_sub(u32::from(back) + 1),
            Place::Missing => self.received.acknowledged(self.snd_nxt),
        };
        let end = seq.wrapping_add(u32::from(len) + u32::from(fin));
        self.note_sent(end, fin);
        let fin = if fin { FIN } else { 0 };
        let data = text(self.connection, seq, usize::from(len));
        builder.flags(ACK | PSH | fin).seq(seq).data(data)
    }

    fn acknowledge(&mut self, builder: TcpBuilder, acked: Acked, blocks: &Blocks) -> TcpBuilder {
        let next = self.received.next();
        let ack = match acked {
            Acked::All => next,
            Acked::Less(less) => next.wrapping_sub(less.into()),
            Acked::More(more) => next.wrapping_add(more.into()),
        };
        let blocks = match blocks {
            Blocks::None => Vec::new(),
            Blocks::Held => self.received.blocks(),
            Blocks::Any(blocks) => {
                let block = |(off, len): &(i16, u16)| {
                    let start = next.wrapping_add_signed((*off).into());
                    (start, start.wrapping_add((*len).into()))
                };
                blocks.iter().map(block).collect()
            }
        };
        let builder = builder.flags(ACK).ack(ack);
        if blocks.is_empty() { builder } else { builder.sack(&blocks) }
    }

    /// The number behind the last byte sent, without a FIN behind that.
    fn text_end(&self) -> u32 {
        self.snd_nxt.wrapping_sub(u32::from(self.fin == Some(self.snd_nxt)))
    }

    fn catch_up(&mut self, watch: &Watch, batch: &mut Vec<Vec<u8>>) {
        let (local, remote) = (ends(self.connection).0, self.remote);
        (self.losses, self.window) = (0, u16::MAX);
        if let Some(irs) = self.received.irs() {
            self.received.skip_to(irs.wrapping_add(1).wrapping_add(watch.taken(local, remote)));
        }
        let builder = TcpBuilder::new(local, remote).ack(self.received.next()).window(self.window);
        let (ack, blocks) = (builder.clone().flags(ACK).seq(self.snd_nxt), self.received.blocks());
        batch.push(if blocks.is_empty() { ack } else { ack.sack(&blocks) }.frame());
        let start = self.iss.wrapping_add(1).wrapping_add(watch.acknowledged(local, remote));
        let missing = self.text_end().wrapping_sub(start);
        // A closed window is probed.
        let most = missing.min(watch.window(local, remote).clamp(1, CATCH_UP));
        let fin = if most == missing && self.fin == Some(self.snd_nxt) { FIN } else { 0 };
        if most > 0 || fin != 0 {
            let data = text(self.connection, start, most as usize);
            batch.push(builder.flags(ACK | PSH | fin).seq(start).data(data).frame());
        }
    }

    fn take(&mut self, segment: &Tcp) {
        if self.losses > 0 {
            self.losses -= 1;
        } else if !segment.has(RST) {
            if segment.has(SYN) {
                self.remote = segment.src;
            }
            self.received.take(segment);
        }
    }
}

impl SynOptions {
    const NONE: Self = Self { mss: None, window_scale: None, sack: false };

    fn add_to(self, mut builder: TcpBuilder) -> TcpBuilder {
        if let Some(mss) = self.mss {
            builder = builder.mss(mss);
        }
        if let Some(shift) = self.window_scale {
            builder = builder.window_scale(shift);
        }
        if self.sack { builder.sack_permitted() } else { builder }
    }
}
