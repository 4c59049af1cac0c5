//! Endpoint groups: one file (or folder) each; [`crate::groups`] lists them.

pub mod account;
pub mod beta;
pub mod billing;
pub mod books;
pub mod candles;
pub mod clob;
pub mod events;
pub mod export;
pub mod football;
pub mod gamma;
pub mod health;
pub mod history;
pub mod holdings;
pub mod integrations;
pub mod keys;
pub mod markets;
pub mod me;
pub mod orders;
pub mod prices;
pub mod quotes;
// What several groups share: refusals of the engine, `wallet_id`, token ids.
pub mod refuse;
pub mod simulation;
pub mod status;
pub mod tokens;
pub mod updown;
pub mod wallets;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
