//! What the operating system allows this process.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open descriptors as far as it goes without privileges, and returns it;
/// `u64::MAX` for no limit. Every flow takes one descriptor, and the usual soft limit is 1024.
///
/// # Errors
/// What `setrlimit` reports.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(limit.current.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let raised = raise_descriptor_limit().unwrap();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(limit.current.unwrap_or(u64::MAX), raised);
    }
}
