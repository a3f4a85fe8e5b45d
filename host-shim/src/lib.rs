//! slirp-nat over operating system sockets.
