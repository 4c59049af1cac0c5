//! The order of checks, and which of two errors wins.

pub const SCENARIOS: &str = "";
