//! DNS messages: any bytes, and the answers to them.

use arbitrary::Arbitrary;
use ipstack::wire::{DnsMessage, dns};

use crate::Target;

/// A message from a guest, and the room for its answer.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    /// Bytes of the answer's buffer; the upper bits are not used.
    pub room: u16,
    /// The message.
    pub message: Message,
}

/// A message from a guest.
#[derive(Arbitrary, Clone, Debug)]
pub enum Message {
    /// Any bytes.
    Bytes(Vec<u8>),
    /// A header and a question of these labels.
    Query([u8; 12], Vec<Vec<u8>>, [u8; 4]),
}

impl Message {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Query(header, labels, kind_and_class) => {
                let mut bytes = header.to_vec();
                for label in labels {
                    let len = label.len().min(63);
                    bytes.push(u8::try_from(len).unwrap_or(63));
                    bytes.extend(&label[..len]);
                }
                bytes.push(0);
                bytes.extend(kind_and_class);
                bytes
            }
        }
    }
}

impl Target for Input {
    fn run(self) {
        let bytes = self.message.bytes();
        let mut room = vec![0xa5; usize::from(self.room % 1024)];
        for (answer, code) in [(dns::servfail as fn(&[u8], &mut [u8]) -> _, 2), (dns::refused, 5)] {
            let written = answer(&bytes, &mut room);
            check_answer(&bytes, written.map(|len| &room[..len]), code);
        }
        if let Ok(message) = DnsMessage::parse(&bytes)
            && let Ok(question) = message.question()
        {
            assert!(question.name.len() <= 255, "longer than a name (RFC 1035 2.3.4)");
            assert!(bytes[12..].starts_with(question.name));
        }
    }
}

fn check_answer(query: &[u8], answer: Option<&[u8]>, code: u8) {
    let Some(answer) = answer else { return };
    let query = DnsMessage::parse(query).expect("what is answered is a message");
    let answer = DnsMessage::parse(answer).expect("what was written is a message");
    assert!(!query.is_response() && answer.is_response());
    assert_eq!((answer.id(), answer.opcode()), (query.id(), query.opcode()));
    assert_eq!(answer.response_code(), code);
    assert_eq!(answer.recursion_desired(), query.recursion_desired());
    assert!(answer.recursion_available() && !answer.is_truncated());
    assert_eq!(answer.question().ok(), query.question().ok());
    assert_eq!(answer.counts(), [u16::from(query.question().is_ok()), 0, 0, 0]);
}
