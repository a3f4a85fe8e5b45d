//! The card's regions: its 32 ports and its PCI configuration space (`linux/vfio.h`, indexes of a
//! PCI device).

use ne2000::Width;
use ne2000::rtl8029::Rtl8029As;
use rustix::io::Errno;

use super::wire::Fields;

/// The indexes of a PCI device: six base addresses, expansion ROM, configuration space, VGA.
pub(super) const COUNT: u32 = 9;

const BAR0: u32 = 0;
const CONFIG: u32 = 7;

const BAR0_LEN: u64 = 0x20;
const CONFIG_LEN: u64 = 0x100;

const FLAG_READ: u32 = 1;
const FLAG_WRITE: u32 = 2;

/// Bytes of `struct vfio_region_info`.
const INFO_LEN: u32 = 32;

const fn length(index: u32) -> Result<u64, Errno> {
    match index {
        BAR0 => Ok(BAR0_LEN),
        CONFIG => Ok(CONFIG_LEN),
        _ if index < COUNT => Ok(0),
        _ => Err(Errno::INVAL),
    }
}

/// DEVICE_GET_REGION_INFO.
pub(super) fn describe(request: &[u8], reply: &mut Vec<u8>) -> Result<(), Errno> {
    let mut fields = Fields(request);
    let (argsz, _flags, index) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let length = length(index)?;
    if argsz < INFO_LEN {
        return Err(Errno::INVAL);
    }
    let flags = if length > 0 { FLAG_READ | FLAG_WRITE } else { 0 };
    let (no_capabilities, offset) = (0_u32, 0_u64);
    for field in [INFO_LEN, flags, index, no_capabilities] {
        reply.extend_from_slice(&field.to_ne_bytes());
    }
    for field in [length, offset] {
        reply.extend_from_slice(&field.to_ne_bytes());
    }
    Ok(())
}

/// Which bytes a client accesses.
#[derive(Clone, Copy, Debug)]
enum Access {
    /// One access to the card's ports.
    Port { offset: u8, width: Width },
    /// Bytes of the configuration space.
    Config { offset: u8, count: u32 },
}

impl Access {
    /// Reads the fields of REGION_READ and REGION_WRITE.
    fn parse(fields: &mut Fields<'_>) -> Result<Self, Errno> {
        let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
        let end = offset.checked_add(u64::from(count)).ok_or(Errno::INVAL)?;
        if count == 0 || end > length(region)? {
            return Err(Errno::INVAL);
        }
        let offset = u8::try_from(offset).map_err(|_| Errno::INVAL)?;
        match (region, count) {
            (CONFIG, count) => Ok(Self::Config { offset, count }),
            (_, 1) => Ok(Self::Port { offset, width: Width::Byte }),
            (_, 2) => Ok(Self::Port { offset, width: Width::Word }),
            (_, 4) => Ok(Self::Port { offset, width: Width::Dword }),
            _ => Err(Errno::INVAL),
        }
    }

    /// Its bytes.
    fn len(self) -> usize {
        match self {
            Self::Port { width, .. } => usize::from(width.bytes()),
            Self::Config { count, .. } => count as usize,
        }
    }
}

/// REGION_READ. Returns how many accesses to the card's ports it was.
pub(super) fn read(
    card: &mut Rtl8029As,
    request: &[u8],
    reply: &mut Vec<u8>,
) -> Result<u64, Errno> {
    let access = Access::parse(&mut Fields(request))?;
    echo(request, reply);
    match access {
        Access::Port { offset, width } => {
            let value = card.card_mut().read(offset, width).to_le_bytes();
            reply.extend(value.iter().take(access.len()));
            Ok(1)
        }
        Access::Config { offset, .. } => {
            let bytes = (offset..=u8::MAX).take(access.len());
            reply.extend(bytes.map(|at| card.config().read(at, Width::Byte).to_le_bytes()[0]));
            Ok(0)
        }
    }
}

/// REGION_WRITE. Returns how many accesses to the card's ports it was.
pub(super) fn write(
    card: &mut Rtl8029As,
    request: &[u8],
    reply: &mut Vec<u8>,
) -> Result<u64, Errno> {
    let mut fields = Fields(request);
    let access = Access::parse(&mut fields)?;
    let data = fields.rest();
    if data.len() != access.len() {
        return Err(Errno::INVAL);
    }
    echo(request, reply);
    match access {
        Access::Port { offset, width } => {
            let mut value = [0; 4];
            value.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
            card.card_mut().write(offset, width, u32::from_le_bytes(value));
            Ok(1)
        }
        Access::Config { offset, .. } => {
            for (at, byte) in (offset..=u8::MAX).zip(data) {
                card.config_mut().write(at, Width::Byte, u32::from(*byte));
            }
            Ok(0)
        }
    }
}

/// A reply to an access begins as the request: offset, region and count.
fn echo(request: &[u8], reply: &mut Vec<u8>) {
    const ACCESS_LEN: usize = 16;
    reply.extend(request.iter().take(ACCESS_LEN));
}
