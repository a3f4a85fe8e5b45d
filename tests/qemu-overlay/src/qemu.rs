//! QEMU's side: the only place with unsafe code.
//!
//! QEMU calls back with its global lock held: when a virtual processor accesses a port, when its
//! main loop finds a descriptor readable, when the machine is reset. So no two of the functions
//! below run at a time, and nothing that they call makes QEMU call them again.
#![expect(unsafe_code, reason = "calls into QEMU, and calls back")]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use ne2000::Width;

use crate::slot::Slot;

/// Ports of a card.
const PORTS: u64 = 32;

/// A device of the machine.
pub(crate) trait Device: 'static {
    /// The processor reads a port.
    fn read(&mut self, port: u8, width: Width) -> u32;

    /// The processor writes to a port.
    fn write(&mut self, port: u8, width: Width, value: u32);

    /// The machine was reset.
    fn reset(&mut self);

    /// What it waits for, once and for all.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// One of [`Device::descriptors`] is readable, by its index.
    fn on_readable(&mut self, index: usize);

    /// The next level that the interrupt line has had, or has now, and that differs from the one
    /// before.
    fn changed_line(&mut self) -> Option<bool>;
}

/// A device, and its interrupt line in the machine.
struct Installed {
    device: Box<dyn Device>,
    line: Line,
}

enum Line {
    Pci(*mut PciDevice),
    Isa(*mut Irq),
}

/// One of the descriptors of a device.
struct Watch {
    installed: *mut Installed,
    index: usize,
}

/// Types of QEMU's that are only pointed to.
#[repr(C)]
struct Object([u8; 0]);
#[repr(C)]
struct PciDevice([u8; 0]);
#[repr(C)]
struct Irq([u8; 0]);

/// Some 300 bytes in QEMU, which fills them in, and checks that they are zero before.
type MemoryRegion = [u64; 512];

/// `MemoryRegionOps` of QEMU's include/exec/memory.h.
#[repr(C)]
struct MemoryRegionOps {
    read: unsafe extern "C" fn(*mut c_void, u64, c_uint) -> u64,
    write: unsafe extern "C" fn(*mut c_void, u64, u64, c_uint),
    read_with_attributes: Option<unsafe extern "C" fn()>,
    write_with_attributes: Option<unsafe extern "C" fn()>,
    endianness: c_uint,
    valid: AccessSizes,
    implemented: ImplementedSizes,
}

#[repr(C)]
struct AccessSizes {
    least: c_uint,
    most: c_uint,
    unaligned: bool,
    accepts: Option<unsafe extern "C" fn()>,
}

#[repr(C)]
struct ImplementedSizes {
    least: c_uint,
    most: c_uint,
    unaligned: bool,
}

const LITTLE_ENDIAN: c_uint = 2;

static OPS: MemoryRegionOps = MemoryRegionOps {
    read: on_read,
    write: on_write,
    read_with_attributes: None,
    write_with_attributes: None,
    endianness: LITTLE_ENDIAN,
    valid: AccessSizes { least: 1, most: 4, unaligned: true, accepts: None },
    implemented: ImplementedSizes { least: 1, most: 4, unaligned: true },
};

/// `Notifier` of QEMU's include/qemu/notify.h: a function, and a link in a list.
#[repr(C)]
struct Notifier {
    notify: extern "C" fn(*mut Self, *mut c_void),
    node: [*mut c_void; 2],
}

unsafe extern "C" {
    fn qemu_add_machine_init_done_notifier(notifier: *mut Notifier);
    fn object_resolve_path(path: *const c_char, ambiguous: *mut bool) -> *mut Object;
    fn object_resolve_path_component(parent: *mut Object, part: *const c_char) -> *mut Object;
    fn memory_region_init_io(
        region: *mut MemoryRegion,
        owner: *mut Object,
        ops: *const MemoryRegionOps,
        opaque: *mut c_void,
        name: *const c_char,
        size: u64,
    );
    fn memory_region_add_subregion_overlap(
        container: *mut MemoryRegion,
        offset: u64,
        region: *mut MemoryRegion,
        priority: c_int,
    );
    fn get_system_io() -> *mut MemoryRegion;
    fn isa_get_irq(device: *mut Object, number: c_uint) -> *mut Irq;
    fn qemu_set_irq(irq: *mut Irq, level: c_int);
    fn pci_set_irq(device: *mut PciDevice, level: c_int);
    fn qemu_set_fd_handler(
        fd: c_int,
        on_readable: Option<unsafe extern "C" fn(*mut c_void)>,
        on_writable: Option<unsafe extern "C" fn(*mut c_void)>,
        opaque: *mut c_void,
    );
    fn qemu_register_reset(on_reset: unsafe extern "C" fn(*mut c_void), opaque: *mut c_void);
}

/// Run by the loader before QEMU's `main`.
#[used]
// SAFETY: an entry of this section is a function that the loader calls once; this one only adds a
// notifier of its own to a list in QEMU, which is ready before any code runs.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    let notifier = Notifier { notify: on_machine_done, node: [ptr::null_mut(); 2] };
    // SAFETY: QEMU keeps the notifier in a list, so it is never freed.
    unsafe { qemu_add_machine_init_done_notifier(Box::into_raw(Box::new(notifier))) };
}

extern "C" fn on_machine_done(_: *mut Notifier, _: *mut c_void) {
    crate::lay();
}

/// Puts a device into the machine.
///
/// # Errors
/// The machine has no such place.
pub(crate) fn install(slot: &Slot, device: impl Device) -> Result<(), String> {
    let (container, offset, owner, line) = place(slot)?;
    // Device and region are part of the machine now, which is never taken apart.
    let installed = Box::into_raw(Box::new(Installed { device: Box::new(device), line }));
    let region: *mut MemoryRegion = Box::into_raw(Box::new([0; 512]));
    // SAFETY: `region` and `installed` live for ever and belong to QEMU from here on; `container`
    // and `owner` are its own, from `place`. The name is copied.
    unsafe {
        memory_region_init_io(
            region,
            owner,
            &raw const OPS,
            installed.cast(),
            c"ne2000".as_ptr(),
            PORTS,
        );
        memory_region_add_subregion_overlap(container, offset, region, 1);
        qemu_register_reset(on_reset, installed.cast());
    }
    // SAFETY: nobody else has a reference: QEMU's lock is held, and it has not called back yet.
    let device = unsafe { &(*installed).device };
    for (index, descriptor) in device.descriptors().iter().enumerate() {
        let watch = Box::into_raw(Box::new(Watch { installed, index }));
        // SAFETY: the descriptor belongs to the device, and so, like `watch`, stays for ever.
        unsafe {
            qemu_set_fd_handler(descriptor.as_raw_fd(), Some(on_readable), None, watch.cast())
        };
    }
    Ok(())
}

/// The region that holds the ports, where in it they are, to whom they belong, and the line.
fn place(slot: &Slot) -> Result<(*mut MemoryRegion, u64, *mut Object, Line), String> {
    match slot {
        Slot::Pci(id) => {
            let path = CString::new(format!("/machine/peripheral/{id}")).unwrap_or_default();
            let device = child(ptr::null_mut(), &path);
            if device.is_null() {
                return Err(format!("the machine has no device {id:?}"));
            }
            let ports = child(device, c"ne2000[0]");
            if ports.is_null() {
                return Err(format!("device {id:?} is no ne2k_pci"));
            }
            Ok((ports.cast(), 0, device, Line::Pci(device.cast())))
        }
        Slot::Isa { port, irq } => {
            // SAFETY: the machine is complete; a null device stands for the one ISA bus.
            let (ports, irq) = unsafe { (get_system_io(), isa_get_irq(ptr::null_mut(), *irq)) };
            Ok((ports, u64::from(*port), ptr::null_mut(), Line::Isa(irq)))
        }
    }
}

/// The part of an object with this name, or without an object what has this path; null if there is
/// none.
fn child(parent: *mut Object, name: &CStr) -> *mut Object {
    // SAFETY: the name ends with a zero and is only read; a parent is an object of QEMU's.
    unsafe {
        if parent.is_null() {
            object_resolve_path(name.as_ptr(), ptr::null_mut())
        } else {
            object_resolve_path_component(parent, name.as_ptr())
        }
    }
}

impl Installed {
    /// Has the device do something, then tells the machine of its interrupt line.
    ///
    /// # Safety
    /// `installed` is one that [`install`] made, and QEMU's lock is held.
    unsafe fn with<T>(installed: *mut Self, act: impl FnOnce(&mut dyn Device) -> T) -> T {
        // SAFETY: it is never freed, and with the lock held this is the only reference.
        let Self { device, line } = unsafe { &mut *installed };
        let result = act(&mut **device);
        while let Some(level) = device.changed_line() {
            // SAFETY: both lines are QEMU's, and last as long as the machine.
            match line {
                Line::Pci(device) => unsafe { pci_set_irq(*device, level.into()) },
                Line::Isa(irq) => unsafe { qemu_set_irq(*irq, level.into()) },
            }
        }
        result
    }
}

/// The port and width of an access, which QEMU has made sure are within the region and `OPS`.
fn access(address: u64, size: c_uint) -> (u8, Width) {
    let width = match size {
        1 => Width::Byte,
        2 => Width::Word,
        _ => Width::Dword,
    };
    (address.to_le_bytes()[0], width)
}

unsafe extern "C" fn on_read(installed: *mut c_void, address: u64, size: c_uint) -> u64 {
    let (port, width) = access(address, size);
    // SAFETY: this is what was given to `memory_region_init_io`; accesses hold the lock.
    unsafe { Installed::with(installed.cast(), |device| device.read(port, width).into()) }
}

unsafe extern "C" fn on_write(installed: *mut c_void, address: u64, value: u64, size: c_uint) {
    let (port, width) = access(address, size);
    let [a, b, c, d, ..] = value.to_le_bytes();
    let value = u32::from_le_bytes([a, b, c, d]);
    // SAFETY: this is what was given to `memory_region_init_io`; accesses hold the lock.
    unsafe { Installed::with(installed.cast(), |device| device.write(port, width, value)) }
}

unsafe extern "C" fn on_reset(installed: *mut c_void) {
    // SAFETY: this is what was given to `qemu_register_reset`; resets hold the lock.
    unsafe { Installed::with(installed.cast(), |device| device.reset()) }
}

unsafe extern "C" fn on_readable(watch: *mut c_void) {
    // SAFETY: this is what was given to `qemu_set_fd_handler`, never freed and never written to.
    let &Watch { installed, index } = unsafe { &*watch.cast::<Watch>() };
    // SAFETY: that is what `install` made; the main loop holds the lock.
    unsafe { Installed::with(installed, |device| device.on_readable(index)) }
}
