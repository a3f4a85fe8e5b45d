//! Keys from the operating system's random number generator.

use std::io;

use slirp_nat::Secret;

/// Draws the key of one NAT.
///
/// # Errors
/// The system has no random numbers to give.
pub fn draw() -> io::Result<Secret> {
    Ok(Secret([random()?, random()?]))
}

fn random() -> io::Result<u64> {
    getrandom::u64().map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(draw().unwrap().0, draw().unwrap().0);
    }
}
