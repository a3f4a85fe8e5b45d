//! Keyed hashing.
