//! Resting orders: reservations, the cycle, outages, expiry, settlement.

pub const SCENARIOS: &str = "";
