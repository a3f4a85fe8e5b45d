//! A link whose room the test sets, and which verifies every frame.

use core::net::Ipv4Addr;

use slirp_nat::Link;
use slirp_nat::link::{Room, TcpSegmentation, TxMeta, segments};

use crate::build::{FIN, PSH, fix_checksums};
use crate::packet::Packet;
use crate::{sum, verify};

/// A link to a guest that loses nothing by itself.
#[derive(Debug)]
pub struct ScriptedLink {
    mtu: usize,
    capacity: usize,
    room: Room,
    /// See [`Link::guest_queue_frames`].
    pub guest_queue_frames: usize,
    /// How far into its memory each frame begins.
    pub alignment: usize,
    /// How many reservations more get no buffer, whatever room there is.
    pub refusals: usize,
    /// No larger reservation gets a buffer.
    pub largest: usize,
    buffer: Vec<u8>,
    frames: Vec<Vec<u8>>,
    supers: usize,
    reservations: usize,
}

/// Room without limit.
pub const UNLIMITED: Room = Room { frames: usize::MAX, bytes: usize::MAX };

impl ScriptedLink {
    /// A link with unlimited room whose buffer holds `capacity` bytes.
    #[must_use]
    pub fn new(mtu: usize, capacity: usize) -> Self {
        assert!(capacity >= mtu + 14, "a link holds one frame at least");
        Self {
            mtu,
            capacity,
            room: UNLIMITED,
            guest_queue_frames: usize::MAX,
            alignment: 0,
            refusals: 0,
            largest: usize::MAX,
            buffer: Vec::new(),
            frames: Vec::new(),
            supers: 0,
            reservations: 0,
        }
    }

    /// Sets the room to this many frames; each frame takes one of them.
    pub const fn set_frames(&mut self, frames: usize) {
        self.room = Room { frames, bytes: usize::MAX };
    }

    /// Sets the room; each frame takes its part of it.
    pub const fn set_room(&mut self, room: Room) {
        self.room = room;
    }

    /// Takes the frames sent so far.
    pub fn take_frames(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.frames)
    }

    /// Takes the frames sent so far, taken apart.
    pub fn take(&mut self) -> Vec<Packet> {
        self.take_frames().into_iter().map(Packet::parse).collect()
    }

    /// How many super-segments of more than one frame were sent.
    #[must_use]
    pub const fn super_segments(&self) -> usize {
        self.supers
    }

    fn emit(&mut self, frame: Vec<u8>) {
        verify::frame(&frame, self.mtu);
        assert!(self.room.frames > 0, "a frame without room for a frame");
        assert!(self.room.bytes >= frame.len(), "a frame without room for its bytes");
        if self.room.frames != usize::MAX {
            self.room.frames -= 1;
        }
        if self.room.bytes != usize::MAX {
            self.room.bytes -= frame.len();
        }
        self.frames.push(frame);
    }
}

impl Link for ScriptedLink {
    fn room(&mut self) -> Room {
        self.room
    }

    fn guest_queue_frames(&self) -> usize {
        self.guest_queue_frames
    }

    fn reserve(&mut self, wanted: usize) -> Option<&mut [u8]> {
        self.reservations += 1;
        if self.refusals > 0 {
            self.refusals -= 1;
            return None;
        }
        if self.room.frames == 0 || wanted > self.largest {
            return None;
        }
        // What lay in the buffer before must never reach the guest.
        self.buffer.clear();
        self.buffer.resize(self.alignment + wanted.min(self.capacity), 0xa5);
        self.buffer.get_mut(self.alignment..)
    }

    fn commit(&mut self, length: usize, meta: &TxMeta) {
        assert!(self.reservations > 0, "a commit without a reservation");
        self.reservations = 0;
        let reserved = &self.buffer[self.alignment..];
        assert!(length <= reserved.len(), "a commit beyond the reservation");
        let superframe = reserved[..length].to_vec();
        let Some(segmentation) = meta.segment else {
            return self.emit(superframe);
        };
        let before = self.frames.len();
        let cut_here = cut(&superframe, segmentation);
        let cut_there: Vec<Vec<u8>> = segments(&superframe, segmentation)
            .map(|segment| [segment.header(), &superframe[segment.payload()]].concat())
            .collect();
        assert_eq!(cut_there, cut_here, "the two cutters differ");
        for mut frame in cut_there {
            frame.resize(frame.len().max(verify::MIN_FRAME), 0);
            self.emit(frame);
        }
        self.supers += usize::from(self.frames.len() > before + 1);
    }
}

/// Cuts a super-segment into frames, for comparison with [`segments`].
fn cut(superframe: &[u8], segmentation: TcpSegmentation) -> Vec<Vec<u8>> {
    let TcpSegmentation { tcp_offset, header_len, segment_size } = segmentation;
    assert!(segment_size > 0, "a segment size of 0");
    let (header, payload) = superframe.split_at(usize::from(header_len));
    let tcp = usize::from(tcp_offset);
    let (src, dst) = (address(&header[26..]), address(&header[30..]));
    let pseudo = sum::pseudo_sum(src, dst, 6, superframe.len() - tcp) as u16;
    assert_eq!(header[tcp + 16..tcp + 18], pseudo.to_be_bytes(), "pseudo-header sum");
    let step = usize::from(segment_size);
    let count = payload.len().div_ceil(step).max(1);
    (0..count)
        .map(|index| {
            let piece = &payload[index * step..payload.len().min((index + 1) * step)];
            let mut frame = [header, piece].concat();
            let total = (frame.len() - 14) as u16;
            frame[16..18].copy_from_slice(&total.to_be_bytes());
            let id = u16::from_be_bytes([frame[18], frame[19]]).wrapping_add(index as u16);
            frame[18..20].copy_from_slice(&id.to_be_bytes());
            let seq = u32::from_be_bytes([frame[38], frame[39], frame[40], frame[41]]);
            let seq = seq.wrapping_add((index * step) as u32);
            frame[38..42].copy_from_slice(&seq.to_be_bytes());
            if index + 1 < count {
                frame[47] &= !(FIN | PSH);
            }
            fix_checksums(&mut frame);
            frame
        })
        .collect()
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}
