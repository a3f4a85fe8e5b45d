//! Names of the DP8390's registers and of their bits (DP8390D datasheet, section 10).
//!
//! Drivers may use them too: every name is the datasheet's.

/// Defines a register of eight bits with named bits.
macro_rules! byte_register {
    ($(#[$doc:meta])* $name:ident { $($(#[$bit_doc:meta])* $bit:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(u8);

        impl $name {
            $($(#[$bit_doc])* pub const $bit: Self = Self($value);)*

            /// The register with these bits.
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// All eight bits.
            pub const fn bits(self) -> u8 {
                self.0
            }

            /// Whether one of `bits` is set.
            pub const fn any_of(self, bits: Self) -> bool {
                self.0 & bits.0 != 0
            }

            /// The register with `bits` set too.
            #[must_use]
            pub const fn with(self, bits: Self) -> Self {
                Self(self.0 | bits.0)
            }

            /// The register with `bits` cleared.
            #[must_use]
            pub const fn without(self, bits: Self) -> Self {
                Self(self.0 & !bits.0)
            }
        }
    };
}

byte_register! {
    /// Command register, offset 0 of every page.
    Cr {
        /// Stop: no reception and no transmission.
        STP = 0x01,
        /// Start.
        STA = 0x02,
        /// Transmit the frame that TPSR and TBCR name.
        TXP = 0x04,
        /// Remote read.
        READ = 0x08,
        /// Remote write.
        WRITE = 0x10,
        /// Send Packet: a remote read of the frame at BNRY.
        SEND_PACKET = 0x18,
        /// Abort the remote DMA, or none.
        NO_DMA = 0x20,
        /// All three remote DMA command bits.
        RD = 0x38,
        /// Register page 1.
        PAGE1 = 0x40,
        /// Register page 2.
        PAGE2 = 0x80,
        /// Register page 3 (RTL8019AS and RTL8029AS only).
        PAGE3 = 0xC0,
    }
}

byte_register! {
    /// Interrupt status register; its bits 0 to 6 are those of IMR.
    Isr {
        /// Frame received without error.
        PRX = 0x01,
        /// Frame transmitted without error.
        PTX = 0x02,
        /// Frame received with an error.
        RXE = 0x04,
        /// Transmission given up.
        TXE = 0x08,
        /// The receive ring has overflowed.
        OVW = 0x10,
        /// A tally counter has reached 128.
        CNT = 0x20,
        /// Remote DMA complete.
        RDC = 0x40,
        /// The chip is stopped; never interrupts and is not cleared by writing.
        RST = 0x80,
        /// Everything that can interrupt.
        INTERRUPTS = 0x7F,
    }
}

byte_register! {
    /// Data configuration register.
    Dcr {
        /// Word-wide remote DMA.
        WTS = 0x01,
        /// Byte order of the 680x0: the bytes of each word change places.
        BOS = 0x02,
        /// 32-bit remote addresses; no card here decodes them.
        LAS = 0x04,
        /// Normal operation; a loopback test needs it clear.
        LS = 0x08,
        /// Send Packet goes on to the next frame by itself.
        ARM = 0x10,
    }
}

byte_register! {
    /// Transmit configuration register.
    Tcr {
        /// Do not append a frame check sequence.
        CRC = 0x01,
        /// Loopback mode; 0 is the network.
        LB = 0x06,
        /// Loopback inside the controller (mode 1).
        LB_INTERNAL = 0x02,
        /// Loopback through the encoder (mode 2).
        LB_ENDEC = 0x04,
        /// Loopback through the transceiver (mode 3).
        LB_EXTERNAL = 0x06,
        /// Remote stations may stop the transmitter.
        ATD = 0x08,
        /// Slow collision back-off.
        OFST = 0x10,
    }
}

byte_register! {
    /// Transmit status register: how the last transmission ended.
    Tsr {
        /// Sent without error.
        PTX = 0x01,
        /// Reserved, and set on the RTL8029AS.
        RESERVED = 0x02,
        /// It collided at least once.
        COL = 0x04,
        /// Given up after sixteen collisions.
        ABT = 0x08,
        /// No carrier was seen while sending.
        CRS = 0x10,
        /// The FIFO ran empty.
        FU = 0x20,
        /// The transceiver did not report its heartbeat.
        CDH = 0x40,
        /// A collision came too late.
        OWC = 0x80,
    }
}

byte_register! {
    /// Receive configuration register.
    Rcr {
        /// Keep frames with errors.
        SEP = 0x01,
        /// Accept frames of less than 64 bytes.
        AR = 0x02,
        /// Accept broadcasts.
        AB = 0x04,
        /// Accept multicasts that MAR admits.
        AM = 0x08,
        /// Accept every physical address.
        PRO = 0x10,
        /// Check frames and count them, and store none.
        MON = 0x20,
    }
}

byte_register! {
    /// Receive status register, also the first byte of a stored frame's header.
    Rsr {
        /// Received intact.
        PRX = 0x01,
        /// The frame check sequence is wrong.
        CRC = 0x02,
        /// The frame does not end on a byte.
        FAE = 0x04,
        /// The FIFO overran.
        FO = 0x08,
        /// Missed: no room, or monitor mode.
        MPA = 0x10,
        /// To a multicast or the broadcast address.
        PHY = 0x20,
        /// The receiver is in monitor mode.
        DIS = 0x40,
        /// Carrier or collision was seen for too long.
        DFR = 0x80,
    }
}

/// Offset of the command register on every page.
pub const CR: u8 = 0x00;

/// Offsets on page 0 when read.
pub mod page0_read {
    /// Current local DMA address, low byte.
    pub const CLDA0: u8 = 0x01;
    /// Current local DMA address, high byte.
    pub const CLDA1: u8 = 0x02;
    /// Boundary page.
    pub const BNRY: u8 = 0x03;
    /// Transmit status.
    pub const TSR: u8 = 0x04;
    /// Collisions of the last frame.
    pub const NCR: u8 = 0x05;
    /// The FIFO, one byte a read.
    pub const FIFO: u8 = 0x06;
    /// Interrupt status.
    pub const ISR: u8 = 0x07;
    /// Current remote DMA address, low byte.
    pub const CRDA0: u8 = 0x08;
    /// Current remote DMA address, high byte.
    pub const CRDA1: u8 = 0x09;
    /// Identification of a Realtek chip, first byte.
    pub const ID0: u8 = 0x0A;
    /// Identification of a Realtek chip, second byte.
    pub const ID1: u8 = 0x0B;
    /// Receive status.
    pub const RSR: u8 = 0x0C;
    /// Tally of frame alignment errors.
    pub const CNTR0: u8 = 0x0D;
    /// Tally of frame check errors.
    pub const CNTR1: u8 = 0x0E;
    /// Tally of missed frames.
    pub const CNTR2: u8 = 0x0F;
}

/// Offsets on page 0 when written.
pub mod page0_write {
    /// First page of the receive ring.
    pub const PSTART: u8 = 0x01;
    /// Page after the receive ring's last.
    pub const PSTOP: u8 = 0x02;
    /// Boundary page.
    pub const BNRY: u8 = 0x03;
    /// Page of the frame to send.
    pub const TPSR: u8 = 0x04;
    /// Bytes to send, low byte.
    pub const TBCR0: u8 = 0x05;
    /// Bytes to send, high byte.
    pub const TBCR1: u8 = 0x06;
    /// Interrupt status: a 1 clears a bit.
    pub const ISR: u8 = 0x07;
    /// Remote start address, low byte.
    pub const RSAR0: u8 = 0x08;
    /// Remote start address, high byte.
    pub const RSAR1: u8 = 0x09;
    /// Remote byte count, low byte.
    pub const RBCR0: u8 = 0x0A;
    /// Remote byte count, high byte.
    pub const RBCR1: u8 = 0x0B;
    /// Receive configuration.
    pub const RCR: u8 = 0x0C;
    /// Transmit configuration.
    pub const TCR: u8 = 0x0D;
    /// Data configuration.
    pub const DCR: u8 = 0x0E;
    /// Interrupt mask.
    pub const IMR: u8 = 0x0F;
}

/// Offsets on page 1, read and written.
pub mod page1 {
    /// First byte of the station address.
    pub const PAR0: u8 = 0x01;
    /// Last byte of the station address.
    pub const PAR5: u8 = 0x06;
    /// Page that takes the next frame.
    pub const CURR: u8 = 0x07;
    /// First byte of the multicast filter.
    pub const MAR0: u8 = 0x08;
    /// Last byte of the multicast filter.
    pub const MAR7: u8 = 0x0F;
}

/// Offsets on page 2, the diagnostics page. Those of 01 and 02 have another meaning when written.
pub mod page2 {
    /// PSTART when read, CLDA0 when written.
    pub const PSTART: u8 = 0x01;
    /// PSTOP when read, CLDA1 when written.
    pub const PSTOP: u8 = 0x02;
    /// Remote next-packet pointer.
    pub const REMOTE_NEXT: u8 = 0x03;
    /// TPSR, read only.
    pub const TPSR: u8 = 0x04;
    /// Local next-packet pointer.
    pub const LOCAL_NEXT: u8 = 0x05;
    /// Address counter, high byte.
    pub const ADDRESS_HIGH: u8 = 0x06;
    /// Address counter, low byte.
    pub const ADDRESS_LOW: u8 = 0x07;
    /// RCR, read only.
    pub const RCR: u8 = 0x0C;
    /// TCR, read only.
    pub const TCR: u8 = 0x0D;
    /// DCR, read only.
    pub const DCR: u8 = 0x0E;
    /// IMR, read only.
    pub const IMR: u8 = 0x0F;
}
