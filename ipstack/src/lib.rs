#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    expect(clippy::std_instead_of_alloc, reason = "tests have std and no alloc crate")
)]

#[cfg(test)]
extern crate std;

mod bytes;
mod fmt;

pub mod checksum;
pub mod frag;
pub mod hash;
pub mod pool;
pub mod tcp;
pub mod time;
pub mod wire;

pub use time::Instant;
