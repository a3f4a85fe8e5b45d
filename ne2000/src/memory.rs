//! What lies behind the chip's addresses on each card: the station PROM and the packet RAM.

use crate::chip::LocalBus;

/// Bytes of packet RAM on an NE2000 (16 KiB at card address 4000h).
pub const PACKET_RAM_LEN: usize = 16 * 1024;

/// Bytes of one page of packet RAM, the unit of the receive ring (DP8390D datasheet, section 7).
pub const PAGE_LEN: usize = 256;

/// Bytes of the station PROM's image.
pub const PROM_LEN: usize = 32;

/// What nothing answers.
static OPEN: [u8; PAGE_LEN] = [0xFF; PAGE_LEN];

/// Which card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Model {
    /// Eight bits wide, 8 KiB of RAM.
    Ne1000,
    /// Sixteen bits wide, 16 KiB of RAM.
    Ne2000,
    /// An NE2000 in an eight-bit slot, or an RTL8019AS that finds itself in one: half its RAM.
    Ne2000EightBit,
    /// Realtek's PCI card, up to 32 bits wide.
    Rtl8029As,
}

impl Model {
    /// Bytes of packet RAM that the card addresses.
    pub const fn ram_len(self) -> usize {
        match self {
            Self::Ne1000 | Self::Ne2000EightBit => PACKET_RAM_LEN / 2,
            Self::Ne2000 | Self::Rtl8029As => PACKET_RAM_LEN,
        }
    }

    /// The PROM's contents for a station address.
    const fn prom(self, mac: [u8; 6]) -> [u8; PROM_LEN] {
        let [a, b, c, d, e, f] = mac;
        let s = match self {
            // VirtualBox fills the rest with FFh throughout, but Linux's `ne` takes no NE1000
            // without the two signature bytes, and nothing else looks at them.
            Self::Ne1000 => {
                const X: u8 = 0xFF;
                return [
                    a, b, c, d, e, f, X, X, X, X, X, X, X, X, 0x57, 0x57, //
                    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
                ];
            }
            Self::Ne2000 | Self::Rtl8029As => b'W',
            // VirtualBox: 'B' for byte instead of 'W' for word.
            Self::Ne2000EightBit => b'B',
        };
        // The address lines skip A0, so every byte appears twice (VirtualBox; v86 #378).
        [
            a, a, b, b, c, c, d, d, e, e, f, f, 0, 0, 0, 0, //
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, s, s, s, s,
        ]
    }
}

/// Where an address leads.
enum Place {
    Prom(usize),
    Ram(usize),
    Open(usize),
}

/// PROM and RAM of one card.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    model: Model,
    prom: [u8; PROM_LEN],
    ram: [u8; PACKET_RAM_LEN],
}

impl Memory {
    pub(crate) const fn new(model: Model, mac: [u8; 6]) -> Self {
        Self { model, prom: model.prom(mac), ram: [0; PACKET_RAM_LEN] }
    }

    /// Becomes the memory of another card, with this in its RAM.
    pub(crate) fn load(&mut self, model: Model, mac: [u8; 6], ram: &[u8]) {
        self.model = model;
        self.prom = model.prom(mac);
        self.ram.fill(0);
        self.ram.iter_mut().zip(ram).for_each(|(to, byte)| *to = *byte);
    }

    pub(crate) fn clear_ram(&mut self) {
        self.ram.fill(0);
    }

    pub(crate) const fn prom(&self) -> &[u8; PROM_LEN] {
        &self.prom
    }

    /// The RAM that the card addresses, from its first address on.
    pub(crate) fn ram(&self) -> &[u8] {
        self.ram.get(..self.model.ram_len()).unwrap_or(&[])
    }

    /// Where `address` leads by the lines that each card decodes (VirtualBox). The RTL8029AS is
    /// taken for an NE2000 with a small PROM: other models give it 32 KiB, its real size is not
    /// known, and no driver uses more than 16. The alias at C000h is needed: NetWare sends from
    /// there (86Box #2389).
    fn place(&self, address: u16) -> Place {
        if let Some(at) = self.ram_at(address) {
            return Place::Ram(at);
        }
        let small_prom = self.model == Model::Rtl8029As;
        let in_prom = !small_prom || usize::from(address & 0x3FFF) < PROM_LEN;
        let upper_half = self.model == Model::Ne2000EightBit && address & 0x4000 != 0;
        if in_prom && !upper_half {
            Place::Prom(usize::from(address) % PROM_LEN)
        } else {
            Place::Open(usize::from(address) % PAGE_LEN)
        }
    }

    /// The place in the RAM that `address` leads to, if to any. Every access of the data port asks.
    #[inline]
    fn ram_at(&self, address: u16) -> Option<usize> {
        let (lines, selected) = match self.model {
            Model::Ne1000 => (0x2000, 0x2000),
            Model::Ne2000EightBit => (0x6000, 0x4000),
            Model::Ne2000 | Model::Rtl8029As => (0x4000, 0x4000),
        };
        let at = usize::from(address) & self.model.ram_len().wrapping_sub(1);
        (address & lines == selected).then_some(at)
    }
}

impl LocalBus for Memory {
    fn byte(&self, address: u16) -> u8 {
        let byte = match self.place(address) {
            Place::Prom(at) => self.prom.get(at),
            Place::Ram(at) => self.ram.get(at),
            Place::Open(at) => OPEN.get(at),
        };
        byte.copied().unwrap_or(0xFF)
    }

    /// The PROM keeps what it holds: ReactOS sizes the RAM by writing everywhere.
    fn set_byte(&mut self, address: u16, value: u8) {
        if let Place::Ram(at) = self.place(address)
            && let Some(byte) = self.ram.get_mut(at)
        {
            *byte = value;
        }
    }

    #[inline]
    fn word(&self, even: u16) -> [u8; 2] {
        let ram = self.ram_at(even).and_then(|at| self.ram.get(at..)?.first_chunk());
        ram.copied().unwrap_or_else(|| [self.byte(even), self.byte(even | 1)])
    }

    #[inline]
    fn set_word(&mut self, even: u16, bytes: [u8; 2]) {
        let at = self.ram_at(even);
        if let Some(word) = at.and_then(|at| self.ram.get_mut(at..)?.first_chunk_mut()) {
            *word = bytes;
        }
    }

    fn page_mut(&mut self, page: u8) -> Option<&mut [u8; PAGE_LEN]> {
        match self.place(u16::from_le_bytes([0, page])) {
            Place::Ram(at) => self.ram.get_mut(at..).and_then(|ram| ram.first_chunk_mut()),
            Place::Prom(_) | Place::Open(_) => None,
        }
    }

    fn piece(&self, address: u16) -> &[u8] {
        let piece = match self.place(address) {
            Place::Prom(at) => self.prom.get(at..),
            Place::Ram(at) => self.ram().get(at..),
            Place::Open(at) => OPEN.get(at..),
        };
        piece.filter(|piece| !piece.is_empty()).unwrap_or(&OPEN)
    }
}
