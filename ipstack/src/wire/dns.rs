//! DNS messages as far as a relay looks at them: the header and the first question (RFC 1035 4.1).

use byteorder::{ByteOrder, NetworkEndian};

use super::WireError;

#[cfg(test)]
mod tests;

/// UDP and TCP port of name servers.
pub const PORT: u16 = 53;

/// Bytes of the header.
pub const HEADER_LEN: usize = 12;

/// Longest name with its length bytes (RFC 1035 2.3.4).
const MAX_NAME_LEN: usize = 255;
const MAX_LABEL_LEN: u8 = 63;

/// QR: this is a response.
const RESPONSE: u8 = 0x80;
/// Opcode and RD, which a response takes over from its query (RFC 1035 4.1.1).
const KEPT_OF_BYTE_2: u8 = 0x79;
/// RA: recursion is available.
const RECURSION_AVAILABLE: u8 = 0x80;
/// CD, which a response takes over from its query (RFC 4035 3.2.2).
const KEPT_OF_BYTE_3: u8 = 0x10;

const SERVER_FAILURE: u8 = 2;
const REFUSED: u8 = 5;

/// A message whose header is there; the rest is not looked at until asked for.
#[derive(Clone, Copy, Debug)]
pub struct DnsMessage<'a> {
    header: &'a [u8; HEADER_LEN],
    body: &'a [u8],
}

impl<'a> DnsMessage<'a> {
    /// Reads the payload of a UDP datagram.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if the header is not all there.
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        let (header, body) = payload.split_first_chunk().ok_or(WireError::Truncated)?;
        Ok(Self { header, body })
    }

    /// The number by which a response is matched to its query.
    #[must_use]
    pub fn id(&self) -> u16 {
        NetworkEndian::read_u16(&self.header[0..2])
    }

    /// QR.
    #[must_use]
    pub const fn is_response(&self) -> bool {
        self.header[2] & RESPONSE != 0
    }

    /// Kind of query, 0 for the standard one.
    #[must_use]
    pub const fn opcode(&self) -> u8 {
        self.header[2] >> 3 & 0x0f
    }

    /// TC: the message was cut, and is to be had whole over TCP.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.header[2] & 0x02 != 0
    }

    /// RD.
    #[must_use]
    pub const fn recursion_desired(&self) -> bool {
        self.header[2] & 0x01 != 0
    }

    /// RA.
    #[must_use]
    pub const fn recursion_available(&self) -> bool {
        self.header[3] & RECURSION_AVAILABLE != 0
    }

    /// RCODE, 0 for no error.
    #[must_use]
    pub const fn response_code(&self) -> u8 {
        self.header[3] & 0x0f
    }

    /// Records in the question, answer, authority and additional section, as the header says.
    #[must_use]
    pub fn counts(&self) -> [u16; 4] {
        let [_, _, _, _, q0, q1, an0, an1, ns0, ns1, ar0, ar1] = *self.header;
        [[q0, q1], [an0, an1], [ns0, ns1], [ar0, ar1]].map(u16::from_be_bytes)
    }

    /// The first question.
    ///
    /// # Errors
    /// [`WireError::BadValue`] if there is none, or its name is longer than RFC 1035 2.3.4 allows
    /// or holds a compression pointer, which can point nowhere yet; [`WireError::Truncated`] if it
    /// passes the end.
    pub fn question(&self) -> Result<Question<'a>, WireError> {
        if self.counts()[0] == 0 {
            return Err(WireError::BadValue);
        }
        let name_len = name_len(self.body)?;
        let (name, rest) = self.body.split_at_checked(name_len).ok_or(WireError::Truncated)?;
        let &[t0, t1, c0, c1] = rest.first_chunk().ok_or(WireError::Truncated)?;
        Ok(Question {
            name,
            kind: u16::from_be_bytes([t0, t1]),
            class: u16::from_be_bytes([c0, c1]),
        })
    }
}

/// What a query asks (RFC 1035 4.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question<'a> {
    /// The name as it lies on the wire: labels with their length bytes, up to the root's.
    pub name: &'a [u8],
    /// QTYPE, as 1 for an IPv4 address.
    pub kind: u16,
    /// QCLASS, 1 for the Internet.
    pub class: u16,
}

/// Bytes of the uncompressed name at the start of `bytes`. Each step moves forward, so it ends.
fn name_len(bytes: &[u8]) -> Result<usize, WireError> {
    let mut len = 0_usize;
    loop {
        let label = *bytes.get(len).ok_or(WireError::Truncated)?;
        if label > MAX_LABEL_LEN {
            return Err(WireError::BadValue);
        }
        len = len.saturating_add(1).saturating_add(usize::from(label));
        if len > MAX_NAME_LEN {
            return Err(WireError::BadValue);
        }
        if label == 0 {
            return Ok(len);
        }
    }
}

/// Writes the answer "server failure" to `query` and returns its length. `None` if `query` is not
/// a query, or `out` is too short for it.
pub fn servfail(query: &[u8], out: &mut [u8]) -> Option<usize> {
    fail(query, SERVER_FAILURE, out)
}

/// Writes the answer "refused" to `query`; the rest is as for [`servfail`].
pub fn refused(query: &[u8], out: &mut [u8]) -> Option<usize> {
    fail(query, REFUSED, out)
}

/// Repeats the question if it can be read, since clients match it.
fn fail(query: &[u8], response_code: u8, out: &mut [u8]) -> Option<usize> {
    let message = DnsMessage::parse(query).ok().filter(|m| !m.is_response())?;
    let question = message.question().ok();
    let [id0, id1, flags0, flags1, ..] = *message.header;
    let (header, body) = out.split_first_chunk_mut::<HEADER_LEN>()?;
    *header = [0; HEADER_LEN];
    header[0] = id0;
    header[1] = id1;
    header[2] = RESPONSE | flags0 & KEPT_OF_BYTE_2;
    header[3] = RECURSION_AVAILABLE | flags1 & KEPT_OF_BYTE_3 | response_code;
    header[5] = u8::from(question.is_some());
    let Some(question) = question else { return Some(HEADER_LEN) };
    let len = question.name.len().saturating_add(4);
    let (to, from) = (body.get_mut(..len)?, message.body.get(..len)?);
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    Some(HEADER_LEN.saturating_add(len))
}
