//! The logging shim: `trace!` and friends go to `log`, to `defmt`, to both or to neither.
//!
//! A private copy in each core crate, since defmt expands to paths of the calling crate.

macro_rules! trace {
    ($s:literal $(, $x:expr)* $(,)?) => {{
        #[cfg(feature = "log")]
        ::log::trace!($s $(, $x)*);
        #[cfg(feature = "defmt")]
        ::defmt::trace!($s $(, $x)*);
        #[cfg(not(any(feature = "log", feature = "defmt")))]
        { let _ = ($(&$x,)*); }
    }};
}

macro_rules! debug {
    ($s:literal $(, $x:expr)* $(,)?) => {{
        #[cfg(feature = "log")]
        ::log::debug!($s $(, $x)*);
        #[cfg(feature = "defmt")]
        ::defmt::debug!($s $(, $x)*);
        #[cfg(not(any(feature = "log", feature = "defmt")))]
        { let _ = ($(&$x,)*); }
    }};
}

pub(crate) use {debug, trace};
