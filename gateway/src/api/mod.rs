//! Endpoint groups: one file (or folder) each, and [`GROUPS`] lists them.

pub mod account;
pub mod beta;
pub mod books;
pub mod export;
pub mod health;
pub mod keys;
pub mod markets;
pub mod me;
pub mod orders;
pub mod prices;
// What several groups share: refusals of the engine, `wallet_id`, token ids.
pub mod refuse;
pub mod tokens;
pub mod wallets;

#[cfg(test)]
pub(crate) mod testing;

use crate::http::route::Route;

/// Every route there is, by group.
pub const GROUPS: &[&[Route]] = &[
    orders::ROUTES,
    account::ROUTES,
    account::settlements::ROUTES,
    export::ROUTES,
    me::ROUTES,
    keys::ROUTES,
    markets::ROUTES,
    books::ROUTES,
    prices::ROUTES,
    beta::ROUTES,
    health::ROUTES,
];
