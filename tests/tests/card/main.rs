//! A guest with a stack of its own behind the card and the NAT, in time that only the test moves.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's mistake is to stop the test")]

mod simulation;
mod transfers;
