//! Decisions: commands, state, books and rules give facts or a refusal. Nothing here changes state.
//!
//! | File | Decides |
//! |---|---|
//! | `place.rs` | a placement: every check that needs no book; then `enter.rs` |
//! | `enter.rs` | the entry of an order: fill, rest or end |
//! | `take.rs` | the walk of an order over the books of one turn |
//! | `cascade.rs` | prices of an order without a book |
//! | `depletion.rs` | the sizes that a user has taken from levels still on the book |
//! | `fill.rs` | the fact of one fill |
//! | `quality.rs` | figures of the moment of placement |
//! | `cycle.rs` | a resting order against the book or a print |
//! | `cancel.rs`, `settle.rs` | the end of orders, by request and by a resolution |
//! | `keys.rs`, `wallets.rs` | users, keys and wallets |
//! | `alerts.rs` | targets and choices of alerts, and what became of their delivery |
//! | `backtests.rs` | creation, start and end of back-tests |
//! | `billing.rs` | events of the payment provider |
//! | `queued.rs` | the place of an order in the queue of its level |
//! | `numbers.rs` | ids of new objects |

pub mod alerts;
pub mod backtests;
pub mod billing;
pub mod cancel;
pub mod cascade;
pub mod cycle;
pub mod depletion;
pub mod enter;
pub mod fill;
pub mod keys;
pub mod numbers;
pub mod place;
pub mod quality;
pub mod queued;
pub mod settle;
pub mod take;
#[cfg(test)]
mod tests;
pub mod wallets;
