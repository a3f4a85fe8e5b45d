use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::wire::{HEADER_LEN, MAX_MESSAGE_LEN, command};
use super::*;

const EINVAL: u32 = 22;
const EOPNOTSUPP: u32 = 95;

/// A card with the client's end of its socket.
struct World {
    link: VfioUserLink,
    batch: Batch,
    client: UnixStream,
}

/// A reply: command, error and what comes behind the header.
type Reply = (u16, u32, Vec<u8>);

impl World {
    fn new() -> Self {
        let (ours, client) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        let device = Box::new(Device::new([0x52, 0x54, 0, 0x12, 0x34, 0x56]));
        let link = VfioUserLink::new(ours.into(), device).unwrap();
        Self { link, batch: Batch::new(), client }
    }

    fn turn(&mut self) -> Result<(), LinkError> {
        self.link.receive_batch(&mut self.batch)?;
        self.link.flush().map(drop)
    }

    fn ask(&mut self, message: &[u8]) -> Vec<Reply> {
        self.client.write_all(message).unwrap();
        self.turn().unwrap();
        self.replies()
    }

    fn replies(&mut self) -> Vec<Reply> {
        let mut bytes = Vec::new();
        // Ends with "would block".
        let _ = self.client.read_to_end(&mut bytes);
        let mut rest = &bytes[..];
        let mut replies = Vec::new();
        while let Some((header, _)) = rest.split_first_chunk::<HEADER_LEN>() {
            let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
            let (message, later) = rest.split_at(word(4) as usize);
            let is_error = word(12) != 0;
            assert_eq!(word(8), 1 | u32::from(is_error) << 5, "a reply");
            let command = u16::from_ne_bytes([header[2], header[3]]);
            replies.push((command, word(12), message[HEADER_LEN..].to_vec()));
            rest = later;
        }
        assert!(rest.is_empty());
        replies
    }
}

fn message_with(flags: u32, command: u16, payload: &[u8]) -> Vec<u8> {
    let size = (HEADER_LEN + payload.len()) as u32;
    let header = [
        &7_u16.to_ne_bytes()[..],
        &command.to_ne_bytes(),
        &size.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &[0; 4],
    ];
    [&header.concat()[..], payload].concat()
}

fn message(command: u16, payload: &[u8]) -> Vec<u8> {
    message_with(0, command, payload)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn access(offset: u64, region: u32, count: u32) -> Vec<u8> {
    [&offset.to_ne_bytes()[..], &words(&[region, count])].concat()
}

fn read(offset: u64, region: u32, count: u32) -> Vec<u8> {
    message(command::REGION_READ, &access(offset, region, count))
}

fn write(offset: u64, region: u32, data: &[u8]) -> Vec<u8> {
    let count = data.len() as u32;
    message(command::REGION_WRITE, &[&access(offset, region, count)[..], data].concat())
}

fn send_with_fds(client: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [core::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(32))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    let bytes = [io::IoSlice::new(bytes)];
    sendmsg(client, &bytes, &mut control, SendFlags::empty()).unwrap();
}

#[test]
fn the_device_is_a_pci_function_with_ports_and_one_interrupt() {
    let mut world = World::new();
    let version = [&[0, 0, 1, 0][..], b"{\"capabilities\":{\"max_msg_fds\":1}}\0"].concat();
    let capabilities = b"{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":4064}}\0";
    let agreed = [&[0, 0, 0, 0][..], capabilities].concat();
    assert_eq!(world.ask(&message(command::VERSION, &version)), [(1, 0, agreed)]);
    assert_eq!(
        world.ask(&message(command::DEVICE_GET_INFO, &words(&[16, 0, 0, 0]))),
        [(4, 0, words(&[16, 3, 9, 5]))]
    );
    for (index, size) in [(0, 0x20), (1, 0), (6, 0), (7, 0x100), (8, 0)] {
        let request = words(&[32, 0, index, 0, 0, 0, 0, 0]);
        let flags = if size > 0 { 3 } else { 0 };
        assert_eq!(
            world.ask(&message(command::DEVICE_GET_REGION_INFO, &request)),
            [(5, 0, words(&[32, flags, index, 0, size, 0, 0, 0]))]
        );
    }
    for (index, flags, count) in [(0, 7, 1), (1, 0, 0), (4, 0, 0)] {
        assert_eq!(
            world.ask(&message(command::DEVICE_GET_IRQ_INFO, &words(&[16, 0, index, 0]))),
            [(7, 0, words(&[16, flags, index, count]))]
        );
    }
    let [(_, 0, config)] = &world.ask(&read(0, 7, 0x100))[..] else { panic!("no configuration") };
    assert_eq!(config[16..20], [0xec, 0x10, 0x29, 0x80], "vendor and device");
    assert_eq!(config[16 + 0x0a..16 + 0x0c], [0, 2], "an Ethernet controller");
    assert_eq!(config[16 + 0x3d], 1, "INTA");
    assert_eq!(config.len(), 16 + 0x100);
}

#[test]
fn memory_of_the_client_is_of_no_interest() {
    let mut world = World::new();
    let map = words(&[32, 3, 0, 0, 0, 1, 0, 0, 0x1000, 0]);
    assert_eq!(world.ask(&message(command::DMA_MAP, &map)), [(2, 0, vec![])]);
    let unmap = words(&[24, 0, 0, 1, 0x1000, 0]);
    assert_eq!(world.ask(&message(command::DMA_UNMAP, &unmap)), [(3, 0, unmap)]);
}

#[test]
fn many_requests_are_one_read_and_one_write() {
    let mut world = World::new();
    let requests: Vec<u8> = (0..50).flat_map(|_| read(0x1f, 0, 1)).collect();
    assert_eq!(world.ask(&requests).len(), 50);
    let counters = world.link.counters();
    assert_eq!((counters.reads, counters.writes), (1, 1));
    assert_eq!(world.link.device().counters().accesses, 50);
}

#[test]
fn what_does_not_fit_a_batch_is_served_in_the_next_turn() {
    let mut world = World::new();
    // Page 0, started; a frame of 60 bytes, to be sent again and again.
    for (port, value) in [(0x00, 0x22), (0x04, 0x40), (0x05, 60), (0x06, 0)] {
        world.ask(&write(port, 0, &[value]));
    }
    let send = write(0x00, 0, &[0x26]);
    let replies = world.ask(&send.repeat(100)).len();
    assert_eq!((world.batch.len(), replies), (64, 64));
    assert_eq!(world.link.poll_at(), Some(Instant::ZERO), "no more will come to the socket");
    let replies = world.ask(&[]).len();
    assert_eq!((world.batch.len(), replies), (36, 36));
    assert_eq!(world.link.counters().frames_in, 100);
}

#[test]
fn a_card_that_has_just_opened_is_given_no_frame_for_a_moment() {
    let mut world = World::new();
    assert!(!world.link.flush().unwrap());
    // A ring, and started.
    for (port, value) in [(0x00, 0x21), (0x01, 0x46), (0x02, 0x80), (0x03, 0x46), (0x00, 0x61)] {
        world.ask(&write(port, 0, &[value]));
    }
    let start = [write(0x07, 0, &[0x47]), write(0x00, 0, &[0x22])].concat();
    world.ask(&start);
    assert_eq!(world.link.room().frames, 0);
    assert!(world.link.poll_at().is_some(), "somebody is to come back");
    while !world.link.flush().unwrap() {}
    assert_ne!(world.link.room().frames, 0);
    assert_eq!(world.link.poll_at(), None);
}

#[test]
fn a_message_may_come_byte_by_byte() {
    let mut world = World::new();
    let request = write(0x04, 7, &[1, 0]);
    for byte in &request[..request.len() - 1] {
        assert_eq!(world.ask(&[*byte]), []);
    }
    assert_eq!(world.ask(&request[request.len() - 1..]), [(10, 0, access(4, 7, 2))]);
    assert_eq!(world.ask(&read(0x04, 7, 1)), [(9, 0, [access(4, 7, 1), vec![1]].concat())]);
}

#[test]
fn no_reply_means_none() {
    let mut world = World::new();
    let quiet = message_with(1 << 4, command::REGION_WRITE, &[access(4, 7, 1), vec![1]].concat());
    let failing = message_with(1 << 4, 99, &[]);
    assert_eq!(world.ask(&[quiet, failing].concat()), []);
    assert_eq!(world.link.device().card.config().io_base(), Some(0));
}

#[test]
fn a_reset_is_that_of_a_machine() {
    let mut world = World::new();
    world.ask(&write(0x04, 7, &[1, 0]));
    // Page 0, started, with an interrupt for the end of remote DMA; then a DMA of no bytes.
    for (port, value) in [(0, 0x22), (0x0f, 0x40), (0, 0x0a)] {
        world.ask(&write(port, 0, &[value]));
    }
    assert!(world.link.device().card.card().irq_level());
    assert_eq!(world.ask(&message(command::DEVICE_RESET, &[])), [(13, 0, vec![])]);
    assert!(!world.link.device().card.card().irq_level());
    assert_eq!(world.link.device().card.config().io_base(), None);
}

#[test]
fn what_there_is_not_is_refused_and_the_rest_served() {
    let set = command::DEVICE_SET_IRQS;
    for (what, request, error) in [
        ("no such command", message(0, &[]), EOPNOTSUPP),
        ("descriptors of a region", message(6, &words(&[16, 0, 0, 0])), EOPNOTSUPP),
        ("DMA the wrong way", message(11, &[0; 16]), EOPNOTSUPP),
        ("writes that were not offered", message(15, &[0; 32]), EOPNOTSUPP),
        ("the last command", message(u16::MAX, &[]), EOPNOTSUPP),
        ("another major version", message(command::VERSION, &[1, 0, 0, 0]), EOPNOTSUPP),
        ("half a version", message(command::VERSION, &[0, 0, 0]), EINVAL),
        ("half an unmap", message(command::DMA_UNMAP, &[0; 23]), EINVAL),
        ("no size for the device", message(command::DEVICE_GET_INFO, &[]), EINVAL),
        ("a small device", message(command::DEVICE_GET_INFO, &words(&[15, 0, 0, 0])), EINVAL),
        ("a region that is not", message(5, &words(&[32, 0, 9, 0, 0, 0, 0, 0])), EINVAL),
        ("a small region", message(5, &words(&[31, 0, 0, 0, 0, 0, 0, 0])), EINVAL),
        ("half a region", message(5, &words(&[32, 0])), EINVAL),
        ("an interrupt that is not", message(7, &words(&[16, 0, 5, 0])), EINVAL),
        ("a small interrupt", message(7, &words(&[15, 0, 0, 0])), EINVAL),
        ("half an interrupt", message(set, &words(&[20, 0x11, 0, 0])), EINVAL),
        ("a read of nothing", read(0, 0, 0), EINVAL),
        ("a read of three bytes", read(0, 0, 3), EINVAL),
        ("a read of eight bytes", read(0x10, 0, 8), EINVAL),
        ("a read across the end", read(0x1e, 0, 4), EINVAL),
        ("a read behind the end", read(0x20, 0, 1), EINVAL),
        ("a read far behind the end", read(1 << 32, 0, 1), EINVAL),
        ("a read around the end of all", read(u64::MAX, 7, 1), EINVAL),
        ("a read of everything", read(0, 7, u32::MAX), EINVAL),
        ("a read of more than there is", read(0, 7, 0x101), EINVAL),
        ("a read of an empty region", read(0, 1, 4), EINVAL),
        ("a read of the ROM", read(0, 6, 4), EINVAL),
        ("a read of no region", read(0, 9, 1), EINVAL),
        ("half a read", message(command::REGION_READ, &[0; 15]), EINVAL),
        ("a write without data", message(command::REGION_WRITE, &access(0, 0, 1)), EINVAL),
        ("too little data", message(10, &[access(0, 7, 4), vec![0; 3]].concat()), EINVAL),
        ("too much data", message(10, &[access(0, 0, 4), vec![0; 5]].concat()), EINVAL),
        ("a write across the end", write(0xfe, 7, &[0; 4]), EINVAL),
    ] {
        let mut world = World::new();
        let command = u16::from_ne_bytes([request[2], request[3]]);
        let both = [&request[..], &read(0, 7, 2)].concat();
        let good = (9, 0, [access(0, 7, 2), vec![0xec, 0x10]].concat());
        assert_eq!(world.ask(&both), [(command, error, vec![]), good], "{what}");
    }
}

#[test]
fn a_client_that_breaks_the_framing_is_cut_off() {
    let sized = |size: u32| {
        let mut message = message(command::VERSION, &[0; 4]);
        message[4..8].copy_from_slice(&size.to_ne_bytes());
        message
    };
    for (what, bytes) in [
        ("no bytes", sized(0)),
        ("less than a header", sized(15)),
        ("one byte too long", sized(MAX_MESSAGE_LEN as u32 + 1)),
        ("as long as can be", sized(u32::MAX)),
        ("a reply", message_with(1, command::VERSION, &[0; 4])),
        ("an unknown type", message_with(2, command::VERSION, &[0; 4])),
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
    ] {
        let mut world = World::new();
        world.client.write_all(&bytes).unwrap();
        assert!(matches!(world.turn(), Err(LinkError::Protocol(_))), "{what}");
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_message_is_gone() {
    let mut world = World::new();
    world.client.write_all(&read(0, 0, 1)[..20]).unwrap();
    world.turn().unwrap();
    drop(world.client);
    let outcome = world.link.receive_batch(&mut world.batch);
    assert!(matches!(outcome, Err(LinkError::Closed)));
}

/// Requests without end, and no reply is read: requests wait in the socket, and what is held here
/// is bounded. Once the client reads, each request has its reply.
#[test]
fn a_client_that_does_not_read_waits_itself() {
    let mut world = World::new();
    let request = read(0, 7, 0x100);
    let mut asked = 0_usize;
    for _ in 0..1000 {
        while matches!(world.client.write(&request), Ok(sent) if sent == request.len()) {
            asked += 1;
        }
        world.turn().unwrap();
    }
    assert!(!world.link.wants_read() && world.link.wants_write());
    assert_eq!(world.link.poll_at(), None, "nothing to do until the client reads");
    let waiting = world.link.replies.bytes().len();
    assert!(waiting < (16 << 10) + HEADER_LEN + 16 + 0x100, "{waiting} bytes");
    let mut answered = 0;
    loop {
        let replies = world.replies();
        if replies.is_empty() && world.link.poll_at().is_none() && world.link.wants_read() {
            break;
        }
        assert!(replies.iter().all(|(_, error, _)| *error == 0));
        answered += replies.len();
        world.turn().unwrap();
    }
    assert_eq!(answered, asked);
}

#[test]
fn a_descriptor_belongs_to_the_message_that_it_came_with() {
    let mut world = World::new();
    let eventfd = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    let map = message(command::DMA_MAP, &words(&[32, 3, 0, 0, 0, 1, 0, 0, 0x1000, 0]));
    let arm = message(command::DEVICE_SET_IRQS, &words(&[20, 0x24, 0, 0, 1]));
    let trigger = message(command::DEVICE_SET_IRQS, &words(&[20, 0x21, 0, 0, 1]));
    world.client.write_all(&map).unwrap();
    send_with_fds(&world.client, &arm, &[eventfd.as_fd()]);
    world.client.write_all(&trigger).unwrap();
    world.turn().unwrap();
    world.turn().unwrap();
    assert_eq!(world.replies(), [(2, 0, vec![]), (8, 0, vec![]), (8, 0, vec![])]);
    let mut count = [0; 8];
    assert_eq!(rustix::io::read(&eventfd, &mut count), Ok(8));
    assert_eq!(u64::from_ne_bytes(count), 1);
}

/// One byte of a message at a time, each with descriptors: only so many are held.
#[test]
fn descriptors_are_not_hoarded() {
    let mut world = World::new();
    let eventfd = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
    let arm = message(command::DEVICE_SET_IRQS, &words(&[20, 0x24, 0, 0, 1]));
    for byte in &arm {
        send_with_fds(&world.client, &[*byte], &[eventfd.as_fd(); 5]);
        world.turn().unwrap();
        assert!(world.link.inbox.held_fds() <= 8);
    }
    assert_eq!(world.replies(), [(8, EINVAL, vec![])]);
    assert_eq!(world.link.inbox.held_fds(), 0);
}

#[derive(Clone, Debug)]
enum Input {
    Bytes(Vec<u8>),
    Message { flags: u32, command: u16, payload: Vec<u8> },
    Access { write: bool, offset: u64, region: u32, count: u32 },
    Irqs { flags: u32, start: u32, count: u32 },
}

impl Input {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.clone(),
            Self::Message { flags, command, payload } => message_with(*flags, *command, payload),
            Self::Access { write: false, offset, region, count } => read(*offset, *region, *count),
            Self::Access { write: true, offset, region, count } => {
                write(*offset, *region, &vec![0x26; *count as usize])
            }
            Self::Irqs { flags, start, count } => {
                message(command::DEVICE_SET_IRQS, &words(&[20, *flags, 0, *start, *count]))
            }
        }
    }
}

fn input() -> impl Strategy<Value = Input> {
    let payload = proptest::collection::vec(any::<u8>(), 0..80);
    prop_oneof![
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Input::Bytes),
        4 => (prop_oneof![Just(0_u32), Just(1 << 4)], 0_u16..20, payload)
            .prop_map(|(flags, command, payload)| Input::Message { flags, command, payload }),
        16 => (any::<bool>(), 0_u64..0x30, 0_u32..10, 0_u32..9).prop_map(
            |(write, offset, region, count)| Input::Access { write, offset, region, count }
        ),
        4 => (0_u32..64, 0_u32..2, 0_u32..3)
            .prop_map(|(flags, start, count)| Input::Irqs { flags, start, count }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever a client sends, it is answered, cut off, or waited for; a frame that its accesses
    /// make the card send is one that a batch holds.
    #[test]
    fn no_client_can_do_harm(inputs in proptest::collection::vec(input(), 1..60)) {
        let mut world = World::new();
        for input in &inputs {
            if world.client.write_all(&input.bytes()).is_err() || world.turn().is_err() {
                break;
            }
            if let Some(buffer) = world.link.room().frames.checked_sub(1).and_then(|_| world.link.reserve(60)) {
                buffer.fill(0xff);
                world.link.commit(60, &TxMeta::default());
            }
            prop_assert!(world.batch.iter().all(|frame| !frame.is_empty()));
            world.replies();
        }
    }
}
