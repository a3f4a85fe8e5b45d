//! What the virtual router answers itself.

pub(crate) mod dhcp;
