//! What the programs beside this file share: a panic handler that does not link, and values of
//! which the optimizer knows nothing.
//!
//! Each program calls what one core crate offers. The panic handler calls a symbol that nobody
//! defines, and link-time optimization removes the handler if no panic can be reached: so a
//! program links exactly if the optimizer has proved that the crate does not panic, whatever the
//! guest sends and whatever the host answers. Formatting (`Debug`, `Display`) is left out, since
//! the panics in it are those of `core::fmt`; so is logging, which is off in such a build.

#![no_std]

use core::hint::black_box;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::panic::PanicInfo;

#[cfg(not(feature = "report"))]
unsafe extern "C" {
    /// Defined nowhere.
    safe fn slirpkit_panic_path_reached() -> !;
}

/// Defined after all, so that check.py can look who gets here.
#[cfg(feature = "report")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn slirpkit_panic_path_reached() -> ! {
    loop {}
}

#[panic_handler]
fn panic_handler(_: &PanicInfo<'_>) -> ! {
    slirpkit_panic_path_reached()
}

/// A value that may be anything, made from the ones given.
pub trait Opaque: Sized {
    /// Any value of this type.
    fn any() -> Self;
}

macro_rules! opaque_numbers {
    ($($number:ty),*) => { $(
        impl Opaque for $number {
            fn any() -> Self {
                black_box(0)
            }
        }
    )* };
}
opaque_numbers!(u8, u16, u32, u64, usize, i32);

impl Opaque for bool {
    fn any() -> Self {
        black_box(false)
    }
}

impl<const N: usize> Opaque for [u8; N] {
    fn any() -> Self {
        black_box([0; N])
    }
}

impl Opaque for Ipv4Addr {
    fn any() -> Self {
        Self::from_bits(any())
    }
}

impl Opaque for IpAddr {
    fn any() -> Self {
        if any() { Self::from(any::<[u8; 4]>()) } else { Self::from(any::<[u8; 16]>()) }
    }
}

impl Opaque for SocketAddr {
    fn any() -> Self {
        Self::new(any(), any())
    }
}

impl<T: Opaque> Opaque for Option<T> {
    fn any() -> Self {
        if bool::any() { Some(T::any()) } else { None }
    }
}

/// Any value of the type wanted.
pub fn any<T: Opaque>() -> T {
    T::any()
}

/// `first` or any of `others`.
pub fn one_of<T: Copy>(first: T, others: &[T]) -> T {
    black_box(others).get(any::<usize>()).copied().unwrap_or(first)
}

/// Bytes of any length and content.
pub fn any_bytes() -> &'static [u8] {
    black_box::<&[u8]>(&[])
}

/// Hides what is known of `memory`, its length above all.
pub fn hidden<T: ?Sized>(memory: &mut T) -> &mut T {
    black_box(memory)
}

/// Keeps `value` from being removed.
pub fn keep<T>(value: T) {
    black_box(&value);
}

/// Where the programs begin.
#[macro_export]
macro_rules! program {
    ($body:block) => {
        #[unsafe(no_mangle)]
        extern "C" fn _start() -> ! {
            #[cfg(feature = "provoke")]
            $crate::keep($crate::any_bytes()[$crate::any::<usize>()]);
            loop {
                $body
            }
        }
    };
}
