//! Simulated guests and hosts for the integration tests.
