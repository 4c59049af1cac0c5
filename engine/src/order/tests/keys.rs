//! Users and keys.

pub const SCENARIOS: &str = "";
