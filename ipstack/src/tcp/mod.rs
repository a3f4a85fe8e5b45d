//! A TCP endpoint whose bytes live in somebody else's socket (RFC 9293).
