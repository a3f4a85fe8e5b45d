//! Bytes to fields and back.
