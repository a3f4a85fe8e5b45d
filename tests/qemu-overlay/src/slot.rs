//! Where in the machine the card is.

use ne2000::Model;

/// Where in the machine the card is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// In the place of the PCI device with this identifier.
    Pci(String),
    /// On the ISA bus.
    Isa { port: u16, irq: u32 },
}

impl Slot {
    /// What `SLIRPKIT_OVERLAY` says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let text = std::env::var("SLIRPKIT_OVERLAY").unwrap_or_default();
        Self::parse(&text).ok_or_else(|| {
            format!("SLIRPKIT_OVERLAY is {text:?}, and should be pci:ID or isa:PORT:IRQ")
        })
    }

    fn parse(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            ("pci", id) => Some(Self::Pci(id.to_owned())),
            ("isa", place) => {
                let (port, irq) = place.split_once(':')?;
                Some(Self::Isa {
                    port: u16::from_str_radix(port.trim_start_matches("0x"), 16).ok()?,
                    irq: irq.parse().ok()?,
                })
            }
            _ => None,
        }
    }

    /// The card that fits in.
    pub(crate) const fn model(&self) -> Model {
        match self {
            Self::Pci(_) => Model::Rtl8029As,
            Self::Isa { .. } => Model::Ne2000,
        }
    }
}
