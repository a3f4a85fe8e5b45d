//! One file per driver: its sequence of accesses in our own words, and what it must read back.

mod bsd;
mod crynwr;
mod d3os;
mod elks;
mod ipxe;
mod lib8390;
mod linux_ne;
mod linux_ne2k_pci;
mod minix;
mod netware;
mod os2;
mod reactos;
mod solaris;
mod windows;
