//! Each rollout flag off: the legacy behaviour of execution.md §1.

pub const SCENARIOS: &str = "";
