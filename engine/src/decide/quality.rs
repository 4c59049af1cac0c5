//! Quality figures of a placement (engine/docs/execution.md §8). `book/walk.rs` has the formulas; this file assigns
//! them to orders.

use crate::amount::{Cash, Price, Qty, average_half_up};
use crate::book::walk::deviation_bps;
use crate::order::Quality;

/// A price of the 10⁻⁴ grid in 10⁻⁶ USD a share, the scale of averages.
pub fn per_share(price: Price) -> Cash {
    Cash(i64::from(price.0) * 100)
}

/// The average of a fill in 10⁻⁶ USD a share, half up.
pub fn average(notional: Cash, qty: Qty) -> Cash {
    average_half_up(notional, qty).expect("a fill is never empty")
}

/// Slippage against the displayed price at submit, for market orders only, and whether it reaches the warning
/// threshold.
pub fn slipped(before: Quality, average: Cash, market: bool, warn_at_bps: u32) -> Quality {
    let slippage_bps = before.displayed.filter(|_| market).and_then(|shown| deviation_bps(average, shown));
    Quality { slippage_bps, high_slippage: slippage_bps.is_some_and(|bps| bps >= warn_at_bps), ..before }
}
