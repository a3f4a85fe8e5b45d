//! IPv6: chains of extension headers, written by hand, and read by us and by `etherparse`.

use core::net::Ipv6Addr;

use arbitrary::Arbitrary;
use etherparse::{
    IpNumber, Ipv6ExtensionSlice, Ipv6ExtensionsSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice,
    ip_number,
};
use ipstack::wire::ipv6::HEADER_LEN;
use ipstack::wire::ipv6_extension::{MAX_HEADERS, MAX_OPTIONS, MAX_PADDING};
use ipstack::wire::{
    ExtensionError, ExtensionFault, IpProtocol, Ipv6Fragment, Ipv6Header, Ipv6Packet, Ipv6Payload,
};

/// A packet.
#[derive(Arbitrary, Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the fields on the wire")]
pub struct Packet {
    pub fields: (u8, u32, u8),
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub extensions: Vec<Extension>,
    /// One of `OFTEN`, or a number.
    pub protocol: u8,
    /// Whether the payload has a length that fragments but the last have.
    pub whole_units: bool,
    /// Bytes that are missing at the end, and the length with them.
    pub cut: u8,
    pub payload: Vec<u8>,
}

/// Numbers that mean something here.
const OFTEN: [u8; 10] = [6, 17, 58, 59, 51, 50, 44, 43, 60, 0];

/// One extension header.
#[derive(Arbitrary, Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the fields on the wire")]
pub enum Extension {
    HopByHop(Vec<TypeLengthValue>),
    Destination(Vec<TypeLengthValue>),
    Routing { kind: u8, segments_left: u8, units: u8 },
    Fragment { place: Place, more: bool, identification: u32 },
    Authentication { words: u8 },
}

/// Where a fragment belongs.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Place {
    /// At the beginning.
    First,
    /// After so many units.
    Middle(u16),
    /// So many units before the last there is.
    NearEnd(u8),
}

/// One option.
#[derive(Arbitrary, Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the fields on the wire")]
pub struct TypeLengthValue {
    pub kind: u8,
    pub len: u8,
    /// How much longer it says that it is.
    pub excess: u8,
}

impl Packet {
    /// Writes it, and compares how it is read.
    pub(super) fn run(&self) {
        let protocol = OFTEN.get(usize::from(self.protocol)).unwrap_or(&self.protocol);
        let numbers = self.extensions.iter().map(Extension::number).chain([*protocol]);
        let mut payload = Vec::new();
        for (extension, next_header) in self.extensions.iter().zip(numbers.clone().skip(1)) {
            extension.write(next_header, &mut payload);
        }
        payload.extend(&self.payload);
        if self.whole_units {
            payload.truncate(payload.len() / 8 * 8);
        }
        payload.truncate(payload.len().saturating_sub(usize::from(self.cut)));
        let Ok(payload_len) = u16::try_from(payload.len()) else { return };
        let (traffic_class, flow_label, hop_limit) = self.fields;
        let header = Ipv6Header {
            traffic_class,
            flow_label,
            payload_len,
            next_header: numbers.take(1).sum(),
            hop_limit,
            source: self.source,
            destination: self.destination,
        };
        let mut written = [0; HEADER_LEN];
        header.emit(&mut written);
        let bytes = [&written, &payload[..], b"padding"].concat();
        let read = Ipv6Packet::parse(&bytes).expect("a packet that was just written");
        assert_eq!(read.payload(), payload);
        received(&bytes);
    }
}

impl Extension {
    const fn number(&self) -> u8 {
        match self {
            Self::HopByHop(_) => 0,
            Self::Destination(_) => 60,
            Self::Routing { .. } => 43,
            Self::Fragment { .. } => 44,
            Self::Authentication { .. } => 51,
        }
    }

    fn write(&self, next_header: u8, to: &mut Vec<u8>) {
        match self {
            Self::HopByHop(options) | Self::Destination(options) => {
                let mut values = Vec::new();
                for option in options.iter().take(40) {
                    values.push(option.kind);
                    // Pad1 has neither length nor value.
                    if option.kind != 0 {
                        values.push(option.len.saturating_add(option.excess));
                        values.extend(vec![0xa5; usize::from(option.len)]);
                    }
                }
                values.resize((values.len() + 2).next_multiple_of(8) - 2, 0);
                let units = u8::try_from((values.len() + 2) / 8 - 1).unwrap_or(u8::MAX);
                to.extend([next_header, units]);
                to.extend(&values[..usize::from(units) * 8 + 6]);
            }
            Self::Routing { kind, segments_left, units } => {
                to.extend([next_header, *units, *kind, *segments_left]);
                to.extend(vec![0xa5; usize::from(*units) * 8 + 4]);
            }
            Self::Fragment { place, more, identification } => {
                let mut header = [0xa5; 8];
                let offset = match place {
                    Place::First => 0,
                    Place::Middle(units) => units << 3,
                    Place::NearEnd(units) => 65_528 - (u16::from(*units) << 3),
                };
                let (more, identification) = (*more, *identification);
                Ipv6Fragment { next_header, offset, more, identification, payload: &[] }
                    .emit_header(&mut header);
                to.extend(header);
            }
            Self::Authentication { words } => {
                to.extend([next_header, *words]);
                to.extend(vec![0xa5; usize::from(*words) * 4 + 6]);
            }
        }
    }
}

/// Whatever can be read from `bytes` is what `etherparse` reads.
pub(super) fn received(bytes: &[u8]) {
    let is_whole = |theirs: &Ipv6HeaderSlice<'_>| {
        bytes.len() - HEADER_LEN >= usize::from(theirs.payload_length())
    };
    let theirs = Ipv6HeaderSlice::from_slice(bytes).ok().filter(is_whole);
    let ours = Ipv6Packet::parse(bytes).ok();
    assert_eq!(ours.is_some(), theirs.is_some());
    let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
    compare_fields(&ours, &theirs);
    let found = ours.payload_behind_extensions();
    assert_eq!(found, expected(&ours));
    if let Ok(Ipv6Payload::Fragment(fragment)) = found {
        let quoted = [&ours.quoted_header(&fragment), fragment.payload].concat();
        let again = Ipv6Packet::parse(&quoted).expect("a packet that was just written");
        assert_eq!(again.payload_behind_extensions(), found);
        assert_eq!((again.source(), again.destination()), (ours.source(), ours.destination()));
    }
}

fn compare_fields(ours: &Ipv6Packet<'_>, theirs: &Ipv6HeaderSlice<'_>) {
    assert_eq!(ours.traffic_class(), theirs.traffic_class());
    assert_eq!(ours.ecn(), theirs.ecn().value());
    assert_eq!(ours.flow_label(), theirs.flow_label().value());
    assert_eq!(ours.payload_len(), theirs.payload_length());
    assert_eq!(ours.next_header(), theirs.next_header().0);
    assert_eq!(ours.hop_limit(), theirs.hop_limit());
    assert_eq!(ours.source(), theirs.source_addr());
    assert_eq!(ours.destination(), theirs.destination_addr());
    assert_eq!(ours.bytes().len(), HEADER_LEN + usize::from(theirs.payload_length()));
    let header = Ipv6Header {
        traffic_class: ours.traffic_class(),
        flow_label: ours.flow_label(),
        payload_len: ours.payload_len(),
        next_header: ours.next_header(),
        hop_limit: ours.hop_limit(),
        source: ours.source(),
        destination: ours.destination(),
    };
    let mut written = [0xa5; HEADER_LEN];
    header.emit(&mut written);
    assert_eq!(written, theirs.slice());
}

type Found<'a> = Result<Ipv6Payload<'a>, ExtensionFault>;

fn fault<T>(reason: ExtensionError, pointer: usize) -> Result<T, ExtensionFault> {
    Err(ExtensionFault { reason, pointer })
}

/// What the headers that `etherparse` finds come to by the rules of `ipv6_extension`. It reads on
/// behind fragments and authentication, and does not look at options.
fn expected<'a>(packet: &Ipv6Packet<'a>) -> Found<'a> {
    let (number, payload) = (packet.next_header(), packet.payload());
    if number == 0 && payload.is_empty() {
        return fault(ExtensionError::JumboPayload, 4);
    }
    let (theirs, next, rest, error) =
        Ipv6ExtensionsSlice::from_slice_lax(IpNumber(number), payload);
    let found = theirs.slice().len();
    let mut headers = theirs.into_iter();
    let mut walk = Walk { whole: payload, at: 0, named_at: 6, fragmented: false, first: None };
    // Where they stopped at an error their iterator must not be asked for more.
    for count in 0.. {
        if walk.at == found {
            break;
        }
        let Some(header) = headers.next() else { break };
        let is_authentication = matches!(header, Ipv6ExtensionSlice::Authentication(_));
        if count == MAX_HEADERS && !is_authentication {
            return fault(ExtensionError::TooManyHeaders, walk.named_at);
        }
        if let Some(end) = walk.header(&header)? {
            return Ok(end);
        }
        if count + 1 == MAX_HEADERS
            && walk.at == found
            && error.is_some()
            && next != ip_number::AUTH
        {
            return fault(ExtensionError::TooManyHeaders, walk.named_at);
        }
    }
    match next {
        ip_number::AUTH => walk.end(51, rest),
        ip_number::IPV6_FRAG if walk.fragmented => {
            fault(ExtensionError::SecondFragment, walk.named_at)
        }
        ip_number::IPV6_HOP_BY_HOP if walk.named_at != 6 => {
            fault(ExtensionError::HopByHopMisplaced, walk.named_at)
        }
        _ if error.is_some() && walk.first.is_some() => {
            fault(ExtensionError::FirstFragmentIncomplete, HEADER_LEN + walk.at)
        }
        _ if error.is_some() => fault(ExtensionError::Truncated, HEADER_LEN + walk.at),
        next => walk.end(next.0, rest),
    }
}

struct Walk<'a> {
    whole: &'a [u8],
    /// Bytes passed over.
    at: usize,
    /// Where the next header's number stands.
    named_at: usize,
    fragmented: bool,
    first: Option<Ipv6Fragment<'a>>,
}

impl<'a> Walk<'a> {
    /// Passes over one header, unless it ends the walk.
    fn header(
        &mut self,
        header: &Ipv6ExtensionSlice<'a>,
    ) -> Result<Option<Ipv6Payload<'a>>, ExtensionFault> {
        let start = HEADER_LEN + self.at;
        let len = match header {
            Ipv6ExtensionSlice::HopByHop(raw) => {
                options(raw.payload(), start + 2, true)?;
                raw.slice().len()
            }
            Ipv6ExtensionSlice::DestinationOptions(raw) => {
                options(raw.payload(), start + 2, false)?;
                raw.slice().len()
            }
            Ipv6ExtensionSlice::Routing(raw) => {
                match (raw.payload()[0], raw.payload()[1]) {
                    (_, 0) => {}
                    (0, _) => return fault(ExtensionError::RoutingType0, start + 2),
                    _ => return fault(ExtensionError::SegmentsLeft, start + 2),
                }
                raw.slice().len()
            }
            Ipv6ExtensionSlice::Fragment(fragment) => {
                if let Some(end) = self.fragment(fragment)? {
                    return Ok(Some(end));
                }
                8
            }
            Ipv6ExtensionSlice::Authentication(_) => {
                return self.end(51, &self.whole[self.at..]).map(Some);
            }
        };
        self.named_at = start;
        self.at += len;
        Ok(None)
    }

    fn fragment(
        &mut self,
        theirs: &Ipv6FragmentHeaderSlice<'a>,
    ) -> Result<Option<Ipv6Payload<'a>>, ExtensionFault> {
        if self.fragmented {
            return fault(ExtensionError::SecondFragment, self.named_at);
        }
        self.fragmented = true;
        let payload = &self.whole[self.at + 8..];
        let fragment = Ipv6Fragment {
            next_header: theirs.next_header().0,
            offset: theirs.fragment_offset().byte_offset(),
            more: theirs.more_fragments(),
            identification: theirs.identification(),
            payload,
        };
        if !theirs.is_fragmenting_payload() {
            return Ok(None);
        }
        if payload.is_empty() || fragment.more && !payload.len().is_multiple_of(8) {
            return fault(ExtensionError::FragmentLength, 4);
        }
        if self.at + usize::from(fragment.offset) + payload.len() > 65_535 {
            return fault(ExtensionError::FragmentTooLong, HEADER_LEN + self.at + 2);
        }
        if fragment.offset > 0 {
            return Ok(Some(Ipv6Payload::Fragment(fragment)));
        }
        self.first = Some(fragment);
        Ok(None)
    }

    fn end(&self, number: u8, payload: &'a [u8]) -> Found<'a> {
        let Some(first) = self.first else {
            return Ok(match number {
                59 => Ipv6Payload::Nothing,
                _ => Ipv6Payload::Upper { protocol: IpProtocol::from(number), payload },
            });
        };
        let whole = match number {
            6 => etherparse::TcpSlice::from_slice(payload).is_ok() || has_tcp_header(payload),
            17 => payload.len() >= 8,
            58 => payload.len() >= 4,
            _ => true,
        };
        if whole {
            Ok(Ipv6Payload::Fragment(first))
        } else {
            fault(ExtensionError::FirstFragmentIncomplete, HEADER_LEN + self.at)
        }
    }
}

/// A TCP header that is too short by its own word is for TCP to refuse.
fn has_tcp_header(payload: &[u8]) -> bool {
    payload.len() >= 20 && payload[12] >> 4 < 5
}

fn options(mut rest: &[u8], start: usize, hop_by_hop: bool) -> Result<(), ExtensionFault> {
    let whole = rest.len();
    let (mut count, mut padding) = (0, 0);
    while let Some((kind, after)) = rest.split_first() {
        let at = start + whole - rest.len();
        let len = match (kind, after.first()) {
            (0, _) => 1,
            (_, Some(len)) => 2 + usize::from(*len),
            (_, None) => return fault(ExtensionError::OptionTruncated, at),
        };
        let Some(after) = rest.get(len..) else {
            return fault(ExtensionError::OptionTruncated, at);
        };
        rest = after;
        if *kind < 2 {
            padding += len;
        } else {
            (padding, count) = (0, count + 1);
        }
        if padding > MAX_PADDING {
            return fault(ExtensionError::TooMuchPadding, at);
        }
        if count > MAX_OPTIONS {
            return fault(ExtensionError::TooManyOptions, at);
        }
        if *kind == 0xc2 && hop_by_hop {
            return fault(ExtensionError::JumboPayload, at);
        }
        if *kind >= 0x40 {
            return fault(ExtensionError::UnknownOption(*kind), at);
        }
    }
    Ok(())
}
